package credential

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

var us = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.1.2.3")}

func TestAddress(t *testing.T) {
	type entries = []v1beta1.ServerAddressByClientCIDR
	entry := func(cidr, address string) v1beta1.ServerAddressByClientCIDR {
		return v1beta1.ServerAddressByClientCIDR{ClientCIDR: cidr, ServerAddress: address}
	}
	for name, test := range map[string]struct {
		entries   entries
		want, err string
	}{
		"the longest wins, not the first": {entries: entries{entry("0.0.0.0/0", "far"), entry("10.1.0.0/16", "near"), entry("10.0.0.0/8", "mid")}, want: "near"},
		"the first of equally long ones":  {entries: entries{entry("0.0.0.0/0", "four"), entry("::/0", "six")}, want: "four"},
		"networks that are not ours":      {entries: entries{entry("192.0.2.0/24", "other"), entry("0.0.0.0/0", "far")}, want: "far"},
		"no network is ours":              {entries: entries{entry("192.0.2.0/24", "other")}, err: "no clientCIDR holds an address of the federation (127.0.0.1, 10.1.2.3)"},
		"not a network":                   {entries: entries{entry("0.0.0.0/0", "far"), entry("10.0.0.1", "x")}, err: `serverAddressByClientCIDRs[1].clientCIDR: "10.0.0.1" must be a network`},
		"no entries":                      {err: "no clientCIDR"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Address(test.entries, us)
			check(t, got, err, test.want, test.err)
		})
	}
}

func TestServerURL(t *testing.T) {
	for in, want := range map[string]string{
		"api.example":        "https://api.example",
		"api.example:6443":   "https://api.example:6443",
		"192.0.2.1":          "https://192.0.2.1",
		"192.0.2.1:6443":     "https://192.0.2.1:6443",
		"2001:db8::1":        "https://[2001:db8::1]",
		"[2001:db8::1]:6443": "https://[2001:db8::1]:6443",
		"https://a.example/": "https://a.example",
		"http://a.example":   "",
		"a.example/path":     "",
		"user@a.example":     "",
		"":                   "",
		"a b":                "",
	} {
		got, err := serverURL(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("serverURL(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

const kubeconfig = `{"current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],
"clusters":[{"name":"k","cluster":{"server":"https://elsewhere:1","CLUSTER":"x"}}],"users":[{"name":"u","user":{USER}}]}`

func TestConfig(t *testing.T) {
	withUser := func(user string) string { return strings.Replace(kubeconfig, "USER", user, 1) }
	for name, test := range map[string]struct {
		data      map[string]string
		want, err string // the token
	}{
		"token and CA":          {data: map[string]string{"token": "abc\n", "ca.crt": "CA"}, want: "abc"},
		"nothing":               {err: `secret federation-system/east: must have the key "token"`},
		"kubeconfig":            {data: map[string]string{"kubeconfig": withUser(`"token":"k"`)}, want: "k"},
		"kubeconfig, broken":    {data: map[string]string{"kubeconfig": "}"}, err: "is no kubeconfig"},
		"kubeconfig with exec":  {data: map[string]string{"kubeconfig": withUser(`"exec":{"command":"/bin/evil","apiVersion":"client.authentication.k8s.io/v1","interactiveMode":"Never"}`)}, err: `would run the command "/bin/evil"`},
		"with auth-provider":    {data: map[string]string{"kubeconfig": withUser(`"auth-provider":{"name":"oidc"}`)}, err: `auth-provider "oidc"`},
		"with a token file":     {data: map[string]string{"kubeconfig": withUser(`"tokenFile":"/etc/shadow"`)}, err: "names files"},
		"with a certificate":    {data: map[string]string{"kubeconfig": withUser(`"client-certificate":"/x"`)}, err: "names files"},
		"with a CA in a file":   {data: map[string]string{"kubeconfig": strings.Replace(withUser(""), "CLUSTER", "certificate-authority", 1)}, err: `names the file "x"`},
		"without verification":  {data: map[string]string{"kubeconfig": strings.Replace(withUser(`"token":"k"`), `"CLUSTER":"x"`, `"insecure-skip-tls-verify":true`, 1)}, err: "insecure-skip-tls-verify"},
		"through a proxy":       {data: map[string]string{"kubeconfig": strings.Replace(withUser(`"token":"k"`), "CLUSTER", "proxy-url", 1)}, err: `proxy-url "x"`},
		"kubeconfig over token": {data: map[string]string{"kubeconfig": withUser(`"token":"k"`), "token": "abc"}, want: "k"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "federation-system", Name: "east"}, Data: map[string][]byte{}}
			for k, v := range test.data {
				secret.Data[k] = []byte(v)
			}
			cluster := &v1beta1.Cluster{Spec: v1beta1.ClusterSpec{ServerAddressByClientCIDRs: []v1beta1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: "east.example:6443"}}}}
			config, token, err := Config(cluster, secret, us)
			check(t, token, err, test.want, test.err)
			if err == nil && (config.Host != "https://east.example:6443" || config.BearerToken != "" || config.ExecProvider != nil) {
				t.Errorf("config %v: want the address of the Cluster and no token", config)
			}
		})
	}
}

func TestFingerprintIgnoresOnlyTokens(t *testing.T) {
	base, _ := fromKubeconfig([]byte(strings.Replace(kubeconfig, "USER", `"token":"a"`, 1)))
	renewed, _ := fromKubeconfig([]byte(strings.Replace(kubeconfig, "USER", `"token":"b"`, 1)))
	if Fingerprint(base) != Fingerprint(renewed) {
		t.Error("a renewed token changes the fingerprint")
	}
	renewed.CAData = []byte("other")
	if Fingerprint(base) == Fingerprint(renewed) {
		t.Error("another CA does not change the fingerprint")
	}
}

func TestWrapSendsTheTokenOfTheMoment(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("Authorization")) }))
	defer server.Close()
	token := ""
	client := &http.Client{Transport: Wrap(http.DefaultTransport, func() string { return token })}
	for _, token = range []string{"one", "two", ""} {
		if _, err := client.Get(server.URL); err != nil {
			t.Fatal(err)
		}
	}
	if want := "Bearer one|Bearer two|"; strings.Join(got, "|") != want {
		t.Errorf("sent %q, want %q", got, want)
	}
}

func TestParseToken(t *testing.T) {
	jwt := func(claims string) string {
		return "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s"
	}
	got, ok := ParseToken(jwt(`{"sub":"system:serviceaccount:federation-system:federation-1","iat":1000,"exp":2000,"kubernetes.io":{"secret":{"name":"s","uid":"u"}}}`))
	if !ok || got.Secret != "s" || got.ServiceAccount != "federation-1" || got.Namespace != "federation-system" || got.RenewAt() != time.Unix(1500, 0) || got.Lifetime() != 1000*time.Second {
		t.Errorf("got %+v, %v", got, ok)
	}
	for _, bad := range []string{"", "a.b", "a.b.c", jwt(`{`), jwt(`{"sub":"system:serviceaccount:a:b"}`), jwt(`{"sub":"alice","iat":1,"exp":2}`), jwt(`{"sub":"system:serviceaccount:a:b","iat":5,"exp":2}`)} {
		if got, ok := ParseToken(bad); ok {
			t.Errorf("ParseToken(%q) = %+v, want none", bad, got)
		}
	}
}

// check compares a result, or the error's text where one is wanted.
func check(t *testing.T, got string, err error, want, wantErr string) {
	t.Helper()
	switch {
	case wantErr == "" && (err != nil || got != want):
		t.Errorf("got %q, %v; want %q", got, err, want)
	case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
		t.Errorf("got %q, %v; want an error with %q", got, err, wantErr)
	}
}
