package conntrack

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/ruleset"
)

// keep has the allowed backends of flows to a frontend; nil: none.
type keep map[ruleset.FrontendKey]map[netip.AddrPort]bool

// frontends returns the frontends in changes, of the protocols whose flows do not end by themselves when their backend
// is gone.
func frontends(changes []ruleset.PortChange) keep {
	out := keep{}
	for _, c := range changes {
		for _, p := range []*ruleset.Port{c.Before, c.After} {
			if p == nil || p.ID.Protocol == corev1.ProtocolTCP {
				continue
			}
			for _, f := range p.Frontends {
				out[f.Key] = nil
			}
		}
	}
	for _, c := range changes {
		if c.After == nil {
			continue
		}
		living := backends(c.After)
		for _, f := range c.After.Frontends {
			if _, ok := out[f.Key]; ok {
				out[f.Key] = living
			}
		}
	}
	return out
}

func backends(p *ruleset.Port) map[netip.AddrPort]bool {
	out := map[netip.AddrPort]bool{}
	for _, to := range ruleset.Pools {
		for _, b := range p.Pool(to).Backends {
			out[b.Addr] = true
		}
	}
	for _, a := range p.Living {
		out[a] = true
	}
	return out
}

// isStale reports whether to remove a flow. A flow that was not translated is older than the rules: it is stale if it
// asked for a Service's own address, or for a node port at one of the node's addresses. Other flows to such a port pass
// by.
func (k keep) isStale(f *flow, local func(netip.Addr) bool) bool {
	key := ruleset.FrontendKey{Addr: f.to.Addr(), IPv6: f.to.Addr().Is6(), Protocol: f.protocolName(), Port: f.to.Port()}
	living, ok := k[key]
	if !ok {
		key.Addr = netip.Addr{}
		if living, ok = k[key]; !ok || f.answers == f.to {
			return living != nil && local(f.to.Addr())
		}
	}
	return !living[f.answers]
}
