package ruleset

import (
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Labels of an EndpointSlice of another cluster. It lacks the label kubernetes.io/service-name, so that no other
// service proxy takes its addresses for pods.
const (
	LabelRemoteService = "multicluster.kubernetes.io/service-name"   // KEP-1645
	LabelSourceCluster = "multicluster.kubernetes.io/source-cluster" // KEP-1645
	AnnotationWeight   = "federation.kubernetes.io/weight"           // of each of its endpoints, 1 to 1000; else 1
)

// MaxWeight is the highest weight of a backend.
const MaxWeight = 1000

// endpoint is an address that might become a backend.
type endpoint struct {
	Backend
	ready, serving, terminating bool
	zones, nodes                []string // hints: whom it is for
	region                      string
}

// serviceOf returns the Service of a slice, and whether its endpoints are of another cluster.
func serviceOf(s *discoveryv1.EndpointSlice) (k Key, remote, ok bool) {
	if name := s.Labels[discoveryv1.LabelServiceName]; name != "" {
		return Key{s.Namespace, name}, false, true
	}
	if name := s.Labels[LabelRemoteService]; name != "" && s.Labels[LabelSourceCluster] != "" {
		return Key{s.Namespace, name}, true, true
	}
	return Key{}, false, false
}

// endpointsOf returns the endpoints of a port in a family from the slices of its Service, sorted by address. If an
// address is there twice, because it moves between slices or a pod reuses that of a terminating one, the one that is
// not terminating wins.
func (b builder) endpointsOf(id PortID, ipv6 bool) []endpoint {
	family := discoveryv1.AddressTypeIPv4
	if ipv6 {
		family = discoveryv1.AddressTypeIPv6
	}
	var all []endpoint
	for _, s := range b.slices {
		number := portIn(s, id)
		if s.AddressType != family || number == 0 {
			continue
		}
		all = slices.Grow(all, len(s.Endpoints))
		for i := range s.Endpoints {
			if e, ok := b.endpoint(s, &s.Endpoints[i], number); ok {
				all = append(all, e)
			}
		}
	}
	slices.SortStableFunc(all, func(x, y endpoint) int {
		if c := x.Addr.Compare(y.Addr); c != 0 {
			return c
		}
		return endpointRank(x) - endpointRank(y)
	})
	return slices.CompactFunc(all, func(x, y endpoint) bool { return x.Addr == y.Addr })
}

// endpointRank orders endpoints of one address: the best comes first.
func endpointRank(e endpoint) int {
	switch {
	case e.Cluster != "":
		return 3
	case e.ready:
		return 0
	case !e.terminating:
		return 1
	}
	return 2
}

// portIn returns a slice's number for the port of a Service, or 0.
func portIn(s *discoveryv1.EndpointSlice, id PortID) uint16 {
	for _, p := range s.Ports {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		if p.Name != nil && *p.Name == id.Port && protocol == id.Protocol && p.Port != nil && *p.Port > 0 && *p.Port <= 65535 {
			return uint16(*p.Port)
		}
	}
	return 0
}

// endpoint decodes one endpoint of a slice: its first address, as the API defines.
func (b builder) endpoint(s *discoveryv1.EndpointSlice, e *discoveryv1.Endpoint, port uint16) (endpoint, bool) {
	if len(e.Addresses) == 0 {
		return endpoint{}, false
	}
	addr, err := netip.ParseAddr(e.Addresses[0])
	if addr = addr.Unmap(); err != nil || addr.Is4() != (s.AddressType == discoveryv1.AddressTypeIPv4) {
		return endpoint{}, false
	}
	is := func(p *bool, otherwise bool) bool { return p == nil && otherwise || p != nil && *p }
	out := endpoint{
		ready:       is(e.Conditions.Ready, true),
		serving:     is(e.Conditions.Serving, true),
		terminating: is(e.Conditions.Terminating, false),
		region:      s.Labels[corev1.LabelTopologyRegion],
	}
	out.Addr, out.Weight = netip.AddrPortFrom(addr, port), 1
	if _, remote, _ := serviceOf(s); remote {
		if slices.Contains(b.node.Addrs, addr) {
			return endpoint{}, false // no other cluster has it
		}
		out.Cluster, out.Weight = s.Labels[LabelSourceCluster], weight(s)
		return out, true
	}
	out.Local = e.NodeName != nil && b.node.Name != "" && *e.NodeName == b.node.Name
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			out.zones = append(out.zones, z.Name)
		}
		for _, n := range e.Hints.ForNodes {
			out.nodes = append(out.nodes, n.Name)
		}
	}
	return out, true
}

func weight(s *discoveryv1.EndpointSlice) uint32 {
	n, err := strconv.ParseUint(s.Annotations[AnnotationWeight], 10, 32)
	if err != nil || n == 0 || n > MaxWeight {
		return 1
	}
	return uint32(n)
}
