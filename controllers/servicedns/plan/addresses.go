package plan

import (
	"fmt"
	"net/netip"
)

// Refuse says why no load balancer can be at an address, as no packet can be sent to it through a network; nil: there can be one.
// What members and resolvers say is believed nowhere else: private addresses are allowed, as companies use them.
func Refuse(addr netip.Addr) error {
	kind := ""
	switch a := embedded(addr); {
	case a.IsUnspecified() || a.Is4() && a.As4()[0] == 0:
		kind = "an unspecified"
	case a.IsLoopback():
		kind = "a loopback"
	case a.IsLinkLocalUnicast():
		kind = "a link-local"
	case a.IsMulticast():
		kind = "a multicast"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		kind = "a broadcast"
	default:
		return nil
	}
	return fmt.Errorf("it is %s address, where no load balancer can be", kind)
}

// Prefixes of IPv6 addresses that end with one of IPv4: for NAT64 (RFC 6052), and of old (RFC 4291, section 2.5.5.1).
var nat64, compatible = netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::/96")

// embedded returns the IPv4 address to which an IPv6 address leads; other addresses as they are, without their zone.
func embedded(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !nat64.Contains(addr) && (!compatible.Contains(addr) || addr.IsLoopback() || addr.IsUnspecified()) {
		return addr
	}
	b := addr.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// believed returns those of the addresses that can be given out, and notes why the others cannot; what says what they are.
func (p *planner) believed(cluster, what string, addresses ...netip.Addr) (good []netip.Addr) {
	for _, addr := range addresses {
		if err := p.in.refuse(addr); err != nil {
			p.note(AddressRefused, cluster, "%s is not used: %v", fmt.Sprintf(what, addr), err)
			continue
		}
		good = append(good, addr.Unmap().WithZone(""))
	}
	return good
}

func (in *Input) refuse(addr netip.Addr) error {
	if in.Refuse != nil {
		return in.Refuse(addr)
	}
	return Refuse(addr)
}
