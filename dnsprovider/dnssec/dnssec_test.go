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

func TestParseKeyRefuses(t *testing.T) {
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
		`web.example.test. 5 IN NSEC \000.web.example.test. A RRSIG NSEC`:     Denial("web.example.test.", 5, dns.TypeA),
		`no.example.test. 5 IN NSEC \000.no.example.test. RRSIG NSEC NXNAME`:  Denial("no.example.test.", 5, dns.TypeNXNAME),
		`empty.example.test. 5 IN NSEC \000.empty.example.test. RRSIG NSEC`:   Denial("empty.example.test.", 5),
		`example.test. 5 IN NSEC \000.example.test. NS SOA RRSIG NSEC DNSKEY`: Denial(zone, 5, dns.TypeSOA, dns.TypeNS, dns.TypeDNSKEY),
	} {
		if text := strings.ReplaceAll(got.String(), "\t", " "); text != want {
			t.Errorf("%s, want %s", text, want)
		}
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

// signedZone is a zone file of two names: an apex and an alias, each followed by the other in the chain of NSEC records.
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
	first := Denial(zone, 5, dns.TypeSOA, dns.TypeNS, dns.TypeDNSKEY, dns.TypeCDS, dns.TypeCDNSKEY)
	first.NextDomain = "ns.example.test."
	last := Denial("ns.example.test.", 5, dns.TypeA)
	last.NextDomain = zone
	sign(first)
	sign(last)
	return file.String()
}
