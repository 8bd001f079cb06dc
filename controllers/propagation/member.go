package propagation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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

	"federation/controllers/propagation/plan"
)

// member is one engaged member: what is to be done there, and what is known of it.
type member struct {
	Member
	queue workqueue.TypedRateLimitingInterface[key]
	handlers

	mu     sync.Mutex
	states map[key]*state
}

// state is what we remember of one object in one member beside what the caches hold.
type state struct {
	// written is the copy as our last write left it, until the cache has caught up.
	written *unstructured.Unstructured
	until   time.Time
	// parted is the UID of the copy that we asked to be deleted, or released.
	parted types.UID
	// gone is the UID of the copy that went last.
	gone types.UID
	// settled is what the member made of our last application, see plan.Settle.
	settled string
	// look is how the last look ended.
	look
	// reserved is what a write that is about to go out shrinks the copy to; ceiling what the last one did, until
	// the member has carried it out: no more ready replicas than that are counted.
	reserved, ceiling *int64
	// rolling is the pod template that is about to be written, as plan.TemplateAnnotation.
	rolling string
}

// catchUp is how long a write of ours is believed without the cache having seen it.
const catchUp = 30 * time.Second

// Engage takes up work in a member until ctx is done. It subscribes to the member's informers and
// returns; the caller starts them.
func (c *Controller) Engage(ctx context.Context, mem Member) error {
	m := &member{Member: mem, states: map[key]*state{}}
	m.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[key](10*time.Millisecond, 30*time.Second))
	var errs []error
	for i := range c.Kinds {
		errs = append(errs, c.watchCopies(m, &c.Kinds[i]))
	}
	errs = append(errs, c.watchEndpoints(m))
	if err := errors.Join(errs...); err != nil {
		m.unlisten()
		return err
	}
	c.serving.start(ctx, func(ctx context.Context) { c.serve(ctx, m) })
	return nil
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
	stale, all := c.clearStale(ctx, m, c.Kinds)
	if all && len(late) == 0 {
		c.clearOrphans(ctx, m.Name)
	}
	for _, k := range c.federated() {
		m.queue.Add(k)
	}
	c.reportAll()
	c.wakeAllWaiting()
	log.Info("Engaged", "staleCopies", stale, "clearedIn", time.Since(started).Round(time.Millisecond))
	var workers sync.WaitGroup
	for range c.Workers {
		workers.Go(func() {
			work(ctx, m.queue, func(ctx context.Context, k key) error { return c.syncMember(ctx, m, k) })
		})
	}
	for _, k := range late {
		workers.Go(func() { c.takeUpLate(ctx, m, k) })
	}
	<-ctx.Done()
	c.leave(m)
	m.queue.ShutDown()
	workers.Wait()
	log.Info("Disengaged")
}

// join counts a member in; leave counts it out.
func (c *Controller) join(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[m.Name] = m
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
		c.countEngaged()
	}
	c.mu.Unlock()
	c.reportAll()
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
// else happens in a member that returns. It returns how many there were, and whether all were dealt with;
// those that were not are tried again.
func (c *Controller) clearStale(ctx context.Context, m *member, kinds []plan.Kind) (stale int, all bool) {
	var keys []key
	for i := range kinds {
		k := c.kindOf(kinds[i].Resource)
		for _, obj := range m.Informers(k.Resource).GetStore().List() {
			copyKey := keyOf(k, object(obj))
			if !c.owns(copyKey) {
				continue
			}
			if f := c.lookup(copyKey); f == nil || f.GetDeletionTimestamp() != nil || plan.Outlived(plan.Desired{Source: f.GetUID()}, object(obj)) {
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
	var failed atomic.Bool
	for range min(c.Workers, len(keys)) {
		wg.Go(func() {
			for k := range todo {
				if err := c.syncMember(ctx, m, k); err != nil {
					failed.Store(true)
					m.queue.AddRateLimited(k)
				}
			}
		})
	}
	wg.Wait()
	return len(keys), !failed.Load()
}

// ready tells whether the member's cache of a kind is full.
func (m *member) ready(k *plan.Kind) bool {
	return m.Informers(k.Resource).HasSynced() && (!k.Endpoints || m.Informers(plan.EndpointSlices).HasSynced())
}

// watchCopies wakes the member's queue when a copy changed, those that wait for it, and the report always.
func (c *Controller) watchCopies(m *member, k *plan.Kind) error {
	changed := func(obj any) (key, bool) {
		this := keyOf(k, object(obj))
		if !c.owns(this) {
			return this, false
		}
		c.report(this)
		c.wakeWaiting(this)
		return this, true
	}
	return m.listen(m.Informers(k.Resource), cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if initial {
				return // serve looks at all of these
			}
			if this, ours := changed(obj); ours {
				m.queue.Add(this) // it may have come late: a request that was under way when the member was lost
			}
			if k.Resource == namespaces {
				c.wakeNamespace(m, object(obj).GetName())
			}
		},
		UpdateFunc: func(was, is any) {
			if this, ours := changed(is); ours && !plan.SameSource(object(was), object(is)) {
				m.queue.Add(this)
			}
		},
		DeleteFunc: func(obj any) {
			m.gone(keyOf(k, object(obj)), object(obj).GetUID())
			if this, ours := changed(obj); ours {
				m.queue.Add(this)
			}
		},
	})
}

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	services   = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// wakeNamespace has all looked at that goes to a namespace which a member has by now: until then it was refused.
func (c *Controller) wakeNamespace(m *member, name string) {
	for i := range c.Kinds {
		for _, u := range c.inNamespace(&c.Kinds[i], name) {
			if k := keyOf(&c.Kinds[i], u); c.owns(k) {
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
	if err := index(informer, byService, func(obj any) ([]string, error) { return []string{storeKey(serviceOf(object(obj)))}, nil }); err != nil {
		return err
	}
	wake := func(obj any) {
		if k := (key{kind, serviceOf(object(obj))}); c.owns(k) {
			c.reports.Add(k)
		}
	}
	return m.listen(informer, cache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, is any) { wake(is) }, DeleteFunc: wake})
}

func serviceOf(slice *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetLabels()[discoveryv1.LabelServiceName]}
}

// readyEndpoints tells whether a Service's copy has a ready endpoint. Ready unset means ready.
func (m *member) readyEndpoints(service types.NamespacedName) bool {
	slices, err := m.Informers(plan.EndpointSlices).GetIndexer().ByIndex(byService, storeKey(service))
	if err != nil {
		return false
	}
	for _, obj := range slices {
		endpoints, _, _ := unstructured.NestedSlice(object(obj).Object, "endpoints")
		for _, e := range endpoints {
			endpoint, _ := e.(map[string]any)
			if ready, found, _ := unstructured.NestedBool(endpoint, "conditions", "ready"); ready || !found {
				return true
			}
		}
	}
	return false
}

func (m *member) state(k key) *state {
	s := m.states[k]
	if s == nil {
		s = &state{}
		m.states[k] = s
	}
	return s
}

// observe returns our copy in the member: what the cache has or, until it has caught up, what our
// last write left; and what the member made of that write.
func (m *member) observe(k key) (*unstructured.Unstructured, string) {
	var cached *unstructured.Unstructured
	if obj, ok, _ := m.Informers(k.kind.Resource).GetStore().GetByKey(storeKey(k.NamespacedName)); ok {
		cached = object(obj)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state(k)
	if s.written == nil {
		return cached, s.settled
	}
	if cached != nil && version(cached) >= version(s.written) || time.Now().After(s.until) {
		s.written = nil
		return cached, s.settled
	}
	return s.written, s.settled
}

// version is the resource version as a number (KEP-5504: they can be compared).
func version(u *unstructured.Unstructured) uint64 {
	n, _ := strconv.ParseUint(u.GetResourceVersion(), 10, 64)
	return n
}

// wrote notes the copy as a write of ours left it.
func (m *member) wrote(k key, u *unstructured.Unstructured, settled string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state(k)
	s.settled, s.parted = settled, ""
	if s.reserved != nil {
		s.ceiling, s.reserved = s.reserved, nil
	}
	if s.gone == u.GetUID() {
		return // it went while the answer was under way
	}
	s.written, s.until = u, time.Now().Add(catchUp)
	m.queue.AddAfter(k, catchUp+time.Second)
}

// parted notes that a copy has been deleted or released: once is enough.
func (m *member) parted(k key, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state(k).parted = uid
}

func (m *member) hasParted(k key, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state(k).parted == uid
}

// gone notes that a copy is no more.
func (m *member) gone(k key, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.states[k]; s != nil {
		s.gone, s.reserved, s.ceiling = uid, nil, nil
		if s.written != nil && s.written.GetUID() == uid {
			s.written = nil
		}
	}
}

// look is how a look at an object in a member ended.
type look struct {
	// outcome and message say how.
	outcome plan.State
	message string
	// left is the UID of the federated object whose copy is known to be gone, or not ours any more.
	left types.UID
	// generation is that of the federated object.
	generation int64
	// outdated: the copy has another pod template than the federated object.
	outdated bool
}

// note keeps how a look ended, and tells whether that is news.
func (m *member) note(k key, now look) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state(k)
	news := s.look != now
	s.look, s.rolling = now, ""
	return news
}

// reserve notes the number to which a write that is about to go out shrinks a copy; nil: none does.
func (m *member) reserve(k key, number *int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.states[k]; s != nil || number != nil {
		m.state(k).reserved = number
	}
}

// share returns what the member holds of an object. What our own shrinking is about to take counts no more.
func (m *member) share(s plan.Source, k key) plan.Share {
	u, _ := m.observe(k)
	share := plan.ShareOf(s, m.Name, u)
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.states[k]
	if st == nil {
		return share
	}
	if st.ceiling != nil && st.written == nil && u != nil && plan.Settled(s, u) {
		st.ceiling = nil
	}
	for _, limit := range []*int64{st.reserved, st.ceiling} {
		if limit != nil {
			share.Ready = min(share.Ready, *limit)
		}
	}
	return share
}

// rolls notes that a new pod template is about to be written; rollsTo tells whether that is so.
func (m *member) rolls(k key, want plan.Desired) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state(k).rolling = want.Object.GetAnnotations()[plan.TemplateAnnotation]
}

func (m *member) rollsTo(k key, want plan.Desired) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.states[k]
	return s != nil && s.rolling != "" && want.Object != nil && s.rolling == want.Object.GetAnnotations()[plan.TemplateAnnotation]
}

// forget drops what is remembered of an object that is no more anywhere.
func (m *member) forget(k key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.states, k)
}

// copyOf returns what is known of the object in this member, for the report.
func (m *member) copyOf(k key) (plan.Copy, types.UID) {
	u, _ := m.observe(k)
	m.mu.Lock()
	s := *m.state(k)
	m.mu.Unlock()
	c := plan.Copy{Cluster: m.Name, State: s.outcome, Message: s.message, Object: u, Looked: s.generation, Outdated: s.outdated}
	if c.State == "" {
		c.State, c.Message = plan.Pending, "has not been looked at yet"
	}
	if k.kind.Endpoints {
		c.ReadyEndpoints = m.readyEndpoints(k.NamespacedName)
	}
	return c, s.left
}

func (m *member) String() string { return fmt.Sprintf("member %s", m.Name) }
