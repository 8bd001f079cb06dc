package nettest

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"github.com/vishvananda/netlink"
)

// Rig is the network of one test.
type Rig struct {
	Nodes   [2]*Node
	Outside *Host

	wire *Host
}

// Node is a host that has pods and forwards.
type Node struct {
	*Host
	PodsV4, PodsV6 netip.Prefix // its pods' addresses
	pods           int
}

// Ranges of the rig, both families.
var (
	ClusterV4 = netip.MustParsePrefix("10.180.0.0/16")     // all pods
	ClusterV6 = netip.MustParsePrefix("fd00:10:180::/48")  // all pods
	wireV4    = netip.MustParsePrefix("192.0.2.0/24")      // nodes and outside
	wireV6    = netip.MustParsePrefix("2001:db8:0:2::/64") // nodes and outside
	everyV4   = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	everyV6   = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
)

// New builds the network; it is gone when the test ends. Without the rights to make namespaces the test is skipped.
func New(t testing.TB) *Rig {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: this test makes network namespaces and writes rules in them")
	}
	wire := newHost(t, "wire")
	must(t, "bridge", wire.links.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "wire"}}))
	wire.up(t, "wire")
	r := &Rig{wire: wire}
	for i := range r.Nodes {
		r.Nodes[i] = newNode(t, wire, i)
	}
	for i, n := range r.Nodes {
		other := r.Nodes[1-i]
		n.route(t, other.PodsV4, other.V4, "")
		n.route(t, other.PodsV6, other.V6, "")
	}
	r.Outside = newHost(t, "outside")
	plug(t, wire, r.Outside, 200)
	for _, n := range r.Nodes { // what goes nowhere else ends outside, unanswered: a node has a default route
		n.route(t, everyV4, r.Outside.V4, "")
		n.route(t, everyV6, r.Outside.V6, "")
	}
	return r
}

// Neighbour adds a host to the wire, which forwards: 192.0.2.NUMBER.
func (r *Rig) Neighbour(t testing.TB, name string, number int) *Host {
	t.Helper()
	h := newHost(t, name)
	for _, name := range []string{"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"} {
		h.sysctl(t, name, "1")
	}
	plug(t, r.wire, h, number)
	return h
}

func newNode(t testing.TB, wire *Host, i int) *Node {
	t.Helper()
	n := &Node{
		Host:   newHost(t, fmt.Sprintf("node-%d", i)),
		PodsV4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 180, byte(i), 0}), 24),
		PodsV6: netip.MustParsePrefix(fmt.Sprintf("fd00:10:180:%d::/64", i)),
	}
	for _, name := range []string{"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding", "net/ipv6/conf/default/forwarding"} {
		n.sysctl(t, name, "1")
	}
	plug(t, wire, n.Host, 10+i)
	return n
}

// plug joins a host to the wire, and gives it the addresses with this number.
func plug(t testing.TB, wire, h *Host, number int) {
	t.Helper()
	cable(t, wire, h.Name, h)
	must(t, "joining the bridge", wire.links.LinkSetMaster(wire.link(t, h.Name), wire.link(t, "wire")))
	h.V4 = netip.AddrFrom4([4]byte{192, 0, 2, byte(number)})
	h.V6 = netip.MustParseAddr("2001:db8:0:2::" + strconv.FormatInt(int64(number), 16))
	h.address(t, "eth0", netip.PrefixFrom(h.V4, wireV4.Bits()))
	h.address(t, "eth0", netip.PrefixFrom(h.V6, wireV6.Bits()))
}

// cable joins device name of a host to eth0 of another.
func cable(t testing.TB, from *Host, name string, to *Host) {
	t.Helper()
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "eth0", PeerNamespace: netlink.NsFd(to.ns),
	}
	must(t, "cable "+name, from.links.LinkAdd(veth))
	from.up(t, name)
	to.up(t, "eth0")
	from.carries(t, name)
	to.carries(t, "eth0")
}

// Pod adds a pod to the node.
func (n *Node) Pod(t testing.TB, name string) *Host {
	t.Helper()
	n.pods++
	p, device := newHost(t, name), fmt.Sprintf("pod%d", n.pods)
	cable(t, n.Host, device, p)
	p.V4, p.V6 = nth(n.PodsV4, n.pods+1), nth(n.PodsV6, n.pods+1)
	for _, f := range []struct {
		pod, gateway netip.Addr
		every        netip.Prefix
	}{
		{p.V4, nth(n.PodsV4, 1), everyV4}, {p.V6, nth(n.PodsV6, 1), everyV6},
	} {
		n.address(t, device, netip.PrefixFrom(f.gateway, f.gateway.BitLen()))
		n.route(t, netip.PrefixFrom(f.pod, f.pod.BitLen()), netip.Addr{}, device)
		p.address(t, "eth0", netip.PrefixFrom(f.pod, f.pod.BitLen()))
		p.route(t, netip.PrefixFrom(f.gateway, f.gateway.BitLen()), netip.Addr{}, "eth0")
		p.route(t, f.every, f.gateway, "eth0")
	}
	return p
}

func nth(p netip.Prefix, i int) netip.Addr {
	b := p.Addr().AsSlice()
	b[len(b)-1] = byte(i)
	a, _ := netip.AddrFromSlice(b)
	return a
}
