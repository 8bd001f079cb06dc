package dnssec

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	randv2 "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// before reports whether a name comes before another in the order of RFC 4034, section 6.1: label by label from the end, as bytes, capitals as small letters.
func before(a, b string) bool {
	labels := func(name string) (all [][]byte) {
		for wire := wireOf(name); wire[0] > 0; wire = wire[1+wire[0]:] {
			label := slices.Clone(wire[1 : 1+wire[0]])
			for i, b := range label {
				if b >= 'A' && b <= 'Z' {
					label[i] += 'a' - 'A'
				}
			}
			all = append(all, label)
		}
		slices.Reverse(all)
		return all
	}
	return slices.CompareFunc(labels(a), labels(b), bytes.Compare) < 0
}

// anyName returns a name of the zone, often one that is about as long as names can be.
func anyName(chance *randv2.Rand) string {
	wire := wireOf(zone)
	for room := []int{30, 253, 254, 255}[chance.IntN(4)]; len(wire) < room-1; {
		label := make([]byte, min(room-len(wire)-1, 1+chance.IntN(63)))
		for i := range label {
			label[i] = []byte{0, '@', '[', 'a', 'z', '{', 0xfe, 0xff, 0xff, 0xff}[chance.IntN(10)]
		}
		wire = withLabel(label, wire)
	}
	return nameOf(wire)
}

// The next name of a denial comes behind the name, in the zone or back at its apex, and none of the names that are made to lie near is between
// them: a denial denies one name.
func TestDenialHasNobodyBetween(t *testing.T) {
	chance := randv2.New(randv2.NewPCG(97, 1))
	full := strings.Repeat("z", 63) + "."
	names := []string{zone, full + full + full + full[16:] + zone, full[16:] + full + full + full + zone} // the latter have 254 bytes
	for range 3000 {
		names = append(names, anyName(chance))
	}
	for _, name := range names {
		next := Denial(zone, name, 5).NextDomain
		if next != zone && (!before(name, next) || !dns.IsSubDomain(zone, next)) || len(wireOf(next)) > maxName {
			t.Fatalf("behind %q is %q", name, next)
		}
		for range 8 {
			wire := wireOf(name)
			switch own := wire[1 : 1+wire[0]]; chance.IntN(4) {
			case 0:
				own[chance.IntN(len(own))]++
			case 1:
				own[len(own)-1] = "[`"[chance.IntN(2)]
			case 2:
				wire = withLabel(append(slices.Clone(own), byte(chance.IntN(3))), wire[1+wire[0]:])
			default:
				wire = withLabel([]byte{byte(chance.IntN(3))}, wire)
			}
			if len(wire) > maxName || wire[0] > maxLabel {
				continue
			}
			if near := nameOf(wire); before(name, near) && (next == zone || before(near, next)) {
				t.Fatalf("%q is between %q and %q", near, name, next)
			}
		}
	}
}

// Each set of the apex is signed by each key. CDS and CDNSKEY name the keys that are to be submitted: all of them, some, or none, and then
// there are no such sets.
func TestApexNamesWhatIsSubmitted(t *testing.T) {
	one, two := newKey(t, ECDSAP256), newKey(t, Ed25519)
	for _, c := range []struct {
		submit []uint16
		want   []Key
	}{{nil, []Key{one, two}}, {[]uint16{}, nil}, {[]uint16{two.Tag()}, []Key{two}}, {[]uint16{two.Tag(), one.Tag()}, []Key{one, two}}} {
		s := Signer{Zone: zone, Key: one, More: []Key{two}, Submit: c.submit}
		sets, err := s.Apex(now)
		if err != nil || len(s.Submitted()) != len(c.want) || len(sets) != min(1+2*len(c.want), 3) {
			t.Fatalf("submit %v: %d keys, %d sets, error %v", c.submit, len(s.Submitted()), len(sets), err)
		}
		for i, set := range sets {
			keys := [][]Key{{one, two}, c.want, c.want}[i]
			if len(set) != len(keys)+2 {
				t.Fatalf("submit %v: set %d has %d records of %d keys", c.submit, i, len(set), len(keys))
			}
			for j, key := range keys {
				want := []dns.RR{key.DNSKEY(zone), key.DS(zone).ToCDS(), key.DNSKEY(zone).ToCDNSKEY()}[i]
				if set[j].String() != want.String() {
					t.Errorf("submit %v: got %s, want %s", c.submit, set[j], want)
				}
			}
			for j, by := range []Key{one, two} {
				if err := set[len(keys)+j].(*dns.RRSIG).Verify(by.DNSKEY(zone), set[:len(keys)]); err != nil {
					t.Errorf("submit %v: set %d is not signed by key %d: %v", c.submit, i, j, err)
				}
			}
		}
	}
}

// A signature counts from an hour before it was made, until the name's own time; it has the set's TTL, and is renewed a week before.
func TestSignatureIsValidForItsTime(t *testing.T) {
	s, expires := Signer{Zone: zone, Key: newKey(t, Ed25519)}, map[string]time.Time{}
	for _, name := range []string{"a.example.test.", "b.example.test."} {
		for _, text := range []string{"15 IN A 192.0.2.1", "30 IN AAAA 2001:db8::1"} {
			set := []dns.RR{record(t, name+" "+text)}
			signature, err := s.Sign(set, now)
			if err != nil {
				t.Fatal(err)
			}
			ends := time.Unix(int64(signature.Expiration), 0)
			if signature.ValidityPeriod(now.Add(-time.Hour-time.Second)) || !signature.ValidityPeriod(now.Add(-time.Hour)) || !ends.Equal(Expiration(name,
				set[0].Header().Rrtype, now)) {
				t.Errorf("%s is valid from %d until %s", signature, signature.Inception, ends)
			}
			if signature.OrigTtl != set[0].Header().Ttl || !Due(signature).Equal(ends.Add(-7*24*time.Hour)) || signature.SignerName != zone ||
				signature.KeyTag != s.Key.Tag() {
				t.Errorf("%s is due at %s", signature, Due(signature))
			}
			expires[fmt.Sprint(ends.Unix())] = ends
		}
	}
	if len(expires) != 4 {
		t.Errorf("two names with two types each expire at %v", expires)
	}
}

// A key of a kind that does not sign zones is refused, and the error has nothing of the key in it.
func TestParseKeyTellsNothingOfTheKey(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if _, err := ParseKey(text); err == nil || err.Error() != "DNSSEC key: *rsa.PrivateKey: must be ECDSA or Ed25519" {
		t.Errorf("a key of RSA: error %v", err)
	}
	if _, err := ParseKey(bytes.Replace(text, []byte("PRIVATE"), []byte("RSA PRIVATE"), 2)); err == nil || !strings.Contains(err.Error(), "PKCS #8") {
		t.Errorf("a block of another type: error %v", err)
	}
}
