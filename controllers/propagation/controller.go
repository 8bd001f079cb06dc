package propagation

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"federation/controllers/propagation/plan"
	"federation/controllers/supervisor"
	"federation/controllers/tracing"
)

// Informers returns informers that are shared with others, which start them.
type Informers func(schema.GroupVersionResource) cache.SharedIndexInformer

// Options configure a Controller. All but the last eight are required.
type Options struct {
	// Client writes to the federation.
	Client dynamic.Interface
	// Informers are the federation's.
	Informers Informers
	// Federation is the UID of the federation.
	Federation string
	// Recorder takes events about federated objects.
	Recorder record.EventRecorder
	// Workers is the number of parallel writes to each member; default 16.
	Workers int
	// WriteTimeout bounds one write to a member; default 10 s.
	WriteTimeout time.Duration
	// Reports is the sustained rate of status writes to the federation per second; default 30.
	Reports int
	// Unmade is how long a member must have failed to create pods before it counts; default 60 s.
	Unmade time.Duration
	// Kinds are the propagated kinds; default plan.Kinds.
	Kinds []plan.Kind
	// Owns reports whether this controller owns an object. It ignores other objects and does not touch their copies.
	// The answer for an object must not change while the controller runs. Default: all.
	Owns func(kind *plan.Kind, namespace, name string) bool
	// Shared: other controllers own other objects of these kinds.
	Shared bool
	// Spans records what becomes of traced writes; default none.
	Spans *tracing.Spans
	// ObjectMetrics is the most time series of metrics of objects; default none.
	ObjectMetrics int
}

// Member is a live connection to a member cluster.
type Member struct {
	Name   string
	Client dynamic.Interface
	// Informers are the member's, limited to objects with our label.
	Informers Informers
	// HeartbeatsStale reports whether the heartbeats of the member's nodes are stale since it was away (ADR 56). It is
	// known here before the Cluster's status has it. Optional.
	HeartbeatsStale func() bool
}

// key identifies a federated object and its copies.
type key = plan.Key

// Controller propagates federated objects to members.
type Controller struct {
	*triggers
	snapshots *snapshots
	dispatch  *dispatcher
	metrics   *objectMetrics
	serving   *supervisor.Group // the work in all members
}

// New makes a controller and subscribes it to the federation's informers.
func New(o Options) (*Controller, error) {
	c := newController(o.withDefaults())
	registerMetrics()
	var errs []error
	for i := range c.Kinds {
		errs = append(errs, c.subscribe(&c.Kinds[i]))
	}
	errs = append(errs, c.watchPolicies(), c.watchAutoscalers(), c.watchClusters())
	if err := errors.Join(errs...); err != nil {
		c.unlisten()
		c.shutDown()
		return nil, err
	}
	return c, nil
}

func (o Options) withDefaults() Options {
	if o.Workers == 0 {
		o.Workers = 16
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = 10 * time.Second
	}
	if o.Unmade == 0 {
		o.Unmade = time.Minute
	}
	if o.Kinds == nil {
		o.Kinds = plan.Kinds
	}
	if o.Owns == nil {
		o.Owns = func(*plan.Kind, string, string) bool { return true }
	}
	if o.Reports == 0 {
		o.Reports = 30
	}
	return o
}

// newController makes the parts of a controller, without starting anything.
func newController(o Options) *Controller {
	v, s := &view{Options: o}, newMembers()
	h := &hub{view: v}
	return &Controller{
		triggers:  &triggers{view: v, members: s, reporter: newReporter(v, s, h)},
		snapshots: &snapshots{view: v, members: s, hub: h},
		serving:   supervisor.NewGroup(),
		dispatch:  &dispatcher{view: v, hub: h, deletions: &deletions{view: v, hub: h}},
		metrics:   &objectMetrics{view: v, members: s, limit: o.ObjectMetrics},
	}
}

// Run works until ctx is done, and ends the work in all members with it: when it returns, no write is in flight. The
// informers must have been started.
func (c *Controller) Run(ctx context.Context) error {
	defer c.serving.End()
	defer c.unlisten()
	defer c.shutDown()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return nil // ctx ended before the start
	}
	defer c.metrics.served()()
	var reporters sync.WaitGroup
	reporters.Go(supervisor.Kept(ctx, "propagation", c.giveTurns))
	for range 4 {
		reporters.Go(func() { supervisor.ProcessQueue(ctx, "propagation", c.reports, c.syncReport) })
	}
	<-ctx.Done()
	c.shutDown()
	reporters.Wait()
	return nil
}

// shutDown shuts down the report queues. It may be called again.
func (c *Controller) shutDown() {
	c.reports.ShutDown()
	c.dues.waiting.ShutDown()
}
