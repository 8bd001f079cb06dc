package propagation

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
	"federation/controllers/supervisor"
)

// member is one engaged member: what is to be done there, and what is known of it.
type member struct {
	Member
	federation string // its UID
	queue      workqueue.TypedRateLimitingInterface[key]
	lanes      *lanes       // of the queue
	writing    atomic.Int32 // writes under way
	joined     time.Time
	handlers
	asked  answers
	refers referrersThere
	brake  brake

	mu     sync.Mutex
	states map[key]*state
}

// Engage takes up work in a member until ctx is done. It subscribes to the member's informers and
// returns; the caller starts them. After the end of Run it does nothing.
func (c *Controller) Engage(ctx context.Context, mem Member) error {
	m := &member{Member: mem, federation: c.Federation, states: map[key]*state{}, lanes: newLanes(c.Workers, c.leaves)}
	m.brake.init()
	m.queue = m.lanes.queue(workqueue.NewTypedItemExponentialFailureRateLimiter[key](10*time.Millisecond, 30*time.Second))
	var errs []error
	for i := range c.Kinds {
		errs = append(errs, c.watchCopies(m, &c.Kinds[i]))
	}
	errs = append(errs, c.watchEndpoints(m), c.watchScaling(m))
	err := errors.Join(errs...)
	if err != nil || !c.serving.start(ctx, func(ctx context.Context) { c.serve(ctx, m) }) {
		m.unlisten()
		m.queue.ShutDown()
	}
	return err
}

// leaves reports whether an object is to be nowhere.
func (c *Controller) leaves(k key) bool {
	obj := c.held(k)
	return obj == nil || held.About(obj).GetDeletionTimestamp() != nil
}

// patience is how long a member's caches may take to fill before work begins without those that have not: the
// federation may lack the right to list a kind there.
const patience = 10 * time.Second

// serve waits for the caches, clears what is stale, and then works.
func (c *Controller) serve(ctx context.Context, m *member) {
	log := klog.FromContext(ctx).WithValues("cluster", m.Name)
	defer m.unlisten()
	defer m.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return
	}
	late := c.fill(ctx, m)
	if ctx.Err() != nil {
		return
	}
	started := time.Now()
	c.join(m) // from now on a delete waits for this member: what goes while it is cleared is not missed
	stale := c.clearStale(ctx, m, c.Kinds)
	m.brake.clearing.Store(false)
	for _, k := range c.federated() {
		m.queue.Add(k)
	}
	for _, k := range c.awaitedOfOthers() {
		m.queue.AddAfter(k, othersTime)
	}
	c.reportAll()
	c.wakeAllWaiting()
	log.Info("Engaged", "staleCopies", stale, "clearedIn", time.Since(started).Round(time.Millisecond))
	var workers sync.WaitGroup
	for range c.Workers {
		workers.Go(func() {
			work(ctx, m.queue, func(ctx context.Context, k key) error {
				defer m.lanes.done(k)
				return c.syncMember(ctx, m, k)
			})
		})
	}
	workers.Go(func() { m.lookAfter(ctx) })
	workers.Go(func() { c.waitForNodes(ctx, m) })
	workers.Go(func() { c.wakeFloors(ctx, m) })
	workers.Go(func() { c.watchBrake(ctx, m) })
	for _, k := range late {
		workers.Go(func() { c.takeUpLate(ctx, m, k) })
	}
	<-ctx.Done()
	c.leave(m)
	m.queue.ShutDown()
	workers.Wait()
	log.Info("Disengaged")
}

// waitForNodes wakes what waits for pods of a member once its nodes have been heard of. Only one that has just returned is silent.
func (c *Controller) waitForNodes(ctx context.Context, m *member) {
	if !m.silent() {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for m.silent() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	c.wakeAllWaiting() // its Cluster may never have said that it was silent
}

func (m *member) silent() bool { return m.HeartbeatsStale != nil && m.HeartbeatsStale() }

// join counts a member in; leave counts it out.
func (c *Controller) join(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[m.Name], m.joined = m, time.Now()
	delete(c.missed, m.Name)
	c.countEngaged()
}

// countEngaged is for the built-in kinds: the propagations of custom kinds engage the same members.
func (c *Controller) countEngaged() {
	if c.kindOf(namespaces) != nil {
		engaged.Set(float64(len(c.members)))
	}
}

func (c *Controller) leave(m *member) {
	c.mu.Lock()
	if c.members[m.Name] == m {
		delete(c.members, m.Name)
		c.missed[m.Name] = time.Now()
		c.countEngaged()
	}
	c.mu.Unlock()
	for _, k := range c.federated() {
		if k.kind.Endpoints {
			c.reports.AddAfter(k, settleTime) // not at once: as the process ends its members leave, which is no news
		} else {
			c.report(k)
		}
	}
	c.wakeAllWaiting()
}

// fill waits until the member's caches are full, and returns the kinds of which they are not after a while.
func (c *Controller) fill(ctx context.Context, m *member) (late []*plan.Kind) {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i := range c.Kinds {
		k := &c.Kinds[i]
		if !cache.WaitForCacheSync(patient.Done(), func() bool { return m.ready(k) }) {
			late = append(late, k)
			klog.FromContext(ctx).Info("Objects of a kind cannot be listed in the member: work goes on without", "cluster", m.Name, "kind", k.Kind)
		}
	}
	return late
}

// takeUpLate takes up work with a kind whose cache in the member fills late.
func (c *Controller) takeUpLate(ctx context.Context, m *member, k *plan.Kind) {
	if !cache.WaitForCacheSync(ctx.Done(), func() bool { return m.ready(k) }) {
		return
	}
	c.clearStale(ctx, m, []plan.Kind{*k})
	for _, k := range c.federatedOf(k) {
		m.queue.Add(k)
	}
}

// clearStale removes the copies of federated objects that are no more, or are to go, before anything
// else happens in a member that returns. It returns how many there were. Those that could not be dealt with are tried again.
func (c *Controller) clearStale(ctx context.Context, m *member, kinds []plan.Kind) (stale int) {
	var keys []key
	for i := range kinds {
		k := c.kindOf(kinds[i].Resource)
		for _, obj := range m.Informers(k.Resource).GetStore().List() {
			there := held.Object(obj)
			copyKey := keyOf(k, there)
			if !c.owns(copyKey) || !v1beta1.IsCopy(there, k.GroupKind(), c.Federation) {
				continue
			}
			if f := c.lookup(copyKey); f == nil || f.GetDeletionTimestamp() != nil || plan.Outlived(plan.SourceOf(f), there) {
				keys = append(keys, copyKey)
			}
		}
	}
	todo := make(chan key, len(keys))
	for _, k := range keys {
		todo <- k
	}
	close(todo)
	var wg sync.WaitGroup
	for range min(c.Workers, len(keys)) {
		wg.Go(func() {
			for k := range todo {
				if err := supervisor.Protect(ctx, "propagation", func() error { return c.syncMember(ctx, m, k) }); err != nil {
					m.queue.AddRateLimited(k)
				}
			}
		})
	}
	wg.Wait()
	return len(keys)
}

// ready reports whether the member's cache of a kind is full.
func (m *member) ready(k *plan.Kind) bool {
	return m.Informers(k.Resource).HasSynced() && (!k.Endpoints || m.Informers(plan.EndpointSlices).HasSynced())
}

// unknown reports whether an empty cache says nothing: it is not full yet, or the member does not let us fill it.
func (m *member) unknown(r schema.GroupVersionResource) bool {
	informer := m.Informers(r)
	lacks, ok := informer.(interface{ Lacking() bool })
	return !informer.HasSynced() || ok && lacks.Lacking()
}

// watchCopies wakes the member's queue when a copy changed, those that wait for it, and the report always.
func (c *Controller) watchCopies(m *member, k *plan.Kind) error {
	changed := func(obj any) (key, bool) {
		this := keyOf(k, held.About(obj))
		if !c.owns(this) {
			return this, false
		}
		c.report(this)
		c.wakeWaiting(this)
		return this, true
	}
	return m.listen(held.By(m.Informers(k.Resource)), cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if initial {
				return // serve looks at all of these
			}
			if this, ours := changed(obj); ours && m.isNews(this, held.About(obj)) {
				m.queue.Add(this) // it may have come late: a request that was under way when the member was lost
			}
			if k.Resource == namespaces {
				c.wakeNamespace(m, held.About(obj).GetName())
			}
		},
		UpdateFunc: func(was, is any) {
			if this, ours := changed(is); ours && !sameSource(was, is) && m.isNews(this, held.About(is)) {
				m.queue.Add(this)
			}
		},
		DeleteFunc: func(obj any) {
			m.gone(keyOf(k, held.About(obj)), held.About(obj).GetUID())
			if this, ours := changed(obj); ours {
				m.queue.Add(this)
				c.reportOrFinish(this)
			}
		},
	})
}

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	services   = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// wakeNamespace has all looked at that goes to a namespace which a member has by now: until then it was refused.
func (c *Controller) wakeNamespace(m *member, name string) {
	for i := range c.Kinds {
		for _, obj := range c.inNamespace(&c.Kinds[i], name) {
			if k := keyOf(&c.Kinds[i], held.About(obj)); c.owns(k) {
				m.queue.Add(k)
			}
		}
	}
}

const byService = "service"

// watchEndpoints reports a Service again when the readiness of its endpoints may have changed.
func (c *Controller) watchEndpoints(m *member) error {
	kind := c.kindOf(services)
	if kind == nil {
		return nil
	}
	informer := m.Informers(plan.EndpointSlices)
	if err := index(informer, byService, func(obj any) ([]string, error) { return []string{storeKey(serviceOf(held.Object(obj)))}, nil }); err != nil {
		return err
	}
	wake := func(obj any) {
		if k := (key{kind, serviceOf(held.Object(obj))}); k.Name != "" && c.owns(k) { // those of other clusters have none
			c.reports.Add(k)
		}
	}
	return m.listen(informer, cache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, is any) { wake(is) }, DeleteFunc: wake})
}

func serviceOf(slice *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetLabels()[discoveryv1.LabelServiceName]}
}

// readyEndpoints reports whether a Service's copy has a ready endpoint. Ready unset means ready.
func (m *member) readyEndpoints(service types.NamespacedName) bool {
	slices, err := m.Informers(plan.EndpointSlices).GetIndexer().ByIndex(byService, storeKey(service))
	if err != nil {
		return false
	}
	for _, obj := range slices {
		endpoints, _, _ := unstructured.NestedSlice(held.Object(obj).Object, "endpoints")
		for _, e := range endpoints {
			endpoint, _ := e.(map[string]any)
			if ready, found, _ := unstructured.NestedBool(endpoint, "conditions", "ready"); ready || !found {
				return true
			}
		}
	}
	return false
}
