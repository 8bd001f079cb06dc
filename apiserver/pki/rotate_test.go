package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// parts are what a process has read of the files: as a client, the administrator's kubeconfig; as a server, its
// certificate and its trusted authorities.
type parts struct {
	client tls.Certificate
	server tls.Certificate
	trusts *x509.CertPool // the client, by its kubeconfig
	admits *x509.CertPool // the server
}

func readParts(t *testing.T, f *Files) (p parts) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(f.AdminKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	auth := config.AuthInfos[contextName]
	if p.client, err = tls.X509KeyPair(auth.ClientCertificateData, auth.ClientKeyData); err != nil {
		t.Fatal(err)
	}
	if p.server, err = tls.LoadX509KeyPair(f.ServingCert, f.ServingKey); err != nil {
		t.Fatal(err)
	}
	p.trusts, p.admits = x509.NewCertPool(), x509.NewCertPool()
	p.trusts.AppendCertsFromPEM(config.Clusters[contextName].CertificateAuthorityData)
	content, err := os.ReadFile(f.CA)
	if err != nil {
		t.Fatal(err)
	}
	p.admits.AppendCertsFromPEM(content)
	return p
}

// meet returns nil if a client that has read one state of the files, and a server that has read another, accept each
// other.
func meet(client, server parts, now time.Time) error {
	a, b := net.Pipe()
	clock := func() time.Time { return now }
	done := make(chan error, 1)
	go func() {
		defer b.Close()
		s := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{server.server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: server.admits, Time: clock, MinVersion: tls.VersionTLS12})
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("."))
		}
		done <- err
	}()
	c := tls.Client(a, &tls.Config{Certificates: []tls.Certificate{client.client}, RootCAs: client.trusts, ServerName: "localhost", Time: clock, MinVersion: tls.VersionTLS12})
	_, err := c.Read(make([]byte, 1))
	a.Close()
	if failed := <-done; err == nil {
		err = failed
	}
	return err
}

// A client that takes the files of each step before the next always accepts the server and is accepted; in the end
// nobody else is.
func TestTheAuthorityIsRotatedUnderItsClients(t *testing.T) {
	dir, now := t.TempDir(), start
	f := ensure(t, dir, now)
	first, err := f.Identity()
	if err != nil {
		t.Fatal(err)
	}
	states := []parts{readParts(t, f)}
	for _, step := range Steps {
		now = now.Add(24 * time.Hour)
		if err := Rotate(dir, step, now); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		was := snapshot(t, dir)
		if err := Rotate(dir, step, now); err != nil || len(changed(was, snapshot(t, dir))) > 0 {
			t.Errorf("%s, again: %v, changed %v", step, err, changed(was, snapshot(t, dir)))
		}
		ensure(t, dir, now)
		states = append(states, readParts(t, f))
		is, before := states[len(states)-1], states[len(states)-2]
		for what, err := range map[string]error{"new": meet(is, is, now), "client of before": meet(before, is, now), "server of before": meet(is, before, now)} {
			if err != nil {
				t.Errorf("after %s, %s: %v", step, what, err)
			}
		}
		if identity, err := f.Identity(); err != nil || identity != first {
			t.Errorf("after %s the federation is %s, want %s (%v)", step, identity, first, err)
		}
	}
	if err := meet(states[0], states[3], now); err == nil {
		t.Error("the first certificate is let in at the end")
	}
	old := states[3]
	old.client = states[0].client
	if err := meet(old, states[3], now); err == nil {
		t.Error("who trusts the new authority is let in with a certificate of the old one")
	}
	if content, err := os.ReadFile(f.FrontProxyCA); err != nil || bytes.Count(content, []byte("BEGIN")) != 1 {
		t.Errorf("of the front proxy's authorities there are %d (%v)", bytes.Count(content, []byte("BEGIN")), err)
	}
}

func TestStepsOutOfTurnSayWhichIsNext(t *testing.T) {
	dir := t.TempDir()
	f := ensure(t, dir, start)
	refused := func(step, want string) {
		t.Helper()
		was := snapshot(t, dir)
		if err := Rotate(dir, step, start); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", step, err, want)
		}
		if names := changed(was, snapshot(t, dir)); len(names) > 1 || len(names) == 1 && !names["identity"] {
			t.Errorf("%s changed %v", step, names)
		}
	}
	refused("both", "want one of trust, sign, finish")
	refused(StepSign, `"trust" is next`)
	if err := Rotate(dir, StepTrust, start); err != nil {
		t.Fatal(err)
	}
	refused(StepFinish, `"sign" is next`)

	// It ends after the new key is in place, and before the certificates are: the start says so, and the step can be repeated.
	key, err := os.ReadFile(nextPath(f.CAKey))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.CAKey, key, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(dir, Request{Server: "https://127.0.0.1:6443"}, start); err == nil || !strings.Contains(err.Error(), "is not the key of") {
		t.Errorf("a start in between: %v", err)
	}
	if err := Rotate(dir, StepSign, start); err != nil {
		t.Fatal(err)
	}
	ensure(t, dir, start)
	refused(StepTrust, `"finish" is next`)
	if err := Rotate(dir, StepFinish, start); err != nil {
		t.Fatal(err)
	}
	if err := Rotate(dir, StepTrust, start); err != nil {
		t.Errorf("the next rotation does not begin: %v", err)
	}
}
