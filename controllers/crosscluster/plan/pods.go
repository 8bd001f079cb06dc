package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

const (
	// maxPods is the maximum of pods of a cluster and family that a member gets of one Service.
	maxPods = 100
	// podScale makes shares of a cluster's weight whole numbers: 100 pods of a cluster with the default weight have 10 each.
	podScale = 10
	// maxRead bounds the endpoints, and maxPorts the ports of a slice, that are read of what one cluster says.
	maxRead  = 5000
	maxPorts = 100
)

// Endpoints are what a cluster says that it has of a Service.
type Endpoints struct {
	// Ready are its ready endpoints, sorted.
	Ready []Backends
	// Balancers are the addresses of the load balancer that was made there for the exported Service (ADR 139).
	Balancers []netip.Addr
}

// Backends are addresses that serve at the same ports.
type Backends struct {
	Ports     []discoveryv1.EndpointPort
	Addresses []netip.Addr
}

// signature tells ports apart.
func (b *Backends) signature() (s string) {
	for _, p := range b.Ports {
		s += fmt.Sprintf("%s/%s/%05d ", *p.Name, *p.Protocol, *p.Port)
	}
	return s
}

// EndpointsOf reads the EndpointSlices that a cluster itself has of a Service, and the Services of type LoadBalancer that were made
// for it. A cluster may say anything: what cannot be an address or port of a pod is left out.
func EndpointsOf(own []*discoveryv1.EndpointSlice, balancers []*corev1.Service) (e Endpoints) {
	by, left := map[string]*Backends{}, maxRead
	for _, s := range slices.SortedFunc(slices.Values(own), func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) }) {
		some := Backends{Ports: portsOf(s)}
		for i := range s.Endpoints[:min(left, len(s.Endpoints))] {
			if a, ok := readyAddress(&s.Endpoints[i], s.AddressType); ok {
				some.Addresses = append(some.Addresses, a)
			}
		}
		if left -= min(left, len(s.Endpoints)); len(some.Ports) == 0 || len(some.Addresses) == 0 {
			continue
		}
		if b := by[some.signature()]; b != nil {
			b.Addresses = append(b.Addresses, some.Addresses...)
		} else {
			by[some.signature()] = &some
		}
	}
	for _, b := range by {
		slices.SortFunc(b.Addresses, netip.Addr.Compare)
		b.Addresses = slices.Compact(b.Addresses)
		e.Ready = append(e.Ready, *b)
	}
	sortBackends(e.Ready)
	for _, s := range balancers {
		e.Balancers = append(e.Balancers, balancersOf(s)...)
	}
	return e
}

// sortBackends puts them in the order in which they become slices.
func sortBackends(all []Backends) {
	slices.SortFunc(all, func(a, b Backends) int {
		return cmp.Or(cmp.Compare(a.signature(), b.signature()), slices.CompareFunc(a.Addresses, b.Addresses, netip.Addr.Compare))
	})
}

// portsOf returns the ports of a slice that a Service can have, sorted.
func portsOf(s *discoveryv1.EndpointSlice) (ports []discoveryv1.EndpointPort) {
	for _, p := range s.Ports[:min(len(s.Ports), maxPorts)] {
		name, protocol := "", corev1.ProtocolTCP
		if p.Name != nil {
			name = *p.Name
		}
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		if p.Port != nil && *p.Port > 0 && *p.Port <= 65535 {
			ports = append(ports, discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: p.Port})
		}
	}
	slices.SortFunc(ports, func(a, b discoveryv1.EndpointPort) int {
		return cmp.Or(cmp.Compare(*a.Name, *b.Name), cmp.Compare(*a.Protocol, *b.Protocol), cmp.Compare(*a.Port, *b.Port))
	})
	return ports
}

// readyAddress returns the address of an endpoint, if it is ready and one that can be routed to.
func readyAddress(e *discoveryv1.Endpoint, family discoveryv1.AddressType) (a netip.Addr, ok bool) {
	is := func(p *bool, otherwise bool) bool { return p == nil && otherwise || p != nil && *p }
	if len(e.Addresses) == 0 || !is(e.Conditions.Ready, true) || is(e.Conditions.Terminating, false) {
		return a, false
	}
	a, err := netip.ParseAddr(e.Addresses[0])
	if err != nil || a.Zone() != "" || a.Is4In6() || family != discoveryv1.AddressTypeIPv4 && family != discoveryv1.AddressTypeIPv6 {
		return a, false
	}
	return a, a.Is4() == (family == discoveryv1.AddressTypeIPv4) && v1beta1.RefuseAddress(a) == nil
}

// balancersOf returns the addresses of a Service's load balancers; names of hosts are not looked up.
func balancersOf(s *corev1.Service) (addresses []netip.Addr) {
	for _, ingress := range s.Status.LoadBalancer.Ingress[:min(len(s.Status.LoadBalancer.Ingress), maxPods)] {
		if a, err := netip.ParseAddr(ingress.IP); err == nil && a.Zone() == "" && v1beta1.RefuseAddress(a) == nil {
			addresses = append(addresses, a.Unmap())
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses)
}

// podsOf returns a cluster with its pods, if the member's reach them, and else with the load balancer that was made for the Service. Of one
// that is not connected the member keeps what it has been given. own is the member's own offer. ok is false where nothing is offered.
func (in Input) podsOf(o, own servicednsplan.Offer) (s source, ok bool) {
	s.Offer = o
	e, known := in.Endpoints[o.Cluster]
	switch {
	case in.Service.Spec.ClusterIP == corev1.ClusterIPNone:
		return s, false
	case !known:
		s.backends = in.given(o.Cluster)
		if in.Away[o.Cluster] && !o.CutOff {
			s.Rank = max(s.Rank, servicednsplan.RankUnseen)
		}
	case o.Network != "" && o.Network == own.Network:
		s.backends = in.choosePods(only(in.withServicePorts(e.Ready), func(a netip.Addr) bool {
			return v1beta1.InCIDRs(o.PodCIDRs, a) && (len(own.PodCIDRs) == 0 || !v1beta1.InCIDRs(own.PodCIDRs, a))
		}))
	case len(e.Ready) > 0:
		s.backends = only([]Backends{{in.servicePorts(), e.Balancers}}, func(a netip.Addr) bool { return v1beta1.InCIDRs(o.LoadBalancerCIDRs, a) })
	}
	s.Addresses = nil
	for _, b := range s.backends {
		s.Addresses = append(s.Addresses, b.Addresses...)
	}
	return s, len(s.Addresses) > 0
}

// given returns what the member has been given of another cluster so far.
func (in Input) given(cluster string) (all []Backends) {
	for _, s := range in.Have {
		if s.Labels[v1beta1.SourceClusterLabel] != cluster {
			continue
		}
		b := Backends{Ports: portsOf(s)}
		for _, e := range s.Endpoints {
			for _, text := range e.Addresses {
				if a, err := netip.ParseAddr(text); err == nil {
					b.Addresses = append(b.Addresses, a)
				}
			}
		}
		all = append(all, b)
	}
	return in.withServicePorts(all)
}

// withServicePorts leaves the ports that the member's own copy has, by name and protocol, and the addresses that have any.
func (in Input) withServicePorts(all []Backends) (some []Backends) {
	for _, b := range all {
		var ports []discoveryv1.EndpointPort
		for _, p := range b.Ports {
			i := slices.IndexFunc(in.Service.Spec.Ports, func(q corev1.ServicePort) bool {
				return q.Name == *p.Name && cmp.Or(q.Protocol, corev1.ProtocolTCP) == *p.Protocol
			})
			if i >= 0 {
				p.AppProtocol = in.Service.Spec.Ports[i].AppProtocol
				ports = append(ports, p)
			}
		}
		if len(ports) > 0 {
			some = append(some, Backends{ports, b.Addresses})
		}
	}
	sortBackends(some)
	return some
}

// choosePods returns at most maxPods of each family, by a pseudo-random order that differs between members. So the choice changes
// little when pods come and go, and members don't send all their traffic to the same ones.
func (in Input) choosePods(all []Backends) []Backends {
	var order []uint64
	limit := map[bool]uint64{}
	for _, is4 := range []bool{true, false} {
		order = order[:0]
		for _, b := range all {
			for _, a := range b.Addresses {
				if a.Is4() == is4 {
					order = append(order, in.randomOf(a.String()))
				}
			}
		}
		slices.Sort(order)
		if limit[is4] = ^uint64(0); len(order) > maxPods {
			limit[is4] = order[maxPods]
		}
	}
	return only(all, func(a netip.Addr) bool { return in.randomOf(a.String()) < limit[a.Is4()] })
}

// only returns backends without the addresses that are not allowed.
func only(all []Backends, allowed func(netip.Addr) bool) (some []Backends) {
	for _, b := range all {
		b.Addresses = slices.DeleteFunc(slices.Clone(b.Addresses), func(a netip.Addr) bool { return !allowed(a) })
		if len(b.Addresses) > 0 {
			some = append(some, b)
		}
	}
	return some
}
