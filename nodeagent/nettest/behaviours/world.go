package behaviours

import (
	"context"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"federation/nodeagent/conntrack"
	"federation/nodeagent/nettest"
	"federation/nodeagent/ruleset"
)

// Writer is what is tested: a way to get a ruleset into the kernel.
type Writer interface {
	Sync(context.Context, *ruleset.Node, []*ruleset.Port) error
	Write(context.Context, *ruleset.Node, []ruleset.PortChange) error
}

// World is a rig whose first node has rules, in one family.
type World struct {
	*nettest.Rig
	Model         *ruleset.Model
	Client        *nettest.Host // a pod of the first node that no Service has
	Here          *nettest.Host // pods with servers at 8080/tcp and 53/udp: on the first node,
	There         *nettest.Host // and on the second
	Far           *nettest.Host // the same outside, as another cluster's load balancer
	VIP, OtherVIP netip.Addr    // addresses for Services, which outside sends to the first node
	IPv6          bool

	open   func(testing.TB) Writer
	writer Writer
	flows  *conntrack.Table
}

// NewWorld builds the rig and gives its first node rules for no Service.
func NewWorld(t testing.TB, ipv6 bool, open func(testing.TB) Writer) *World {
	t.Helper()
	w := &World{Rig: nettest.New(t), IPv6: ipv6, open: open, VIP: netip.MustParseAddr("10.96.0.10"), OtherVIP: netip.MustParseAddr("10.96.0.11")}
	if ipv6 {
		w.VIP, w.OtherVIP = netip.MustParseAddr("fd00:10:96::10"), netip.MustParseAddr("fd00:10:96::11")
	}
	n := w.Nodes[0]
	w.Client, w.Here, w.There, w.Far = n.Pod(t, "client"), n.Pod(t, "here"), w.Nodes[1].Pod(t, "there"), w.Outside
	for _, h := range []*nettest.Host{w.Here, w.There, w.Far} {
		h.ServeHTTP(t, 8080)
		h.ServeUDP(t, 53)
	}
	for _, vip := range []netip.Addr{w.VIP, w.OtherVIP} {
		w.Outside.Route(t, netip.PrefixFrom(vip, vip.BitLen()), w.Nodes[0].Address(vip))
	}
	w.Model = ruleset.New(ruleset.Node{
		Name: n.Name, Zone: "za", Region: "ra", Addrs: []netip.Addr{n.V4, n.V6},
		Pods:          ruleset.Pods{CIDRs: []netip.Prefix{nettest.ClusterV4, nettest.ClusterV6}},
		ClusterSetIPs: []netip.Prefix{netip.PrefixFrom(w.OtherVIP, w.OtherVIP.BitLen())},
		Federations:   []string{"a-federation"},
	})
	err := n.Do(func() (err error) {
		w.flows, err = conntrack.Open()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.flows.Close)
	w.restart(t)
	return w
}

// restart opens a new writer, as another process would, and makes it write what differs.
func (w *World) restart(t testing.TB) {
	t.Helper()
	_ = w.Nodes[0].Do(func() error { w.writer = w.open(t); return nil })
	w.Sync(t)
}

// nth returns an address for one of 256 further Services.
func (w *World) nth(i int) netip.Addr {
	b := w.VIP.AsSlice()
	b[len(b)-2], b[len(b)-1] = b[len(b)-2]+1, byte(i)
	addr, _ := netip.AddrFromSlice(b)
	return addr
}

// Apply writes changes of some Services, and then removes the flows that this made stale.
func (w *World) Apply(t testing.TB, keys ...ruleset.Key) {
	t.Helper()
	change := w.Model.Update(keys...)
	if err := w.Nodes[0].Do(func() error { return w.writer.Write(context.Background(), w.Model.Node(), change.Ports) }); err != nil {
		t.Fatalf("writing %v: %v", keys, err)
	}
	err := w.Nodes[0].Do(func() error {
		_, err := w.flows.Remove(change.Ports)
		return err
	})
	if err != nil {
		t.Fatalf("flows of %v: %v", keys, err)
	}
}

// Sync compares the kernel with the model and puts it right.
func (w *World) Sync(t testing.TB) {
	t.Helper()
	if err := w.Nodes[0].Do(func() error { return w.writer.Sync(context.Background(), w.Model.Node(), w.Model.Ports()) }); err != nil {
		t.Fatalf("writing all: %v", err)
	}
}

// Service adds Service web at VIP with the ports 80/tcp (to 8080) and 53/udp, as changed.
func (w *World) Service(t testing.TB, change ...func(*corev1.Service)) {
	t.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: w.VIP.String(), ClusterIPs: []string{w.VIP.String()},
			Ports: []corev1.ServicePort{
				{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080)},
				{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53, TargetPort: intstr.FromInt32(53)},
			},
		},
	}
	for _, f := range change {
		f(s)
	}
	w.Apply(t, w.Model.SetService(s))
}

// Endpoints makes these hosts the ready endpoints of Service web.
func (w *World) Endpoints(t testing.TB, hosts ...*nettest.Host) {
	t.Helper()
	w.Apply(t, w.Model.SetSlice(w.Slice("web", hosts...))...)
}

// Slice has hosts as ready endpoints of a Service.
func (w *World) Slice(service string, hosts ...*nettest.Host) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: service + "-1",
			Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{endpointPort("http", corev1.ProtocolTCP, 8080), endpointPort("dns", corev1.ProtocolUDP, 53)},
	}
	if w.IPv6 {
		s.AddressType = discoveryv1.AddressTypeIPv6
	}
	for _, h := range hosts {
		e := discoveryv1.Endpoint{Addresses: []string{h.Address(w.VIP).String()}}
		switch h {
		case w.There:
			e.NodeName = &w.Nodes[1].Name
		default:
			e.NodeName = &w.Nodes[0].Name
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

func endpointPort(name string, protocol corev1.Protocol, port int32) discoveryv1.EndpointPort {
	return discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: &port}
}

// Web and DNS are the Service's ports at an address.
func (w *World) Web(addr netip.Addr) netip.AddrPort { return netip.AddrPortFrom(addr, 80) }

// DNS returns the Service's UDP port at an address.
func (w *World) DNS(addr netip.Addr) netip.AddrPort { return netip.AddrPortFrom(addr, 53) }

// Node returns the address of the first node.
func (w *World) Node() netip.Addr { return w.Nodes[0].Address(w.VIP) }

// Gets checks who answers a request of a host, and as whom it sees the host; an invalid address: as whomever.
func (w *World) Gets(t testing.TB, from *nettest.Host, to netip.AddrPort, server *nettest.Host, as netip.Addr) {
	t.Helper()
	got, err := from.Get(to)
	if err != nil || got.Server != server.Name || as.IsValid() && got.Client != as {
		t.Errorf("%s to %s: answer of %q to %s, %v; want %q to %s", from.Name, to, got.Server, got.Client, err, server.Name, as)
	}
}

// Refused checks that TCP and UDP are refused at once.
func (w *World) Refused(t testing.TB, from *nettest.Host, addr netip.Addr, tcp, udp uint16) {
	t.Helper()
	if err := from.Refused(netip.AddrPortFrom(addr, tcp)); err != nil {
		t.Error(err)
	}
	if got, err := from.Flow(t, netip.AddrPortFrom(addr, udp)).Ask(); !refused(err) {
		t.Errorf("%s: UDP to %s port %d: %v %v, want it refused", from.Name, addr, udp, got, err)
	}
}

// servers counts who answers n requests.
func (w *World) servers(t testing.TB, from *nettest.Host, to netip.AddrPort, n int) map[string]int {
	t.Helper()
	got := map[string]int{}
	for range n {
		a, err := from.Get(to)
		if err != nil {
			t.Fatalf("%s to %s: %v, after %v", from.Name, to, err, got)
		}
		got[a.Server]++
	}
	return got
}
