package main

import (
	"fmt"
	"net/netip"
	"strings"
)

// pool hands out the addresses of some networks, each to one owner. It is pure: it remembers
// nothing beyond the process, the owners' statuses do, and claim reads them back.
type pool struct {
	prefixes []netip.Prefix
	owners   map[netip.Addr]string
	held     map[string]netip.Addr
	next     netip.Addr // where to look first: an address rests before it is used again
}

// parsePools reads networks in CIDR notation. They must be IPv4, with room for one address at least.
func parsePools(cidrs []string) ([]netip.Prefix, error) {
	if len(cidrs) == 0 {
		return nil, fmt.Errorf("must name at least one IPv4 network such as 192.0.2.0/24")
	}
	var out []netip.Prefix
	for _, c := range cidrs {
		p, err := netip.ParsePrefix(c)
		if err != nil || !p.Addr().Is4() || p.Bits() > 30 {
			return nil, fmt.Errorf("%q must be an IPv4 network of /30 or larger, such as 192.0.2.0/24", c)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

func newPool(prefixes []netip.Prefix) *pool {
	return &pool{
		prefixes: prefixes,
		owners:   map[netip.Addr]string{},
		held:     map[string]netip.Addr{},
		next:     first(prefixes[0]),
	}
}

// first is the first address of a network that a host can have.
func first(p netip.Prefix) netip.Addr { return p.Addr().Next() }

// usable reports whether a is an address of p that a host can have: neither the network's nor broadcast.
func usable(p netip.Prefix, a netip.Addr) bool {
	return p.Contains(a) && a != p.Addr() && p.Contains(a.Next())
}

// claim gives owner the address that it had before. It is refused, with false, when the address is
// not one of the pool's, or another's, or when owner holds a different one.
func (p *pool) claim(owner string, a netip.Addr) bool {
	if held, ok := p.held[owner]; ok {
		return held == a
	}
	for _, prefix := range p.prefixes {
		if usable(prefix, a) && p.owners[a] == "" {
			p.owners[a], p.held[owner], p.next = owner, a, p.after(a)
			return true
		}
	}
	return false
}

// allocate returns the address that owner holds, or gives it a free one.
func (p *pool) allocate(owner string) (netip.Addr, error) {
	if a, ok := p.held[owner]; ok {
		return a, nil
	}
	for range p.size() {
		a := p.next
		if p.claim(owner, a) {
			return a, nil
		}
		p.next = p.after(a)
	}
	return netip.Addr{}, fmt.Errorf("no load balancer address is free: all %d of %s are in use", p.size(), p)
}

// release takes from owner what it holds, if anything.
func (p *pool) release(owner string) {
	delete(p.owners, p.held[owner])
	delete(p.held, owner)
}

// after is the address behind a, across the networks and back to the first.
func (p *pool) after(a netip.Addr) netip.Addr {
	for i, prefix := range p.prefixes {
		if !prefix.Contains(a) {
			continue
		}
		if n := a.Next(); usable(prefix, n) {
			return n
		}
		return first(p.prefixes[(i+1)%len(p.prefixes)])
	}
	return first(p.prefixes[0])
}

func (p *pool) size() (n int) {
	for _, prefix := range p.prefixes {
		n += 1<<(32-prefix.Bits()) - 2
	}
	return n
}

func (p *pool) String() string {
	var s []string
	for _, prefix := range p.prefixes {
		s = append(s, prefix.String())
	}
	return strings.Join(s, ", ")
}
