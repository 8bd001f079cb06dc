package proxy

import (
	"errors"
	"slices"

	"federation/controllers/loadbalancer/plan"
)

// Spreads returns how what comes to the ports of Services is divided now. Targets that are not dialed are not there.
func (p *Proxy) Spreads() (all []plan.Spread) {
	refused := func(t plan.SpreadPart) bool { return p.Refuse(t.Address.Addr()) != nil }
	for _, l := range p.Table().Listeners() {
		if o, ok := p.pools.get(l.Pool); ok {
			all = append(all, plan.Spread{Listener: l, ProxyProtocol: o.proxyProtocol, Parts: slices.DeleteFunc(slices.Clone(o.spread), refused)})
		}
	}
	return all
}

func spreadOf(decided *plan.Pool) (parts []plan.SpreadPart) {
	for _, part := range decided.Parts {
		parts = append(parts, plan.SpreadPart{Target: part.Target, Share: part.Share, Out: part.Out, Lost: part.Lost})
	}
	return parts
}

// Delivered takes in what an edge has seen: that something new was sent to a target, that it took a connection, and how many it did not take.
func (p *Proxy) Delivered(id plan.PoolID, at plan.Target, taken bool, undelivered int) {
	o, ok := p.pools.get(id)
	if !ok {
		return
	}
	for _, t := range o.targets {
		if t.Target != at {
			continue
		}
		t.used.Store(p.clock())
		if taken {
			t.delivered(nil, 0)
		}
		for range min(undelivered, ejectAfter) {
			t.delivered(errNotTaken, 0)
		}
	}
}

// errNotTaken is how a connection fared that an edge sent to a target.
var errNotTaken = errors.New("it did not take the connection")
