// Package uplink connects a network namespace, as which a machine of a stack with real nodes runs, to the internet of that stack.
//
//	err := uplink.Set("10.64.0.1/16", "10.64.255.254")
package uplink

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
)

// Name is that of the interface.
const Name = "eth0"

// plugged is how long Set waits for the interface.
const plugged = 30 * time.Second

// Set waits until somebody has plugged the interface into the namespace of this thread. It gives it an address, has the default route go by a
// gateway, and packets be forwarded, wherever they come from.
func Set(address, gateway string) error {
	a, err := netlink.ParseAddr(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	link, err := netlink.LinkByName(Name)
	for end := time.Now().Add(plugged); err != nil; link, err = netlink.LinkByName(Name) {
		if time.Now().After(end) {
			return fmt.Errorf("nobody has plugged in %s: %w", Name, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := netlink.AddrAdd(link, a); err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	for _, link := range []netlink.Link{lo, link} {
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
	}
	for file, value := range map[string]string{"ip_forward": "1", "conf/all/rp_filter": "0", "conf/default/rp_filter": "0"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+file, []byte(value), 0); err != nil {
			return err
		}
	}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(gateway)}); err != nil {
		return fmt.Errorf("gateway %q: %w", gateway, err)
	}
	return nil
}
