// Package uplink makes the internet of a stack with real nodes, and connects network namespaces, as which the machines of the stack run, to it.
//
//	err := uplink.MakeInternet()                              // in a namespace of its own
//	err := uplink.Set("10.64.0.1/16", uplink.InternetAddress) // in each machine's
package uplink

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
)

const (
	// Name is that of a machine's interface.
	Name = "eth0"
	// Bridge is that of the internet's, which machines are plugged into.
	Bridge = "internet"
	// InternetAddress is the address of the internet's router, and of what it serves.
	InternetAddress = "10.64.255.254"
)

// plugged is how long Set waits for the interface.
const plugged = 30 * time.Second

// Set waits until somebody has plugged the interface into the namespace of this thread. It gives it an address, has the default route go by a
// gateway, and packets be forwarded, wherever they come from.
func Set(address, gateway string) error {
	link, err := netlink.LinkByName(Name)
	for end := time.Now().Add(plugged); err != nil; link, err = netlink.LinkByName(Name) {
		if time.Now().After(end) {
			return fmt.Errorf("nobody has plugged in %s: %w", Name, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := setUp(link, address, map[string]string{"ip_forward": "1", "conf/all/rp_filter": "0", "conf/default/rp_filter": "0"}); err != nil {
		return err
	}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(gateway)}); err != nil {
		return fmt.Errorf("gateway %q: %w", gateway, err)
	}
	return nil
}

// MakeInternet makes the bridge in the namespace of this thread, and has the kernel route as a router does. The bridge's link address is given: one that
// the kernel chose would be the lowest of those that are plugged in, and so change when a cluster dies, for all others too.
func MakeInternet() error {
	b := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: Bridge, HardwareAddr: net.HardwareAddr{2, 0, 10, 64, 255, 254}}}
	if err := netlink.LinkAdd(b); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	return setUp(b, InternetAddress+"/16", map[string]string{
		"ip_forward":                         "1",
		"conf/all/send_redirects":            "0", // nodes need not know each other
		"conf/" + Bridge + "/send_redirects": "0",
	})
}

// setUp gives a link its address, sets it and lo up, and writes settings below /proc/sys/net/ipv4.
func setUp(link netlink.Link, address string, settings map[string]string) error {
	a, err := netlink.ParseAddr(address)
	if err == nil {
		err = netlink.AddrAdd(link, a)
	}
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	for _, l := range []netlink.Link{lo, link} {
		if err := netlink.LinkSetUp(l); err != nil {
			return fmt.Errorf("%s up: %w", l.Attrs().Name, err)
		}
	}
	for file, value := range settings {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+file, []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}
