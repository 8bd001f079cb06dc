package apiserver

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/util/cert"

	"federation/apiserver/console"
)

// ConsoleOIDCOptions say at which issuer people log in to the console.
type ConsoleOIDCOptions struct {
	// IssuerURL is the issuer; "": nobody logs in at one.
	IssuerURL, ClientID, ClientSecretFile, CAFile string
	Scopes                                        []string
}

func (o *ConsoleOIDCOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.IssuerURL, "console-oidc-issuer-url", "", "`URL` of the OpenID Connect issuer at which people log in to the console. --authentication-config must name it, too, with --console-oidc-client-id among its audiences. Its client has https://HOST:PORT/console/callback as redirect URI")
	fs.StringVar(&o.ClientID, "console-oidc-client-id", "", "the console's client ID at --console-oidc-issuer-url")
	fs.StringVar(&o.ClientSecretFile, "console-oidc-client-secret-file", "", "`FILE` with the client's secret; without it the client is a public one. PKCE is used either way")
	fs.StringVar(&o.CAFile, "console-oidc-ca-file", "", "PEM `FILE` with the authority of the issuer's certificate; without it the system's authorities")
	fs.StringSliceVar(&o.Scopes, "console-oidc-scopes", []string{"email", "groups"}, "scopes that are asked for beside openid")
}

// check checks the flags without reading files.
func (o *ConsoleOIDCOptions) check() error {
	var errs []error
	if o.IssuerURL == "" {
		for flag, value := range map[string]string{"--console-oidc-client-id": o.ClientID, "--console-oidc-client-secret-file": o.ClientSecretFile, "--console-oidc-ca-file": o.CAFile} {
			if value != "" {
				errs = append(errs, fmt.Errorf("%s %q: goes with --console-oidc-issuer-url only", flag, value))
			}
		}
		return errors.Join(errs...)
	}
	if u, err := url.Parse(o.IssuerURL); err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		errs = append(errs, fmt.Errorf("--console-oidc-issuer-url %q: must be an https URL without query and fragment, as https://login.example.com", o.IssuerURL))
	}
	if o.ClientID == "" {
		errs = append(errs, errors.New(`--console-oidc-client-id "": must be the console's client ID at --console-oidc-issuer-url`))
	}
	for flag, file := range map[string]string{"--console-oidc-client-secret-file": o.ClientSecretFile, "--console-oidc-ca-file": o.CAFile} {
		if _, err := os.Stat(file); file != "" && err != nil {
			errs = append(errs, fmt.Errorf("%s %q: must be a file that can be read: %w", flag, file, err))
		}
	}
	return errors.Join(errs...)
}

// read reads the files; nil without an issuer.
func (o *ConsoleOIDCOptions) read() (*console.OIDC, error) {
	if o.IssuerURL == "" {
		return nil, nil
	}
	out := &console.OIDC{Issuer: o.IssuerURL, ClientID: o.ClientID, Scopes: o.Scopes}
	if o.ClientSecretFile != "" {
		secret, err := os.ReadFile(o.ClientSecretFile)
		if err != nil {
			return nil, fmt.Errorf("--console-oidc-client-secret-file: %w", err)
		}
		out.ClientSecret = strings.TrimSpace(string(secret))
	}
	if o.CAFile != "" {
		pool, err := cert.NewPool(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--console-oidc-ca-file %q: %w", o.CAFile, err)
		}
		out.CA = pool
	}
	return out, nil
}
