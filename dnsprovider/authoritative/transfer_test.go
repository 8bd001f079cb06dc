package authoritative

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

const testSecret = "c2l4dGVlbiBieXRlcyBvciBtb3JlIG9mIHNlY3JldA=="

func testKey(t testing.TB) Key {
	t.Helper()
	key, err := ParseKey("hmac-sha256:Transfer:" + testSecret)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// startPrimary runs a server that gives the zone to who has the key.
func startPrimary(t *testing.T, options Options) *Server {
	t.Helper()
	options.Transfers.Keys, options.RateLimit = []Key{testKey(t)}, -1
	return start(t, options)
}

// received returns what a client with the key gets: the records of a transfer.
func received(t *testing.T, conn *dns.Conn, m *dns.Msg, key Key) ([]dns.RR, error) {
	t.Helper()
	m.SetTsig(key.Name, key.Algorithm+".", 300, time.Now().Unix())
	client := &dns.Transfer{Conn: conn, TsigSecret: map[string]string{key.Name: key.Secret}, ReadTimeout: 5 * time.Second}
	parts, err := client.In(m, conn.RemoteAddr().String())
	if err != nil {
		return nil, err
	}
	var all []dns.RR
	for part := range parts {
		if part.Error != nil {
			return nil, part.Error
		}
		all = append(all, part.RR...)
	}
	return all, nil
}

func transferOf(t *testing.T, s *Server, m *dns.Msg) []dns.RR {
	t.Helper()
	conn, err := dns.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	all, err := received(t, conn, m, testKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lines returns records as sorted text, without the SOAs.
func lines(rrs []dns.RR) string {
	var list []string
	for _, rr := range rrs {
		if rr.Header().Rrtype != dns.TypeSOA {
			list = append(list, rr.String())
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// zoneOf returns what a transfer of the server's zone should be.
func zoneOf(t *testing.T, s *Server) string {
	t.Helper()
	all := []dns.RR{ask(t, s, "tcp", testZone, dns.TypeNS).Answer[0], ask(t, s, "tcp", "ns."+testZone, dns.TypeA).Answer[0]}
	sets, err := s.Records(context.Background(), testZone)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		for line := range strings.Lines(set.String()) {
			rr, err := dns.NewRR(line)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, rr)
		}
	}
	return lines(all)
}

func TestAWholeTransferIsTheZone(t *testing.T) {
	s := startPrimary(t, Options{})
	sets := append(manyNames(t, 3000), zoneLines(t, sample)...)
	fill(t, s, sets)
	got := transferOf(t, s, new(dns.Msg).SetAxfr(testZone))
	if got[0].Header().Rrtype != dns.TypeSOA || got[0].String() != got[len(got)-1].String() {
		t.Error("the transfer is not between two copies of the SOA")
	}
	if lines(got) != zoneOf(t, s) {
		t.Errorf("%d records are not those of the zone", len(got))
	}
}

// TestIncrementsLeadFromOneZoneToTheNext applies what clients get to what they have.
func TestIncrementsLeadFromOneZoneToTheNext(t *testing.T) {
	s := startPrimary(t, Options{})
	r := rand.New(rand.NewPCG(8, 9))
	fill(t, s, randomSets(t, r))
	have := map[string]bool{}
	first := transferOf(t, s, new(dns.Msg).SetAxfr(testZone))
	for _, rr := range first[:len(first)-1] {
		have[rr.String()] = true
	}
	serial := first[0].(*dns.SOA).Serial
	for range 5 {
		for range 1 + r.IntN(3) {
			now, _ := s.Records(context.Background(), testZone)
			become(t, s, now[:len(now)-r.IntN(10)-1], randomSets(t, r)[:r.IntN(10)])
		}
		got := transferOf(t, s, new(dns.Msg).SetIxfr(testZone, serial, "ns."+testZone, "hostmaster."+testZone))
		if second, ok := got[1].(*dns.SOA); !ok || second.Serial != serial {
			t.Fatalf("the second record is %v, want the SOA with serial %d: what has changed since", got[1], serial)
		}
		soas := 0
		for _, rr := range got[1 : len(got)-1] {
			if rr.Header().Rrtype == dns.TypeSOA {
				soas++
			}
			had := have[rr.String()]
			if going := soas%2 == 1; going != had {
				t.Fatalf("%v goes: %t, was there: %t", rr, going, had)
			}
			have[rr.String()] = soas%2 == 0
			if !have[rr.String()] {
				delete(have, rr.String())
			}
		}
		serial = got[0].(*dns.SOA).Serial
		var all []dns.RR
		for text := range have {
			rr, _ := dns.NewRR(text)
			all = append(all, rr)
		}
		if lines(all) != zoneOf(t, s) {
			t.Fatal("the increments lead to another zone")
		}
	}
}

// become makes the zone's sets want, and those of more whose names are free.
func become(t *testing.T, s *Server, want, more []dnsprovider.RRSet) {
	t.Helper()
	for _, set := range more {
		if !slices.ContainsFunc(want, func(w dnsprovider.RRSet) bool { return w.Name == set.Name }) {
			want = append(slices.Clip(want), set)
		}
	}
	have, err := s.Records(context.Background(), testZone)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(context.Background(), testZone, dnsprovider.Diff(have, want)); err != nil {
		t.Fatal(err)
	}
}

func TestIncrementsAreForWhoHadTheSerialOfUs(t *testing.T) {
	s := startPrimary(t, Options{})
	fill(t, s, zoneLines(t, "a A 192.0.2.1"))
	serial := ask(t, s, "udp", testZone, dns.TypeSOA).Answer[0].(*dns.SOA).Serial
	become(t, s, zoneLines(t, "a A 192.0.2.2"), nil)
	since := func() *dns.Msg { return new(dns.Msg).SetIxfr(testZone, serial, "ns."+testZone, "hostmaster."+testZone) }
	if got := transferOf(t, s, since()); lines(got) != zoneOf(t, s) {
		t.Errorf("who never had a transfer of us gets\n%v\nwant the whole zone", got)
	}
	serial++
	serial = ask(t, s, "udp", testZone, dns.TypeSOA).Answer[0].(*dns.SOA).Serial
	if got := transferOf(t, s, since()); len(got) != 1 {
		t.Errorf("who has the newest gets %v, want the SOA alone", got)
	}
}

func TestJournalIsBounded(t *testing.T) {
	var j journal
	step := dnsprovider.Step{New: make([]dnsprovider.RRSet, journalSets/4)}
	for i := range uint32(10) {
		j.add(journalEntry{from: i, to: i + 1, changes: dnsprovider.ChangeSet{step}})
	}
	if len(j.entries) != 4 || j.entries[0].from != 6 || j.sets != journalSets {
		t.Errorf("%d entries with %d sets from %d, want the last 4", len(j.entries), j.sets, j.entries[0].from)
	}
	for i := range 2 * journalClients {
		j.noteSent(client{key: fmt.Sprint(i)}, 1)
	}
	if len(j.clients) != journalClients {
		t.Errorf("%d clients, want %d", len(j.clients), journalClients)
	}
}

func TestTransfersAreOnlyWithAKey(t *testing.T) {
	s := startPrimary(t, Options{})
	fill(t, s, zoneLines(t, "a A 192.0.2.1"))
	good := testKey(t)
	stranger, liar := good, good
	stranger.Name = "stranger."
	liar.Secret = "YW5vdGhlciBzZWNyZXQgb2YgdGhlIHNhbWUgbGVuZ3Ro"
	for name, c := range map[string]struct {
		key  Key
		at   time.Duration
		code uint16
	}{
		"a good one":         {good, 0, dns.RcodeSuccess},
		"an unknown key":     {stranger, 0, dns.RcodeBadKey},
		"a wrong secret":     {liar, 0, dns.RcodeBadSig},
		"a signature of old": {good, -time.Hour, dns.RcodeBadTime},
	} {
		m := new(dns.Msg).SetQuestion(testZone, dns.TypeSOA)
		m.SetTsig(c.key.Name, c.key.Algorithm+".", 300, time.Now().Add(c.at).Unix())
		packed, _, err := dns.TsigGenerate(m, c.key.Secret, "", false)
		if err != nil {
			t.Fatal(err)
		}
		reply := sentRaw(t, s, packed)
		signature := reply.IsTsig()
		if signature == nil || signature.Error != c.code || (c.code != dns.RcodeSuccess) != (reply.Rcode == dns.RcodeNotAuth) {
			t.Errorf("%s: %v, want NOTAUTH and the signature's code %d", name, reply, c.code)
		}
	}
	if reply := exchange(t, s, "tcp", new(dns.Msg).SetAxfr(testZone)); reply.Rcode != dns.RcodeRefused {
		t.Errorf("a transfer without a key: %s, want REFUSED", dns.RcodeToString[reply.Rcode])
	}
	signedUDP := dns.Client{TsigSecret: map[string]string{good.Name: good.Secret}}
	m := new(dns.Msg).SetAxfr(testZone)
	m.SetTsig(good.Name, good.Algorithm+".", 300, time.Now().Unix())
	if reply, _, err := signedUDP.Exchange(m, s.Addr().String()); err != nil || reply.Rcode != dns.RcodeRefused {
		t.Errorf("a whole transfer over UDP: %v, %v, want REFUSED", reply, err)
	}
}

func TestTransfersAreOnlyForTheNetworks(t *testing.T) {
	for network, want := range map[string]int{"127.0.0.0/8": dns.RcodeSuccess, "192.0.2.0/24": dns.RcodeRefused} {
		s := startPrimary(t, Options{Transfers: Transfers{Networks: []netip.Prefix{netip.MustParsePrefix(network)}}})
		fill(t, s, zoneLines(t, "a A 192.0.2.1"))
		key, m := testKey(t), new(dns.Msg).SetAxfr(testZone)
		m.SetTsig(key.Name, key.Algorithm+".", 300, time.Now().Unix())
		client := dns.Client{Net: "tcp", TsigSecret: map[string]string{key.Name: key.Secret}}
		if reply, _, err := client.Exchange(m, s.Addr().String()); err != nil || reply.Rcode != want {
			t.Errorf("only for %s: %v, %v, want %s", network, reply, err, dns.RcodeToString[want])
		}
	}
}

// sentRaw returns the answer to a message over UDP, unchecked.
func sentRaw(t *testing.T, s *Server, message []byte) *dns.Msg {
	t.Helper()
	conn, err := net.Dial("udp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(message); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	buf, reply := make([]byte, 4096), &dns.Msg{}
	n, err := conn.Read(buf)
	if err == nil {
		err = reply.Unpack(buf[:n])
	}
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// TestASignatureHasRoom asks for more than fits into a packet with a signature behind it.
func TestASignatureHasRoom(t *testing.T) {
	s := startPrimary(t, Options{})
	addresses := ""
	for i := range 28 { // 477 bytes of 512
		addresses += fmt.Sprintf(" 192.0.2.%d", i)
	}
	fill(t, s, zoneLines(t, "a A"+addresses))
	key := testKey(t)
	client := dns.Client{TsigSecret: map[string]string{key.Name: key.Secret}}
	m := new(dns.Msg).SetQuestion("a."+testZone, dns.TypeA)
	m.SetTsig(key.Name, key.Algorithm+".", 300, time.Now().Unix())
	if reply, _, err := client.Exchange(m, s.Addr().String()); err != nil || !reply.Truncated || len(reply.Answer) != 0 {
		t.Errorf("%v, %v, want an answer that says: ask over TCP", reply, err)
	}
}

func TestWhatGetsNoAnswerIsNotAnswered(t *testing.T) {
	r := &responder{service: &service{}, special: func([]byte, origin) ([]byte, bool) { return nil, true }}
	message := packed(t, func(m *dns.Msg) { m.SetTsig("key.", dns.HmacSHA256, 300, 1) })
	if reply := r.respond(filled(t, nil), message, origin{}); reply != nil {
		t.Errorf("reply %x, want none", reply)
	}
}

// TestSignedPacketsAreBounded has more of them come in a second than a network gets answers.
func TestSignedPacketsAreBounded(t *testing.T) {
	r := &responder{service: &service{limiter: newLimiter(10)}, second: 1, special: func([]byte, origin) ([]byte, bool) { return make([]byte, headerSize), true }}
	answered := 0
	for range 100 {
		message := packed(t, func(m *dns.Msg) { m.SetTsig("key.", dns.HmacSHA256, 300, 1) })
		if r.respond(filled(t, nil), message, origin{client: netip.MustParseAddr("192.0.2.1"), udp: true}) != nil {
			answered++
		}
	}
	if answered != 10 {
		t.Errorf("%d of 100 were answered, want 10", answered)
	}
}

func TestParseTransferKeyRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"transfer:" + testSecret:               "ALGORITHM:NAME:SECRET",
		"hmac-md5:transfer:" + testSecret:      "hmac-sha256, hmac-sha384",
		"hmac-sha256:a..b:" + testSecret:       "label",
		"hmac-sha256:transfer:c2hvcnQ=":        "at least 16 bytes",
		"hmac-sha256:transfer:not in base64!!": "base64",
	} {
		if _, err := ParseKey(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "c2hvcnQ=") {
			t.Errorf("%s: error %v, want one with %q and without the secret", text, err, want)
		}
	}
}
