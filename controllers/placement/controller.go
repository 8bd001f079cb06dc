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

// Options configure a Controller.
type Options struct {
	// Client writes to the federation.
	Client dynamic.Interface
	// Informers hands out the federation's informers, which others start.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Recorder takes events about moves.
	Recorder record.EventRecorder
	// GracePeriod applies to clusters that are not ready and have no failover state: how long their replicas stay
	// placed there. 0 means for ever, because the failover controller decides.
	GracePeriod time.Duration
	// SecretsEverywhere places Secrets and ServiceAccounts on every cluster, not only where their referrers are.
	SecretsEverywhere bool
	// Resolve returns the resource of a custom kind, and whether its objects are namespaced. Nil: policies can name
	// built-in kinds only.
	Resolve resolver
	// Definitions are the CustomResourceDefinitions that Resolve uses. Nil: they never change.
	Definitions cache.SharedIndexInformer
	// Start starts informers that are requested after the others were started. Nil: not needed.
	Start func()
	// Writers is the number of parallel writes; 16 if zero.
	Writers int
}

// resolver returns the resource of a custom kind, and whether its objects are namespaced.
type resolver = func(apiVersion, kind string) (resource schema.GroupVersionResource, namespaced bool, err error)

// key identifies an object, all objects of a resource, or one of the passes below.
type key struct {
	resource schema.GroupVersionResource
	types.NamespacedName
}

// Passes over many objects, in place of a resource.
var (
	// everything stands for all objects, or those of a namespace.
	everything = schema.GroupVersionResource{Resource: "everything"}
	// short stands for the objects that more room can help.
	short = schema.GroupVersionResource{Resource: "short"}
	// due stands for the objects that are to be decided again by now.
	due = schema.GroupVersionResource{Resource: "due"}
)

// Times of the controller.
const (
	gather     = 20 * time.Millisecond // delay that batches changes of clusters and policies into one pass
	roomPause  = 5 * time.Second       // minimum time between two passes because of room
	reportLag  = 20 * time.Second      // time after a decision until a capacity report includes its pods
	maxBatch   = 1000                  // maximum of objects decided in one pass
	quietAbove = 100                   // number of changed objects in a pass above which most get no event
)

// Controller places federated objects.
type Controller struct {
	Options
	decide  workqueue.TypedRateLimitingInterface[key]
	write   workqueue.TypedRateLimitingInterface[key]
	resolve workqueue.TypedRateLimitingInterface[schema.GroupVersionKind]

	policies policyReporter
	kinds    kinds
	intents  intents
	state    state // belongs to the deciding goroutine
	events   clusterAspects
}

// New makes a controller and subscribes it to the informers.
func New(o Options) (*Controller, error) {
	registerMetrics()
	if o.Writers == 0 {
		o.Writers = 16
	}
	c := &Controller{Options: o, decide: newQueue[key](), write: newQueue[key](), resolve: newQueue[schema.GroupVersionKind]()}
	c.policies = policyReporter{Options: &c.Options, queue: newQueue[types.NamespacedName](), kinds: &c.kinds, tally: tally{governs: map[key]types.NamespacedName{}}}
	c.intents.of, c.state = map[key]*intent{}, newState()
	c.kinds.known, c.kinds.failed = map[schema.GroupVersionResource]schema.GroupVersionKind{}, map[schema.GroupVersionKind]error{}
	c.kinds.uncounted = map[schema.GroupVersionKind]bool{}
	var errs []error
	for _, k := range v1beta1.FederatedKinds {
		if k.Kind != "Namespace" { // policies govern what is in namespaces
			errs = append(errs, c.subscribe(k.Resource, k.Resource.GroupVersion().WithKind(k.Kind)))
		}
	}
	errs = append(errs, c.watchClusters(), c.watchPolicies(), c.watchDefinitions())
	if err := errors.Join(errs...); err != nil {
		c.shutDown()
		return nil, err
	}
	return c, nil
}

func newQueue[K comparable]() workqueue.TypedRateLimitingInterface[K] {
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
		return nil // ctx ended before the start
	}
	report := sync.OnceFunc(func() {
		work.Go(func() { supervisor.ProcessQueue(ctx, "placement", c.policies.queue, c.policies.report) })
	})
	work.Go(supervisor.Kept(ctx, "placement", func(ctx context.Context) {
		c.recordReferences(ctx)
		c.passProtected(ctx, []key{{resource: everything}})
		report() // before, a policy's status would count too few objects
		c.decideWhatComes(ctx)
	}))
	work.Go(func() { supervisor.ProcessQueue(ctx, "placement", c.resolve, c.resolveKind) })
	for range c.Writers {
		work.Go(func() { supervisor.ProcessQueue(ctx, "placement", c.write, c.writeIntent) })
	}
	<-ctx.Done()
	return nil
}

// shutDown shuts down the queues, which have goroutines from the start.
func (c *Controller) shutDown() {
	c.decide.ShutDown()
	c.write.ShutDown()
	c.policies.queue.ShutDown()
	c.resolve.ShutDown()
}
