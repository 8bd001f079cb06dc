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
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"federation/controllers/propagation/plan"
	"federation/controllers/supervisor"
)

// Informers hands out informers that are shared with others and started by them.
type Informers func(schema.GroupVersionResource) cache.SharedIndexInformer

// Options are what a Controller needs. All are required but the last six.
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
	// Reports is how many statuses a second are written to the federation in the long run; default 30.
	Reports int
	// Unmade is how long a member must have failed to make pods for it to count; default 60 s.
	Unmade time.Duration
	// Kinds are those that are propagated; default plan.Federated().
	Kinds []plan.Kind
	// Owns tells which objects are this controller's. The others are as if they were not there: their copies
	// are not touched either. Its answer for an object must not change while the controller runs. Default: all.
	Owns func(kind *plan.Kind, namespace, name string) bool
	// Shared: other controllers own others of the objects of these kinds.
	Shared bool
}

// Member is a live connection to a member cluster.
type Member struct {
	Name   string
	Client dynamic.Interface
	// Informers are the member's, limited to objects that bear our mark.
	Informers Informers
	// HeartbeatsStale reports whether the nodes of the member have yet to be heard of since it was away (ADR 56). It is known here before its Cluster
	// says so. Optional: that is waited for.
	HeartbeatsStale func() bool
}

// key names a federated object, and its copies.
type key = plan.Key

// Controller propagates federated objects to members.
type Controller struct {
	*triggers
	snapshots *snapshots
	dispatch  *dispatcher
	serving   serving
}

// New makes a controller and subscribes it to the federation's informers.
func New(o Options) (*Controller, error) {
	c := assemble(o.withDefaults())
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
		o.Kinds = plan.Federated()
	}
	if o.Owns == nil {
		o.Owns = func(*plan.Kind, string, string) bool { return true }
	}
	if o.Reports == 0 {
		o.Reports = 30
	}
	return o
}

// assemble makes the parts of a controller. Nothing happens yet.
func assemble(o Options) *Controller {
	v, s := &view{Options: o}, newMembers()
	h := &hub{view: v}
	return &Controller{
		triggers:  &triggers{view: v, members: s, reporter: newReporter(v, s, h)},
		snapshots: &snapshots{view: v, members: s, hub: h},
		dispatch:  &dispatcher{view: v, hub: h, deletions: &deletions{view: v, hub: h}},
	}
}

// Run works until ctx is done, and ends the work in all members with it: when it returns, no write is under
// way. The informers must have been started.
func (c *Controller) Run(ctx context.Context) error {
	defer c.serving.end()
	defer c.unlisten()
	defer c.shutDown()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return nil // asked to end before there was anything to end
	}
	var reporters sync.WaitGroup
	reporters.Go(func() { c.giveTurns(ctx) })
	for range 4 {
		reporters.Go(func() { work(ctx, c.reports, c.syncReport) })
	}
	<-ctx.Done()
	c.shutDown()
	reporters.Wait()
	return nil
}

// shutDown ends the queues of reports. It may be called again.
func (c *Controller) shutDown() {
	c.reports.ShutDown()
	c.dues.waiting.ShutDown()
}

// work takes items from a queue until it is shut down. An item that fails comes again, later and later.
func work(ctx context.Context, q workqueue.TypedRateLimitingInterface[key], do func(context.Context, key) error) {
	for {
		k, quit := q.Get()
		if quit || ctx.Err() != nil {
			return // what is cut off by the end looks as if it were lost: nothing is to be concluded from it
		}
		if err := supervisor.Protect(ctx, "propagation", func() error { return do(ctx, k) }); err != nil {
			klog.FromContext(ctx).V(2).Info("Failed, will retry", "object", k.String(), "err", err)
			q.AddRateLimited(k)
		} else {
			q.Forget(k)
		}
		q.Done(k)
	}
}
