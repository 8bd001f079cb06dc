package ruleset

import (
	"net/netip"
	"slices"
	"strings"
)

// Node is the node that the rules are for, with the agent's settings.
type Node struct {
	Name, Zone, Region string
	// Addrs are the node's own addresses. A Service whose source ranges hold one of them can be reached from this node.
	Addrs []netip.Addr
	// NodePortAddrs are those at which node ports are served; none: all, save loopback.
	NodePortAddrs []netip.Addr
	// Pods says how to recognize packets of this node's pods.
	Pods Pods
	// MasqueradeAll: whatever goes to a cluster IP is masqueraded.
	MasqueradeAll bool
	// ServiceProxyName: only Services with this label service.kubernetes.io/service-proxy-name; "": those without one.
	ServiceProxyName string
	// Federated: another service proxy serves this node. Only clusterset IPs are served, and Services with
	// AnnotationFallback while connections to them go to other clusters; the rest yields.
	Federated bool
	// Blackhole: packets from outside may have to be dropped. Inside has the ranges of the cluster's nodes and pods, in
	// addition to those in Pods.
	Blackhole bool
	Inside    []netip.Prefix
	// Balancer: it is a load balancer over clusters. What its backends do with new connections is counted, and a connection of TCP in whose middle it is
	// asked to begin is not sent to any of them.
	Balancer bool
	// ClusterSetIPs are the ranges of clusterset IPs that are served; none: no clusterset IPs.
	ClusterSetIPs []netip.Prefix
	// Federations are the UIDs of those that this cluster is a member of. Clusterset IPs and endpoints of other clusters are taken from objects that
	// bear the mark of one of them, LabelManagedBy; none: from nobody.
	Federations []string
}

// hasMark reports whether one of the node's federations made the object.
func (n *Node) hasMark(labels map[string]string) bool {
	mark := labels[LabelManagedBy]
	return mark != "" && slices.Contains(n.Federations, mark)
}

// federations are their UIDs, for people.
func (n *Node) federations() string {
	if len(n.Federations) == 0 {
		return "(none is known: --federation-uid)"
	}
	return strings.Join(n.Federations, ", ")
}

// Pods says how to recognize a packet of this node's pods; zero: not at all. Only one of the fields is used.
type Pods struct {
	CIDRs           []netip.Prefix // their addresses, at most one range a family
	Bridge          string         // the name of the interface that it comes in by
	InterfacePrefix string         // what the interface's name begins with
}

// OfFamily returns Pods reduced to one family.
func (p Pods) OfFamily(ipv6 bool) Pods {
	for _, cidr := range p.CIDRs {
		if cidr.Addr().Is6() == ipv6 {
			return Pods{CIDRs: []netip.Prefix{cidr}}
		}
	}
	return Pods{Bridge: p.Bridge, InterfacePrefix: p.InterfacePrefix}
}

// Known reports whether pods can be recognized.
func (p Pods) Known() bool { return len(p.CIDRs) > 0 || p.Bridge != "" || p.InterfacePrefix != "" }

// IsSource reports whether a packet is of a pod of this node.
func (p Pods) IsSource(from netip.Addr, iface string) bool {
	for _, cidr := range p.CIDRs {
		if cidr.Contains(from) {
			return true
		}
	}
	return p.Bridge != "" && iface == p.Bridge || p.InterfacePrefix != "" && strings.HasPrefix(iface, p.InterfacePrefix)
}

// ServesNodePorts reports whether node ports are reached at an address.
func (n *Node) ServesNodePorts(addr netip.Addr) bool {
	if len(n.NodePortAddrs) > 0 {
		return slices.Contains(n.NodePortAddrs, addr)
	}
	return slices.Contains(n.Addrs, addr) && !addr.IsLoopback()
}
