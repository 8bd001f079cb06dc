package probe

import (
	"context"
	"crypto/x509"
	"maps"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
	"federation/controllers/supervisor"
)

// maxAsked bounds concurrent checks, maxOfOne those of one namespace: a namespace whose load balancers hang does not
// delay others.
const maxAsked, maxOfOne = 256, 32

// Options are what a Prober needs.
type Options struct {
	// Failing are the targets that failed at their last check, by key. They fail until they answer again.
	Failing map[string]plan.Failure
	// Trust are the trusted certificate authorities. Default: the system's.
	Trust *x509.CertPool
	// Refuse returns an error for addresses that must not be dialed. Default: v1beta1.RefuseAddress.
	Refuse func(netip.Addr) error
	// Observe, if set, is called with the outcome of each check: "ok", "failed", or "unknown" after a local error.
	Observe func(check v1beta1.DNSHealthCheckType, outcome string, took time.Duration)
}

// Prober checks targets. Make it with New.
type Prober struct {
	Options
	ask     func(context.Context, plan.Target) error
	slots   chan struct{}
	changed supervisor.Wake

	mu sync.Mutex
	// shares are the slots of namespaces.
	shares  map[string]chan struct{}
	stop    map[plan.Target]context.CancelFunc
	failing map[string]plan.Failure
}

// New makes a prober without targets.
func New(o Options) *Prober {
	if o.Observe == nil {
		o.Observe = func(v1beta1.DNSHealthCheckType, string, time.Duration) {}
	}
	if o.Refuse == nil {
		o.Refuse = v1beta1.RefuseAddress
	}
	return &Prober{
		Options: o, ask: (&asker{trust: o.Trust, refuse: o.Refuse}).probeOnce, shares: map[string]chan struct{}{}, slots: make(chan struct{}, maxAsked), changed: supervisor.NewWake(),
		stop: map[plan.Target]context.CancelFunc{}, failing: map[string]plan.Failure{},
	}
}

// Changed has an element when the set of failing targets has changed.
func (p *Prober) Changed() <-chan struct{} { return p.changed }

// Failing returns the failing targets.
func (p *Prober) Failing() (all []plan.Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.failing {
		all = append(all, f)
	}
	return all
}

// Want sets the targets to check until ctx ends. ctx must be the same in all calls.
func (p *Prober) Want(ctx context.Context, targets []plan.Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := make(map[plan.Target]bool, len(targets))
	for _, t := range targets {
		wanted[t] = true
		if p.stop[t] != nil {
			continue
		}
		s := standing{}
		if f, known := p.Options.Failing[t.Key()]; known {
			s.failing, p.failing[t.Key()] = true, f
		}
		running, stop := context.WithCancel(ctx)
		p.stop[t] = stop
		if p.shares[t.Namespace] == nil {
			p.shares[t.Namespace] = make(chan struct{}, maxOfOne)
		}
		share := p.shares[t.Namespace]
		go supervisor.Keep(running, "servicedns", func(ctx context.Context) { p.probeTarget(ctx, t, s, share) })
	}
	for t, stop := range p.stop {
		if !wanted[t] {
			stop()
			delete(p.stop, t)
			delete(p.failing, t.Key())
		}
	}
	inUse := map[string]bool{}
	for t := range wanted {
		inUse[t.Namespace] = true
	}
	maps.DeleteFunc(p.shares, func(namespace string, _ chan struct{}) bool { return !inUse[namespace] })
	p.Options.Failing = nil // the known failures apply to the first targets only
	p.changed.Signal()
}

// Again makes Changed fire again, for a consumer that failed.
func (p *Prober) Again() { p.changed.Signal() }

// probeTarget checks one target until ctx ends. share has the slots of its namespace.
func (p *Prober) probeTarget(ctx context.Context, t plan.Target, s standing, share chan struct{}) {
	interval := time.Duration(t.Check.PeriodSeconds) * time.Second
	for wait := time.Duration(rand.Int64N(int64(interval))); sleep(ctx, wait); wait = interval*9/10 + time.Duration(rand.Int64N(int64(interval/5))) {
		if !acquireSlot(ctx, share) {
			return
		}
		if !acquireSlot(ctx, p.slots) {
			<-share
			return
		}
		started := time.Now()
		err := supervisor.Protect(ctx, "servicedns", func() error { return p.ask(ctx, t) })
		<-p.slots
		<-share
		if ctx.Err() != nil {
			return
		}
		outcome := outcomeOf(err)
		p.Observe(t.Check.Type, outcome, time.Since(started))
		if outcome == unknown {
			continue
		}
		before := s
		if s = s.next(err == nil, t.Check); s.failing != before.failing {
			p.recordOutcome(ctx, t, s.failing, err)
		}
	}
}

// acquireSlot waits for a slot, and reports whether it got one before ctx ended.
func acquireSlot(ctx context.Context, slots chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case slots <- struct{}{}:
		return true
	}
}

// sleep reports whether ctx is still alive after d.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// recordOutcome records that a target fails or has recovered, unless it is no longer wanted.
func (p *Prober) recordOutcome(ctx context.Context, t plan.Target, fails bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if delete(p.failing, t.Key()); fails {
		p.failing[t.Key()] = plan.Failure{Target: t.Key(), Since: time.Now(), Why: describeError(err)}
	}
	p.changed.Signal()
}

// Outcomes of a check.
const (
	ok      = "ok"
	bad     = "failed"
	unknown = "unknown"
)

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return ok
	case isLocalError(err):
		return unknown
	}
	return bad
}

// standing is the current state of a target.
type standing struct {
	failing bool
	// streak is how many outcomes in a row contradict it.
	streak int32
}

// next returns the state after one more outcome.
func (s standing) next(ok bool, c v1beta1.DNSHealthCheck) standing {
	if ok != s.failing {
		return standing{failing: s.failing}
	}
	enough := c.FailureThreshold
	if s.failing {
		enough = c.SuccessThreshold
	}
	if s.streak++; s.streak >= enough {
		return standing{failing: !s.failing}
	}
	return s
}
