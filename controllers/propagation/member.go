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

	mu     sync.Mutex
	states map[key]*state
}

// state is what we remember of one object in one member beside what the caches hold.
type state struct {
	// written is the copy as our last write left it, until the cache has caught up.
	written *unstructured.Unstructured
	until   time.Time
	// deleted is the UID of the copy that we asked to be deleted.
	deleted types.UID
	// gone is the UID of the copy that went last.
	gone types.UID
	// settled is what the member made of our last application, see plan.Settle.
	settled string
	// outcome and message say how the last look ended.
	outcome plan.State
	message string
	// left is the UID of the federated object whose copy is known to be gone, or not ours any more.
	left types.UID
}

// catchUp is how long a write of ours is believed without the cache having seen it.
const catchUp = 30 * time.Second

// Engage takes up work in a member until ctx is done. It subscribes to the member's informers and
// returns; the caller starts them.
func (c *Controller) Engage(ctx context.Context, mem Member) error {
	m := &member{Member: mem, states: map[key]*state{}}
	m.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[key](10*time.Millisecond, 30*time.Second))
	var errs []error
	for i := range plan.Kinds {
		errs = append(errs, c.watchCopies(m, &plan.Kinds[i]))
	}
	errs = append(errs, c.watchEndpoints(m))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	go c.serve(ctx, m)
	return nil
}

// serve waits for the caches, clears what is stale, and then works.
func (c *Controller) serve(ctx context.Context, m *member) {
	log := klog.FromContext(ctx).WithValues("cluster", m.Name)
	defer m.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced, m.synced) {
		return
	}
	started := time.Now()
	c.mu.Lock()
	c.members[m.Name] = m // from now on a delete waits for this member: what goes while it is cleared is not missed
	engaged.Set(float64(len(c.members)))
	c.mu.Unlock()
	stale, all := c.clearStale(ctx, m)
	if all {
		c.clearOrphans(ctx, m.Name)
	}
	for _, k := range c.federated() {
		m.queue.Add(k)
	}
	c.reportAll()
	log.Info("Engaged", "staleCopies", stale, "clearedIn", time.Since(started).Round(time.Millisecond))
	for range c.Workers {
		go work(ctx, m.queue, func(ctx context.Context, k key) error { return c.syncMember(ctx, m, k) })
	}
	<-ctx.Done()
	c.mu.Lock()
	if c.members[m.Name] == m {
		delete(c.members, m.Name)
		engaged.Set(float64(len(c.members)))
	}
	c.mu.Unlock()
	c.reportAll()
	log.Info("Disengaged")
}

// clearStale removes the copies of federated objects that are no more, or are to go, before anything
// else happens in a member that returns. It returns how many there were, and whether all were dealt with;
// those that were not are tried again.
func (c *Controller) clearStale(ctx context.Context, m *member) (stale int, all bool) {
	var keys []key
	for i := range plan.Kinds {
		k := &plan.Kinds[i]
		for _, obj := range m.Informers(k.Resource).GetStore().List() {
			copyKey := keyOf(k, object(obj))
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

func (m *member) synced() bool {
	for i := range plan.Kinds {
		if !m.Informers(plan.Kinds[i].Resource).HasSynced() {
			return false
		}
	}
	return m.Informers(plan.EndpointSlices).HasSynced()
}

// watchCopies wakes the member's queue when a copy changed, and the report always.
func (c *Controller) watchCopies(m *member, k *plan.Kind) error {
	_, err := m.Informers(k.Resource).AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if initial {
				return // serve looks at all of these
			}
			u := object(obj)
			m.queue.Add(keyOf(k, u)) // it may have come late: a request that was under way when the member was lost
			c.report(keyOf(k, u))
			if k.Resource == namespaces {
				c.wakeNamespace(m, u.GetName())
			}
		},
		UpdateFunc: func(was, is any) {
			u := object(is)
			if !plan.SameSource(object(was), u) {
				m.queue.Add(keyOf(k, u))
			}
			c.report(keyOf(k, u))
		},
		DeleteFunc: func(obj any) {
			u := object(obj)
			m.gone(keyOf(k, u), u.GetUID())
			m.queue.Add(keyOf(k, u))
			c.report(keyOf(k, u))
		},
	})
	return err
}

var namespaces = kindOf("namespaces").Resource

// wakeNamespace has all looked at that goes to a namespace which a member has by now: until then it was refused.
func (c *Controller) wakeNamespace(m *member, name string) {
	for i := range plan.Kinds {
		k := &plan.Kinds[i]
		objects, err := c.Informers(k.Resource).GetIndexer().ByIndex(cache.NamespaceIndex, name)
		if err != nil {
			continue // without an index, each comes by itself, later
		}
		for _, obj := range objects {
			m.queue.Add(keyOf(k, object(obj)))
		}
	}
}

const byService = "service"

// watchEndpoints reports a Service again when the readiness of its endpoints may have changed.
func (c *Controller) watchEndpoints(m *member) error {
	informer := m.Informers(plan.EndpointSlices)
	if err := informer.AddIndexers(cache.Indexers{byService: func(obj any) ([]string, error) {
		return []string{storeKey(serviceOf(object(obj)))}, nil
	}}); err != nil {
		return err
	}
	wake := func(obj any) {
		if k := kindOf("services"); k != nil {
			c.reports.Add(key{k, serviceOf(object(obj))})
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, is any) { wake(is) }, DeleteFunc: wake})
	return err
}

func kindOf(resource string) *plan.Kind {
	for i := range plan.Kinds {
		if plan.Kinds[i].Resource.Resource == resource {
			return &plan.Kinds[i]
		}
	}
	return nil
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
	s.settled, s.deleted = settled, ""
	if s.gone == u.GetUID() {
		return // it went while the answer was under way
	}
	s.written, s.until = u, time.Now().Add(catchUp)
	m.queue.AddAfter(k, catchUp+time.Second)
}

// gone notes that a copy is no more.
func (m *member) gone(k key, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.states[k]; s != nil {
		s.gone = uid
		if s.written != nil && s.written.GetUID() == uid {
			s.written = nil
		}
	}
}

// note keeps how a look ended, and tells whether that is news.
func (m *member) note(k key, outcome plan.State, message string, left types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state(k)
	news := s.outcome != outcome || s.message != message || s.left != left
	s.outcome, s.message, s.left = outcome, message, left
	return news
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
	c := plan.Copy{Cluster: m.Name, State: s.outcome, Message: s.message, Object: u}
	if c.State == "" {
		c.State, c.Message = plan.Pending, "has not been looked at yet"
	}
	if k.kind.Endpoints {
		c.ReadyEndpoints = m.readyEndpoints(k.NamespacedName)
	}
	return c, s.left
}

func (m *member) String() string { return fmt.Sprintf("member %s", m.Name) }
