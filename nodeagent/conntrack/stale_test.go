package conntrack

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/ruleset"
)

func port(protocol corev1.Protocol, cluster, living []string, frontends ...string) *ruleset.Port {
	p := &ruleset.Port{ID: ruleset.PortID{Protocol: protocol}}
	for _, f := range frontends {
		a := netip.MustParseAddrPort(f)
		key := ruleset.FrontendKey{Addr: a.Addr(), Protocol: protocol, Port: a.Port()}
		if a.Addr().IsUnspecified() {
			key.Addr = netip.Addr{}
		}
		p.Frontends = append(p.Frontends, ruleset.Frontend{Key: key})
	}
	for _, b := range cluster {
		p.Cluster.Backends = append(p.Cluster.Backends, ruleset.Backend{Addr: netip.MustParseAddrPort(b)})
	}
	for _, l := range living {
		p.Living = append(p.Living, netip.MustParseAddrPort(l))
	}
	return p
}

func TestStale(t *testing.T) {
	a, b, c := []string{"10.0.0.1:53"}, []string{"10.0.0.2:53"}, []string{"10.0.0.3:53"}
	vip, node := "10.96.0.1:53", "0.0.0.0:30053"
	udp, tcp := corev1.ProtocolUDP, corev1.ProtocolTCP
	changes := []ruleset.PortChange{
		{Before: port(udp, a, nil, vip, node), After: port(udp, b, c, vip, node)},
		{Before: port(udp, a, nil, "10.96.0.2:53", "0.0.0.0:30054")},
		{After: port(udp, a, nil, "10.96.0.3:53")},
		{Before: port(tcp, a, nil, "10.96.0.4:53")},
	}
	for _, flow := range []struct {
		says        string
		to, answers string
		want        bool
	}{
		{"to a backend that went", vip, a[0], true},
		{"to one that is there", vip, b[0], false},
		{"to one that only lives on", vip, c[0], false},
		{"from before there were rules", "10.96.0.3:53", "10.96.0.3:53", true},
		{"of a Service that went", "10.96.0.2:53", a[0], true},
		{"to another port", "10.96.0.1:54", a[0], false},
		{"to a node port", "192.0.2.1:30053", a[0], true},
		{"to the same port of another machine, passing by", "192.0.2.1:30053", "192.0.2.1:30053", false},
		{"to a node port, from before there were rules", "192.0.2.9:30053", "192.0.2.9:30053", true},
		{"to the node itself, at what was a node port", "192.0.2.9:30054", "192.0.2.9:30054", false},
		{"of a TCP Service", "10.96.0.4:53", a[0], false},
	} {
		f := &entry{protocol: unix.IPPROTO_UDP, to: netip.MustParseAddrPort(flow.to), answers: netip.MustParseAddrPort(flow.answers)}
		if got := frontends(changes).isStale(f, func(a netip.Addr) bool { return a.String() == "192.0.2.9" }); got != flow.want {
			t.Errorf("a flow %s (%s answered by %s): stale %v", flow.says, flow.to, flow.answers, got)
		}
	}
}

type entry = flow
