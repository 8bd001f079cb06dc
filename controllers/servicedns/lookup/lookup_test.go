package lookup

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"github.com/spf13/pflag"

	"federation/controllers/servicedns"
)

// serve answers for signed.test, validated, and for unsigned.test. It returns its address over TCP and TLS, and its CA.
func serve(t *testing.T) (plain, overTLS string, trust *x509.CertPool) {
	t.Helper()
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, asked *dns.Msg) {
		m := new(dns.Msg).SetReply(asked)
		host, zone, _ := strings.Cut(asked.Question[0].Name, ".")
		m.AuthenticatedData = zone == "signed.test." && asked.AuthenticatedData
		text := map[string]string{
			"lb A": "lb.%[1]s A 192.0.2.1\nelse.%[1]s A 203.0.113.66", "lb AAAA": "lb.%[1]s AAAA 2001:db8::1",
			"alias A": "two.%[1]s CNAME LB.%[1]s\nalias.%[1]s CNAME two.%[1]s\nlb.%[1]s A 192.0.2.1\nelse.%[1]s A 203.0.113.66",
			"loop A":  "loop.%[1]s CNAME loop.%[1]s",
		}[host+" "+dns.TypeToString[asked.Question[0].Qtype]]
		if host == "bogus" {
			m.Rcode = dns.RcodeServerFailure
		}
		for line := range strings.Lines(fmt.Sprintf(text, zone)) {
			if rr, err := dns.NewRR(strings.TrimSpace(line)); err == nil && text != "" {
				m.Answer = append(m.Answer, rr)
			}
		}
		_ = w.WriteMsg(m)
	})
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS() // for its certificate, which is for 127.0.0.1
	t.Cleanup(certificate.Close)
	trust = x509.NewCertPool()
	trust.AddCert(certificate.Certificate())
	listen := func(over *tls.Config) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		if over != nil {
			l = tls.NewListener(l, over)
		}
		server := &dns.Server{Listener: l, Handler: handler}
		go func() { _ = server.ActivateAndServe() }()
		t.Cleanup(func() { _ = server.Shutdown() })
		return address
	}
	return listen(nil), listen(&tls.Config{Certificates: certificate.TLS.Certificates}), trust
}

func TestWhatAResolverSays(t *testing.T) {
	plain, overTLS, trust := serve(t)
	for _, c := range []struct {
		address   string
		validated bool
		host      string
		want      string // or a part of the error
	}{
		{plain, false, "lb.unsigned.test.", "192.0.2.1 2001:db8::1"},
		{plain, true, "lb.signed.test.", "192.0.2.1 2001:db8::1"},
		{plain, true, "lb.unsigned.test.", "lb.unsigned.test. A: not validated"},
		{plain, true, "alias.signed.test", "192.0.2.1"},
		{plain, false, "loop.unsigned.test.", "loop.unsigned.test. has no address"},
		{plain, false, "bogus.signed.test.", "SERVFAIL"},
		{plain, false, "none.signed.test.", "has no address"},
		{"tls://" + overTLS, true, "lb.signed.test.", "192.0.2.1 2001:db8::1"},
		{"tls://" + overTLS, true, "lb.unsigned.test.", "not validated"},
		{"tls://" + plain, true, "lb.signed.test.", "resolver " + plain},
	} {
		r, err := newResolver(c.address, c.validated)
		if err != nil {
			t.Fatal(err)
		}
		if r.client.TLSConfig != nil {
			r.client.TLSConfig.RootCAs = trust
		}
		found, err := r.LookupNetIP(t.Context(), "ip", c.host)
		got := strings.Trim(fmt.Sprint(found), "[]")
		if err != nil && strings.Contains(err.Error(), c.want) {
			got = c.want
		}
		if got != c.want {
			t.Errorf("%+v: %s (%v)", c, got, err)
		}
	}
}

// A server with an untrusted certificate is not asked.
func TestAResolverMustBeKnown(t *testing.T) {
	_, overTLS, _ := serve(t)
	r, err := newResolver("tls://"+overTLS, true)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := r.LookupNetIP(t.Context(), "ip", "lb.signed.test."); err == nil {
		t.Errorf("found %v", found)
	}
}

func TestLookupFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                                                     "",
		"--dns-host-lookups=None":                              "",
		"--dns-resolver=127.0.0.1:53":                          "",
		"--dns-resolver=tls://dns.quad9.net":                   "",
		"--dns-resolver=tls://[2001:db8::1]":                   "",
		"--dns-resolver=tls://9.9.9.9:8853":                    "",
		"--dns-resolver=9.9.9.9:53":                            `--dns-resolver "9.9.9.9:53": must be tls://HOST[:PORT], or IP:PORT with a loopback address`,
		"--dns-resolver=tls://":                                `--dns-resolver "tls://": must be tls://HOST[:PORT]`,
		"--dns-resolver=tls://a/b":                             `--dns-resolver "tls://a/b": must be`,
		"--dns-host-lookups=Some":                              `--dns-host-lookups "Some": must be All, Validated or None`,
		"--dns-host-lookups=Validated":                         "--dns-host-lookups Validated: needs --dns-resolver",
		"--dns-public-addresses-only":                          "",
		"--dns-resolver=[::1]:53 --dns-host-lookups=Validated": "",
	} {
		fs, f := pflag.NewFlagSet("", pflag.ContinueOnError), Flags{}
		f.Add(fs, "dns-")
		if err := fs.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		err := f.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
		if err != nil {
			continue
		}
		o := servicedns.Options{}
		f.Fill(&o)
		if (o.Resolver != nil) != (f.resolver != "" || f.hosts == lookNone) {
			t.Errorf("%s: %+v", args, o)
		}
		private, public, loopback := o.Refuse(netip.MustParseAddr("10.0.0.1")), o.Refuse(netip.MustParseAddr("9.9.9.9")), o.Refuse(netip.MustParseAddr("127.0.0.1"))
		if (private != nil) != f.publicOnly || public != nil || loopback == nil {
			t.Errorf("%s: private addresses: %v, public ones: %v, loopback: %v", args, private, public, loopback)
		}
	}
	none, err := none{}.LookupNetIP(t.Context(), "ip", "lb.cloud.test.")
	if len(none) > 0 || err != nil {
		t.Errorf("without lookups: %v, %v", none, err)
	}
}
