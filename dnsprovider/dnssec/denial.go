package dnssec

import (
	"slices"

	"github.com/miekg/dns"
)

const (
	// maxName and maxLabel are the sizes of the longest name and label on the wire (RFC 1035, section 2.3.4).
	maxName, maxLabel = 255, 63
)

// Denial is the NSEC record that says of a name of the zone that it has no other types than those (RFC 9824, section 3.1), for
// ttl seconds. The name after it is the least one that there can be, so that it says nothing of any other name.
// For a name that does not exist types is NXNAME alone (section 3.2); for one that has only names below it, none.
func Denial(zone, name string, ttl uint32, types ...uint16) *dns.NSEC {
	all := append(slices.Clone(types), dns.TypeRRSIG, dns.TypeNSEC)
	slices.Sort(all)
	return &dns.NSEC{Hdr: header(name, dns.TypeNSEC, ttl), NextDomain: next(zone, name), TypeBitMap: slices.Compact(all)}
}

// next is the first name of the zone behind another one of it in the order of RFC 4034, section 6.1; behind the last it is
// the zone's own. Names that have no room for a label below them have their successor beside them (RFC 4471, section 3.1.2).
func next(zone, name string) string {
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
				return nameOf(withLabel(append(slices.Clone(label[:i]), after(label[i])), rest))
			}
		}
		wire = rest
	}
	return zone
}

// after is the least byte behind another one, below 255, in the order of names: capitals are small letters there.
func after(b byte) byte {
	if b == 'A'-1 {
		return 'Z' + 1
	}
	return b + 1
}

func withLabel(label, rest []byte) []byte {
	return append(append([]byte{byte(len(label))}, label...), rest...)
}

// wireOf and nameOf turn a name into what it is on the wire, in lower case, and back. Names that come from there can be.
func wireOf(name string) []byte {
	wire := make([]byte, maxName)
	n, _ := dns.PackDomainName(dns.CanonicalName(name), wire, 0, nil, false)
	return wire[:n]
}

func nameOf(wire []byte) string {
	name, _, _ := dns.UnpackDomainName(wire, 0)
	return name
}
