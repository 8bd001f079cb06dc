package proxy

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
)

// pools decides the pools, each from what the federation says of it and from the health of its targets, and keeps the targets. Make it with newPools.
type pools struct {
	newTarget func(targetKey) *target
	// readOwn is OwnAddresses of the Options.
	readOwn func() (map[netip.Addr]bool, error)
	// spreadChanged is SpreadChanged of the Options.
	spreadChanged func()
	// current has *pool by plan.PoolID; requests read it.
	current sync.Map

	mu sync.Mutex
	// inputs are what pools are decided from, without health.
	inputs  map[plan.PoolID]plan.PoolInput
	targets map[targetKey]*target
	// own are the addresses of this machine, as looked at last.
	own map[netip.Addr]bool
}

// pool is what requests need of a decided pool. Nobody changes it once it is made.
type pool struct {
	id plan.PoolID
	// targets are in the order of the plan's parts, and shares are theirs.
	targets []*target
	shares  []float64
	// refused are addresses that are no targets.
	refused []plan.Refused
	budget  *budget
	// spread is what Spreads says of it, if it is none for requests.
	spread        []plan.SpreadPart
	proxyProtocol bool
}

func newPools(newTarget func(targetKey) *target, readOwn func() (map[netip.Addr]bool, error), spreadChanged func()) *pools {
	return &pools{newTarget: newTarget, readOwn: readOwn, spreadChanged: spreadChanged, inputs: map[plan.PoolID]plan.PoolInput{}, targets: map[targetKey]*target{}}
}

// get returns a pool as it is now; false if there is none.
func (o *pools) get(id plan.PoolID) (*pool, bool) {
	v, ok := o.current.Load(id)
	if !ok {
		return nil, false
	}
	return v.(*pool), true
}

// refresh takes a pool as it is now: it may have changed because of what just happened.
func (o *pools) refresh(one **pool) {
	if now, ok := o.get((*one).id); ok {
		*one = now
	}
}

// ids returns those of all pools.
func (o *pools) ids() []plan.PoolID {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.inputs))
}

// explained returns a pool as it is now, with all that explains it, which is not kept.
func (o *pools) explained(id plan.PoolID) (plan.Pool, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.inputs[id]; !ok {
		return plan.Pool{}, false
	}
	return o.decided(id), true
}

// set has a pool decided from these values, whose Health and Own are not looked at.
func (o *pools) set(in plan.PoolInput) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inputs[in.ID] = in
	o.decide(in.ID)
}

// drop forgets a pool.
func (o *pools) drop(id plan.PoolID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if v, ok := o.current.LoadAndDelete(id); ok {
		delete(o.inputs, id)
		o.release(v.(*pool))
		observeRefused(v.(*pool), nil)
	}
}

// decided decides a pool from what is known of its targets. The caller holds the lock.
func (o *pools) decided(id plan.PoolID) plan.Pool {
	in := o.inputs[id]
	in.Own = o.own
	first := plan.DecidePool(in) // which targets there are
	if in.Health = o.healthOf(first); len(in.Health) == 0 {
		return first
	}
	return plan.DecidePool(in)
}

// decide decides a pool and swaps it in. The caller holds the lock.
func (o *pools) decide(id plan.PoolID) {
	decided := o.decided(id)
	next := &pool{id: id, refused: decided.Refused, targets: make([]*target, len(decided.Parts)), shares: make([]float64, len(decided.Parts))}
	for i, part := range decided.Parts {
		next.targets[i], next.shares[i] = o.targetFor(part.Target, &decided), part.Share
		next.targets[i].pools++
	}
	if id.TCP || id.UDP {
		next.spread, next.proxyProtocol = spreadOf(&decided), decided.ProxyProtocol
		defer o.spreadChanged()
	}
	was, ok := o.get(id)
	if !ok {
		next.budget = newBudget()
		o.current.Store(id, next)
		observeRefused(nil, next)
		return
	}
	next.budget = was.budget
	o.current.Store(id, next)
	o.release(was)
	observeRefused(was, next)
}

// healthOf returns the health of those targets of which something is known. The caller holds the lock.
func (o *pools) healthOf(of plan.Pool) map[plan.Target]plan.Health {
	var all map[plan.Target]plan.Health
	for _, part := range of.Parts {
		t := o.targetFor(part.Target, &of)
		t.mu.Lock()
		if h := t.view(time.Now()); h != (plan.Health{}) {
			if all == nil {
				all = map[plan.Target]plan.Health{}
			}
			all[part.Target] = h
		}
		t.mu.Unlock()
	}
	return all
}

// health returns what is known against targets. Of one that several pools check in different ways, the worst counts.
func (o *pools) health() map[plan.Target]plan.Health {
	all := map[plan.Target]plan.Health{}
	for _, t := range o.allTargets() {
		t.mu.Lock()
		h := t.view(time.Now())
		t.mu.Unlock()
		if was := all[t.Target]; h.Failing || (h.Ejected || h.Silent) && !was.Failing {
			all[t.Target] = h
		}
	}
	return all
}

// targetFor returns the target of a pool at an address, which pools that speak to it and check it alike share. The caller holds the lock.
func (o *pools) targetFor(at plan.Target, of *plan.Pool) *target {
	var check v1beta1.DNSHealthCheck
	if of.Check != nil {
		check = *of.Check
	}
	key := targetKey{Target: at, Protocol: of.Protocol, check: unique.Make(check), proxyProtocol: of.ProxyProtocol, serverName: of.ServerName, checkPort: of.CheckPort}
	t := o.targets[key]
	if t == nil {
		t = o.newTarget(key)
		t.checked = time.Now().Add(-time.Duration(rand.Int64N(int64(idlePeriod)))) // checks are spread
		o.targets[key] = t
	}
	return t
}

// release forgets the targets of a pool that is not used any more, unless other pools have them. The caller holds the lock.
func (o *pools) release(was *pool) {
	for _, t := range was.targets {
		if t.pools--; t.pools > 0 {
			continue
		}
		delete(o.targets, t.targetKey)
		t.mu.Lock()
		t.gone = true
		failing := t.failing
		t.mu.Unlock()
		if failing {
			observeOut(t.Cluster, false)
		}
		t.closeIdle(true)
	}
}

// of returns the pools that have one of the targets. They are few that change, so nothing is kept for that. The caller holds the lock.
func (o *pools) of(has func(*target) bool) (all []*pool) {
	for id := range o.inputs {
		if one, ok := o.get(id); ok && slices.ContainsFunc(one.targets, has) {
			all = append(all, one)
		}
	}
	return all
}

// allTargets returns all targets.
func (o *pools) allTargets() []*target {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.targets))
}

// uses reports whether a pool sends something to a target.
func (o *pools) uses(t *target) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, one := range o.of(func(other *target) bool { return other == t }) {
		for i := range one.targets {
			if one.targets[i] == t && one.shares[i] > 0 {
				return true
			}
		}
	}
	return false
}

// decideOf decides the pools of a target again.
func (o *pools) decideOf(t *target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, one := range o.of(func(other *target) bool { return other == t }) {
		o.decide(one.id)
	}
}

// decideMoving decides those pools again whose targets warm up, or were ejected for long enough.
func (o *pools) decideMoving() {
	o.mu.Lock()
	defer o.mu.Unlock()
	moving := map[*target]bool{}
	for _, t := range o.targets {
		t.mu.Lock()
		if !t.back.IsZero() || !t.ejectedUntil.IsZero() {
			moving[t] = true
		}
		t.mu.Unlock()
	}
	if len(moving) == 0 {
		return
	}
	for _, one := range o.of(func(t *target) bool { return moving[t] }) {
		o.decide(one.id)
	}
}

// pick returns the target of the next request, or try, which goes to another cluster than those before; nil if there is none.
func (o *pool) pick(before []*target) *target {
	tried := func(t *target) bool {
		return slices.ContainsFunc(before, func(b *target) bool { return b.Cluster == t.Cluster })
	}
	var sum float64
	for i, share := range o.shares {
		if share > 0 && (len(before) == 0 || !tried(o.targets[i])) {
			sum += share
		}
	}
	at, last := rand.Float64()*sum, (*target)(nil)
	for i, share := range o.shares {
		if share > 0 && (len(before) == 0 || !tried(o.targets[i])) {
			last = o.targets[i]
			if at -= share; at < 0 {
				return last
			}
		}
	}
	if last != nil { // a rounding error
		return last
	}
	for _, t := range o.targets {
		if !tried(t) {
			return t
		}
	}
	return nil
}

// budget bounds retries to a fifth of requests, beside some that are always allowed. It counts in fifths.
type budget struct{ left atomic.Int64 }

const (
	retryCost = 5
	// retriesAtRest are allowed without any request before; mostRetries is how many can be saved up.
	retriesAtRest, mostRetries = 200, 5000
)

func newBudget() *budget {
	b := &budget{}
	b.left.Store(retriesAtRest * retryCost)
	return b
}

func (b *budget) earn() {
	if b.left.Add(1) > mostRetries*retryCost {
		b.left.Add(-1)
	}
}

func (b *budget) spend() bool {
	if b.left.Add(-retryCost) < 0 {
		b.left.Add(retryCost)
		return false
	}
	return true
}
