package plan

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/ruleset"
)

// Ports returns what becomes of packets to an address of a Service: each port with a node port leads to that of the members, the rest is
// refused. Sources are translated, so that answers come back this way. A Service that nobody may connect to, as all its source ranges are
// of the other family, answers nobody.
func Ports(service *corev1.Service, addr netip.Addr, members []Member) (out []*ruleset.Port) {
	ranges, nobody := sourceRanges(service, addr)
	for _, sp := range service.Spec.Ports {
		if sp.NodePort == 0 {
			continue
		}
		p := &ruleset.Port{
			ID:   ruleset.PortID{Key: ruleset.Key{Namespace: service.Namespace, Name: service.Name}, Port: sp.Name, Protocol: sp.Protocol},
			IPv6: addr.Is6(), Affinity: affinity(service),
		}
		route := ruleset.Route{To: ruleset.ToCluster, Masquerade: true}
		p.Cluster.Tier = ruleset.TierReady
		for _, m := range members {
			to := netip.AddrPortFrom(m.Addr, uint16(sp.NodePort))
			p.Cluster.Backends = append(p.Cluster.Backends, ruleset.Backend{Addr: to, Weight: 1})
			if sp.Protocol != corev1.ProtocolTCP {
				p.Living = append(p.Living, to)
			}
		}
		switch {
		case nobody:
			route = ruleset.Route{To: ruleset.Drop}
		case len(members) == 0:
			p.Cluster.Tier, route = ruleset.TierNone, ruleset.Route{To: ruleset.Reject}
		}
		p.Frontends = []ruleset.Frontend{{
			Key:  ruleset.FrontendKey{Addr: addr, IPv6: addr.Is6(), Protocol: sp.Protocol, Port: uint16(sp.Port)},
			Kind: ruleset.LoadBalancer, Alone: true, SourceRanges: ranges, FromPod: route, FromNode: route, FromOutside: route,
		}}
		out = append(out, p)
	}
	return out
}

// sourceRanges returns who may connect to an address; none and false: everybody.
func sourceRanges(service *corev1.Service, addr netip.Addr) (out []netip.Prefix, nobody bool) {
	for _, text := range service.Spec.LoadBalancerSourceRanges {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil || p.Addr().Is6() != addr.Is6() {
			continue
		}
		if p.Bits() == 0 {
			return nil, false
		}
		out = append(out, p.Masked())
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out), len(out) == 0 && len(service.Spec.LoadBalancerSourceRanges) > 0
}

func affinity(service *corev1.Service) uint32 {
	if service.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	if c := service.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		return uint32(*c.ClientIP.TimeoutSeconds)
	}
	return uint32(corev1.DefaultClientIPServiceAffinitySeconds)
}
