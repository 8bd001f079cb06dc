package rfc2136

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider"
	"federation/dnsprovider/providertest"
	"federation/dnsprovider/servertest"
)

func TestRFC2136Conforms(t *testing.T) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			providertest.Run(t, testZone, func(t *testing.T) dnsprovider.Provider {
				return provider(t, start(t), testKey())
			})
		})
	}
}

// TestRFC2136SwitchIsAtomic asks the server itself while a name becomes a CNAME and back.
func TestRFC2136SwitchIsAtomic(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) {
		p := provider(t, address, testKey())
		states := [][]dnsprovider.RRSet{
			zoneLines(t, "web A 192.0.2.1 192.0.2.2\nweb AAAA 2001:db8::1\nother A 192.0.2.3"),
			zoneLines(t, "web CNAME other.example.test.\nother A 192.0.2.3"),
		}
		providertest.Become(t, p, testZone, states[0]...)
		servertest.AskWhile(t, address, "web."+testZone, 2, func() {
			for i := range 200 {
				if err := p.Apply(context.Background(), testZone, dnsprovider.Diff(states[i%2], states[1-i%2])); err != nil {
					t.Error(err)
				}
			}
		})
	})
}

func TestRFC2136Errors(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) {
		closed := fmt.Sprintf("127.0.0.1:%d", servertest.FreePort(t))
		other := func(k *Key) {
			k.Secret = func() (string, error) { return "YW5vdGhlciBzZWNyZXQgb2Ygc2l4dGVlbiBieXRlcw==", nil }
		}
		for name, c := range map[string]struct {
			address, zone string
			key           Key
			want          []string // each of them, for Apply
			records       []string
		}{
			"another secret":  {address, testZone, testKey(other), []string{address, "federation.", "BADSIG"}, []string{"BADSIG"}},
			"no such key":     {address, testZone, testKey(func(k *Key) { k.Name = "nobody" }), []string{"nobody.", "BADKEY"}, []string{"BADKEY"}},
			"other algorithm": {address, testZone, testKey(func(k *Key) { k.Algorithm = "hmac-sha512" }), []string{"hmac-sha512", "BADKEY"}, []string{"BADKEY"}},
			"no such zone":    {address, "not-held.test.", testKey(), []string{"not-held.test.", "NOTAUTH"}, []string{"not-held.test.", "NOTAUTH"}},
			"nobody listens":  {closed, testZone, testKey(), []string{closed, "refused"}, []string{closed, "refused"}},
			"a key that may only read": {address, testZone, testKey(func(k *Key) { k.Name = "reader" }),
				[]string{testZone, "leave"}, nil},
		} {
			t.Run(name, func(t *testing.T) {
				p := provider(t, c.address, c.key)
				err := p.Apply(context.Background(), c.zone, dnsprovider.Diff(nil, zoneLines(t, "a A 192.0.2.1")))
				if c.zone != testZone {
					err = p.Apply(context.Background(), c.zone, nil)
				}
				says(t, "Apply", err, c.want)
				if _, err = p.Records(context.Background(), c.zone); c.records != nil || err != nil {
					says(t, "Records", err, c.records)
				}
			})
		}
	})
}

func says(t *testing.T, call string, err error, want []string) {
	t.Helper()
	if err == nil || len(want) == 0 {
		t.Fatalf("%s: error %v", call, err)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v: does not say %q", call, err, part)
		}
	}
	if strings.Contains(err.Error(), testSecret) {
		t.Errorf("%s: %v: tells the secret", call, err)
	}
}

// TestRFC2136RepairsHandEdit: somebody changes our record with the server's own means, and a type is at the name
// that we never write.
func TestRFC2136RepairsHandEdit(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) {
		p := provider(t, address, testKey())
		ours := zoneLines(t, "web A 192.0.2.1")
		providertest.Become(t, p, testZone, ours...)
		hand := append(zoneLines(t, "web A 192.0.2.66"), providertest.Set(t, "web."+testZone, "MX", "10 mx.elsewhere.test."), providertest.Set(t, "only-mail."+testZone, "MX", "10 mx.elsewhere.test."))
		providertest.Become(t, p, testZone, hand...)

		var conflict *dnsprovider.ConflictError
		err := p.Apply(context.Background(), testZone, dnsprovider.Diff(ours, zoneLines(t, "web A 192.0.2.2")))
		if !errors.As(err, &conflict) || conflict.Found == nil || conflict.Found.Rdata[0] != "192.0.2.66" || conflict.Expected.Rdata[0] != "192.0.2.1" {
			t.Errorf("error %v, want a conflict that names both values", err)
		}
		err = p.Apply(context.Background(), testZone, dnsprovider.Diff(nil, zoneLines(t, "only-mail CNAME web.example.test.")))
		if err == nil || !strings.Contains(err.Error(), "alone") {
			t.Errorf("a CNAME beside an MX: %v", err)
		}
		got, err := p.Records(context.Background(), testZone)
		if rest := dnsprovider.Diff(got, hand); err != nil || len(rest) > 0 {
			t.Errorf("%v; what was refused has changed the zone:\n%s", err, rest)
		}
	})
}

// fakeServer answers every message with reply, signed with the test's key if sign is set. It does what real servers do
// not.
func fakeServer(t *testing.T, sign bool, reply func(*dns.Msg) *dns.Msg) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	key := testKey()
	signer, err := key.signer()
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{Listener: l, TsigProvider: signer, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) {
		if answer := reply(m); answer != nil {
			if sign {
				signer.sign(answer)
			}
			_ = w.WriteMsg(answer)
		}
	}), MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	return l.Addr().String()
}

func TestUnsignedAnswersAreNotTrusted(t *testing.T) {
	soa, err := dns.NewRR("example.test. 60 IN SOA ns admin 1 1 1 1 1")
	if err != nil {
		t.Fatal(err)
	}
	reply := func(m *dns.Msg) *dns.Msg {
		answer := new(dns.Msg).SetReply(m)
		if len(m.Question) == 1 && m.Question[0].Qtype == dns.TypeAXFR {
			answer.Answer = []dns.RR{soa, soa}
		}
		return answer
	}
	for _, sign := range []bool{true, false} {
		p := provider(t, fakeServer(t, sign, reply), testKey())
		if err := p.Apply(context.Background(), testZone, nil); (err == nil) != sign {
			t.Errorf("signed %t: Apply: %v", sign, err)
		}
		if _, err := p.Records(context.Background(), testZone); (err == nil) != sign {
			t.Errorf("signed %t: Records: %v", sign, err)
		}
	}
}

// TestRFC2136SilentServer: the caller's deadline is kept.
func TestRFC2136SilentServer(t *testing.T) {
	p := provider(t, fakeServer(t, true, func(*dns.Msg) *dns.Msg { return nil }), testKey())
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := p.Apply(ctx, testZone, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Apply: %v", err)
	}
	if _, err := p.Records(ctx, testZone); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Records: %v", err)
	}
}
