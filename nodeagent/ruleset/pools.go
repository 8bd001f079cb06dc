package ruleset

import (
	"net/netip"
	"slices"
)

// clusterPools returns the backends of the policy Cluster, and those of them in this cluster. It takes the first of these with
// an endpoint: the ready ones, reduced to those hinted for this node or zone if each has a hint and one is for us (KEP-2433,
// KEP-3015); terminating ones that still serve (KEP-1669); other clusters of this region; other clusters.
//
// If the Service says how many must be ready and fewer are, other clusters get the missing part: before the terminating ones.
func (b *builder) clusterPools(all []endpoint) (cluster, own Pool) {
	ready := filterEndpoints(all, func(e *endpoint) bool { return e.Cluster == "" && e.ready })
	if own = b.hintedPool(ready); len(ready) == 0 {
		own = poolOf(TierTerminating, filterEndpoints(all, endsServing))
	}
	others, below := b.otherClusters(all), b.fallbackBelow()
	here, needed := 100*uint64(len(ready)), below*uint64(len(filterEndpoints(all, isHere)))
	switch {
	case len(others.Backends) == 0:
		return own, own
	case len(own.Backends) == 0, below > 0 && here == 0:
		return others, own
	case here < needed:
		return mixPools(own, others, here, needed-here), own
	}
	return own, own
}

// isHere reports whether an endpoint of this cluster should serve now.
func isHere(e *endpoint) bool { return e.Cluster == "" && (e.ready || !e.terminating) }

func (b *builder) otherClusters(all []endpoint) Pool {
	others := filterEndpoints(all, func(e *endpoint) bool { return e.Cluster != "" && e.ready })
	near := filterEndpoints(others, func(e *endpoint) bool { return b.node.Region != "" && e.region == b.node.Region })
	if len(near) > 0 {
		return poolOf(TierRemoteRegion, near)
	}
	return poolOf(TierRemote, others)
}

// localPool returns what the policy Local leads to: the endpoints of this node.
func localPool(all []endpoint) Pool {
	if ready := filterEndpoints(all, func(e *endpoint) bool { return e.Local && e.ready }); len(ready) > 0 {
		return poolOf(TierNode, ready)
	}
	return poolOf(TierTerminating, filterEndpoints(all, func(e *endpoint) bool { return e.Local && endsServing(e) }))
}

func endsServing(e *endpoint) bool { return e.Cluster == "" && e.serving && e.terminating }

// hintedPool narrows ready endpoints down to those meant for this node, or else this zone.
func (b builder) hintedPool(ready []endpoint) Pool {
	for _, hint := range []struct {
		tier Tier
		us   string
		of   func(*endpoint) []string
	}{
		{TierNode, b.node.Name, func(e *endpoint) []string { return e.nodes }},
		{TierZone, b.node.Zone, func(e *endpoint) []string { return e.zones }},
	} {
		with := filterEndpoints(ready, func(e *endpoint) bool { return len(hint.of(e)) > 0 })
		ours := filterEndpoints(with, func(e *endpoint) bool { return slices.Contains(hint.of(e), hint.us) })
		if len(with) == len(ready) && len(ours) > 0 {
			return poolOf(hint.tier, ours)
		}
	}
	return poolOf(TierReady, ready)
}

func livingAddresses(all []endpoint) []netip.AddrPort {
	var out []netip.AddrPort
	for _, e := range filterEndpoints(all, func(e *endpoint) bool { return e.ready || e.serving && e.Cluster == "" }) {
		out = append(out, e.Addr)
	}
	return out
}

// filterEndpoints returns the endpoints for which is returns true. Usually that is none or all: then nothing is copied.
func filterEndpoints(all []endpoint, is func(*endpoint) bool) []endpoint {
	n := 0
	for i := range all {
		if is(&all[i]) {
			n++
		}
	}
	if n == len(all) {
		return all
	}
	out := make([]endpoint, 0, n)
	for i := range all {
		if is(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

func poolOf(t Tier, of []endpoint) Pool {
	if len(of) == 0 {
		return Pool{Tier: TierNone}
	}
	p := Pool{Tier: t, Backends: make([]Backend, len(of))}
	for i := range of {
		p.Backends[i] = of[i].Backend
	}
	return p
}
