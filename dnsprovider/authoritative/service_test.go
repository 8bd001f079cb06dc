package authoritative

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"federation/dnsprovider/servertest"
)

func TestMetrics(t *testing.T) {
	s := start(t, Options{RateLimit: 5})
	fill(t, s, zoneLines(t, sample))
	for range 3 {
		ask(t, s, "udp", "web."+testZone, dns.TypeA)
		ask(t, s, "tcp", "none."+testZone, dns.TypeMX)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s)
	want := `# HELP federation_dns_server_answers_total Answers of the built-in DNS server, by the type asked for and the code.
# TYPE federation_dns_server_answers_total counter
federation_dns_server_answers_total{rcode="NOERROR",type="A"} 3
federation_dns_server_answers_total{rcode="NXDOMAIN",type="other"} 3
# HELP federation_dns_server_rate_limited_total Answers over UDP that were left out or cut to nothing, as their network had had its share.
# TYPE federation_dns_server_rate_limited_total counter
federation_dns_server_rate_limited_total 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "federation_dns_server_answers_total", "federation_dns_server_rate_limited_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry); err != nil || n != 6 {
		t.Errorf("%d metrics, %v, want 6", n, err)
	}
}

func TestQueryLog(t *testing.T) {
	var log servertest.Log
	s := start(t, Options{QueryLog: slog.New(slog.NewTextHandler(&log, nil))})
	fill(t, s, zoneLines(t, sample))
	ask(t, s, "udp", "wEb."+testZone, dns.TypeAAAA)
	// The line is written before the answer is sent.
	if want := `msg="DNS query" client=127.0.0.1 udp=true name=web.example.test. type=AAAA rcode=NOERROR bytes=`; !strings.Contains(log.String(), want) {
		t.Errorf("log %q, want %q in it", log.String(), want)
	}
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestTLS(t *testing.T) {
	made := certificate(t)
	s := start(t, Options{TLSListen: "127.0.0.1:0", TLSConfig: &tls.Config{Certificates: []tls.Certificate{made}}})
	fill(t, s, zoneLines(t, sample))
	leaf, err := x509.ParseCertificate(made.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(leaf)
	client := dns.Client{Net: "tcp-tls", TLSConfig: &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1", NextProtos: []string{"dot"}}}
	reply, _, err := client.Exchange(new(dns.Msg).SetQuestion("alias."+testZone, dns.TypeAAAA), s.TLSAddr().String())
	if err != nil || len(reply.Answer) != 2 {
		t.Errorf("%v, %v, want the alias and its address", reply, err)
	}
}

func TestTLSNeedsACertificate(t *testing.T) {
	if _, err := New(Options{Zone: testZone, Listen: "127.0.0.1:0", TLSListen: "127.0.0.1:0"}); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("error %v, want one about the certificate", err)
	}
}

func TestConnectionsOfANetworkAreBounded(t *testing.T) {
	c := conns{most: 3, each: 2, networks: map[uint64]int{}}
	one, same, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("198.51.100.1")
	if !c.acquire(one) || !c.acquire(same) || c.acquire(one) {
		t.Error("one network: want two connections, no third")
	}
	if !c.acquire(other) || c.acquire(other) {
		t.Error("in all: want three, no fourth")
	}
	c.release(one)
	if !c.acquire(one) {
		t.Error("a place that is free again is not given away")
	}
	for _, client := range []netip.Addr{one, same, other} {
		c.release(client)
	}
	if len(c.networks) != 0 || c.open != 0 {
		t.Errorf("%v, %d open: want nothing kept", c.networks, c.open)
	}
}

// TestManyQuestionsOnOneConnection sends them all before it reads (RFC 7766, section 6.2.1.1).
func TestManyQuestionsOnOneConnection(t *testing.T) {
	s := start(t, Options{})
	fill(t, s, zoneLines(t, sample))
	raw, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
	conn, open := &dns.Conn{Conn: raw}, map[uint16]bool{}
	for i := range uint16(500) {
		m := new(dns.Msg).SetQuestion("web."+testZone, dns.TypeA)
		m.Id, open[i] = i, true
		if err := conn.WriteMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	for len(open) > 0 {
		reply, err := conn.ReadMsg()
		if err != nil || !open[reply.Id] || len(reply.Answer) != 2 {
			t.Fatalf("%v, %v, with %d open", reply, err, len(open))
		}
		delete(open, reply.Id)
	}
}
