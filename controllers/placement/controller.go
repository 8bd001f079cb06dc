package placement

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/supervisor"
)

// DefaultGracePeriod is how long a cluster may be away before its replicas are placed elsewhere.
const DefaultGracePeriod = 30 * time.Second

// Options are what a Controller needs.
type Options struct {
	// Client writes to the federation.
	Client dynamic.Interface
	// Informers hands out the federation's informers, which others start.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Recorder takes events about what moved.
	Recorder record.EventRecorder
	// GracePeriod counts for clusters that are not ready and have no failover state in their status: how long their
	// replicas stay placed there. 0: for ever, for it is the failover controller that decides.
	GracePeriod time.Duration
	// SecretsEverywhere: Secrets and ServiceAccounts go to every cluster, not only where that goes which refers to them.
	SecretsEverywhere bool
	// Resolve finds the resource of a custom kind, and whether its objects have a namespace. Nil: policies can name
	// built-in kinds only.
	Resolve func(apiVersion, kind string) (resource schema.GroupVersionResource, namespaced bool, err error)
	// Definitions are the CustomResourceDefinitions that Resolve goes by. Nil: they never change.
	Definitions cache.SharedIndexInformer
	// Start starts informers that were first asked for after the others had been started. Nil: not needed.
	Start func()
	// Writers is how many placements are written at once; 16 if zero.
	Writers int
}

// key names an object, or one of the passes below.
type key struct {
	resource schema.GroupVersionResource
	types.NamespacedName
}

// Passes over many objects, in place of a resource.
var (
	// everything is all objects, or those of a namespace.
	everything = schema.GroupVersionResource{Resource: "everything"}
	// short are the objects that changed room can help.
	short = schema.GroupVersionResource{Resource: "short"}
)

// Times of the controller.
const (
	gather     = 20 * time.Millisecond // how long changes of clusters and policies are gathered into one pass
	roomPause  = 5 * time.Second       // at least between two passes because of room
	reportLag  = 20 * time.Second      // after a decision, the time until a capacity report has seen its pods
	maxBatch   = 1000                  // objects that are decided in one go
	quietAbove = 100                   // changed objects in one go, above which each is not announced by an event
)

// Controller places federated objects.
type Controller struct {
	Options
	decide   workqueue.TypedRateLimitingInterface[key]
	write    workqueue.TypedRateLimitingInterface[key]
	policies workqueue.TypedRateLimitingInterface[types.NamespacedName]
	resolve  workqueue.TypedRateLimitingInterface[schema.GroupVersionKind]

	kinds   kinds
	intents intents
	tally   tally
	state   state // of the one goroutine that decides
	events  events
}

// New makes a controller and subscribes it to the informers.
func New(o Options) (*Controller, error) {
	registerMetrics()
	if o.Writers == 0 {
		o.Writers = 16
	}
	c := &Controller{Options: o, decide: queue[key](), write: queue[key](), policies: queue[types.NamespacedName](), resolve: queue[schema.GroupVersionKind]()}
	c.intents.of, c.tally.governs, c.state = map[key]*intent{}, map[key]types.NamespacedName{}, newState()
	c.kinds.known, c.kinds.failed = map[schema.GroupVersionResource]schema.GroupVersionKind{}, map[schema.GroupVersionKind]error{}
	var errs []error
	for _, k := range v1beta1.FederatedKinds {
		if k.Kind != "Namespace" { // policies govern what is in namespaces
			errs = append(errs, c.add(k.Resource, k.Resource.GroupVersion().WithKind(k.Kind)))
		}
	}
	errs = append(errs, c.watchClusters(), c.watchPolicies(), c.watchDefinitions())
	return c, errors.Join(errs...)
}

func queue[K comparable]() workqueue.TypedRateLimitingInterface[K] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[K](10*time.Millisecond, 30*time.Second))
}

// Run works until ctx is done. The informers must have been started.
func (c *Controller) Run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	defer c.shutDown()
	synced := []cache.InformerSynced{c.Informers(v1beta1.ClustersResource).HasSynced, c.Informers(v1beta1.PoliciesResource).HasSynced}
	for resource := range c.kinds.all() {
		synced = append(synced, c.Informers(resource).HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil // asked to end before there was anything to end
	}
	work.Go(func() {
		c.remember(ctx)
		c.decideWhatComes(ctx)
	})
	work.Go(func() { drain(ctx, c.policies, c.reportPolicy) })
	work.Go(func() { drain(ctx, c.resolve, c.resolveKind) })
	for range c.Writers {
		work.Go(func() { drain(ctx, c.write, c.writeIntent) })
	}
	<-ctx.Done()
	return nil
}

// shutDown ends the queues, which have goroutines of their own from the start.
func (c *Controller) shutDown() {
	c.decide.ShutDown()
	c.write.ShutDown()
	c.policies.ShutDown()
	c.resolve.ShutDown()
}

// drain handles what is in a queue, again after a pause where it fails.
func drain[K comparable](ctx context.Context, q workqueue.TypedRateLimitingInterface[K], handle func(context.Context, K) error) {
	for {
		k, quit := q.Get()
		if quit {
			return
		}
		if err := supervisor.Protect(ctx, "placement", func() error { return handle(ctx, k) }); err != nil {
			q.AddRateLimited(k)
		} else {
			q.Forget(k)
		}
		q.Done(k)
	}
}
