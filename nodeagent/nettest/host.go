package nettest

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Host is a network namespace: a node, a pod or a client outside.
type Host struct {
	Name   string
	V4, V6 netip.Addr // its addresses

	ns    netns.NsHandle
	links *netlink.Handle
}

// Do runs f on a thread that is in the namespace: sockets that it opens, files below /proc/sys/net and programs that
// it starts are the host's. Goroutines that f starts are not.
func (h *Host) Do(f func() error) error {
	runtime.LockOSThread()
	before, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("namespace of this thread: %w", err)
	}
	defer func() { _ = before.Close() }()
	if err := netns.Set(h.ns); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("entering the namespace of %s: %w", h.Name, err)
	}
	defer func() {
		if netns.Set(before) == nil { // else the thread stays locked, and ends with its goroutine
			runtime.UnlockOSThread()
		}
	}()
	return f()
}

// Address of the host in the family of like.
func (h *Host) Address(like netip.Addr) netip.Addr {
	if like.Is4() {
		return h.V4
	}
	return h.V6
}

func newHost(t testing.TB, name string) *Host {
	t.Helper()
	runtime.LockOSThread()
	before, err := netns.Get()
	must(t, "namespace of this thread", err)
	ns, err := netns.New()
	must(t, "making a namespace", err)
	must(t, "leaving the new namespace", netns.Set(before))
	must(t, "closing a namespace", before.Close())
	runtime.UnlockOSThread()
	links, err := netlink.NewHandleAt(ns)
	must(t, "netlink of "+name, err)
	h := &Host{Name: name, ns: ns, links: links}
	t.Cleanup(func() { links.Close(); _ = h.ns.Close() })
	h.up(t, "lo")
	h.sysctl(t, "net/ipv4/icmp_ratelimit", "0")
	h.sysctl(t, "net/ipv6/icmp/ratelimit", "0")
	h.sysctl(t, "net/ipv6/conf/default/accept_dad", "0")
	return h
}

func (h *Host) sysctl(t testing.TB, name, value string) {
	t.Helper()
	must(t, name, h.Do(func() error { return os.WriteFile("/proc/sys/"+name, []byte(value), 0o644) }))
}

func (h *Host) link(t testing.TB, name string) netlink.Link {
	t.Helper()
	link, err := h.links.LinkByName(name)
	must(t, h.Name+": interface "+name, err)
	return link
}

func (h *Host) up(t testing.TB, name string) {
	t.Helper()
	must(t, h.Name+": "+name+" up", h.links.LinkSetUp(h.link(t, name)))
}

// carries waits until the kernel has noticed that an interface is connected, which it does on its own time. Before, IPv6
// loses the question for a neighbour, and asks again after a second.
func (h *Host) carries(t testing.TB, name string) {
	t.Helper()
	h.until(t, name+" connected", func() bool { return h.link(t, name).Attrs().OperState == netlink.OperUp })
}

// answers waits until an interface answers at its IPv6 addresses, also the link-local one. The kernel returns from adding an
// address before: a worker then joins the group in which neighbours ask for it, and last adds the route by which it is the
// host's own. Before, a question for the address is lost, and comes again after a second.
func (h *Host) answers(t testing.TB, device string) {
	t.Helper()
	link := h.link(t, device)
	own := &netlink.Route{Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL, LinkIndex: link.Attrs().Index}
	h.until(t, device+" at its addresses", func() bool {
		addrs, err := h.links.AddrList(link, netlink.FAMILY_V6)
		if err != nil { // a list that changed while it was read
			return false
		}
		routes, err := h.links.RouteListFiltered(netlink.FAMILY_V6, own, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_TYPE|netlink.RT_FILTER_OIF)
		return err == nil && len(routes) == len(addrs)
	})
}

// until waits for what the kernel does on its own time.
func (h *Host) until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not %s after %v", h.Name, what, patience)
		}
	}
}

// address gives an interface an address of the prefix's length, which it then answers at.
func (h *Host) address(t testing.TB, device string, p netip.Prefix) {
	t.Helper()
	addr, err := netlink.ParseAddr(p.String())
	must(t, "address "+p.String(), err)
	if p.Addr().Is6() {
		addr.Flags = 0x02 // IFA_F_NODAD: nobody else has it
	}
	must(t, h.Name+": address "+p.String(), h.links.AddrAdd(h.link(t, device), addr))
	if p.Addr().Is6() {
		h.answers(t, device)
	}
}

// Route leads a network through an address of a neighbour.
func (h *Host) Route(t testing.TB, to netip.Prefix, via netip.Addr) {
	t.Helper()
	h.route(t, to, via, "")
}

func (h *Host) route(t testing.TB, to netip.Prefix, via netip.Addr, device string) {
	t.Helper()
	dst, err := netlink.ParseIPNet(to.String())
	must(t, "network "+to.String(), err)
	r := &netlink.Route{Dst: dst}
	if via.IsValid() {
		r.Gw = via.AsSlice()
	} else {
		r.Scope = netlink.SCOPE_LINK
	}
	if device != "" {
		r.LinkIndex = h.link(t, device).Attrs().Index
	}
	must(t, fmt.Sprintf("%s: route to %s via %s %s", h.Name, to, via, device), h.links.RouteReplace(r))
}

func must(t testing.TB, doing string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", doing, err)
	}
}

// AddAddress gives the host one more address, which it answers at.
func (h *Host) AddAddress(t testing.TB, a netip.Addr) {
	t.Helper()
	h.address(t, "lo", netip.PrefixFrom(a, a.BitLen()))
}
