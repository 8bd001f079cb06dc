package authoritative

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/time/rate"

	"federation/dnsprovider"
	"federation/dnsprovider/dnssec"
	"federation/dnsprovider/servertest"
)

// startSigned runs a server of the sample that signs with a new key.
func startSigned(t *testing.T, a dnssec.Algorithm) (*Server, dnssec.Key) {
	t.Helper()
	key, err := dnssec.NewKey(a)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, Options{})
	if err := s.Sign(&dnssec.Signer{Zone: testZone, Key: key}); err != nil {
		t.Fatal(err)
	}
	fill(t, s, zoneLines(t, sample))
	return s, key
}

// askSigned asks with DO.
func askSigned(t *testing.T, s *Server, name string, qtype uint16) *dns.Msg {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, qtype)
	m.SetEdns0(1232, true)
	return exchange(t, s, "tcp", m)
}

// checkSignatures verifies each record set of a section, and returns how many there are.
func checkSignatures(t *testing.T, key *dns.DNSKEY, section []dns.RR) int {
	t.Helper()
	type set struct {
		name string
		t    uint16
	}
	sets, signatures := map[set][]dns.RR{}, map[set]*dns.RRSIG{}
	for _, rr := range section {
		if signature, ok := rr.(*dns.RRSIG); ok {
			signatures[set{rr.Header().Name, signature.TypeCovered}] = signature
		} else {
			k := set{rr.Header().Name, rr.Header().Rrtype}
			sets[k] = append(sets[k], rr)
		}
	}
	for k, rrs := range sets {
		if signatures[k] == nil {
			t.Errorf("%v has no signature", k)
		} else if err := signatures[k].Verify(key, rrs); err != nil || !signatures[k].ValidityPeriod(time.Now()) {
			t.Errorf("the signature of %v: %v", k, err)
		}
	}
	return len(sets)
}

func TestAllThatIsSaidIsSigned(t *testing.T) {
	for _, a := range []dnssec.Algorithm{dnssec.ECDSAP256, dnssec.Ed25519} {
		s, key := startSigned(t, a)
		public := key.DNSKEY(testZone)
		sets, err := s.Records(t.Context(), testZone)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range sets {
			reply := askSigned(t, s, set.Name, dns.StringToType[string(set.Type)])
			if checkSignatures(t, public, reply.Answer) == 0 {
				t.Errorf("%s %s has no answer", set.Name, set.Type)
			}
		}
		for _, qtype := range []uint16{dns.TypeSOA, dns.TypeNS, dns.TypeDNSKEY, dns.TypeCDS, dns.TypeCDNSKEY} {
			if checkSignatures(t, public, askSigned(t, s, testZone, qtype).Answer) != 1 {
				t.Errorf("the apex has no signed %s", dns.Type(qtype))
			}
		}
		for _, name := range []string{"none." + testZone, sets[0].Name} {
			if reply := askSigned(t, s, name, dns.TypeSRV); checkSignatures(t, public, reply.Ns) != 2 {
				t.Errorf("%s SRV: %v, want a signed SOA and NSEC", name, reply)
			}
		}
		if reply := ask(t, s, "udp", sets[0].Name, dns.TypeSRV); len(reply.Ns) != 1 {
			t.Errorf("who does not ask for signatures gets %v", reply.Ns)
		}
	}
}

func TestNoSuchNameIsATypeForWhoWantsProof(t *testing.T) {
	s, _ := startSigned(t, dnssec.Ed25519)
	for flags, want := range map[uint16]int{0: dns.RcodeNameError, 0x8000: dns.RcodeSuccess, 0xc000: dns.RcodeNameError} {
		m := new(dns.Msg).SetQuestion("None."+testZone, dns.TypeA)
		m.SetEdns0(1232, false)
		m.IsEdns0().Hdr.Ttl = uint32(flags)
		reply := exchange(t, s, "udp", m)
		i := slices.IndexFunc(reply.Ns, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeNSEC })
		if reply.Rcode != want || (i >= 0) != (flags != 0) {
			t.Errorf("flags %x: %v, want %s", flags, reply, dns.RcodeToString[want])
		}
		if i >= 0 && !slices.Contains(reply.Ns[i].(*dns.NSEC).TypeBitMap, dns.TypeNXNAME) {
			t.Errorf("%v does not say that there is no such name", reply.Ns[i])
		}
	}
}

func TestProofsAreBounded(t *testing.T) {
	s, _ := startSigned(t, dnssec.Ed25519)
	d, limit := s.answering.denials, rate.NewLimiter(0, 10)
	proof := func(i int) *records {
		return d.nameDenial(s.zone.current.Load(), []byte(wireName(fmt.Sprintf("n%d.%s", i, testZone))), limit)
	}
	made := 0
	for i := range 20 {
		if proof(i) != nil {
			made++
		}
	}
	if made != 10 || proof(0) == nil {
		t.Errorf("%d of 20 were made where 10 may be, the first one is kept: %t", made, proof(0) != nil)
	}
	limit = rate.NewLimiter(rate.Inf, 0)
	for i := range maxDenials + 1000 {
		proof(i)
	}
	kept := 0
	for i := range d.shards {
		kept += len(d.shards[i].missing)
	}
	if kept > maxDenials {
		t.Errorf("%d proofs are kept, want no more than %d", kept, maxDenials)
	}
}

// A flood of names that do not exist, from forged sources, costs other clients no answer: neither those that ask for
// missing types of existing names, nor those that use TCP or a cookie.
func TestAFloodOfNamesCostsNobodyElseAProof(t *testing.T) {
	s, _ := startSigned(t, dnssec.Ed25519)
	s.answering.denials.unproven.SetLimit(0) // it is used up
	s.answering.denials.unproven.SetBurst(0)
	name := "web." + testZone
	for _, network := range []string{"udp", "tcp"} {
		m := new(dns.Msg).SetQuestion(name, dns.TypeSRV)
		m.SetEdns0(1232, true)
		if reply := exchange(t, s, network, m); reply.Rcode != dns.RcodeSuccess || reply.Truncated || len(reply.Ns) == 0 {
			t.Errorf("%s, a type that an existing name has not: %v", network, reply)
		}
	}
	missing := new(dns.Msg).SetQuestion("none."+testZone, dns.TypeA)
	missing.SetEdns0(1232, true)
	if reply := exchange(t, s, "udp", missing); !reply.Truncated {
		t.Errorf("udp, without a cookie: %v, want TC", reply)
	}
	if reply := exchange(t, s, "tcp", missing); reply.Rcode != dns.RcodeSuccess || len(reply.Ns) == 0 {
		t.Errorf("tcp: %v", reply)
	}
}

// A network that floods is limited before it uses up the total of proofs.
func TestOneNetworkDoesNotUseUpTheProofs(t *testing.T) {
	s, _ := startSigned(t, dnssec.Ed25519)
	s.answering.limiter = newLimiter(10)
	s.answering.denials.unproven = rate.NewLimiter(0, 50)
	r := &responder{counters: &counters{}, service: &s.answering.service, second: 100}
	for i := range 200 {
		m := new(dns.Msg).SetQuestion(fmt.Sprintf("n%d.%s", i, testZone), dns.TypeA)
		m.SetEdns0(1232, true)
		answered(t, r, s.zone.current.Load(), m)
	}
	if left := s.answering.denials.unproven.Tokens(); left < 1 {
		t.Errorf("%v of 50 proofs are left", left)
	}
}

func TestSignaturesAreMadeAnew(t *testing.T) {
	s, key := startSigned(t, dnssec.Ed25519)
	before := askSigned(t, s, testZone, dns.TypeDNSKEY).Answer
	if err := s.zone.renew(time.Now()); err != nil {
		t.Fatal(err)
	}
	if same := askSigned(t, s, testZone, dns.TypeDNSKEY).Answer; fmt.Sprint(same) != fmt.Sprint(before) {
		t.Error("signatures were made anew that are not due")
	}
	s.zone.applying.Lock()
	old := s.zone.current.Load()
	aged := old.edit() // as if made three weeks ago
	for n := range old.names.all() {
		answers := slices.Collect(n.answers())
		for i, a := range answers {
			if made := a.signature.records(); made.count > 0 {
				answers[i].signature = newSignature(time.Now(), made.count, []byte(made.packed))
			}
		}
		aged.set(n.name(), answers)
	}
	s.zone.current.Store(aged.snapshot)
	s.zone.applying.Unlock()
	if err := s.zone.renew(time.Now()); err != nil {
		t.Fatal(err)
	}
	for n := range s.zone.current.Load().names.all() {
		if n.renewalDue(time.Now()) {
			t.Errorf("%s is still due", nameOf(n.name()))
		}
	}
	checkSignatures(t, key.DNSKEY(testZone), askSigned(t, s, testZone, dns.TypeDNSKEY).Answer)
}

func TestASignedZoneIsNotTransferred(t *testing.T) {
	s := startPrimary(t, Options{})
	key, err := dnssec.NewKey(dnssec.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Sign(&dnssec.Signer{Zone: testZone, Key: key}); err != nil {
		t.Fatal(err)
	}
	fill(t, s, zoneLines(t, sample))
	m, secret := new(dns.Msg).SetAxfr(testZone), testKey(t)
	m.SetEdns0(1232, false)
	m.SetTsig(secret.Name, secret.Algorithm+".", 300, time.Now().Unix())
	client := dns.Client{Net: "tcp", TsigSecret: map[string]string{secret.Name: secret.Secret}}
	reply, _, err := client.Exchange(m, s.Addr().String())
	if err != nil || reply.Rcode != dns.RcodeRefused || !strings.Contains(fmt.Sprint(reply.IsEdns0()), "cannot be transferred") {
		t.Errorf("%v, %v, want REFUSED and why", reply, err)
	}
}

// TestKnotIsToldThatASignedZoneIsNotTransferred checks that a real secondary reports the refusal, and has no zone.
func TestKnotIsToldThatASignedZoneIsNotTransferred(t *testing.T) {
	s := startPrimary(t, Options{})
	key, err := dnssec.NewKey(dnssec.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Sign(&dnssec.Signer{Zone: testZone, Key: key}); err != nil {
		t.Fatal(err)
	}
	fill(t, s, zoneLines(t, sample))
	port := servertest.FreePort(t)
	log := startSecondary(t, "Knot", port, s.Addr())
	servertest.Await(t, func() error {
		if !strings.Contains(log.String(), "REFUSED") {
			return errors.New("Knot does not say that the transfer was refused")
		}
		return nil
	})
	reply, err := dns.Exchange(new(dns.Msg).SetQuestion(testZone, dns.TypeSOA), fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil || reply.Rcode != dns.RcodeServerFailure {
		t.Errorf("Knot says %v, %v, want SERVFAIL: it has no zone", reply, err)
	}
}

// TestLongNamesAreDenied asks for names that have no room for another label below them.
func TestLongNamesAreDenied(t *testing.T) {
	s, key := startSigned(t, dnssec.Ed25519)
	for size := 252; size <= 255; size++ {
		name, left := testZone, size-len(wireName(testZone))
		for ; left > 64; left -= 62 {
			name = strings.Repeat("l", 61) + "." + name
		}
		name = strings.Repeat("a", left-1) + "." + name
		reply := askSigned(t, s, name, dns.TypeA)
		i := slices.IndexFunc(reply.Ns, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeNSEC })
		if len(wireName(name)) != size || i < 0 {
			t.Fatalf("%d bytes: %v, want a proof", size, reply)
		}
		if next := reply.Ns[i].(*dns.NSEC).NextDomain; next == name || !dns.IsSubDomain(testZone, next) {
			t.Errorf("%d bytes: the name behind is %q", size, next)
		}
		checkSignatures(t, key.DNSKEY(testZone), reply.Ns)
	}
}

// TestDelvValidates makes BIND's validator check answers of all kinds.
func TestDelvValidates(t *testing.T) {
	delv := servertest.Find(t, "delv", "bind9-dnsutils")
	for _, a := range []dnssec.Algorithm{dnssec.ECDSAP256, dnssec.Ed25519} {
		s, key := startSigned(t, a)
		sets, err := s.Records(t.Context(), testZone)
		if err != nil {
			t.Fatal(err)
		}
		served := sets[slices.IndexFunc(sets, func(s dnsprovider.RRSet) bool { return s.Type == dnsprovider.A })].Name
		public := key.DNSKEY(testZone)
		anchor := servertest.Write(t, t.TempDir(), "anchor", fmt.Sprintf("trust-anchors { %q static-key %d %d %d %q; };\n", testZone, public.Flags, public.Protocol, public.Algorithm, public.PublicKey))
		for question, want := range map[string]string{
			sets[0].Name + " " + string(sets[0].Type): "; fully validated",
			testZone + " DNSKEY":                      "; fully validated",
			testZone + " CDS":                         "; fully validated",
			served + " SRV":                           "; negative response, fully validated",
			"no.such.name." + testZone + " A":         "; negative response, fully validated",
		} {
			args := append([]string{"@127.0.0.1", "-p", fmt.Sprint(s.Addr().Port()), "-a", anchor, "+root=" + testZone}, strings.Fields(question)...)
			out, err := exec.Command(delv, args...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s: %v, want %q in\n%s", question, err, want, out)
			}
		}
	}
}
