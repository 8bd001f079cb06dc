package ruleset

import (
	"net/netip"
	"slices"
)

// clusterPool is what the policy Cluster leads to. The first of these with an endpoint: the ready ones, those that
// hints mean for this node or zone where each has a hint and one is for us (KEP-2433, KEP-3015); those that end but
// still serve (KEP-1669); other clusters of this region; other clusters.
func (b builder) clusterPool(all []endpoint) Pool {
	own := func(e endpoint) bool { return e.Cluster == "" && e.ready }
	if ready := where(all, own); len(ready) > 0 {
		return b.hinted(ready)
	}
	if serving := where(all, endsServing); len(serving) > 0 {
		return pool(TierTerminating, serving)
	}
	others := where(all, func(e endpoint) bool { return e.Cluster != "" && e.ready })
	near := where(others, func(e endpoint) bool { return b.node.Region != "" && e.region == b.node.Region })
	if len(near) > 0 {
		return pool(TierRemoteRegion, near)
	}
	return pool(TierRemote, others)
}

// localPool is what the policy Local leads to: the endpoints of this node.
func localPool(all []endpoint) Pool {
	if ready := where(all, func(e endpoint) bool { return e.Local && e.ready }); len(ready) > 0 {
		return pool(TierNode, ready)
	}
	return pool(TierTerminating, where(all, func(e endpoint) bool { return e.Local && endsServing(e) }))
}

func endsServing(e endpoint) bool { return e.Cluster == "" && e.serving && e.terminating }

// hinted narrows ready endpoints down to those meant for this node, or else this zone.
func (b builder) hinted(ready []endpoint) Pool {
	for _, hint := range []struct {
		tier Tier
		us   string
		of   func(endpoint) []string
	}{
		{TierNode, b.node.Name, func(e endpoint) []string { return e.nodes }},
		{TierZone, b.node.Zone, func(e endpoint) []string { return e.zones }},
	} {
		without := slices.ContainsFunc(ready, func(e endpoint) bool { return len(hint.of(e)) == 0 })
		ours := where(ready, func(e endpoint) bool { return slices.Contains(hint.of(e), hint.us) })
		if !without && len(ours) > 0 {
			return pool(hint.tier, ours)
		}
	}
	return pool(TierReady, ready)
}

func living(all []endpoint) []netip.AddrPort {
	var out []netip.AddrPort
	for _, e := range where(all, func(e endpoint) bool { return e.Cluster == "" && (e.ready || e.serving) }) {
		out = append(out, e.Addr)
	}
	return out
}

func where(all []endpoint, is func(endpoint) bool) []endpoint {
	var out []endpoint
	for _, e := range all {
		if is(e) {
			out = append(out, e)
		}
	}
	return out
}

func pool(t Tier, of []endpoint) Pool {
	if len(of) == 0 {
		return Pool{Tier: TierNone}
	}
	p := Pool{Tier: t, Backends: make([]Backend, len(of))}
	for i, e := range of {
		p.Backends[i] = e.Backend
	}
	return p
}
