package authoritative

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// answered returns the answer of s to a message, from 192.0.2.99 over UDP; nil for none.
func answered(t *testing.T, r *responder, s *snapshot, m *dns.Msg) *dns.Msg {
	t.Helper()
	message, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	raw := r.respond(s, append(make([]byte, 0, packetSize), message...), origin{netip.MustParseAddr("192.0.2.99"), true})
	if raw == nil {
		return nil
	}
	reply := new(dns.Msg)
	if err := reply.Unpack(raw); err != nil {
		t.Fatalf("%x: %v", raw, err)
	}
	return reply
}

func withOption(name string, options ...dns.EDNS0) *dns.Msg {
	m := new(dns.Msg).SetQuestion(name+"."+testZone, dns.TypeA)
	m.SetEdns0(1232, false)
	m.IsEdns0().Option = options
	return m
}

// optionText returns what our OPT record has, "" for an empty one.
func optionText(m *dns.Msg) string {
	var parts []string
	for _, o := range m.IsEdns0().Option {
		parts = append(parts, fmt.Sprintf("%d %s", o.Option(), o))
	}
	return strings.Join(parts, ", ")
}

// TestCookiesAreThoseOfRFC9018 has the vectors of its appendix A.
func TestCookiesAreThoseOfRFC9018(t *testing.T) {
	for _, v := range []struct {
		secret, client, sent string
		now                  uint32
		valid                bool
		next                 string
	}{
		{"e5e973e5a6b2a43f48e7dc849e37bfcf", "198.51.100.100", "2464c4abcf10c957", 1559731985, false, "010000005cf79f111f8130c3eee29480"},
		{"e5e973e5a6b2a43f48e7dc849e37bfcf", "203.0.113.203", "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5", 1559727985, true, "01abcdef5cf78f71a314227b6679ebf5"},
		{"445536bcd2513298075a5d379663c962", "2001:db8:220:1:59de:d0f4:8769:82b8", "22681ab97d52c298010000005cf7c57926556bd0934c72f8", 1559741961, false, "010000005cf7c609a6bb79d16625507a"},
	} {
		var c cookie
		sent, _ := hex.DecodeString(v.sent)
		key, _ := hex.DecodeString(v.secret)
		secret := CookieSecret(key)
		if !c.parse(sent) {
			t.Fatalf("%s is not taken", v.sent)
		}
		valid := c.renew(&cookieSecrets{current: secret}, netip.MustParseAddr(v.client), v.now)
		if next := hex.EncodeToString(c.server[:]); valid != v.valid || next != v.next {
			t.Errorf("%s from %s at %d: valid %t, next %s, want %t, %s", v.sent, v.client, v.now, valid, next, v.valid, v.next)
		}
	}
}

func TestCookiesAge(t *testing.T) {
	secret, client := cookieSecrets{current: CookieSecret{1}}, netip.MustParseAddr("192.0.2.99")
	c := cookie{sent: true}
	c.renew(&secret, client, 100000)
	c.whole = true
	for _, v := range []struct {
		now            uint32
		valid, renewed bool
	}{{100000, true, false}, {101800, true, false}, {101801, true, true}, {103600, true, true}, {103601, false, true}, {99700, true, false}, {99699, false, true}} {
		next := c
		if valid := next.renew(&secret, client, v.now); valid != v.valid || (next != c) != v.renewed {
			t.Errorf("made at 100000, sent at %d: valid %t, renewed %t, want %t, %t", v.now, valid, next != c, v.valid, v.renewed)
		}
	}
	if c.renew(&secret, client.Next(), 100000) {
		t.Error("another client's cookie is taken")
	}
}

// A cookie outlives the secret that made it by one secret, and its client gets one of the current secret at once.
func TestCookiesOutliveTheirSecret(t *testing.T) {
	s, client := service{Options: Options{CookieSecret: CookieSecret{1}}}, netip.MustParseAddr("192.0.2.99")
	c := cookie{sent: true}
	c.renew(s.cookieSecrets(), client, 100000)
	c.whole = true
	s.rotateCookieSecret()
	next := c
	if !next.renew(s.cookieSecrets(), client, 100001) || next == c {
		t.Errorf("after one rotation: %v, want it valid and made with the new secret", next)
	}
	s.rotateCookieSecret()
	if c.renew(s.cookieSecrets(), client, 100002) || !next.renew(s.cookieSecrets(), client, 100002) {
		t.Error("after two rotations the first cookie is valid, or the second is not")
	}
}

func TestOptions(t *testing.T) {
	s := filled(t, zoneLines(t, sample))
	r := &responder{counters: &counters{}, service: &service{Options: Options{NSID: "ns-1"}}, second: 1559731985}
	key, _ := hex.DecodeString("e5e973e5a6b2a43f48e7dc849e37bfcf")
	r.service.CookieSecret = CookieSecret(key)
	subnet := func(family uint16, source, scope uint8, address string) dns.EDNS0 {
		return &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: family, SourceNetmask: source, SourceScope: scope, Address: netip.MustParseAddr(address).AsSlice()}
	}
	for _, c := range []struct {
		what   string
		option dns.EDNS0
		want   string
		rcode  int
	}{
		{"NSID", &dns.EDNS0_NSID{Code: dns.EDNS0NSID}, "3 6e732d31", 0},
		{"a client's cookie", &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "2464c4abcf10c957"}, "10 2464c4abcf10c957010000005cf79f11", 0},
		{"a cookie of 9 bytes", &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "2464c4abcf10c95701"}, "", dns.RcodeFormatError},
		{"a cookie of 41 bytes", &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: strings.Repeat("24", 41)}, "", dns.RcodeFormatError},
		{"a subnet", subnet(1, 24, 0, "198.51.100.0"), "8 198.51.100.0/24/0", 0},
		{"a subnet of IPv6", subnet(2, 56, 0, "2001:db8:1::"), "8 [2001:db8:1::]/56/0", 0},
		{"no subnet", subnet(1, 0, 0, "0.0.0.0"), "8 0.0.0.0/0/0", 0},
		{"a subnet with a scope", subnet(1, 24, 24, "198.51.100.0"), "8 198.51.100.0/24/0", dns.RcodeFormatError},
		{"an option that nobody knows", &dns.EDNS0_LOCAL{Code: 65001, Data: []byte{1}}, "", 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			reply := answered(t, r, s, withOption("web", c.option))
			got := optionText(reply)
			if reply.Rcode != c.rcode || c.rcode == 0 && !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%s, options %q, want %s, %q", dns.RcodeToString[reply.Rcode], got, dns.RcodeToString[c.rcode], c.want)
			}
			if c.rcode != 0 && len(reply.Answer) != 0 {
				t.Errorf("an answer beside the error: %s", reply)
			}
		})
	}
}

func TestSubnetMustBeWhole(t *testing.T) {
	for text, want := range map[string]bool{
		"00011800c63364": true, "00011700c63364": true, "00011600c63364": true, "00011500c63364": false,
		"00011800c633": false, "00011800c6336400": false, "00012100c633640000": false, "000118": false, "00031800c63364": false, "00010000": true,
	} {
		data, _ := hex.DecodeString(text)
		if got := new(subnet).parse(data); got != want {
			t.Errorf("subnet %s: taken %t, want %t", text, got, want)
		}
	}
}

func TestExtendedErrors(t *testing.T) {
	first, err := newSnapshot(testZone, nil, 5)
	if err != nil {
		t.Fatal(err)
	}
	r := &responder{counters: &counters{}, service: &service{}}
	if reply := answered(t, r, first, withOption("web")); reply.Rcode != dns.RcodeServerFailure || !strings.HasPrefix(optionText(reply), "15 14 ") {
		t.Errorf("before the first Apply: %s, want SERVFAIL and Not Ready", reply)
	}
	s := filled(t, zoneLines(t, sample))
	if reply := answered(t, r, s, withOption("web")); optionText(reply) != "" {
		t.Errorf("all is well: %s, want no option", reply)
	}
	r.service.away.Store(true)
	if reply := answered(t, r, s, withOption("web")); len(reply.Answer) != 2 || !strings.HasPrefix(optionText(reply), "15 3 ") {
		t.Errorf("the source is away: %s, want the records and Stale Answer", reply)
	}
}

func TestRateLimit(t *testing.T) {
	s := filled(t, zoneLines(t, sample))
	r := &responder{counters: &counters{}, service: &service{limiter: newLimiter(10)}, second: 100}
	count := func(m *dns.Msg) (whole, cut, none int) {
		for range 100 {
			switch reply := answered(t, r, s, m); {
			case reply == nil:
				none++
			case reply.Truncated && len(reply.Answer) == 0:
				cut++
			default:
				whole++
			}
		}
		return whole, cut, none
	}
	if whole, cut, none := count(withOption("web")); whole != 10 || cut < 10 || none < 10 {
		t.Errorf("%d whole, %d cut, %d not answered, want 10 whole and about 45 of the others", whole, cut, none)
	}
	if whole, _, _ := count(withOption("none")); whole != 10 {
		t.Errorf("%d negative answers, want 10: they have a count of their own", whole)
	}
	r.second++
	if whole, _, _ := count(withOption("web")); whole != 10 {
		t.Errorf("%d in the next second, want 10", whole)
	}
	reply := answered(t, r, s, withOption("other", &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "2464c4abcf10c957"}))
	whole, _, _ := count(withOption("web", reply.IsEdns0().Option[0]))
	if whole != 100 {
		t.Errorf("%d of 100 with a cookie, want all", whole)
	}
}

// TestLimiterForgetsTheQuietFirst floods it with networks: those that get the most are still limited.
func TestLimiterForgetsTheQuietFirst(t *testing.T) {
	l, r := newLimiter(10), rand.New(rand.NewPCG(1, 2))
	loud := netip.MustParseAddr("198.51.100.1")
	for range 10 {
		l.exceeded(loud, classAnswer, 7, 1)
	}
	for range 200000 {
		l.exceeded(netip.AddrFrom4([4]byte{10, byte(r.IntN(256)), byte(r.IntN(256)), 1}), classAnswer, 7, 1)
	}
	if !l.exceeded(loud, classAnswer, 7, 1) {
		t.Error("a network that has had its share was forgotten")
	}
	if l.exceeded(loud, classAnswer, 8, 1) {
		t.Error("the share is for a second")
	}
}

type nearTable map[string][]string

func (n nearTable) Near(client netip.Addr) []string { return n[client.String()] }

type everywhere []string

func (e everywhere) Near(netip.Addr) []string { return e }

func choice(t *testing.T, variants ...dnsprovider.Variant) []dnsprovider.RRSet {
	t.Helper()
	set, err := dnsprovider.NewChoice("web."+testZone, dnsprovider.A, 15, variants...)
	if err != nil {
		t.Fatal(err)
	}
	return []dnsprovider.RRSet{set}
}

func TestWeightedAnswers(t *testing.T) {
	s := filled(t, choice(t, dnsprovider.Variant{Rdata: []string{"192.0.2.1"}, Weight: 10},
		dnsprovider.Variant{Rdata: []string{"192.0.2.2", "192.0.2.3"}, Weight: 30}))
	r, seen := &responder{counters: &counters{}, service: &service{}}, map[int]int{}
	for range 4000 {
		seen[len(answered(t, r, s, withOption("web")).Answer)]++
	}
	// One in four has one address; five standard deviations are 137.
	if seen[1] < 1000-137 || seen[1] > 1000+137 || seen[1]+seen[2] != 4000 {
		t.Errorf("answers by their number of addresses: %v, want about 1000 with 1 and all others with 2", seen)
	}
}

func TestNearestAnswers(t *testing.T) {
	s := filled(t, choice(t, dnsprovider.Variant{Rdata: []string{"192.0.2.1"}, Region: "east"},
		dnsprovider.Variant{Rdata: []string{"192.0.2.2"}, Region: "west"}, dnsprovider.Variant{Rdata: []string{"192.0.2.3"}}))
	subnet := func(address string, bits uint8) dns.EDNS0 {
		return &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: bits, Address: netip.MustParseAddr(address).AsSlice()}
	}
	table := nearTable{"192.0.2.99": {"north", "west"}, "198.51.100.0": {"east", "west"}}
	for _, c := range []struct {
		what    string
		locator Locator
		options []dns.EDNS0
		want    string
	}{
		{"by the resolver's address", table, nil, "192.0.2.2 "},
		{"by the client's network", table, []dns.EDNS0{subnet("198.51.100.0", 24)}, "192.0.2.1 8 198.51.100.0/24/24"},
		{"a network that is not known", table, []dns.EDNS0{subnet("203.0.113.0", 24)}, "192.0.2.3 8 203.0.113.0/24/24"},
		{"a client that wants no part in it", table, []dns.EDNS0{subnet("0.0.0.0", 0)}, "192.0.2.2 8 0.0.0.0/0/0"},
		{"no table", nil, []dns.EDNS0{subnet("198.51.100.0", 24)}, "192.0.2.3 8 198.51.100.0/24/0"},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := &responder{counters: &counters{}, service: &service{Options: Options{Locator: c.locator}}}
			reply := answered(t, r, s, withOption("web", c.options...))
			if got := reply.Answer[0].(*dns.A).A.String() + " " + optionText(reply); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestUnusualMessagesGetTheUsualAnswers asks everything twice: plainly, and in a form that only miekg/dns parses.
func TestUnusualMessagesGetTheUsualAnswers(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	sets := randomSets(t, random)
	s, r := filled(t, sets), &responder{counters: &counters{}, service: &service{}}
	for range 3000 {
		query := randomQuery(random, sets)
		usual := answered(t, r, s, query)
		odd := query.Copy()
		extra := &dns.TXT{Hdr: dns.RR_Header{Name: "x.", Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{"x"}}
		switch random.IntN(3) {
		case 0:
			odd.Answer = append(odd.Answer, extra)
		case 1:
			odd.Ns = append(odd.Ns, extra)
		default:
			odd.Extra = slices.Insert(odd.Extra, 0, dns.RR(extra))
		}
		if a, b := said(usual), said(answered(t, r, s, odd)); a != b {
			t.Fatalf("%v: plainly\n%s\notherwise\n%s", query.Question, a, b)
		}
	}
}

func TestNoPacketCostsMemory(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	s := filled(t, append(zoneLines(t, strings.ReplaceAll(sample, "web A", "other A")), choice(t,
		dnsprovider.Variant{Rdata: []string{"192.0.2.1"}, Region: "east"}, dnsprovider.Variant{Rdata: []string{"192.0.2.2"}})...))
	r := &responder{counters: &counters{}, service: &service{limiter: newLimiter(1 << 20), Options: Options{NSID: "ns-1", Locator: everywhere{"west"}}}}
	for _, name := range []string{"web", "alias2", "away", "none", "empty", "to-empty", "loop1"} {
		message, err := withOption(name, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "2464c4abcf10c957"}, &dns.EDNS0_NSID{Code: dns.EDNS0NSID}).Pack()
		if err != nil {
			t.Fatal(err)
		}
		buf, from := make([]byte, packetSize), origin{netip.MustParseAddr("2001:db8::99"), true}
		if n := testing.AllocsPerRun(100, func() { r.respond(s, append(buf[:0], message...), from) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
