package dnssec

import (
	"slices"

	"github.com/miekg/dns"
)

// Denial is the NSEC record that says of a name that it has no other types than those (RFC 9824, section 3.1), for
// ttl seconds. The name after it is the least one that there can be, so that it says nothing of any other name.
// For a name that does not exist types is NXNAME alone (section 3.2); for one that has only names below it, none.
func Denial(name string, ttl uint32, types ...uint16) *dns.NSEC {
	all := append(slices.Clone(types), dns.TypeRRSIG, dns.TypeNSEC)
	slices.Sort(all)
	return &dns.NSEC{Hdr: header(name, dns.TypeNSEC, ttl), NextDomain: next(name), TypeBitMap: slices.Compact(all)}
}

// next is the first name behind another one in the order of RFC 4034, section 6.1.
func next(name string) string {
	if name == "." {
		return `\000.`
	}
	return `\000.` + name
}
