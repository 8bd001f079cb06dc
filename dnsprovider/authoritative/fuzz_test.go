package authoritative

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider/dnssec"
)

// offline returns a server of the sample without sockets.
func offline(t testing.TB, options Options) *Server {
	t.Helper()
	options.RateLimit = -1
	a := newAnswering(options.withDefaults(), testZone)
	a.zone.current.Store(filled(t, zoneLines(t, sample)))
	return &Server{zone: a.zone, answering: a}
}

// FuzzSigned checks that whatever is sent with a signature, only a client with the key gets the zone, or anything but a
// refusal.
func FuzzSigned(f *testing.F) {
	key := testKey(f)
	s := offline(f, Options{Transfers: Transfers{Keys: []Key{key}}})
	sign := func(t testing.TB, message []byte, secret string) []byte {
		m := new(dns.Msg)
		if m.Unpack(message) != nil || m.IsTsig() != nil {
			return message
		}
		m.SetTsig(key.Name, key.Algorithm+".", fudge, time.Now().Unix())
		packed, _, err := dns.TsigGenerate(m, secret, "", false)
		if err != nil {
			return message
		}
		return packed
	}
	const wrong = "d3JvbmcgYnV0IG9mIHRoZSByaWdodCBzaXpl"
	for _, c := range messages(f) {
		f.Add(c.message, byte(0), true)
		f.Add(c.message, byte(1), false)
	}
	for _, qtype := range []uint16{dns.TypeAXFR, dns.TypeIXFR, dns.TypeANY} {
		m := packed(f, func(m *dns.Msg) {
			m.Question[0] = dns.Question{Name: testZone, Qtype: qtype, Qclass: dns.ClassINET}
			m.Ns = []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: testZone, Rrtype: dns.TypeSOA, Class: dns.ClassINET}, Ns: ".", Mbox: ".", Serial: 1}}
		})
		for how := range byte(4) {
			f.Add(m, how, how%2 == 0)
		}
		f.Add(sign(f, m, wrong), byte(0), true)
	}
	f.Fuzz(func(t *testing.T, message []byte, how byte, udp bool) {
		switch how % 3 { // as it is, with the key, with another key
		case 1:
			message = sign(t, message, key.Secret)
		case 2:
			message = sign(t, message, wrong)
		}
		var parts [][]byte
		write := func(part []byte) error { parts = append(parts, slices.Clone(part)); return nil }
		if udp {
			write = nil
		}
		before := slices.Clone(message)
		reply, handled := s.answering.answerSigned(message, origin{netip.MustParseAddr("192.0.2.99"), udp}, write)
		if !slices.Equal(before, message) {
			t.Error("the message was changed")
		}
		if !handled && (reply != nil || len(parts) > 0) {
			t.Error("answered, and left to others")
		}
		for _, part := range append(parts, reply) {
			if part == nil {
				continue
			}
			m := new(dns.Msg)
			if err := m.Unpack(part); err != nil {
				t.Fatalf("answer %x cannot be parsed: %v", part, err)
			}
			if how%3 != 1 && len(m.Answer)+len(m.Ns) > 0 && dns.TsigVerify(slices.Clone(message), key.Secret, "", false) != nil {
				t.Errorf("told to who has no key: %s", m)
			}
			if !m.Response || udp && len(part) > ednsSize {
				t.Errorf("answer %s of %d bytes", m, len(part))
			}
		}
	})
}

// FuzzRespondSigned is FuzzRespond of a zone that is signed: answers and denials with their proofs.
func FuzzRespondSigned(f *testing.F) {
	key, err := dnssec.NewKey(dnssec.ECDSAP256)
	if err != nil {
		f.Fatal(err)
	}
	s := offline(f, Options{})
	if err := s.Sign(&dnssec.Signer{Zone: testZone, Key: key}); err != nil {
		f.Fatal(err)
	}
	fill(f, s, zoneLines(f, sample))
	for _, name := range []string{"web." + testZone, testZone, "none." + testZone, "alias2." + testZone, "a.b.c.web." + testZone, "example.org."} {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeNSEC, dns.TypeDNSKEY, dns.TypeANY, dns.TypeRRSIG, dns.TypeDS} {
			f.Add(packed(f, func(m *dns.Msg) { m.Question[0].Name, m.Question[0].Qtype = name, qtype; m.SetEdns0(1232, true) }), true)
		}
	}
	for _, c := range messages(f) {
		f.Add(c.message, false)
	}
	f.Fuzz(func(t *testing.T, message []byte, udp bool) {
		r := responder{service: &s.answering.service, second: uint32(time.Now().Unix())}
		reply := r.respond(s.zone.current.Load(), append(make([]byte, 0, dns.MaxMsgSize), message...), origin{netip.MustParseAddr("192.0.2.99"), udp})
		if reply == nil {
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

// FuzzParseKey: a key that is read can sign, and an error never has its secret.
func FuzzParseKey(f *testing.F) {
	for _, text := range []string{"", "hmac-sha256:transfer:" + testSecret, "hmac-md5:a:" + testSecret, "hmac-sha512:a..b:" + testSecret, "::", "hmac-sha384:a:AAAA"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParseKey(text)
		if err != nil {
			return
		}
		m := new(dns.Msg).SetQuestion(testZone, dns.TypeA)
		m.SetTsig(key.Name, key.Algorithm+".", fudge, time.Now().Unix())
		if _, _, err := dns.TsigGenerate(m, key.Secret, "", false); err != nil {
			t.Errorf("%q is taken, and cannot sign: %v", text, err)
		}
	})
}
