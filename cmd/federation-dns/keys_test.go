package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// output returns the program's output for arguments.
func output(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := command()
	c.SetOut(&out)
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func keep(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAKeyHasADS(t *testing.T) {
	for algorithm, number := range map[string]string{"ecdsa-p256": " 13 2 ", "ed25519": " 15 2 "} {
		key, err := output(t, "keygen", "--algorithm", algorithm)
		if err != nil {
			t.Fatal(err)
		}
		ds, err := output(t, "ds", "--zone", "Example.test", "--dnssec-key-file", keep(t, key))
		if err != nil || !strings.HasPrefix(ds, "example.test.\t3600\tIN\tDS\t") || !strings.Contains(ds, number) {
			t.Errorf("%s: DS %q, %v, want one with %q", algorithm, ds, err, number)
		}
	}
}

func TestKeyFlagsAreChecked(t *testing.T) {
	serve := []string{"--zone", "a.test", "--zone-file", keep(t, "a 15 A 192.0.2.1\n"), "--listen", "127.0.0.1:0"}
	key, err := output(t, "keygen")
	if err != nil {
		t.Fatal(err)
	}
	secret := "hmac-sha256:transfer:c2l4dGVlbiBieXRlcyBvciBtb3Jl"
	for want, args := range map[string][]string{
		"must be ecdsa-p256 or ed25519":    {"keygen", "--algorithm", "rsa"},
		"--dnssec needs --kubeconfig":      append(serve, "--dnssec"),
		"--dnssec-key-file is required":    {"ds", "--zone", "a.test"},
		"need --transfer-key-file":         append(serve, "--notify", "192.0.2.1:53"),
		`--notify "here": must be IP:PORT`: append(serve, "--notify", "here", "--transfer-key-file", keep(t, secret)),
		"must have at least one key":       append(serve, "--transfer-key-file", keep(t, "# none\n")),
		"must not be beside --dnssec":      append(serve, "--dnssec-key-file", keep(t, key), "--transfer-key-file", keep(t, secret)),
		"ALGORITHM:NAME:SECRET":            append(serve, "--transfer-key-file", keep(t, "transfer\n")),
		"must be PEM":                      append(serve, "--dnssec-key-file", keep(t, "key\n")),
		"--dnssec-key-file: open /none":    append(serve, "--dnssec-key-file", "/none"),
	} {
		if _, err := output(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", args, err, want)
		}
	}
}
