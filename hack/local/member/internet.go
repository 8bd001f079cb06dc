package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"federation/hack/forward"
	"federation/hack/local/uplink"
)

// internet is the network between real nodes, as a member uses it.
type internet struct {
	ns     netns.NsHandle
	links  *netlink.Handle
	bridge netlink.Link
}

func openInternet(pidFile string) (*internet, error) {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, err
	}
	n := &internet{}
	if n.ns, err = netns.GetFromPid(pid); err != nil {
		return nil, fmt.Errorf("namespace of process %d: %w", pid, err)
	}
	if n.links, err = netlink.NewHandleAt(n.ns); err != nil {
		return nil, err
	}
	n.bridge, err = n.links.LinkByName(uplink.Bridge)
	return n, err
}

// inside runs f on a thread that is in the namespace: sockets that it opens belong there.
func (n *internet) inside(f func() error) error {
	errs := make(chan error)
	go func() {
		runtime.LockOSThread() // and ends with its goroutine
		err := netns.Set(n.ns)
		if err == nil {
			err = f()
		}
		errs <- err
	}()
	return <-errs
}

func (n *internet) addAddress(a netip.Addr) error {
	return n.links.AddrReplace(n.bridge, &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}})
}

// route leads a network to a node.
func (n *internet) route(to netip.Prefix, node netip.Addr) error {
	return n.replaceRoute(to, netlink.Route{Gw: node.AsSlice()})
}

// routeToSegment has a network be on the segment of the machines that are plugged in: one of them answers at each of its addresses, or none does.
func (n *internet) routeToSegment(to netip.Prefix) error {
	return n.replaceRoute(to, netlink.Route{Scope: netlink.SCOPE_LINK, Src: net.ParseIP(uplink.InternetAddress)})
}

func (n *internet) replaceRoute(to netip.Prefix, r netlink.Route) error {
	r.Dst, r.LinkIndex = &net.IPNet{IP: to.Addr().AsSlice(), Mask: net.CIDRMask(to.Bits(), 32)}, n.bridge.Attrs().Index
	if err := n.links.RouteReplace(&r); err != nil {
		return fmt.Errorf("route to %s: %w", to, err)
	}
	return nil
}

// plug gives the network namespace of a process or thread an interface that leads here.
func (n *internet) plug(name string, pid int) error {
	if old, err := n.links.LinkByName(name); err == nil { // of a machine that was just killed
		if err := n.links.LinkDel(old); err != nil {
			return err
		}
	}
	veth := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: name, MasterIndex: n.bridge.Attrs().Index},
		PeerName:      uplink.Name,
		PeerNamespace: netlink.NsPid(pid),
	}
	if err := n.links.LinkAdd(veth); err != nil {
		return fmt.Errorf("cable of %s: %w", name, err)
	}
	return n.links.LinkSetUp(veth)
}

// enterMachine puts the calling goroutine, which keeps its thread until both end, into a namespace of its own that is plugged in here. Programs that it
// starts run there, as on a machine.
func (n *internet) enterMachine(name string, address netip.Addr) error {
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		return fmt.Errorf("namespace of %s: %w", name, err)
	}
	if err := n.plug(name, syscall.Gettid()); err != nil {
		return err
	}
	return uplink.Set(address.String()+"/16", uplink.InternetAddress)
}

// forward leads connections to an address inside to one outside, until the process ends.
func (n *internet) forward(inside, outside string) error {
	var l net.Listener
	err := n.inside(func() (err error) { l, err = net.Listen("tcp4", inside); return err })
	if err != nil {
		return err
	}
	go forward.Serve(l, outside)
	return nil
}
