package credential

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// FuzzParseToken: a token that is read is of an account, ends after it begins, and is renewed in between.
func FuzzParseToken(f *testing.F) {
	for _, token := range []string{
		"", "a.b.c", "e30.e30.e30",
		"x.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6bnM6YSIsImlhdCI6MSwiZXhwIjozfQ.y", // {"sub":"system:serviceaccount:ns:a","iat":1,"exp":3}
		"x.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6bnM6YSIsImlhdCI6MSwiZXhwIjoxZTMwMH0.y",
	} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, ok := ParseToken(text)
		if !ok {
			return
		}
		if at := token.RenewAt(); token.Lifetime() < 0 || at.Before(token.Issued) || at.After(token.Expires) {
			t.Errorf("%q: %+v is renewed at %s", text, token, at)
		}
	})
}

// FuzzKubeconfig: whatever a kubeconfig says, it leads to the Cluster's address, by TLS that is verified, and runs and reads nothing here.
func FuzzKubeconfig(f *testing.F) {
	for _, text := range []string{
		"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://192.0.2.9'}}]\nusers: [{name: u, user: {token: t}}]\n",
		"current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'http://192.0.2.9', insecure-skip-tls-verify: true, proxy-url: 'http://p'}}]\nusers: [{name: u, user: {tokenFile: /etc/passwd, exec: {command: sh}}}]\n",
		"users: [{name: u, user: {client-certificate: /x}}]", "{}", "a: [", "clusters: [{name: '', cluster: {tls-server-name: x}}]",
	} {
		f.Add([]byte(text))
	}
	cluster := &v1beta1.Cluster{Spec: v1beta1.ClusterSpec{ServerAddressByClientCIDRs: []v1beta1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: "192.0.2.1:6443"}}}}
	f.Fuzz(func(t *testing.T, text []byte) {
		secret := &corev1.Secret{Data: map[string][]byte{KubeconfigKey: text, TokenKey: []byte("t")}}
		config, _, err := Config(cluster, secret, []netip.Addr{netip.MustParseAddr("192.0.2.200")})
		if err != nil {
			return
		}
		if config.Host != "https://192.0.2.1:6443" || config.Insecure || config.Proxy != nil || config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" ||
			config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" {
			t.Errorf("%q is taken as %+v", text, config)
		}
	})
}
