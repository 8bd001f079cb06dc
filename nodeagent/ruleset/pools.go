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
	ready := where(all, func(e *endpoint) bool { return e.Cluster == "" && e.ready })
	if own = b.hinted(ready); len(ready) == 0 {
		own = pool(TierTerminating, where(all, endsServing))
	}
	others, below := b.otherClusters(all), b.fallbackBelow()
	here, needed := 100*uint64(len(ready)), below*uint64(len(where(all, isHere)))
	switch {
	case len(others.Backends) == 0:
		return own, own
	case len(own.Backends) == 0, below > 0 && here == 0:
		return others, own
	case here < needed:
		return mixed(own, others, here, needed-here), own
	}
	return own, own
}

// isHere reports whether an endpoint of this cluster should serve now.
func isHere(e *endpoint) bool { return e.Cluster == "" && (e.ready || !e.terminating) }

func (b *builder) otherClusters(all []endpoint) Pool {
	others := where(all, func(e *endpoint) bool { return e.Cluster != "" && e.ready })
	near := where(others, func(e *endpoint) bool { return b.node.Region != "" && e.region == b.node.Region })
	if len(near) > 0 {
		return pool(TierRemoteRegion, near)
	}
	return pool(TierRemote, others)
}

// localPool returns what the policy Local leads to: the endpoints of this node.
func localPool(all []endpoint) Pool {
	if ready := where(all, func(e *endpoint) bool { return e.Local && e.ready }); len(ready) > 0 {
		return pool(TierNode, ready)
	}
	return pool(TierTerminating, where(all, func(e *endpoint) bool { return e.Local && endsServing(e) }))
}

func endsServing(e *endpoint) bool { return e.Cluster == "" && e.serving && e.terminating }

// hinted narrows ready endpoints down to those meant for this node, or else this zone.
func (b builder) hinted(ready []endpoint) Pool {
	for _, hint := range []struct {
		tier Tier
		us   string
		of   func(*endpoint) []string
	}{
		{TierNode, b.node.Name, func(e *endpoint) []string { return e.nodes }},
		{TierZone, b.node.Zone, func(e *endpoint) []string { return e.zones }},
	} {
		with := where(ready, func(e *endpoint) bool { return len(hint.of(e)) > 0 })
		ours := where(with, func(e *endpoint) bool { return slices.Contains(hint.of(e), hint.us) })
		if len(with) == len(ready) && len(ours) > 0 {
			return pool(hint.tier, ours)
		}
	}
	return pool(TierReady, ready)
}

func living(all []endpoint) []netip.AddrPort {
	var out []netip.AddrPort
	for _, e := range where(all, func(e *endpoint) bool { return e.ready || e.serving && e.Cluster == "" }) {
		out = append(out, e.Addr)
	}
	return out
}

// where returns the endpoints for which is returns true. Usually that is none or all: then nothing is copied.
func where(all []endpoint, is func(*endpoint) bool) []endpoint {
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

func pool(t Tier, of []endpoint) Pool {
	if len(of) == 0 {
		return Pool{Tier: TierNone}
	}
	p := Pool{Tier: t, Backends: make([]Backend, len(of))}
	for i := range of {
		p.Backends[i] = of[i].Backend
	}
	return p
}
