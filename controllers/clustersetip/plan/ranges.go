package plan

import (
	"fmt"
	"hash/fnv"
	"math/big"
	"net/netip"
	"slices"
)

// Ranges are the networks to allocate from: at most one per family. The first one's family is the default.
type Ranges []netip.Prefix

// Limits of a range: a smaller one has no room, a larger one is never filled.
const (
	minBits, maxBits4, maxBits6 = 2, 24, 64
)

// ParseRanges parses networks in CIDR notation. The error names the invalid one.
func ParseRanges(texts []string) (ranges Ranges, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil || p != p.Masked() || p.Addr().Is4In6() {
			return nil, fmt.Errorf("%q: must be a network in CIDR notation, such as 10.200.0.0/16 or fd00:200::/108", text)
		}
		most := maxBits6
		if p.Addr().Is4() {
			most = maxBits4
		}
		if bits := p.Addr().BitLen() - p.Bits(); bits < minBits || bits > most || !p.Addr().IsGlobalUnicast() {
			return nil, fmt.Errorf("%q: must have from 4 to 2^%d addresses that packets can be sent to", text, most)
		}
		if ranges.ofFamily(p.Addr().Is4()) != nil {
			return nil, fmt.Errorf("%q: must be the only network of its family", text)
		}
		ranges = append(ranges, p)
	}
	return ranges, nil
}

// ofFamily returns the range of a family, or nil.
func (r Ranges) ofFamily(ipv4 bool) *netip.Prefix {
	if i := slices.IndexFunc(r, func(p netip.Prefix) bool { return p.Addr().Is4() == ipv4 }); i >= 0 {
		return &r[i]
	}
	return nil
}

// isAllocatable reports whether an address can be allocated: the first and the last of a network cannot.
func isAllocatable(p netip.Prefix, a netip.Addr) bool {
	return p.Contains(a) && a != p.Addr() && p.Contains(a.Next())
}

// firstFree returns the first free address from the name's position on, wrapping around the range.
func firstFree(p netip.Prefix, name string, taken func(netip.Addr) bool) (a netip.Addr, ok bool) {
	size := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
	size.Sub(size, big.NewInt(2))
	h := fnv.New64a()
	h.Write([]byte(name))
	at := new(big.Int).SetUint64(h.Sum64())
	at.Mod(at, size).Add(at, big.NewInt(1))
	start := at.Add(at, new(big.Int).SetBytes(p.Addr().AsSlice())).FillBytes(make([]byte, p.Addr().BitLen()/8))
	first, _ := netip.AddrFromSlice(start) // it is as long as an address
	for a = first; taken(a); {
		if a = a.Next(); !isAllocatable(p, a) {
			a = p.Addr().Next()
		}
		if a == first {
			return a, false
		}
	}
	return a, true
}
