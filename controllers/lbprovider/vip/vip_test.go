package vip

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"federation/nodeagent/nettest"
)

// TestAddressesMoveAndLapse: neighbours that know an address at one machine find it at the next at once, and one that is not held any more is gone
// in seconds. What somebody else gave the interface stays.
func TestAddressesMoveAndLapse(t *testing.T) {
	rig := nettest.New(t)
	one, two := rig.Neighbour(t, "one", 20), rig.Neighbour(t, "two", 21)
	for _, h := range []*nettest.Host{one, two} {
		h.ServeHTTP(t, 80)
	}
	pools := []netip.Prefix{netip.MustParsePrefix("192.0.2.64/26"), netip.MustParsePrefix("2001:db8:0:2::40/122")}
	addresses := []netip.Addr{netip.MustParseAddr("192.0.2.70"), netip.MustParseAddr("2001:db8:0:2::46")}
	kept := netip.MustParseAddr("192.0.2.71")
	give(t, one, kept)
	at := map[*nettest.Host]*Interface{}
	for _, h := range []*nettest.Host{one, two} {
		if err := h.Do(func() (err error) { at[h], err = Open("eth0", pools); return err }); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range []*nettest.Host{one, two, one, two} { // nobody takes them from the one before: as if it hung
		hold(t, h, at[h], addresses...)
		for _, a := range addresses {
			time.Sleep(50 * time.Millisecond) // the packets are on their way
			if got, err := rig.Outside.GetWithin(netip.AddrPortFrom(a, 80), time.Second); err != nil || got.Server != h.Name {
				t.Errorf("%s: %v, %v; want %s", a, got, err, h.Name)
			}
		}
	}
	hold(t, one, at[one])
	if got := addressesOf(t, one); slices.Contains(got, addresses[0]) || slices.Contains(got, addresses[1]) || !slices.Contains(got, kept) {
		t.Errorf("one gives them up, and has %v", got)
	}
	for end := time.Now().Add(3 * lifetime * time.Second); ; time.Sleep(100 * time.Millisecond) {
		got := addressesOf(t, two)
		if !slices.Contains(got, addresses[0]) && !slices.Contains(got, addresses[1]) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("two does not hold them any more, and has %v", got)
		}
	}
}

func hold(t *testing.T, h *nettest.Host, i *Interface, addresses ...netip.Addr) {
	t.Helper()
	if err := h.Do(func() error { return i.Hold(addresses) }); err != nil {
		t.Fatal(err)
	}
}

func give(t *testing.T, h *nettest.Host, addr netip.Addr) {
	t.Helper()
	if err := h.Do(func() error {
		eth0, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr(fmt.Sprintf("%s/%d", addr, addr.BitLen()))
		if err != nil {
			return err
		}
		return netlink.AddrAdd(eth0, a)
	}); err != nil {
		t.Fatal(err)
	}
}

func addressesOf(t *testing.T, h *nettest.Host) (out []netip.Addr) {
	t.Helper()
	if err := h.Do(func() error {
		eth0, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		all, err := netlink.AddrList(eth0, netlink.FAMILY_ALL)
		for _, a := range all {
			addr, _ := netip.AddrFromSlice(a.IP)
			out = append(out, addr.Unmap())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}
