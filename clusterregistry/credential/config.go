package credential

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"federation/apiserver/apis/federation/v1beta1"
)

// Keys in the Secret of a cluster.
const (
	TokenKey      = "token"
	CAKey         = "ca.crt"
	KubeconfigKey = "kubeconfig"
)

// Config returns how a client with the given IPs reaches the cluster, and the bearer token ("" where
// the credential is another). The config holds no token; see Wrap. The address is always that of the
// Cluster, whatever a kubeconfig says. Errors are sentences for the user who has to repair it.
func Config(c *v1beta1.Cluster, secret *corev1.Secret, client []netip.Addr) (*rest.Config, string, error) {
	address, err := Address(c.Spec.ServerAddressByClientCIDRs, client)
	if err != nil {
		return nil, "", err
	}
	host, err := serverURL(address)
	if err != nil {
		return nil, "", err
	}
	config, err := fromSecret(secret)
	if err != nil {
		return nil, "", fmt.Errorf("secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	token := config.BearerToken
	config.Host, config.APIPath, config.BearerToken = host, "", ""
	return config, token, nil
}

// ThroughAgent returns how a client reaches a cluster whose agent connects to the federation: dial returns a connection through that of the Cluster with a
// UID. The agent knows the address, and has the credential.
func ThroughAgent(cluster types.UID, dial func(ctx context.Context, cluster types.UID) (net.Conn, error)) *rest.Config {
	return &rest.Config{
		Host: "http://" + string(cluster) + ".agent.invalid",
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, cluster) },
	}
}

func fromSecret(secret *corev1.Secret) (*rest.Config, error) {
	if data := secret.Data[KubeconfigKey]; len(data) > 0 {
		return fromKubeconfig(data)
	}
	token := strings.TrimSpace(string(secret.Data[TokenKey]))
	if token == "" {
		return nil, errors.New(`must have the key "token" (and "ca.crt"), or the key "kubeconfig"`)
	}
	return &rest.Config{BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: secret.Data[CAKey]}}, nil
}

func fromKubeconfig(data []byte) (*rest.Config, error) {
	k, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("key %q is no kubeconfig: %w", KubeconfigKey, err)
	}
	if err := selfContained(k); err != nil {
		return nil, fmt.Errorf("key %q is refused: %w", KubeconfigKey, err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*k, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", KubeconfigKey, err)
	}
	return config, nil
}

// selfContained refuses what would run programs or read files here, and what would send the credential elsewhere.
func selfContained(k *clientcmdapi.Config) error {
	for name, u := range k.AuthInfos {
		switch {
		case u.Exec != nil:
			return fmt.Errorf("user %q has exec, which would run the command %q here; put a token or certificate in", name, u.Exec.Command)
		case u.AuthProvider != nil:
			return fmt.Errorf("user %q has auth-provider %q; put a token or certificate in", name, u.AuthProvider.Name)
		case u.TokenFile != "" || u.ClientCertificate != "" || u.ClientKey != "":
			return fmt.Errorf("user %q names files; put their contents in (kubectl config view --flatten --minify --raw)", name)
		}
	}
	for name, c := range k.Clusters {
		switch {
		case c.CertificateAuthority != "":
			return fmt.Errorf("cluster %q names the file %q; put its contents in (kubectl config view --flatten --minify --raw)", name, c.CertificateAuthority)
		case c.InsecureSkipTLSVerify:
			return fmt.Errorf("cluster %q has insecure-skip-tls-verify, with which anybody on the path could take the credential; put certificate-authority-data in", name)
		case c.ProxyURL != "":
			return fmt.Errorf("cluster %q has proxy-url %q; the federation connects to spec.serverAddressByClientCIDRs of the Cluster directly", name, c.ProxyURL)
		}
	}
	return nil
}

// Fingerprint is equal for configs that can share connections. Tokens play no part in it.
func Fingerprint(c *rest.Config) string {
	b, err := json.Marshal([]any{c.Host, c.Username, c.Password, c.Impersonate, c.ServerName, c.Insecure, c.CAData, c.CertData, c.KeyData})
	if err != nil {
		return err.Error() // cannot happen: strings, bytes and maps of strings
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// Inline is Config with the bearer token in it, for a client that lives no longer than one request.
func Inline(c *v1beta1.Cluster, secret *corev1.Secret, client []netip.Addr) (*rest.Config, error) {
	config, token, err := Config(c, secret, client)
	if err != nil {
		return nil, err
	}
	config.BearerToken = token
	return config, nil
}

// Wrap returns a round tripper that sends the token of the moment with each request.
func Wrap(rt http.RoundTripper, token func() string) http.RoundTripper {
	return &bearer{rt, token}
}

type bearer struct {
	http.RoundTripper
	token func() string
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if t := b.token(); t != "" && r.Header.Get("Authorization") == "" {
		r = utilnet.CloneRequest(r)
		r.Header.Set("Authorization", "Bearer "+t)
	}
	return b.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper lets client-go look through to the transport.
func (b *bearer) WrappedRoundTripper() http.RoundTripper { return b.RoundTripper }
