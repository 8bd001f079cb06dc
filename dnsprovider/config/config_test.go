package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const goodDNSProviders = `
providers:
- name: office
  rfc2136:
    server: 127.0.0.1:1
    key: {name: federation, algorithm: hmac-sha512, secretFile: DIR/secret}
- name: inside
  powerdns: {url: "https://127.0.0.1:1", keyFile: DIR/secret}
- name: edge
  coredns: {endpoints: ["http://127.0.0.1:1"], prefix: /dns, username: federation, passwordFile: DIR/secret}
`

// secretDir has a file "secret" with a TSIG secret.
func secretDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("c2l4dGVlbiBieXRlcyBvciBtb3Jl\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDNSProvidersAreMade: each is there under its name, and tries to reach its server.
func TestDNSProvidersAreMade(t *testing.T) {
	dir := secretDir(t)
	file := filepath.Join(dir, "providers.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(goodDNSProviders, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	providers, err := Read(file, "example.com")
	if err != nil || len(providers) != 3 {
		t.Fatalf("%v, %v", providers, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	for i, name := range []string{"office", "inside", "edge"} {
		p := providers[i]
		if p.Name != name {
			t.Errorf("provider %d is %q", i, p.Name)
		}
		if _, err := p.Records(ctx, "example.com."); err == nil {
			t.Errorf("%s: reads a zone though nobody listens", name)
		}
	}
	if none, err := Read("", "example.com"); err != nil || len(none) != 0 {
		t.Errorf("without a file: %v, %v", none, err)
	}
}

func TestDNSProvidersRefuse(t *testing.T) {
	dir := secretDir(t)
	for _, c := range []struct{ change, into, want string }{
		{"server:", "sever:", `providers[0]: name "office": rfc2136: json: unknown field "sever"`},
		{"providers:", "provider:", `unknown field "provider"`},
		{"name: inside", "name: office", `providers[1]: name "office": must be another`},
		{"name: inside", "name: built-in", `name "built-in": must be another`},
		{"name: inside", "name: In Side", `name "In Side": must be there, of lower-case letters`},
		{"- name: inside\n ", "-", `name : must be there`},
		{"powerdns:", "power:", `name "inside": has [power] beside its name: must have one of [`},
		{"powerdns:", "coredns: {}\n  powerdns:", "has [coredns powerdns]"},
		{"  powerdns:", "  name: twice\n  powerdns:", `"name" already set`},
		{"127.0.0.1:1\n", "127.0.0.1\n", `server "127.0.0.1": must be HOST:PORT`},
		{"hmac-sha512", "hmac-md5", `algorithm "hmac-md5": must be hmac-sha256`},
		{"DIR/secret}\n- name: inside", "DIR/none}\n- name: inside", "none: no such file"},
		{", secretFile: DIR/secret", "", "key.secretFile: must be the name of a file"},
		{"https://127", "127", "must be http://HOST:PORT"},
		{"keyFile:", "caFile: DIR/secret, keyFile:", "must have certificates in PEM"},
		{", keyFile: DIR/secret", "", "keyFile: must be the name of a file"},
		{"https://127.0.0.1:1", "http://192.0.2.1:8081", `url: "http://192.0.2.1:8081" is not encrypted: must be https, or on loopback, or allowed by allowInsecure: true`},
		{"https://127.0.0.1:1", "http://pdns.example.com:8081", "must be https, or on loopback"},
		{"http://127.0.0.1:1", "http://192.0.2.1:2379", `endpoints: "http://192.0.2.1:2379" is not encrypted`},
		{"http://127.0.0.1:1", "192.0.2.1:2379", `endpoints: "http://192.0.2.1:2379" is not encrypted`},
		{`["http://127.0.0.1:1"]`, "[]", "endpoints: must be the addresses of etcd"},
		{"prefix:", "certFile: DIR/secret, prefix:", `certFile "DIR/secret" and keyFile ""`},
	} {
		text := strings.Replace(goodDNSProviders, c.change, c.into, 1)
		_, err := parse([]byte(strings.ReplaceAll(text, "DIR", dir)), "example.com")
		if want := strings.ReplaceAll(c.want, "DIR", dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q for %q: error %v, want one with %q", c.into, c.change, err, want)
		} else if strings.Contains(err.Error(), "c2l4dGVlbi") {
			t.Errorf("%v: tells a secret", err)
		}
	}
	if _, err := Read(filepath.Join(dir, "none"), "example.com"); err == nil || !strings.Contains(err.Error(), "--dns-providers") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestWhatIsNotEncryptedMayBeAllowed(t *testing.T) {
	dir := secretDir(t)
	for _, section := range []string{
		`powerdns: {url: "http://192.0.2.1:8081", keyFile: DIR/secret, allowInsecure: true}`,
		`powerdns: {url: "http://localhost:8081", keyFile: DIR/secret}`,
		`powerdns: {url: "http://[::1]:8081", keyFile: DIR/secret}`,
		`webhook: {url: "http://192.0.2.1:8888", allowInsecure: true}`,
		`coredns: {endpoints: ["http://192.0.2.1:2379"], username: federation, passwordFile: DIR/secret, allowInsecure: true}`,
		`coredns: {endpoints: ["https://192.0.2.1:2379"], username: federation, passwordFile: DIR/secret}`,
		`coredns: {endpoints: ["http://192.0.2.1:2379"]}`, // without a password
	} {
		if _, err := parse([]byte("providers:\n- name: a\n  "+strings.ReplaceAll(section, "DIR", dir)), "example.com"); err != nil {
			t.Errorf("%s: %v", section, err)
		}
	}
}

// TestDNSProvidersOfTheGuide: the example in docs/dns.md can be used.
func TestDNSProvidersOfTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/dns.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(guide), "```yaml\nproviders:")
	example, _, _ = strings.Cut(example, "```")
	dir := secretDir(t)
	for _, name := range []string{"office.key", "pdns.key", "etcd.password"} {
		if err := os.Symlink("secret", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	providers, err := parse([]byte("providers:"+strings.ReplaceAll(example, "/etc/federation", dir)), "example.com")
	if err != nil || len(providers) < 3 {
		t.Errorf("%d providers, %v", len(providers), err)
	}
}

// TestDNSProviderSecretsAreReadAnew: a secret that is replaced counts at once.
func TestDNSProviderSecretsAreReadAnew(t *testing.T) {
	file := filepath.Join(secretDir(t), "secret")
	read := secretFile("keyFile", file)
	for _, want := range []string{"one", "two"} {
		if err := os.WriteFile(file, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(); err != nil || got != want {
			t.Errorf("read %q, %v, want %q", got, err, want)
		}
	}
}
