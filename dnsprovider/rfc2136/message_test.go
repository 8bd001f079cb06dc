package rfc2136

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

func TestMessageOfATypeSwitch(t *testing.T) {
	changes := dnsprovider.Diff(zoneLines(t, "web A 192.0.2.1"), zoneLines(t, "web CNAME other.example.test."))
	messages, err := messagesOf(testZone, changes)
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	m := messages[0]
	if got := m.Answer[0].String(); got != "web.example.test.\t0\tIN\tA\t192.0.2.1" {
		t.Errorf("the first prerequisite is %s", got)
	}
	if got := fmt.Sprint(m.Ns); got != "[web.example.test.\t0\tCLASS255\tA\t web.example.test.\t15\tIN\tCNAME\tother.example.test.]" {
		t.Errorf("updates: %s", got)
	}
	for _, rr := range m.Answer[1:] {
		if h := rr.Header(); h.Class != dns.ClassNONE || h.Rrtype == dns.TypeA {
			t.Errorf("prerequisite %s: want that other types are not there", rr)
		}
	}
}

// TestMessagesFit: all messages can be packed, have all steps in order, and few are half empty.
func TestMessagesFit(t *testing.T) {
	for _, n := range []int{0, 1, 3000, 20000} {
		var want []dnsprovider.RRSet
		for i := range n {
			want = append(want, zoneLines(t, fmt.Sprintf("%s.n%05d CNAME target.%[1]s.example.test.", strings.Repeat("x", i%60+1), i))...)
		}
		changes := dnsprovider.Diff(nil, want)
		messages, err := messagesOf(testZone, changes)
		if err != nil {
			t.Fatal(err)
		}
		steps := 0
		for _, m := range messages {
			m.SetTsig("federation.", dns.HmacSHA512, fudge, 1)
			if _, err := m.Pack(); err != nil || m.size > maxRecords {
				t.Errorf("a message with %d steps, %d bytes: %v", m.steps, m.size, err)
			}
			for _, rr := range m.Ns {
				if rr.Header().Name != changes[steps].Name {
					t.Fatalf("step %d is of %s, want %s", steps, rr.Header().Name, changes[steps].Name)
				}
				steps++
			}
		}
		if steps != n {
			t.Errorf("%d steps in messages, want %d", steps, n)
		}
		t.Logf("%d steps: %d messages", n, len(messages))
	}
}

func TestMessagesOfRefuses(t *testing.T) {
	one := zoneLines(t, "a A 192.0.2.1")[0]
	var many []string
	for i := range 5000 {
		many = append(many, fmt.Sprintf("10.%d.%d.1", i/256, i%256))
	}
	large, err := dnsprovider.New("large.example.test.", dnsprovider.A, 15, many...)
	if err != nil {
		t.Fatal(err)
	}
	for want, step := range map[string]dnsprovider.Step{
		"in the zone":       {Name: "a.example.", New: []dnsprovider.RRSet{one}},
		"the step's name":   {Name: "b.example.test.", New: []dnsprovider.RRSet{one}},
		"one message":       {Name: large.Name, New: []dnsprovider.RRSet{large}},
		"data of that type": {Name: one.Name, New: []dnsprovider.RRSet{{Name: one.Name, Type: "MX", Rdata: []string{"x"}}}},
		"at least one":      {Name: one.Name, New: []dnsprovider.RRSet{{Name: one.Name, Type: "A"}}},
	} {
		if want == "one message" {
			want = "a message has at most"
		}
		if _, err := messagesOf(testZone, dnsprovider.ChangeSet{step}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestRFC2136NewRefuses(t *testing.T) {
	secret := func(text string, err error) func(*Key) {
		return func(k *Key) { k.Secret = func() (string, error) { return text, err } }
	}
	for want, o := range map[string]Options{
		"HOST:PORT":                     {Server: "192.0.2.53", Key: testKey()},
		"name":                          {Server: "192.0.2.53:53", Key: testKey(func(k *Key) { k.Name = "" })},
		"hmac-sha256":                   {Server: "192.0.2.53:53", Key: testKey(func(k *Key) { k.Algorithm = "hmac-md5" })},
		"base64":                        {Server: "192.0.2.53:53", Key: testKey(secret("?", nil))},
		"at least 16 bytes":             {Server: "192.0.2.53:53", Key: testKey(secret("c2hvcnQ=", nil))},
		"secret: the file is not there": {Server: "192.0.2.53:53", Key: testKey(secret("", errors.New("the file is not there")))},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestSetsOfLeavesOutTheServersOwn has a zone with all that a server may have in it.
func TestSetsOfLeavesOutTheServersOwn(t *testing.T) {
	var rrs []dns.RR
	for _, line := range []string{
		"@ 60 IN SOA ns admin 1 1 1 1 1", "@ 60 IN NS NS.example.test.", "ns 60 IN A 192.0.2.53", "ns 60 IN TXT shown",
		"@ 60 IN DNSKEY 257 3 13 AAAA", "@ 60 IN TYPE65534 \\# 1 00", "web 15 IN NSEC a.example.test. A", "@ 15 IN MX 10 mail",
		"WEB 15 IN A 192.0.2.2", "web 15 IN A 192.0.2.1", "*.wild 15 IN A 192.0.2.1", "sub 15 IN NS ns.elsewhere.test.", `odd 15 IN CNAME a\.b`,
	} {
		rr, err := dns.NewRR("$ORIGIN example.test.\n" + line)
		if err != nil {
			t.Fatal(err)
		}
		rrs = append(rrs, rr)
	}
	var got []string
	for _, set := range setsOf(testZone, rrs) {
		got = append(got, set.String())
	}
	want := `example.test. 15 IN MX 10 mail.example.test.
ns.example.test. 60 IN TXT "shown"
sub.example.test. 15 IN NS ns.elsewhere.test.
web.example.test. 15 IN A 192.0.2.1
web.example.test. 15 IN A 192.0.2.2`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// FuzzSetsOf: whatever a server transfers, what comes out are sets that New makes.
func FuzzSetsOf(f *testing.F) {
	for _, line := range []string{"web 15 IN A 192.0.2.1", "web 15 IN TXT \"a\\;\" \"\\200\"", "@ 60 IN NS web", "odd 15 IN TYPE65280 \\# 1 00"} {
		rr, err := dns.NewRR("$ORIGIN example.test.\n" + line)
		if err != nil {
			f.Fatal(err)
		}
		wire, err := (&dns.Msg{Answer: []dns.RR{rr}}).Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		m := new(dns.Msg)
		if m.Unpack(wire) != nil {
			return
		}
		for _, set := range setsOf(testZone, m.Answer) {
			again, err := dnsprovider.New(set.Name, set.Type, set.TTL, set.Rdata...)
			if err != nil || !again.Equal(set) {
				t.Errorf("set %v is not canonical: %v", set, err)
			}
		}
	})
}
