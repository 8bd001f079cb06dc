package kernel

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"federation/controllers/loadbalancer/plan"
	"federation/nodeagent/ruleset"
)

// Settings are where Services are served.
type Settings struct {
	// Address is where they are; zero: at all addresses of the machine, except loopback.
	Address netip.Addr
	// IPv4, IPv6: the kernel forwards packets of the family.
	IPv4, IPv6 bool
}

// serves reports whether a family is served.
func (s *Settings) serves(ipv6 bool) bool {
	if ipv6 {
		return s.IPv6 && (!s.Address.IsValid() || s.Address.Is6())
	}
	return s.IPv4 && (!s.Address.IsValid() || s.Address.Is4())
}

// portKey names a port of a Service in one family.
type portKey struct {
	protocol corev1.Protocol
	port     uint16
	ipv6     bool
}

// Ports returns what the kernel is to do. A port that it cannot serve as asked is left out, for the proxy.
func (s *Settings) Ports(spreads []plan.Spread) map[portKey]*ruleset.Port {
	out := map[portKey]*ruleset.Port{}
	for i := range spreads {
		for _, ipv6 := range []bool{false, true} {
			if p := s.port(&spreads[i], ipv6); p != nil {
				out[portKey{p.ID.Protocol, spreads[i].Port, ipv6}] = p
			}
		}
	}
	return out
}

// port returns what becomes of one port in a family; nil: nothing.
func (s *Settings) port(of *plan.Spread, ipv6 bool) *ruleset.Port {
	tcp := !of.Pool.UDP
	if !s.serves(ipv6) || tcp && of.ProxyProtocol {
		return nil
	}
	p := &ruleset.Port{IPv6: ipv6, ID: ruleset.PortID{
		Key: ruleset.Key{Namespace: of.Pool.Namespace, Name: of.Pool.Service}, Port: strconv.Itoa(int(of.Port)), Protocol: protocolOf(of),
	}}
	usable := 0
	for _, t := range of.Parts {
		if t.Address.Addr().Is6() != ipv6 {
			continue
		}
		if !t.Out {
			usable++
		}
		if !tcp && !t.Lost {
			p.Living = append(p.Living, t.Address)
		}
	}
	slices.SortFunc(p.Living, netip.AddrPort.Compare)
	p.Retried = tcp && usable > 1
	route := ruleset.Route{To: ruleset.ToCluster}
	if p.Cluster = backends(of, ipv6); len(p.Cluster.Backends) == 0 {
		if tcp {
			return nil // a cluster may have addresses of the other family
		}
		route.To = ruleset.Reject
	}
	p.Frontends = []ruleset.Frontend{{Key: s.frontend(of, ipv6), Kind: ruleset.LoadBalancer, FromPod: route, FromNode: route, FromOutside: route}}
	return p
}

func protocolOf(of *plan.Spread) corev1.Protocol {
	if of.Pool.UDP {
		return corev1.ProtocolUDP
	}
	return corev1.ProtocolTCP
}

func (s *Settings) frontend(of *plan.Spread, ipv6 bool) ruleset.FrontendKey {
	return ruleset.FrontendKey{Addr: s.Address, IPv6: ipv6, Protocol: protocolOf(of), Port: of.Port}
}

// slots is what shares are rounded to: most of them that clusters of equal weight have come out even.
const slots = 240

// backends returns the targets of a family that are in use, by share. A cluster's share of the other family is divided among its own addresses first.
func backends(of *plan.Spread, ipv6 bool) ruleset.Pool {
	whole, here := map[string]float64{}, map[string]float64{} // by cluster
	for _, t := range of.Parts {
		whole[t.Cluster] += t.Share
		if t.Address.Addr().Is6() == ipv6 {
			here[t.Cluster] += t.Share
		}
	}
	shares, clusters, sum := map[netip.AddrPort]float64{}, map[netip.AddrPort]string{}, 0.0
	for _, t := range of.Parts {
		if t.Share > 0 && t.Address.Addr().Is6() == ipv6 {
			share := t.Share * whole[t.Cluster] / here[t.Cluster]
			shares[t.Address] += share // two clusters may say the same address
			clusters[t.Address] = t.Cluster
			sum += share
		}
	}
	p := ruleset.Pool{Tier: ruleset.TierNone}
	for address, share := range shares {
		p.Tier = ruleset.TierRemote
		p.Backends = append(p.Backends, ruleset.Backend{Addr: address, Weight: uint32(share / sum * slots), Cluster: clusters[address]})
	}
	rest := slots
	for _, b := range p.Backends {
		rest -= int(b.Weight)
	}
	missing := func(b ruleset.Backend) float64 { return shares[b.Addr]/sum*slots - float64(b.Weight) }
	slices.SortFunc(p.Backends, func(a, b ruleset.Backend) int {
		return cmp.Or(cmp.Compare(math.Round(missing(b)*1e6), math.Round(missing(a)*1e6)), a.Addr.Compare(b.Addr))
	})
	for i := range p.Backends {
		if i < rest {
			p.Backends[i].Weight++
		}
		p.Backends[i].Weight = max(1, p.Backends[i].Weight)
	}
	slices.SortFunc(p.Backends, func(a, b ruleset.Backend) int { return a.Addr.Compare(b.Addr) })
	return p
}
