package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/controllers/servicedns/probe"
	"federation/controllers/supervisor"
)

// Options are what a Proxy needs.
type Options struct {
	// Trusted are the peers whose X-Forwarded-For, Forwarded and PROXY headers are believed. Default: nobody.
	Trusted []netip.Prefix
	// Roots are the authorities of clusters' certificates. Default: the system's.
	Roots *x509.CertPool
	// Refuse returns an error for addresses that are not dialed. Default: v1beta1.RefuseAddress.
	Refuse func(netip.Addr) error
	// OwnAddresses returns the addresses of this machine that are no targets. Nil: there are none.
	OwnAddresses func() (map[netip.Addr]bool, error)
	// AccessLog gets a line of JSON for each request. Nil: none is written.
	AccessLog io.Writer
	// Changed, if set, is called when a target begins to fail its checks, is ejected, or is back. why is empty for the last.
	Changed func(t plan.Target, why string)
}

// Proxy sends requests to clusters. Make it with New.
type Proxy struct {
	Options
	started time.Time
	ask     func(context.Context, servicednsplan.Target) error
	routing atomic.Pointer[routing]
	// draining: answers ask clients to close their connections.
	draining atomic.Bool

	// pools has *pool by plan.PoolID; requests read it.
	pools sync.Map
	log   *accessLog
	// tunnels are what Shutdown of each server waits for.
	tunnels tunnels
	// streams takes the connections to ports of Services; nil: nothing does.
	streams atomic.Pointer[Streams]

	mu sync.Mutex
	// inputs are what pools are decided from, without health.
	inputs  map[plan.PoolID]plan.PoolInput
	targets map[targetKey]*target
	// own are the addresses of this machine, as looked at last.
	own map[netip.Addr]bool
}

// routing is what Routes and certificates say, swapped as one.
type routing struct {
	table *plan.Table
	certs map[string]*tls.Certificate
}

// New makes a proxy without routes: it answers 404.
func New(o Options) *Proxy {
	if o.Refuse == nil {
		o.Refuse = v1beta1.RefuseAddress
	}
	if o.Changed == nil {
		o.Changed = func(plan.Target, string) {}
	}
	p := &Proxy{
		Options: o, started: time.Now(), ask: probe.Asker(o.Roots, o.Refuse),
		inputs: map[plan.PoolID]plan.PoolInput{}, targets: map[targetKey]*target{},
	}
	p.routing.Store(&routing{table: plan.Routes(plan.World{})})
	if o.AccessLog != nil {
		p.log = newAccessLog(o.AccessLog)
	}
	return p
}

// Run checks targets and writes the access log until ctx ends.
func (p *Proxy) Run(ctx context.Context) {
	if p.log != nil {
		var writing sync.WaitGroup
		defer writing.Wait()
		writing.Go(supervisor.Kept(ctx, "loadbalancer", p.log.run))
	}
	p.runHealth(ctx)
}

// clock is in nanoseconds since the proxy was made.
func (p *Proxy) clock() int64 { return int64(time.Since(p.started)) }

// SetRoutes has requests routed by a table, with certificates by the namespace/name of their Secrets.
func (p *Proxy) SetRoutes(table *plan.Table, certs map[string]*tls.Certificate) {
	p.routing.Store(&routing{table, certs})
	if s := p.streams.Load(); s != nil {
		s.listenAll()
	}
}

// Table returns the table in use.
func (p *Proxy) Table() *plan.Table { return p.routing.Load().table }

// Pool returns a pool as it is now, with all that explains it, which is not kept.
func (p *Proxy) Pool(id plan.PoolID) (plan.Pool, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.inputs[id]; !ok {
		return plan.Pool{}, false
	}
	return p.decided(id), true
}

// SetPool has a pool decided from these values, whose Health is the proxy's own.
func (p *Proxy) SetPool(in plan.PoolInput) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inputs[in.ID] = in
	p.decide(in.ID)
}

// DropPool forgets a pool.
func (p *Proxy) DropPool(id plan.PoolID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, ok := p.pools.LoadAndDelete(id); ok {
		delete(p.inputs, id)
		p.release(v.(*pool))
		observeRefused(v.(*pool), nil)
	}
}

// Pools returns the ids of all pools.
func (p *Proxy) Pools() []plan.PoolID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.inputs))
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
}

// decided decides a pool from what is known of its targets. The caller holds the lock.
func (p *Proxy) decided(id plan.PoolID) plan.Pool {
	in := p.inputs[id]
	in.Own = p.own
	first := plan.DecidePool(in) // which targets there are
	if in.Health = p.healthOf(first); len(in.Health) == 0 {
		return first
	}
	return plan.DecidePool(in)
}

// decide decides a pool and swaps it in. The caller holds the lock.
func (p *Proxy) decide(id plan.PoolID) {
	decided := p.decided(id)
	next := &pool{id: id, refused: decided.Refused, targets: make([]*target, len(decided.Parts)), shares: make([]float64, len(decided.Parts))}
	for i, part := range decided.Parts {
		next.targets[i], next.shares[i] = p.targetFor(part.Target, &decided), part.Share
		next.targets[i].pools++
	}
	before, ok := p.pools.Load(id)
	if !ok {
		next.budget = newBudget()
		p.pools.Store(id, next)
		observeRefused(nil, next)
		return
	}
	was := before.(*pool)
	next.budget = was.budget
	p.pools.Store(id, next)
	p.release(was)
	observeRefused(was, next)
}

// healthOf returns the health of those targets of which something is known. The caller holds the lock.
func (p *Proxy) healthOf(of plan.Pool) map[plan.Target]plan.Health {
	var all map[plan.Target]plan.Health
	for _, part := range of.Parts {
		t := p.targetFor(part.Target, &of)
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

// Health returns what is known against targets. Of one that several pools check in different ways, the worst counts.
func (p *Proxy) Health() map[plan.Target]plan.Health {
	all := map[plan.Target]plan.Health{}
	for _, t := range p.allTargets() {
		t.mu.Lock()
		h := t.view(time.Now())
		t.mu.Unlock()
		if was := all[t.Target]; h.Failing || (h.Ejected || h.Silent) && !was.Failing {
			all[t.Target] = h
		}
	}
	return all
}

func (p *Proxy) targetFor(at plan.Target, of *plan.Pool) *target {
	var check v1beta1.DNSHealthCheck
	if of.Check != nil {
		check = *of.Check
	}
	key := targetKey{Target: at, Protocol: of.Protocol, check: unique.Make(check), proxyProtocol: of.ProxyProtocol, serverName: of.ServerName}
	t := p.targets[key]
	if t == nil {
		t = newTarget(p, key)
		t.checked = time.Now().Add(-time.Duration(rand.Int64N(int64(idlePeriod)))) // checks are spread
		p.targets[key] = t
	}
	return t
}

// release forgets the targets of a pool that is not used any more, unless other pools have them. The caller holds the lock.
func (p *Proxy) release(was *pool) {
	for _, t := range was.targets {
		if t.pools--; t.pools > 0 {
			continue
		}
		delete(p.targets, t.targetKey)
		t.mu.Lock()
		t.gone = true
		t.mu.Unlock()
		t.closeIdle(true)
	}
}

// poolsOf returns the pools that have one of the targets. They are few that change, so nothing is kept for that. The caller holds the lock.
func (p *Proxy) poolsOf(has func(*target) bool) (all []*pool) {
	for id := range p.inputs {
		if v, ok := p.pools.Load(id); ok && slices.ContainsFunc(v.(*pool).targets, has) {
			all = append(all, v.(*pool))
		}
	}
	return all
}

// allTargets returns all targets.
func (p *Proxy) allTargets() []*target {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.targets))
}

// changed decides the pools of a target again whose checks began to fail, or to pass.
func (p *Proxy) changed(t *target, failing bool, err error) {
	p.decideOf(t)
	if failing && !p.isUsed(t) {
		t.endStreams()
	}
	why := ""
	if failing {
		why = "its checks fail: " + probe.Why(err)
	}
	observeOut(t.Cluster, failing)
	p.Changed(t.Target, why)
}

// ejected decides the pools of a target again that was ejected.
func (p *Proxy) ejected(t *target) {
	p.decideOf(t)
	ejections.WithLabelValues(t.Cluster).Inc()
	p.Changed(t.Target, "requests failed there")
}

// isUsed reports whether a pool sends something to a target.
func (p *Proxy) isUsed(t *target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.poolsOf(func(other *target) bool { return other == t }) {
		for i := range o.targets {
			if o.targets[i] == t && o.shares[i] > 0 {
				return true
			}
		}
	}
	return false
}

func (p *Proxy) decideOf(t *target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.poolsOf(func(other *target) bool { return other == t }) {
		p.decide(o.id)
	}
}

// recompute decides those pools again whose targets warm up, or were ejected for long enough.
func (p *Proxy) recompute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	moving := map[*target]bool{}
	for _, t := range p.targets {
		t.mu.Lock()
		if !t.back.IsZero() || !t.ejectedUntil.IsZero() {
			moving[t] = true
		}
		t.mu.Unlock()
	}
	if len(moving) == 0 {
		return
	}
	for _, o := range p.poolsOf(func(t *target) bool { return moving[t] }) {
		p.decide(o.id)
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

// isTrusted reports whether a peer's word on clients counts.
func (p *Proxy) isTrusted(addr netip.Addr) bool {
	return slices.ContainsFunc(p.Trusted, func(n netip.Prefix) bool { return n.Contains(addr.Unmap()) })
}

func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
