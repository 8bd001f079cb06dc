package plan

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// taintLeaving is on nodes that the cluster autoscaler is about to delete, as cloud providers heed it (KEP-3458).
const taintLeaving = "ToBeDeletedByClusterAutoscaler"

// Member is a node that connections can be sent to.
type Member struct {
	Node  string
	Addr  netip.Addr
	Ready bool // by its condition
}

// MembersOf returns the nodes that may be members, with their addresses of one family: those without the label that excludes them from
// load balancers, and not about to go. Addresses that no node can be reached at, and those of our pools, are none.
func (s *Settings) MembersOf(nodes []*corev1.Node, ipv6 bool) (out []Member) {
	for _, n := range nodes {
		_, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]
		leaving := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintLeaving })
		if addr := s.addressOf(n, ipv6); addr.IsValid() && !excluded && !leaving && n.DeletionTimestamp == nil {
			out = append(out, Member{n.Name, addr, isReady(n)})
		}
	}
	slices.SortFunc(out, Member.compare)
	return slices.CompactFunc(out, func(a, b Member) bool { return a.Addr == b.Addr })
}

// compare orders by address; of one address what is ready comes first, as the machine may have had another name before.
func (m Member) compare(o Member) int {
	switch {
	case m.Addr != o.Addr:
		return m.Addr.Compare(o.Addr)
	case m.Ready != o.Ready && m.Ready:
		return -1
	case m.Ready != o.Ready:
		return 1
	}
	return strings.Compare(m.Node, o.Node)
}

func (s *Settings) addressOf(n *corev1.Node, ipv6 bool) netip.Addr {
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, a := range n.Status.Addresses {
			addr, err := netip.ParseAddr(a.Address)
			if err == nil && a.Type == kind && addr.Is6() == ipv6 && addr.IsGlobalUnicast() && !addr.Is4In6() && !s.Contains(addr) {
				return addr
			}
		}
	}
	return netip.Addr{}
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Members narrows nodes down to those that connections to a Service go to. With externalTrafficPolicy Local they are those with a
// ready endpoint, else with one that ends and still serves. Of these, those that are ready and not failing; where none is,
// those that are not failing; where none is, all: what is known of nodes may be wrong.
func Members(service *corev1.Service, nodes []Member, endpoints []*discoveryv1.EndpointSlice, failing map[netip.Addr]bool) []Member {
	if service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		nodes = withEndpoints(nodes, endpoints)
	}
	return prefer(nodes,
		func(m Member) bool { return m.Ready && !failing[m.Addr] },
		func(m Member) bool { return !failing[m.Addr] })
}

func withEndpoints(nodes []Member, endpoints []*discoveryv1.EndpointSlice) []Member {
	ready, serving := map[string]bool{}, map[string]bool{}
	for _, s := range endpoints {
		for _, e := range s.Endpoints {
			if e.NodeName == nil {
				continue
			}
			c := e.Conditions
			ready[*e.NodeName] = ready[*e.NodeName] || c.Ready == nil || *c.Ready
			serving[*e.NodeName] = serving[*e.NodeName] || c.Serving != nil && *c.Serving
		}
	}
	if some := keep(nodes, func(m Member) bool { return ready[m.Node] }); len(some) > 0 {
		return some
	}
	return keep(nodes, func(m Member) bool { return serving[m.Node] })
}

// prefer returns what the first of conditions keeps that keeps some; all if none does.
func prefer(nodes []Member, conditions ...func(Member) bool) []Member {
	for _, is := range conditions {
		if some := keep(nodes, is); len(some) > 0 {
			return some
		}
	}
	return nodes
}

func keep(nodes []Member, is func(Member) bool) (out []Member) {
	for _, m := range nodes {
		if is(m) {
			out = append(out, m)
		}
	}
	return out
}
