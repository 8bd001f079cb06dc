package dnssec

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider/servertest"
)

const zone = "example.test."

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newKey(t *testing.T, a Algorithm) Key {
	t.Helper()
	key, err := NewKey(a)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func record(t *testing.T, text string) dns.RR {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	return rr
}

func TestKeysAreKept(t *testing.T) {
	for _, a := range []Algorithm{ECDSAP256, Ed25519} {
		key := newKey(t, a)
		text, err := key.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseKey(text)
		if err != nil || again.DS(zone).String() != key.DS(zone).String() {
			t.Errorf("read again the key is %v, %v, want %v", again.DS(zone), err, key.DS(zone))
		}
	}
}

func TestParseSigningKeyRefuses(t *testing.T) {
	wrongCurve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(wrongCurve)
	if err != nil {
		t.Fatal(err)
	}
	block := func(b []byte) string { return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b})) }
	for text, want := range map[string]string{"": "PEM", "text": "PEM", block([]byte("no key")): "PKCS #8", block(der): "P-256"} {
		if _, err := ParseKey([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
	if _, err := NewKey(8); err == nil || !strings.Contains(err.Error(), "13 (ECDSA P-256) or 15") {
		t.Errorf("a key of RSA: error %v", err)
	}
}

func TestSignaturesAreSpread(t *testing.T) {
	s := Signer{Zone: zone, Key: newKey(t, Ed25519)}
	first := map[uint32]bool{}
	for i := range 50 {
		set := []dns.RR{record(t, fmt.Sprintf("host-%d.example.test. 15 IN A 192.0.2.1", i))}
		signature, err := s.Sign(set, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := signature.Verify(s.Key.DNSKEY(zone), set); err != nil || !signature.ValidityPeriod(now) {
			t.Fatalf("signature %v: %v", signature, err)
		}
		first[signature.Expiration] = true
		if due := Due(signature).Sub(now); due < Life-Renew || due >= Life+Spread-Renew {
			t.Errorf("due in %v, want from %v to %v", due, Life-Renew, Life+Spread-Renew)
		}
	}
	if len(first) < 45 {
		t.Errorf("50 signatures end at %d times: too many would be made anew at once", len(first))
	}
}

func TestDenialNamesNobodyElse(t *testing.T) {
	for want, got := range map[string]*dns.NSEC{
		`web.example.test. 5 IN NSEC \000.web.example.test. A RRSIG NSEC`:     Denial(zone, "web.example.test.", 5, dns.TypeA),
		`no.example.test. 5 IN NSEC \000.no.example.test. RRSIG NSEC NXNAME`:  Denial(zone, "no.example.test.", 5, dns.TypeNXNAME),
		`empty.example.test. 5 IN NSEC \000.empty.example.test. RRSIG NSEC`:   Denial(zone, "empty.example.test.", 5),
		`example.test. 5 IN NSEC \000.example.test. NS SOA RRSIG NSEC DNSKEY`: Denial(zone, zone, 5, dns.TypeSOA, dns.TypeNS, dns.TypeDNSKEY),
	} {
		if text := strings.ReplaceAll(got.String(), "\t", " "); text != want {
			t.Errorf("%s, want %s", text, want)
		}
	}
}

func TestTheNameBehindALongNameIsNoLonger(t *testing.T) {
	long := strings.Repeat(strings.Repeat("l", 61)+".", 3) + zone // 200 bytes on the wire
	a, single := strings.Repeat("a", 53), strings.Repeat("a.", 24)
	for name, want := range map[string]string{
		a[:52] + "." + long: `\000.` + a[:52] + "." + long, // 253 bytes
		a + "." + long:      a + `\000.` + long,            // 254
		a + "a." + long:     a + "b." + long,               // 255
		a + "@." + long:     a + "[." + long,
		"a" + strings.Repeat(`\255`, 53) + "." + long: "b." + long,
		strings.Repeat(`\255`, 54) + "." + long:       strings.Repeat("l", 61) + `\000.` + long[62:],
		"a." + single + "zzz." + long:                 `a\000.` + single + "zzz." + long,
		"a." + single + "zzzz." + long:                "b." + single + "zzzz." + long,
	} {
		if got := nextName(zone, name); got != want || len(wireOf(got)) > maxName {
			t.Errorf("behind %q (%d bytes) is\n%q, want\n%q", name, len(wireOf(name)), got, want)
		}
	}
	last := strings.Repeat(`\255`, 63) + "."
	last = strings.Repeat(`\255`, 48) + "." + last + last + last + zone
	if got := nextName(zone, last); got != zone {
		t.Errorf("behind the last name is %q, want the zone's own", got)
	}
}

// TestOthersAcceptTheZone lets the checkers of two other projects look at a signed zone, during a rollover too.
func TestOthersAcceptTheZone(t *testing.T) {
	ldns, bind := servertest.Find(t, "ldns-verify-zone", "ldnsutils"), servertest.Find(t, "dnssec-verify", "bind9-utils")
	for name, s := range map[string]Signer{
		"ECDSA":    {Zone: zone, Key: newKey(t, ECDSAP256)},
		"Ed25519":  {Zone: zone, Key: newKey(t, Ed25519)},
		"rollover": {Zone: zone, Key: newKey(t, ECDSAP256), More: []Key{newKey(t, ECDSAP256)}},
	} {
		file := servertest.Write(t, t.TempDir(), "zone", signedZone(t, s))
		for _, check := range []*exec.Cmd{exec.Command(ldns, file), exec.Command(bind, "-z", "-o", zone, file)} {
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", name, check.Path, err, out)
			}
		}
	}
}

// signedZone returns a zone file of two names: an apex and an alias, each followed by the other in the chain of NSEC
// records.
func signedZone(t *testing.T, s Signer) string {
	t.Helper()
	var file strings.Builder
	at := time.Now()
	sign := func(set ...dns.RR) {
		signature, err := s.Sign(set, at)
		if err != nil {
			t.Fatal(err)
		}
		for _, rr := range append(set, signature) {
			fmt.Fprintln(&file, rr)
		}
	}
	sign(record(t, zone+" 300 IN SOA ns.example.test. hostmaster.example.test. 1 60 10 604800 5"))
	sign(record(t, zone+" 300 IN NS ns.example.test."))
	sign(record(t, "ns.example.test. 300 IN A 192.0.2.53"), record(t, "ns.example.test. 300 IN A 192.0.2.54"))
	apex, err := s.Apex(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range apex {
		for _, rr := range set {
			fmt.Fprintln(&file, rr)
		}
	}
	first := Denial(zone, zone, 5, dns.TypeSOA, dns.TypeNS, dns.TypeDNSKEY, dns.TypeCDS, dns.TypeCDNSKEY)
	first.NextDomain = "ns.example.test."
	last := Denial(zone, "ns.example.test.", 5, dns.TypeA)
	last.NextDomain = zone
	sign(first)
	sign(last)
	return file.String()
}
