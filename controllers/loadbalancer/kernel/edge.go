package kernel

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"federation/controllers/loadbalancer/plan"
	"federation/controllers/supervisor"
	"federation/nodeagent/conntrack"
	"federation/nodeagent/nftables"
	"federation/nodeagent/ruleset"
)

// Writer brings ports into the kernel, and counts: nodeagent/nftables.
type Writer interface {
	Sync(ctx context.Context, node *ruleset.Node, ports []*ruleset.Port) error
	Write(ctx context.Context, node *ruleset.Node, changes []ruleset.PortChange) error
	Counts() (map[nftables.Backend]nftables.Count, error)
	Cleanup(ctx context.Context) error
	Watch(ctx context.Context, lost func()) error
}

// Flows ends flows: nodeagent/conntrack.
type Flows interface {
	Remove(changes []ruleset.PortChange) (int, error)
	End(of []conntrack.Answered) ([]conntrack.Flow, error)
	Open(to []ruleset.FrontendKey) (int, error)
}

// Proxy is whose pools are used.
type Proxy interface {
	Spreads() []plan.Spread
	Delivered(id plan.PoolID, at plan.Target, taken bool, undelivered int)
}

// Options are what an Edge is made of.
type Options struct {
	Settings
	Proxy  Proxy
	Writer Writer
	Flows  Flows
	Claim  *Claim
	// Drain is how long connections may go on after the end of Run.
	Drain time.Duration
}

const (
	// lookEvery is the time between two looks at the counters, lookSeldom where there are more than manyCounters.
	lookEvery, lookSeldom = 200 * time.Millisecond, time.Second
	manyCounters          = 1000
	// yieldFor is how long another process has to take the claim over, retryAfter the time between two tries to write.
	yieldFor, retryAfter = time.Second, time.Second
)

// Edge keeps the kernel in line with the proxy's pools. Make it with New.
type Edge struct {
	Options
	wake supervisor.Wake

	mu sync.Mutex
	// lost: what the kernel has is not known. changed: it may not be what it is to have.
	lost, changed bool
	// yielding is until when another process may take the claim.
	yielding time.Time

	// The following belong to the goroutine of run.
	holds bool
	// failed is when rules could not be written last.
	failed time.Time
	// written are the ports in the kernel, targets what their backends are of.
	written map[portKey]*ruleset.Port
	targets map[nftables.Backend]targetOf
	watched map[nftables.Backend]*watched
	// ended are the flows of lost targets that have been ended.
	ended map[conntrack.Answered]bool
	// looked is when counters were read last; zero: counts of what went before are still to be left out.
	looked time.Time
}

// targetOf is a target and its pool.
type targetOf struct {
	pool plan.PoolID
	plan.Target
}

// New makes an edge. It does no I/O.
func New(o Options) *Edge {
	return &Edge{Options: o, wake: supervisor.NewWake(), lost: true, written: map[portKey]*ruleset.Port{}, targets: map[nftables.Backend]targetOf{}, watched: map[nftables.Backend]*watched{}, ended: map[conntrack.Answered]bool{}}
}

// Changed has the edge look at the pools again. It returns at once.
func (e *Edge) Changed() {
	e.mu.Lock()
	e.changed = true
	e.mu.Unlock()
	e.wake.Signal()
}

// Yield lets another process take over, which goes on from the rules as they are. If none does, this one goes on.
func (e *Edge) Yield() {
	e.mu.Lock()
	e.yielding = time.Now().Add(yieldFor)
	e.mu.Unlock()
	e.wake.Signal()
}

// Run works until ctx ends. Then the rules go, unless another process has taken them over: at first those for new connections, and the rest, without which the
// kernel does not know the others any more, when these have ended, or after Drain.
func (e *Edge) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(supervisor.Kept(ctx, "loadbalancer", func(ctx context.Context) {
		if err := e.Writer.Watch(ctx, e.resync); err != nil {
			klog.ErrorS(err, "Changes of the rules by others are not seen any more")
			<-ctx.Done()
		}
	}))
	running.Go(supervisor.Kept(ctx, "loadbalancer", e.run))
}

func (e *Edge) run(ctx context.Context) {
	e.resync() // after a panic nobody knows
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			e.leave(context.WithoutCancel(ctx))
			return
		case <-e.wake:
		case <-ticks.C:
			e.look(time.Now())
		}
		if e.claim() && e.isDue() {
			e.program(ctx)
		}
	}
}

// leave removes the rules, if they are this process's.
func (e *Edge) leave(ctx context.Context) {
	defer observeActive(false)
	if !e.Claim.Take() {
		return
	}
	defer e.Claim.Release()
	var frontends []ruleset.FrontendKey
	for _, p := range e.written {
		frontends = append(frontends, p.Frontends[0].Key)
	}
	err := e.write(ctx, true, nil, nil)
	for end := time.Now().Add(e.Drain); err == nil && time.Now().Before(end); time.Sleep(lookEvery) {
		var open int
		if open, err = e.Flows.Open(frontends); open == 0 {
			break
		}
	}
	if err = errors.Join(err, e.Writer.Cleanup(ctx)); err != nil {
		klog.ErrorS(err, "Cannot remove the rules of Services from the kernel in order")
	}
}

func (e *Edge) resync() {
	e.setLost()
	e.wake.Signal()
}

func (e *Edge) setLost() {
	e.mu.Lock()
	e.lost = true
	e.mu.Unlock()
}

// isDue reports whether there is something to write.
func (e *Edge) isDue() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return (e.lost || e.changed) && time.Since(e.failed) >= retryAfter
}

// claim reports whether this process writes the rules.
func (e *Edge) claim() bool {
	e.mu.Lock()
	yields := time.Now().Before(e.yielding)
	e.mu.Unlock()
	had := e.holds
	if e.holds = !yields && e.Claim.Take(); !e.holds {
		e.Claim.Release()
	}
	if e.holds != had {
		klog.InfoS("The kernel passes connections to Services on", "byThisProcess", e.holds)
		observeActive(e.holds)
		e.setLost() // another process may have written
		e.looked = time.Time{}
		clear(e.watched)
	}
	return e.holds
}

// program brings what has changed into the kernel, and ends the flows of lost targets.
func (e *Edge) program(ctx context.Context) {
	e.mu.Lock()
	lost := e.lost
	e.lost, e.changed = false, false // what changes from now on is for the next time
	e.mu.Unlock()
	spreads := e.Proxy.Spreads()
	want := e.Ports(spreads)
	changes := ruleset.ChangesOf(e.written, want)
	if err := e.write(ctx, lost, want, changes); err != nil {
		if ctx.Err() == nil {
			failures.Inc()
			klog.ErrorS(err, "Cannot write the rules of Services into the kernel, will retry")
		}
		e.failed = time.Now()
		e.setLost()
		return
	}
	e.written = want
	if _, err := e.Flows.Remove(changes); err != nil {
		klog.ErrorS(err, "Cannot end flows of datagrams whose cluster is gone")
	}
	e.noteTargets(spreads)
	e.endLost(spreads)
}

// write writes the ports; all of them where it is lost what the kernel has.
func (e *Edge) write(ctx context.Context, lost bool, want map[portKey]*ruleset.Port, changes []ruleset.PortChange) error {
	node := &ruleset.Node{Federated: true, Balancer: true} // its hooks come before those of a service proxy on this machine
	if lost {
		return e.Writer.Sync(ctx, node, slices.Collect(maps.Values(want)))
	}
	if len(changes) == 0 {
		return nil
	}
	return e.Writer.Write(ctx, node, changes)
}

// noteTargets notes what the counters of backends are of.
func (e *Edge) noteTargets(spreads []plan.Spread) {
	clear(e.targets)
	for i := range spreads {
		for _, t := range spreads[i].Parts {
			e.targets[nftables.Backend{Protocol: protocolOf(&spreads[i]), Addr: t.Address}] = targetOf{spreads[i].Pool, t.Target}
		}
	}
	maps.DeleteFunc(e.watched, func(b nftables.Backend, _ *watched) bool { return e.targets[b] == (targetOf{}) })
}

// endLost ends the flows to targets that are lost now and were not before.
func (e *Edge) endLost(spreads []plan.Spread) {
	lost, fresh := map[conntrack.Answered]bool{}, []conntrack.Answered(nil)
	for i := range spreads {
		for _, t := range spreads[i].Parts {
			a := conntrack.Answered{To: e.frontend(&spreads[i], t.Address.Addr().Is6()), By: t.Address}
			if !t.Lost || !e.serves(a.To.IPv6) {
				continue
			}
			if lost[a] = true; !e.ended[a] {
				fresh = append(fresh, a)
			}
		}
	}
	e.ended = lost
	e.end(fresh)
}

// end ends flows, and has their clients learn it.
func (e *Edge) end(of []conntrack.Answered) {
	flows, err := e.Flows.End(of)
	if err != nil {
		klog.ErrorS(err, "Cannot end all flows to targets that do not answer, will retry where these are lost")
		for _, a := range of {
			delete(e.ended, a)
		}
		e.failed = time.Now()
		e.Changed()
	}
	for _, f := range flows {
		observeEnded(f.Protocol)
	}
	if err := ProvokeResets(flows); err != nil {
		klog.V(2).InfoS("Clients whose connections were ended learn it when they next send something", "connections", len(flows), "reason", err)
	}
}

// look takes in the counters, if it is time to.
func (e *Edge) look(now time.Time) {
	if !e.holds || len(e.written) == 0 || len(e.watched) > manyCounters && now.Sub(e.looked) < lookSeldom {
		return
	}
	counts, err := e.Writer.Counts()
	if err != nil {
		klog.ErrorS(err, "Cannot read how many connections went where")
		return
	}
	first := e.looked.IsZero()
	e.looked = now
	if unanswered := e.takeIn(counts, first, now); len(unanswered) > 0 {
		e.program(context.Background()) // first they get no new ones
		e.end(unanswered)
	}
	for b, w := range e.watched {
		if t := e.targets[b]; now.Sub(w.asked) < busyFor {
			e.Proxy.Delivered(t.pool, t.Target, false, 0)
		}
	}
}

// takeIn tells the proxy what counters say, and returns flows that are not answered.
func (e *Edge) takeIn(counts map[nftables.Backend]nftables.Count, first bool, now time.Time) (unanswered []conntrack.Answered) {
	for b, count := range counts {
		t, known := e.targets[b]
		if !known {
			continue
		}
		w := e.watched[b]
		if w == nil {
			w = &watched{}
			e.watched[b] = w
		}
		if first { // another process has seen these
			w.last, w.asked = count, now
			continue
		}
		o := w.note(count, b.Protocol, now)
		observeOutcome(t.pool.Key(), t.Cluster, b.Protocol, o)
		if o.taken > 0 || o.undelivered > 0 {
			e.Proxy.Delivered(t.pool, t.Target, o.taken > 0, o.undelivered)
		}
		if o.unanswered {
			unanswered = append(unanswered, conntrack.Answered{To: ruleset.FrontendKey{Addr: e.Address, IPv6: b.Addr.Addr().Is6(), Protocol: corev1.ProtocolTCP, Port: b.Addr.Port()}, By: b.Addr, Unanswered: true})
		}
	}
	return unanswered
}
