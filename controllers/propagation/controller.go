package propagation

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
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
type key struct {
	kind *plan.Kind
	types.NamespacedName
}

func (k key) String() string { return k.kind.Kind + " " + k.NamespacedName.String() }

// Controller propagates federated objects to members.
type Controller struct {
	Options
	reports workqueue.TypedRateLimitingInterface[key]
	started time.Time
	serving serving
	handlers
	policies
	shared
	waits
	dues *dues

	mu       sync.RWMutex
	members  map[string]*member
	missed   map[string]time.Time // by cluster that is not engaged: since when it could be
	patched  sync.Map             // key → resourceversion.Left by our last patch of the federated object
	pending  sync.Map             // key → time since when a copy of it has been pending, of kinds without conditions
	reported sync.Map             // key → cluster → message of the last event, so that each is sent once
}

// New makes a controller and subscribes it to the federation's informers.
func New(o Options) (*Controller, error) {
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
	c := &Controller{Options: o, started: time.Now(), members: map[string]*member{}, missed: map[string]time.Time{}, dues: newDues(o.Reports)}
	c.reports = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[key](50*time.Millisecond, 30*time.Second))
	registerMetrics()
	var errs []error
	for i := range c.Kinds {
		errs = append(errs, c.subscribe(&c.Kinds[i]))
	}
	errs = append(errs, c.watchPolicies(), c.watchAutoscalers(), c.listen(o.Informers(v1beta1.ClustersResource), cache.ResourceEventHandlerFuncs{
		AddFunc:    func(is any) { c.lookAgain(held.Object(is).GetName()); c.reportAll() },
		UpdateFunc: c.clusterChanged,
		DeleteFunc: func(any) { c.reportAll() },
	}))
	if err := errors.Join(errs...); err != nil {
		c.unlisten()
		c.shutDown()
		return nil, err
	}
	return c, nil
}

// subscribe wakes all members and the report for each change that asks something of the members,
// and only the report for the others.
func (c *Controller) subscribe(k *plan.Kind) error {
	wake := func(obj any) {
		this := keyOf(k, held.About(obj))
		c.wakeAutoscalersOf(this)
		switch {
		case c.owns(this):
			c.changed(this)
		case OfAllShards(k.Resource):
			c.changedByOthers(this)
		}
	}
	return c.listen(held.By(c.Informers(k.Resource)), cache.ResourceEventHandlerFuncs{
		AddFunc:    wake,
		DeleteFunc: wake,
		UpdateFunc: func(was, is any) {
			if this := keyOf(k, held.About(is)); !sameSource(was, is) {
				wake(is)
			} else if c.owns(this) && !c.isOurPatch(this, held.About(is)) {
				c.report(this)
			}
		},
	})
}

func (c *Controller) owns(k key) bool { return c.Owns(k.kind, k.Namespace, k.Name) }

func (c *Controller) changed(k key) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, m := range c.members {
		m.queue.Add(k)
	}
	c.reportOrFinish(k)
}

// clusterChanged looks at everything again that goes to a cluster whose labels, zones or region changed.
func (c *Controller) clusterChanged(was, is any) {
	before, after := held.Object(was), held.Object(is)
	if !reflect.DeepEqual(asTarget(before), asTarget(after)) {
		c.lookAgain(after.GetName())
		c.reportAll()
	}
	if before.GetAnnotations()[v1beta1.ApproveDeletionsAnnotation] != after.GetAnnotations()[v1beta1.ApproveDeletionsAnnotation] {
		if m := c.member(after.GetName()); m != nil {
			m.brake.signal()
		}
	}
	if !plan.IsReached(before) && plan.IsReached(after) {
		c.miss(after.GetName())
	}
	if plan.IsSilent(before) && !plan.IsSilent(after) {
		c.wakeAllWaiting() // what its copies say counts from now on
	}
}

// lookAgain has everything looked at again that goes to a cluster, if it is engaged.
func (c *Controller) lookAgain(cluster string) {
	if m := c.member(cluster); m != nil {
		for _, k := range c.federated() {
			m.queue.Add(k)
		}
	}
}

func (c *Controller) member(name string) *member {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.members[name]
}

// federated returns the keys of all objects that are propagated.
func (c *Controller) federated() (keys []key) {
	for i := range c.Kinds {
		keys = append(keys, c.federatedOf(&c.Kinds[i])...)
	}
	return keys
}

func (c *Controller) federatedOf(k *plan.Kind) (keys []key) {
	for _, obj := range held.By(c.Informers(k.Resource)).GetStore().List() {
		if this := keyOf(k, held.About(obj)); isFederated(k, obj) && c.owns(this) {
			keys = append(keys, this)
		}
	}
	slices.SortFunc(keys, func(a, b key) int { // so that all members go through them side by side
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return keys
}

// lookup returns the federated object of a key; nil where there is none, or none that is propagated.
func (c *Controller) lookup(k key) *unstructured.Unstructured {
	obj := c.held(k)
	if obj == nil {
		return nil
	}
	return c.version(k, obj).object
}

// held is lookup, but without unpacking: nil, or what package held takes.
func (c *Controller) held(k key) any {
	obj, ok, err := held.By(c.Informers(k.kind.Resource)).GetStore().GetByKey(storeKey(k.NamespacedName))
	if err != nil || !ok || !isFederated(k.kind, obj) {
		return nil
	}
	return obj
}

func isFederated(k *plan.Kind, obj any) bool {
	o := held.About(obj)
	if k.Custom {
		return !v1beta1.OwnNamespace(o.GetNamespace())
	}
	var secretType string
	if k.Resource == secrets {
		secretType, _ = held.Object(obj).Object["type"].(string)
	}
	return v1beta1.Federated(k.Resource.GroupResource(), o.GetNamespace(), o.GetName(), corev1.SecretType(secretType))
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

func (c *Controller) synced() bool {
	for i := range c.Kinds {
		if !c.Informers(c.Kinds[i].Resource).HasSynced() {
			return false
		}
	}
	return c.Informers(v1beta1.ClustersResource).HasSynced()
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

func storeKey(n types.NamespacedName) string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.String()
}
