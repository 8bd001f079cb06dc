package nodeagent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/nodeagent/ruleset"
)

// Writer brings a ruleset into the kernel.
type Writer interface {
	// Sync makes the kernel hold the rules of these Ports and no other rules of ours.
	Sync(ctx context.Context, node *ruleset.Node, ports []*ruleset.Port) error
	// Write applies the changes since the last Sync or Write. After an error Sync follows.
	Write(ctx context.Context, node *ruleset.Node, changes []ruleset.PortChange) error
}

// Config configures an agent.
type Config struct {
	// Services, EndpointSlices and Nodes are watched: of the Nodes only the one of this name; headless Services and
	// their slices may be left out.
	Services, EndpointSlices, Nodes cache.ListerWatcher
	NodeName                        string
	// Node returns what the rules need of the node. It is called at the start (with nil) and when the Node changes.
	Node   func(*corev1.Node) (ruleset.Node, error)
	Writer Writer
	// Watch calls lost when somebody else has removed our rules, until ctx ends. Nil: nobody checks.
	Watch func(ctx context.Context, lost func())
	// Flows ends flows to removed backends. It is called concurrently with the next write. Nil: flows stay.
	Flows func(ctx context.Context, changes []ruleset.PortChange)
	// Leases are watched for the one by which a drill makes the node drop traffic to Services from outside. Blackhole
	// makes the kernel do so until a time. Nil: drills cannot.
	Leases    cache.ListerWatcher
	Blackhole func(ctx context.Context, until time.Time) error
	// Started is called, in a goroutine, when the first write is done or has failed. Optional.
	Started func()
	// MinSyncPeriod is the least time between two writes; 0: none.
	MinSyncPeriod time.Duration
	// Retry is how long to wait after a write that failed; 0: a second.
	Retry time.Duration
}

// Agent serves one node.
type Agent struct {
	Config
	Health *Health

	mu      sync.Mutex // guards what follows; not held during a write
	model   *ruleset.Model
	touched map[ruleset.Key]bool
	lost    bool // Sync instead of Write
	changed []time.Time
	arrived time.Time            // of the first change since the last write; zero: there was none
	unended []ruleset.PortChange // of a failed write: their flows are still to be ended
	wake    chan struct{}
	dark    ruleset.Blackhole
	asked   chan struct{} // dark has changed
	flows   chan []ruleset.PortChange
}

// New returns an agent that has seen nothing yet.
func New(c Config) (*Agent, error) {
	node, err := c.Node(nil)
	if err != nil {
		return nil, err
	}
	if c.Retry == 0 {
		c.Retry = time.Second
	}
	return &Agent{
		Config: c, Health: newHealth(), model: ruleset.New(node), touched: map[ruleset.Key]bool{}, lost: true,
		wake: make(chan struct{}, 1), asked: make(chan struct{}, 1), flows: make(chan []ruleset.PortChange, 16),
	}, nil
}

// Run serves the node until ctx ends. The rules stay. The error is that of the first watch; later ones are logged.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.watch(ctx); err != nil {
		return err
	}
	var group sync.WaitGroup
	defer group.Wait()
	if a.Flows != nil {
		group.Go(func() { a.endFlows(ctx) })
	}
	a.write(ctx) // everything, at once
	if a.Started != nil {
		group.Go(a.Started)
	}
	if a.Watch != nil {
		group.Go(func() { a.Watch(ctx, a.resync) })
	}
	for {
		select {
		case <-ctx.Done():
			a.Health.close()
			return nil
		case <-a.asked:
			a.setBlackhole(ctx)
			continue
		case <-a.wake:
			a.write(ctx)
		}
		a.rest(ctx, a.MinSyncPeriod)
	}
}

// enqueueChanged enqueues Services that may have changed.
func (a *Agent) enqueueChanged(triggered time.Time, change func(*ruleset.Model) []ruleset.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range change(a.model) {
		a.touched[k] = true
	}
	if a.arrived.IsZero() {
		a.arrived = time.Now()
	}
	if !triggered.IsZero() {
		a.changed = append(a.changed, triggered)
	}
	a.wakeUp()
}

// resync schedules a Sync because somebody else has changed our rules.
func (a *Agent) resync() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost = true
	a.wakeUp()
}

func (a *Agent) wakeUp() {
	a.Health.queued()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// work is what to write now.
type work struct {
	node    ruleset.Node
	change  ruleset.Change
	all     []*ruleset.Port // of a Sync
	sync    bool
	checks  map[ruleset.Key]healthCheck
	changed []time.Time
	arrived time.Time
	flows   []ruleset.PortChange // changes since flows were last ended
}

// takeWork returns what to write, and clears it.
func (a *Agent) takeWork() work {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := work{node: *a.model.Node(), sync: a.lost, changed: a.changed, arrived: a.arrived, checks: map[ruleset.Key]healthCheck{}}
	w.change = a.model.Update(slices.Collect(maps.Keys(a.touched))...)
	w.flows = append(a.unended, w.change.Ports...)
	if w.sync {
		w.all = a.model.Ports()
	}
	for k := range a.touched {
		w.checks[k] = checkOf(a.model.PortsOf(k))
	}
	a.touched, a.changed, a.unended, a.arrived, a.lost = map[ruleset.Key]bool{}, nil, nil, time.Time{}, false
	return w
}

// write writes the pending changes into the kernel.
func (a *Agent) write(ctx context.Context) {
	w := a.takeWork()
	for _, reason := range w.change.Reasons {
		klog.InfoS("A Service cannot be served as it asks", "reason", reason)
	}
	for _, reason := range w.change.Skipped {
		klog.V(2).InfoS("Not served", "reason", reason)
	}
	start := time.Now()
	err := a.put(ctx, w)
	if err == nil {
		observeWrite(w, start)
		a.Health.set(w.checks)
		a.Health.written()
		if a.Flows != nil && len(w.flows) > 0 {
			select {
			case a.flows <- w.flows:
			case <-ctx.Done():
			}
		}
		return
	}
	if ctx.Err() != nil {
		return
	}
	failures.Inc()
	klog.ErrorS(err, "Failed to write rules, will read the kernel's and write again", "in", a.Retry)
	a.rest(ctx, a.Retry)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost, a.unended = true, w.flows
	for k := range w.checks {
		a.touched[k] = true
	}
	a.changed, a.arrived = append(w.changed, a.changed...), w.arrived
	a.wakeUp()
}

func (a *Agent) put(ctx context.Context, w work) error {
	switch {
	case w.sync:
		return a.Writer.Sync(ctx, &w.node, w.all)
	case len(w.change.Ports) == 0:
		return nil
	}
	return a.Writer.Write(ctx, &w.node, w.change.Ports)
}

// endFlows ends stale flows batch by batch, concurrently with writes.
func (a *Agent) endFlows(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case changes := <-a.flows:
			a.Flows(ctx, changes)
		}
	}
}

func (a *Agent) rest(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// setNode takes in the Node. If what the rules need of it has changed, it rebuilds all of them.
func (a *Agent) setNode(n *corev1.Node) {
	node, err := a.Node(n)
	if err != nil {
		klog.ErrorS(err, "Cannot use the Node; the rules stay", "node", n.Name)
		return
	}
	a.mu.Lock()
	same := fmt.Sprint(node) == fmt.Sprint(*a.model.Node())
	a.lost = a.lost || !same
	a.mu.Unlock()
	if !same {
		a.enqueueChanged(time.Time{}, func(m *ruleset.Model) []ruleset.Key { return m.SetNode(node) })
	}
}
