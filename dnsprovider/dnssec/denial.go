package dnssec

import (
	"slices"

	"github.com/miekg/dns"
)

const (
	// maxName and maxLabel are the sizes of the longest name and label on the wire (RFC 1035, section 2.3.4).
	maxName, maxLabel = 255, 63
)

// Denial returns the NSEC record that a name of the zone has only the given types (RFC 9824, section 3.1), for ttl
// seconds. Its next name is the least possible one, so that it denies no other name. For a name that does not exist
// types is NXNAME alone (section 3.2); for one that has only names below it, none.
func Denial(zone, name string, ttl uint32, types ...uint16) *dns.NSEC {
	all := append(slices.Clone(types), dns.TypeRRSIG, dns.TypeNSEC)
	slices.Sort(all)
	return &dns.NSEC{Hdr: rrHeader(name, dns.TypeNSEC, ttl), NextDomain: nextName(zone, name), TypeBitMap: slices.Compact(all)}
}

// nextName returns the next possible name of the zone in the order of RFC 4034, section 6.1; after the last it is the
// zone's own. A name without room for a label below it has its successor beside it (RFC 4471, section 3.1.2).
func nextName(zone, name string) string {
	wire, apex := wireOf(name), wireOf(zone)
	if len(wire)+2 <= maxName {
		return nameOf(append([]byte{1, 0}, wire...))
	}
	for len(wire) > len(apex) {
		label, rest := wire[1:1+wire[0]], wire[1+wire[0]:]
		if len(wire) < maxName && len(label) < maxLabel {
			return nameOf(withLabel(append(slices.Clone(label), 0), rest))
		}
		for i := len(label) - 1; i >= 0; i-- {
			if label[i] < 0xff {
				return nameOf(withLabel(append(slices.Clone(label[:i]), nextByte(label[i])), rest))
			}
		}
		wire = rest
	}
	return zone
}

// nextByte returns the next byte, below 255, in the order of names, which ignores case.
func nextByte(b byte) byte {
	if b == 'A'-1 {
		return 'Z' + 1
	}
	return b + 1
}

func withLabel(label, rest []byte) []byte {
	return append(append([]byte{byte(len(label))}, label...), rest...)
}

// wireOf and nameOf convert a name to lower-case wire format, and back. The names must be valid.
func wireOf(name string) []byte {
	wire := make([]byte, maxName)
	n, _ := dns.PackDomainName(dns.CanonicalName(name), wire, 0, nil, false)
	return wire[:n]
}

func nameOf(wire []byte) string {
	name, _, _ := dns.UnpackDomainName(wire, 0)
	return name
}
