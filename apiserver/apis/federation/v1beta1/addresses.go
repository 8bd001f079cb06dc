package v1beta1

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// RefuseAddress returns an error if no load balancer can have an address, because no packet can be sent to it through a
// network. Other addresses are accepted: companies use private ones.
func RefuseAddress(addr netip.Addr) error {
	kind := ""
	switch a := EmbeddedIPv4(addr); {
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

// nowhere are networks that nothing on the internet can reach (the registries of RFC 6890), beyond those of
// RefuseAddress.
var nowhere = parsePrefixes("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "240.0.0.0/4", "2001::/23", "2001:db8::/32", "3fff::/20")

// global is the part of IPv6 that is assigned to networks.
var global = netip.MustParsePrefix("2000::/3")

func parsePrefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// RefuseAllButPublicAddresses is RefuseAddress for publishing to all of the internet: it rejects private addresses,
// too.
func RefuseAllButPublicAddresses(addr netip.Addr) error {
	if err := RefuseAddress(addr); err != nil {
		return err
	}
	addr = EmbeddedIPv4(addr)
	if addr.Is6() && !global.Contains(addr) || slices.ContainsFunc(nowhere, func(n netip.Prefix) bool { return n.Contains(addr) }) {
		return errors.New("it is not public, and only public addresses are given out here")
	}
	return nil
}

// Prefixes of IPv6 addresses that end with an IPv4 address: NAT64 (RFC 6052) and the deprecated compatible ones (RFC
// 4291, section 2.5.5.1); and 6to4 (RFC 3056), which continues with one.
var nat64, compatible, sixToFour = netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::/96"), netip.MustParsePrefix("2002::/16")

// EmbeddedIPv4 returns the IPv4 address that an IPv6 address leads to; other addresses unchanged, without their zone.
func EmbeddedIPv4(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	b := addr.As16()
	switch {
	case addr.Is4():
		return addr
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case nat64.Contains(addr), compatible.Contains(addr) && !addr.IsLoopback() && !addr.IsUnspecified():
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr
}

// InCIDRs reports whether an address is in one of these networks, in CIDR notation. Without any it is.
func InCIDRs(cidrs []string, addr netip.Addr) bool {
	return len(cidrs) == 0 || slices.ContainsFunc(cidrs, func(text string) bool {
		p, err := netip.ParsePrefix(text)
		return err == nil && p.Contains(addr)
	})
}
