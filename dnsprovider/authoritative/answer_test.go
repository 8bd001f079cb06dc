package authoritative

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// filled returns a snapshot with the sample zone.
func filled(t testing.TB, sets []dnsprovider.RRSet) *snapshot {
	t.Helper()
	first, err := newSnapshot(testZone, nil, 5)
	if err != nil {
		t.Fatal(err)
	}
	e := first.edit()
	for _, step := range dnsprovider.Diff(nil, sets) {
		if err := e.change(step); err != nil {
			t.Fatal(err)
		}
	}
	e.synced = true
	next, err := e.finishSnapshot(2)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// answerTo leaves the message as it is.
func answerTo(s *snapshot, message []byte, udp bool) []byte {
	r := responder{service: &service{}}
	return r.respond(s, append(make([]byte, 0, dns.MaxMsgSize), message...), origin{netip.MustParseAddr("192.0.2.99"), udp})
}

func packed(t testing.TB, change func(*dns.Msg)) []byte {
	t.Helper()
	m := new(dns.Msg).SetQuestion("web."+testZone, dns.TypeA)
	m.Id = 1
	change(m)
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// messages returns well-formed and broken ones, with the code of the answer; -1: no answer.
func messages(t testing.TB) map[string]struct {
	message []byte
	rcode   int
} {
	type m = struct {
		message []byte
		rcode   int
	}
	plain := packed(t, func(*dns.Msg) {})
	edit := func(at int, b byte) []byte {
		c := append([]byte(nil), plain...)
		c[at] = b
		return c
	}
	opt := func(m *dns.Msg) {
		m.Extra = append(m.Extra, &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}})
	}
	all := map[string]m{
		"a question":                   {plain, dns.RcodeSuccess},
		"bytes behind the message":     {append(append([]byte(nil), plain...), 1, 2, 3), dns.RcodeSuccess},
		"nothing":                      {nil, -1},
		"half a header":                {plain[:11], -1},
		"an answer":                    {edit(2, 0x80), -1},
		"a header alone":               {plain[:12], dns.RcodeFormatError},
		"half a question":              {plain[:20], dns.RcodeFormatError},
		"no question":                  {packed(t, func(m *dns.Msg) { m.Question = nil }), dns.RcodeFormatError},
		"two questions":                {packed(t, func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }), dns.RcodeFormatError},
		"two questions, one there":     {edit(5, 2), dns.RcodeFormatError},
		"an additional that is absent": {edit(11, 1), dns.RcodeFormatError},
		"two OPTs":                     {packed(t, func(m *dns.Msg) { opt(m); opt(m) }), dns.RcodeFormatError},
		"class CH":                     {packed(t, func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }), dns.RcodeRefused},
		"a name that points to itself": {append(append([]byte(nil), plain[:12]...), 0xc0, 12, 0, 1, 0, 1), dns.RcodeFormatError},
	}
	for opcode := byte(1); opcode < 16; opcode++ {
		all[fmt.Sprintf("opcode %d", opcode)] = m{edit(2, opcode<<3), dns.RcodeNotImplemented}
	}
	all["a broken message of another opcode"] = m{edit(2, dns.OpcodeUpdate<<3)[:20], dns.RcodeNotImplemented}
	return all
}

func TestMessages(t *testing.T) {
	s := filled(t, zoneLines(t, sample))
	for name, c := range messages(t) {
		t.Run(name, func(t *testing.T) {
			reply := answerTo(s, c.message, true)
			if c.rcode < 0 {
				if reply != nil {
					t.Errorf("answered %x", reply)
				}
				return
			}
			m := new(dns.Msg)
			if err := m.Unpack(reply); err != nil || m.Rcode != c.rcode || m.Id != 1 || !m.Response {
				t.Errorf("%x: %v, %s, want %s with the ID", c.message, err, m, dns.RcodeToString[c.rcode])
			}
		})
	}
}

func TestMoreThanAMessageHoldsIsServfail(t *testing.T) {
	var many []string
	for i := range 5000 {
		many = append(many, fmt.Sprintf("10.0.%d.%d", i/250, i%250))
	}
	reply := new(dns.Msg)
	s := filled(t, zoneLines(t, "web A "+strings.Join(many, " ")))
	if err := reply.Unpack(answerTo(s, packed(t, func(*dns.Msg) {}), false)); err != nil || reply.Rcode != dns.RcodeServerFailure {
		t.Errorf("%v, %s, want SERVFAIL", err, reply.MsgHdr.String())
	}
}

// FuzzRespond checks for any message: no panic, and an answer, where there is one, that can be
// parsed, is to this message, and is no longer than the client takes.
func FuzzRespond(f *testing.F) {
	s := filled(f, zoneLines(f, sample))
	for _, c := range messages(f) {
		f.Add(c.message, true)
		f.Add(c.message, false)
	}
	f.Fuzz(func(t *testing.T, message []byte, udp bool) {
		s.names.prefetch(message)
		reply := answerTo(s, message, udp)
		if reply == nil {
			if len(message) >= headerSize && message[2]&0x80 == 0 {
				t.Errorf("no answer to %s", hex.EncodeToString(message))
			}
			return
		}
		m := new(dns.Msg)
		if err := m.Unpack(reply); err != nil {
			t.Fatalf("answer %x cannot be parsed: %v", reply, err)
		}
		if !m.Response || reply[0] != message[0] || reply[1] != message[1] || udp && len(reply) > ednsSize {
			t.Errorf("answer %s of %d bytes to %x", m, len(reply), message)
		}
	})
}

// BenchmarkRespond is a query for any of 10,000 and 200,000 names, without the socket; 32 have come together.
func BenchmarkRespond(b *testing.B) {
	for _, n := range []int{10000, 200000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, messages := filled(b, manyNames(b, n)), make([][]byte, 1<<16)
			for i := range messages {
				name := fmt.Sprintf("n%d.%s", i*7919%n, testZone)
				messages[i] = packed(b, func(m *dns.Msg) { m.Question[0].Name = name; m.SetEdns0(1232, false) })
			}
			r, buf := &responder{counters: &counters{}, service: &service{limiter: newLimiter(1 << 24)}}, make([]byte, packetSize)
			from, i := origin{netip.MustParseAddr("192.0.2.99"), true}, 0
			b.ReportAllocs()
			for b.Loop() {
				if i++; i%32 == 0 {
					for _, message := range messages[i%len(messages):][:32] {
						r.touched += s.names.prefetch(message)
					}
				}
				if len(r.respond(s, append(buf[:0], messages[i%len(messages)]...), from)) < 60 {
					b.Fatal("no answer")
				}
			}
		})
	}
}

func manyNames(t testing.TB, n int) []dnsprovider.RRSet {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "n%d A 10.1.%d.%d 10.2.%d.%d\n", i, i/250%250, i%250, i/250%250, i%250)
	}
	return zoneLines(t, lines.String())
}
