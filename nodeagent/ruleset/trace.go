package ruleset

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Packet is the first one of a connection, as it arrives at this node or leaves one of its processes.
type Packet struct {
	From      netip.Addr
	Interface string // that it comes in by, where pods are known by theirs; else ""
	To        netip.AddrPort
	Protocol  corev1.Protocol
}

// Path is where a packet goes.
type Path struct {
	Steps []string // what decides, in order
	Route Route    // To is "" where no Service is concerned
	Pool  Pool     // where it may go
}

// Trace follows a packet through the rules and explains each step.
func (m *Model) Trace(p Packet) Path {
	t := Path{}
	t.say("%s %s → %s", strings.ToLower(string(p.Protocol)), p.From, p.To)
	port, frontend := m.frontend(p)
	if port == nil {
		return m.noFrontend(p, t)
	}
	t.say("%s is the %s of %s (KUBE-SVC-%s)", frontend.Key, frontend.Kind, port.ID, port.Hash)
	if r := frontend.SourceRanges; len(r) > 0 {
		if !slices.ContainsFunc(r, func(x netip.Prefix) bool { return x.Contains(p.From) }) {
			t.say("%s is in none of the source ranges %v: dropped", p.From, r)
			t.Route.To = Drop
			return t
		}
		t.say("%s is in the source ranges %v", p.From, r)
	}
	from := ""
	from, t.Route = m.routeOf(p, frontend)
	switch t.Route.To {
	case Reject:
		t.say("from %s: rejected, as there is no endpoint that it may be sent to", from)
	case Drop:
		t.say("from %s: dropped, as no endpoint is on this node and the traffic policy is Local", from)
	case Yield:
		t.say("from %s: left to this node's other service proxy. In the scope federated only clusterset IPs are served, and Services with the "+
			"annotation %s: \"true\" while connections to them go to other clusters", from, AnnotationFallback)
	default:
		t.describePool(from, *port.Pool(t.Route.To), port.Affinity, p)
	}
	return t
}

func (t *Path) say(format string, args ...any) {
	t.Steps = append(t.Steps, fmt.Sprintf(format, args...))
}

// frontend finds who answers at the packet's destination.
func (m *Model) frontend(p Packet) (*Port, *Frontend) {
	key := FrontendKey{p.To.Addr(), p.To.Addr().Is6(), p.Protocol, p.To.Port()}
	all := m.claims[key]
	if len(all) == 0 && m.node.ServesNodePorts(p.To.Addr()) {
		key.Addr = netip.Addr{}
		all = m.claims[key]
	}
	if len(all) == 0 {
		return nil, nil
	}
	port := all[0].by
	at := slices.IndexFunc(port.Frontends, func(f Frontend) bool { return f.Key == key })
	return port, &port.Frontends[at]
}

// noFrontend is for a packet to no frontend: an address that is a Service's alone refuses ports that this does not have.
func (m *Model) noFrontend(p Packet, t Path) Path {
	for _, e := range m.services {
		for _, port := range e.ports {
			for _, f := range port.Frontends {
				if f.Alone && f.Key.Addr == p.To.Addr() {
					t.say("%s is the %s of %s, which has no port %d/%s: rejected", p.To.Addr(), f.Kind, port.ID.Key, p.To.Port(), strings.ToLower(string(p.Protocol)))
					t.Route.To = Reject
					return t
				}
			}
		}
	}
	t.say("%s is no address of a Service: not touched", p.To)
	return t
}

// routeOf returns the route for where the packet is from.
func (m *Model) routeOf(p Packet, f *Frontend) (from string, r Route) {
	switch pods := m.node.Pods.OfFamily(p.To.Addr().Is6()); {
	case pods.IsSource(p.From, p.Interface):
		return "a pod of this node or cluster", f.FromPod
	case slices.Contains(m.node.Addrs, p.From) || p.From.IsLoopback():
		return "this node", f.FromNode
	}
	return "outside", f.FromOutside
}

// describePool describes the pool and the source address.
func (t *Path) describePool(from string, pool Pool, affinity uint32, p Packet) {
	t.Pool = pool
	t.say("from %s: one of %d backends (%s)", from, len(pool.Backends), pool.Tier)
	if affinity > 0 {
		t.say("unless %s had one within %d s: then the same", p.From, affinity)
	}
	sum := uint64(0)
	for _, b := range pool.Backends {
		sum += uint64(b.Weight)
	}
	for _, b := range pool.Backends {
		why := "source address kept"
		switch {
		case t.Route.Masquerade:
			why = "masqueraded"
		case b.Addr.Addr() == p.From:
			why = "masqueraded, as it goes back to where it is from"
		case b.Cluster != "":
			why = "masqueraded, as it goes to cluster " + b.Cluster
		}
		t.say("→ %s, %.1f %% of new connections, %s", b.Addr, 100*float64(b.Weight)/float64(sum), why)
	}
}
