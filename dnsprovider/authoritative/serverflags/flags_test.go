package serverflags

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/spf13/pflag"

	"federation/dnsprovider/authoritative"
)

func keep(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func fill(t *testing.T, prefix string, args ...string) (authoritative.Options, error) {
	t.Helper()
	f, o, fs := Flags{}, authoritative.Options{Zone: "example.test", Listen: "127.0.0.1:0"}, pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Add(fs, prefix)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o, f.Fill(&o)
}

func TestFillNamesWhatIsWrong(t *testing.T) {
	key := keep(t, "hmac-sha256:transfer:c2l4dGVlbiBieXRlcyBvciBtb3Jl\n")
	for want, args := range map[string][]string{
		"--dns-threads -1: must be from 0 to 1024":           {"--dns-threads=-1"},
		"--dns-rate-limit 0: must be from 1":                 {"--dns-rate-limit=0"},
		"--dns-nsid: 129 bytes":                              {"--dns-nsid", strings.Repeat("x", 129)},
		"--dns-networks: open /none":                         {"--dns-networks", "/none"},
		"must be beside --dns-geoip-database":                {"--dns-geoip-database", "/none"},
		"places.mmdb: no such file":                          {"--dns-networks", keep(t, "country:DE east\n"), "--dns-geoip-database", "places.mmdb"},
		"file: line 1 must have 32 hexadecimal digits":       {"--dns-cookie-secret-file", keep(t, "secret")},
		"file: must have one line or two, and has 3":         {"--dns-cookie-secret-file", keep(t, "a\nb\nc\n")},
		"--dns-query-log: open /none/log":                    {"--dns-query-log", "/none/log"},
		"must be all three or none":                          {"--dns-tls-listen", ":853"},
		`--dns-tls-listen "853": must be HOST:PORT`:          {"--dns-tls-listen", "853", "--dns-tls-cert-file", "c", "--dns-tls-key-file", "k"},
		"--dns-tls-cert-file: stat /none":                    {"--dns-tls-listen", ":853", "--dns-tls-cert-file", "/none", "--dns-tls-key-file", "k"},
		"need --dns-transfer-key-file":                       {"--dns-notify", "192.0.2.1:53"},
		`--dns-notify "here": must be IP:PORT`:               {"--dns-transfer-key-file", key, "--dns-notify", "here"},
		`--dns-transfer-networks "192.0.2.1/24": must be an`: {"--dns-transfer-key-file", key, "--dns-transfer-networks", "192.0.2.1/24"},
		"--dns-transfer-key-file: ":                          {"--dns-transfer-key-file", keep(t, "# none\n")},
	} {
		if _, err := fill(t, "dns-", args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", args, err, want)
		}
	}
}

func TestFill(t *testing.T) {
	o, err := fill(t, "", "--threads", "3", "--rate-limit", "-1", "--nsid", "ns-1", "--name-server-ips", "192.0.2.53,2001:db8::53",
		"--networks", keep(t, "192.0.2.0/24 east\n"), "--cookie-secret-file", keep(t, "00112233445566778899aabbccddeeff\nff112233445566778899aabbccddee00\n"),
		"--transfer-key-file", keep(t, "hmac-sha256:transfer:c2l4dGVlbiBieXRlcyBvciBtb3Jl\n"), "--transfer-networks", "192.0.2.0/24,2001:db8::/32", "--notify", "192.0.2.1:53")
	if err != nil {
		t.Fatal(err)
	}
	if o.Threads != 3 || o.RateLimit != -1 || o.NSID != "ns-1" || len(o.NameServers) != 2 || o.CookieSecret[15] != 0xff || o.PreviousCookieSecret[0] != 0xff ||
		o.Locator.Near(netip.MustParseAddr("192.0.2.7"))[0] != "east" || len(o.Transfers.Keys) != 1 || len(o.Transfers.Networks) != 2 || len(o.Transfers.Notify) != 1 {
		t.Errorf("%+v is not what the flags say", o)
	}
}

func TestTheQueryLogIsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	o, err := fill(t, "", "--query-log", file)
	if err != nil {
		t.Fatal(err)
	}
	o.QueryLog.Info("DNS query", "name", "a.example.test.")
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"name":"a.example.test."`) {
		t.Errorf("%s, %v, want a line of JSON", text, err)
	}
}

// writeCertificate writes one of the serial number.
func writeCertificate(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"ns.example.test"}}
	der, err := x509.CreateCertificate(rand.Reader, made, made, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{key: {Type: "PRIVATE KEY", Bytes: pkcs8}, cert: {Type: "CERTIFICATE", Bytes: der}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheCertificateMayChange asks over TLS before and after a new certificate, and with a broken one.
func TestTheCertificateMayChange(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	writeCertificate(t, cert, key, 1)
	o, err := fill(t, "", "--tls-listen", "127.0.0.1:0", "--tls-cert-file", cert, "--tls-key-file", key)
	if err != nil {
		t.Fatal(err)
	}
	server, err := authoritative.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()
	defer func() { end(); <-ended }()
	serial := func() int64 {
		conn, err := tls.Dial("tcp", server.TLSAddr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"dot"}}) //nolint:gosec // which certificate it is, is what the test looks at
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if reply, err := exchange(conn); err != nil || reply.Rcode != dns.RcodeServerFailure {
			t.Errorf("over TLS: %v, %v, want SERVFAIL of a server without a zone yet", reply, err)
		}
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	for _, step := range []struct {
		do   func()
		want int64
	}{
		{func() {}, 1},
		{func() { writeCertificate(t, cert, key, 2) }, 2},
		{func() { _ = os.WriteFile(cert, []byte("broken"), 0o600) }, 2},
	} {
		step.do()
		if err := os.Chtimes(cert, time.Time{}, time.Now().Add(time.Duration(step.want)*time.Second)); err != nil { // clocks of files are coarse
			t.Fatal(err)
		}
		if got := serial(); got != step.want {
			t.Errorf("certificate %d, want %d", got, step.want)
		}
	}
}

func exchange(conn *tls.Conn) (*dns.Msg, error) {
	c := dns.Conn{Conn: conn}
	if err := c.WriteMsg(new(dns.Msg).SetQuestion("a.example.test.", dns.TypeA)); err != nil {
		return nil, err
	}
	return c.ReadMsg()
}
