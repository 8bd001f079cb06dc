package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"federation/dnsprovider"
	"federation/dnsprovider/coredns"
	"federation/dnsprovider/powerdns"
	"federation/dnsprovider/rfc2136"
)

// secretFile returns what reads a secret, each time from the file, so that one that is replaced counts.
func secretFile(field, file string) func() (string, error) {
	return func() (string, error) {
		if file == "" {
			return "", fmt.Errorf("%s: must be the name of a file", field)
		}
		text, err := os.ReadFile(file)
		return strings.TrimSpace(string(text)), err
	}
}

// rfc2136Section is a server that takes signed updates.
type rfc2136Section struct {
	Server string `json:"server"`
	Key    struct {
		Name       string `json:"name"`
		Algorithm  string `json:"algorithm"`
		SecretFile string `json:"secretFile"`
	} `json:"key"`
}

func newRFC2136(s rfc2136Section, _ string) (dnsprovider.Provider, error) {
	return rfc2136.New(rfc2136.Options{Server: s.Server, Key: rfc2136.Key{
		Name: s.Key.Name, Algorithm: s.Key.Algorithm, Secret: secretFile("key.secretFile", s.Key.SecretFile),
	}})
}

// powerDNSSection is the API of a PowerDNS server.
type powerDNSSection struct {
	URL     string `json:"url"`
	Server  string `json:"server"`
	KeyFile string `json:"keyFile"`
	CAFile  string `json:"caFile"`
	// AllowInsecure lets the key go over the network as it is.
	AllowInsecure bool `json:"allowInsecure"`
}

func newPowerDNS(s powerDNSSection, _ string) (dnsprovider.Provider, error) {
	if err := encrypted("url", s.URL, false, s.AllowInsecure); err != nil {
		return nil, err
	}
	trust, err := tlsFiles{CAFile: s.CAFile}.config()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = trust
	return powerdns.New(powerdns.Options{URL: s.URL, Server: s.Server, Key: secretFile("keyFile", s.KeyFile), Transport: transport})
}

// coreDNSSection is the etcd that a CoreDNS reads.
type coreDNSSection struct {
	Endpoints    []string `json:"endpoints"`
	Prefix       string   `json:"prefix"`
	Username     string   `json:"username"`
	PasswordFile string   `json:"passwordFile"`
	// AllowInsecure lets the password go over the network as it is.
	AllowInsecure bool `json:"allowInsecure"`
	tlsFiles
}

func newCoreDNS(s coreDNSSection, zone string) (dnsprovider.Provider, error) {
	if len(s.Endpoints) == 0 {
		return nil, errors.New("endpoints: must be the addresses of etcd")
	}
	config := clientv3.Config{Endpoints: s.Endpoints, Username: s.Username, DialTimeout: 5 * time.Second, Logger: zap.NewNop()}
	var err error
	if s.Username != "" {
		for _, endpoint := range s.Endpoints {
			if err := encrypted("endpoints", endpoint, s.tlsFiles != (tlsFiles{}), s.AllowInsecure); err != nil {
				return nil, err
			}
		}
		if config.Password, err = secretFile("passwordFile", s.PasswordFile)(); err != nil {
			return nil, err
		}
	}
	if s.tlsFiles != (tlsFiles{}) {
		if config.TLS, err = s.config(); err != nil {
			return nil, err
		}
	}
	connect := func() (clientv3.KV, error) { return clientv3.New(config) } // for as long as the process runs
	return coredns.New(coredns.Options{Connect: connect, Prefix: s.Prefix, Zones: []string{zone}})
}

// encrypted refuses an address beyond this machine to which a secret, or what DNS is to say, would go in the clear. secure says whether one
// without a scheme is encrypted. Addresses that are none are refused by who uses them.
func encrypted(field, address string, secure, allowed bool) error {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = map[bool]string{true: "https", false: "http"}[secure], address
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil || u.Scheme != "http" || allowed { // whatever letters it is written in
		return nil //nolint:nilerr // said by who uses it
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && addr.Unmap().IsLoopback() || u.Hostname() == "localhost" {
		return nil
	}
	return fmt.Errorf("%s: %q is not encrypted: must be https, or on loopback, or allowed by allowInsecure: true", field, u.Redacted())
}

// tlsFiles say whom to trust, and who we are. Without a CA, those are trusted whom the system trusts.
type tlsFiles struct {
	CAFile   string `json:"caFile"`
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
}

func (f tlsFiles) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CAFile != "" {
		pem, err := os.ReadFile(f.CAFile)
		if err != nil {
			return nil, fmt.Errorf("caFile: %w", err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("caFile %q: must have certificates in PEM", f.CAFile)
		}
	}
	if f.CertFile != "" || f.KeyFile != "" {
		read := func() (tls.Certificate, error) { return tls.LoadX509KeyPair(f.CertFile, f.KeyFile) }
		if _, err := read(); err != nil {
			return nil, fmt.Errorf("certFile %q and keyFile %q: %w", f.CertFile, f.KeyFile, err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { // read each time, as they are replaced
			cert, err := read()
			return &cert, err
		}
	}
	return config, nil
}
