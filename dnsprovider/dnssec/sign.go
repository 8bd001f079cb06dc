package dnssec

import (
	"hash/fnv"
	"slices"
	"time"

	"github.com/miekg/dns"
)

const (
	// Skew is how far back signatures are valid, for clocks that are slow.
	Skew = time.Hour
	// Life is the minimum validity of signatures, Spread the maximum that is added by name.
	Life, Spread = 14 * 24 * time.Hour, 2 * 24 * time.Hour
	// Renew is how long before its expiration a signature is renewed.
	Renew = 7 * 24 * time.Hour
)

// Signer signs for one zone.
type Signer struct {
	// Zone is the canonical name of the apex.
	Zone string
	// Key signs the zone.
	Key Key
	// More are further keys that are in the zone: a new one before it signs, an old one after (RFC 7583).
	More []Key
	// Submit are the tags of the keys that CDS and CDNSKEY name. Nil: of all; empty: of none, and there are no such records.
	Submit []uint16
}

// Keys returns all keys that are in the zone, that which signs it first.
func (s Signer) Keys() []Key { return append([]Key{s.Key}, s.More...) }

// Submitted returns the keys for which the parent zone should have DS records.
func (s Signer) Submitted() []Key {
	return slices.DeleteFunc(s.Keys(), func(k Key) bool { return s.Submit != nil && !slices.Contains(s.Submit, k.Tag()) })
}

// Sign returns the signature of a record set, which is valid from an hour before now (RFC 4034, section 3).
func (s Signer) Sign(set []dns.RR, now time.Time) (*dns.RRSIG, error) {
	return s.signWith(s.Key, set, now)
}

func (s Signer) signWith(key Key, set []dns.RR, now time.Time) (*dns.RRSIG, error) {
	h := set[0].Header()
	signature := &dns.RRSIG{
		Hdr: dns.RR_Header{Ttl: h.Ttl}, Algorithm: uint8(key.Algorithm), KeyTag: key.Tag(), SignerName: s.Zone,
		Inception: uint32(now.Add(-Skew).Unix()), Expiration: uint32(Expiration(h.Name, h.Rrtype, now).Unix()),
	}
	return signature, signature.Sign(key.private, set)
}

// Expiration returns when a signature made now expires: each name and type has its own share of Spread.
func Expiration(name string, t uint16, now time.Time) time.Time {
	h := fnv.New32a()
	_, _ = h.Write(append([]byte(name), byte(t>>8), byte(t))) // it never fails
	return now.Add(Life + time.Duration(h.Sum32()%uint32(Spread/time.Second))*time.Second)
}

// Due returns when a signature must be renewed.
func Due(signature *dns.RRSIG) time.Time {
	return time.Unix(int64(signature.Expiration), 0).Add(-Renew)
}

// Apex returns the sets that a signed zone has at its apex, each followed by its signatures: the keys, and CDS and
// CDNSKEY, from which the parent zone can take its DS records (RFC 7344, RFC 8078). Every key signs them, because the
// parent zone accepts what a key vouches for (RFC 7344, section 4.1).
func (s Signer) Apex(now time.Time) ([][]dns.RR, error) {
	keys, cds, cdnskey := []dns.RR{}, []dns.RR{}, []dns.RR{}
	for _, k := range s.Keys() {
		keys = append(keys, k.DNSKEY(s.Zone))
	}
	for _, k := range s.Submitted() {
		cds = append(cds, k.DS(s.Zone).ToCDS())
		cdnskey = append(cdnskey, k.DNSKEY(s.Zone).ToCDNSKEY())
	}
	sets := [][]dns.RR{keys, cds, cdnskey}
	if len(cds) == 0 {
		sets = sets[:1]
	}
	for i, set := range sets {
		for _, k := range s.Keys() {
			signature, err := s.signWith(k, set, now)
			if err != nil {
				return nil, err
			}
			sets[i] = append(sets[i], signature)
		}
	}
	return sets, nil
}
