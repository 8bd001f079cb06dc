// Package vip answers at addresses on an interface: it gives them to the interface for some seconds, again and again, and tells
// neighbours when they have come. If the process dies or hangs, the kernel takes them away.
//
//	i, err := vip.Open("eth1", pools)
//	err = i.Hold(addresses)           // each second: exactly these
//
// It touches only addresses that it could have made itself: of the pools, alone in their network (/32, /128), and with a lifetime.
package vip

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// lifetime in seconds of an address that is not held any more.
	lifetime = 5
	// tellings is how many times neighbours hear of an address, once a call of Hold: the first may get lost.
	tellings = 3
	forever  = 1<<32 - 1
)

// Interface is where the addresses are.
type Interface struct {
	link  netlink.Link
	pools []netip.Prefix
	told  map[netip.Addr]int
}

// Open finds an interface.
func Open(name string, pools []netip.Prefix) (*Interface, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, err)
	}
	return &Interface{link: link, pools: pools, told: map[netip.Addr]int{}}, nil
}

// Hold gives the interface these addresses until some seconds from now, and takes others of the pools from it.
func (i *Interface) Hold(addresses []netip.Addr) error {
	have, err := netlink.AddrList(i.link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("addresses of %s: %w", i.link.Attrs().Name, err)
	}
	var errs []error
	for _, a := range have {
		if addr, ok := i.ours(a); ok && !slices.Contains(addresses, addr) {
			if err := netlink.AddrDel(i.link, &a); err != nil {
				errs = append(errs, fmt.Errorf("taking %s from %s: %w", addr, i.link.Attrs().Name, err))
			}
		}
	}
	told := map[netip.Addr]int{}
	for _, addr := range addresses {
		if told[addr] = i.told[addr]; !has(have, addr) {
			told[addr] = 0
		}
		err := i.give(addr)
		if err == nil && told[addr] < tellings && len(i.link.Attrs().HardwareAddr) == 6 {
			err = i.tell(addr)
		}
		if told[addr]++; err != nil {
			errs = append(errs, fmt.Errorf("giving %s to %s: %w", addr, i.link.Attrs().Name, err))
		}
	}
	i.told = told
	return errors.Join(errs...)
}

// ours reports whether an address of the interface may be one that Hold gave it.
func (i *Interface) ours(a netlink.Addr) (netip.Addr, bool) {
	addr, ok := netip.AddrFromSlice(a.IP)
	addr = addr.Unmap()
	ones, bits := a.Mask.Size()
	return addr, ok && ones == bits && a.ValidLft < forever && slices.ContainsFunc(i.pools, func(p netip.Prefix) bool { return p.Contains(addr) })
}

func has(have []netlink.Addr, addr netip.Addr) bool {
	return slices.ContainsFunc(have, func(a netlink.Addr) bool { return a.IP.Equal(addr.AsSlice()) })
}

func (i *Interface) give(addr netip.Addr) error {
	a := &netlink.Addr{IPNet: &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(addr.BitLen(), addr.BitLen())}, ValidLft: lifetime, PreferedLft: lifetime}
	if addr.Is6() {
		a.Flags = unix.IFA_F_NODAD // it may still be on the machine that had it before
	}
	return netlink.AddrReplace(i.link, a)
}
