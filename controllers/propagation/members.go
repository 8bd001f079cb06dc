package propagation

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/propagation/ledger"
	"federation/controllers/propagation/plan"
)

// member is one engaged member: its queue, and what is known of it.
type member struct {
	Member
	*ledger.Ledger
	queue   workqueue.TypedRateLimitingInterface[key]
	lanes   *lanes       // of the queue
	writing atomic.Int32 // writes in flight
	joined  time.Time
	handlers
	asked answers
	// accepted are its namespaces that let the federation put objects into them.
	accepted accepted
	refers   referrersThere
	brake    brake
}

func newMember(mem Member, v *view) *member {
	m := &member{Member: mem, lanes: newLanes(v.Workers, v.isLeaving)}
	m.Ledger = ledger.New(v.Federation, func(k *plan.Kind) cache.Store { return mem.Informers(k.Resource).GetStore() })
	m.brake.init()
	m.queue = m.lanes.queue(workqueue.NewTypedItemExponentialFailureRateLimiter[key](10*time.Millisecond, 30*time.Second))
	return m
}

func (m *member) String() string { return fmt.Sprintf("member %s", m.Name) }

// heartbeatsStale reports whether the heartbeats of the member's nodes are stale since it was away.
func (m *member) heartbeatsStale() bool { return m.HeartbeatsStale != nil && m.HeartbeatsStale() }

// cacheSynced reports whether the member's cache of a kind is synced.
func (m *member) cacheSynced(k *plan.Kind) bool {
	return m.Informers(k.Resource).HasSynced() && (!k.Endpoints || m.Informers(plan.EndpointSlices).HasSynced())
}

// cacheUncertain reports whether an empty cache means nothing: it is not synced, or the member does not let us list.
func (m *member) cacheUncertain(r schema.GroupVersionResource) bool {
	informer := m.Informers(r)
	lacks, ok := informer.(interface{ Lacking() bool })
	return !informer.HasSynced() || ok && lacks.Lacking()
}

// copyOf returns the state of the object in this member, for the report.
func (m *member) copyOf(k key) (plan.Copy, types.UID) {
	u, last := m.Read(k)
	c := plan.Copy{Cluster: m.Name, State: last.State, Message: last.Message, Object: u, Looked: last.Generation, Outdated: last.Outdated, MissedBefore: m.MissedBefore(k), Unlisted: m.cacheUncertain(k.Kind.Resource)}
	if c.State == "" {
		c.State, c.Message = plan.Pending, "has not been synced yet"
	}
	if k.Kind.Endpoints {
		c.ReadyEndpoints = m.readyEndpoints(k.NamespacedName)
		c.EndpointsUnknown = m.cacheUncertain(plan.EndpointSlices)
	}
	return c, last.Left
}

// readyEndpoints reports whether a Service's copy has a ready endpoint. Ready unset means ready.
func (m *member) readyEndpoints(service types.NamespacedName) bool {
	slices, err := m.Informers(plan.EndpointSlices).GetIndexer().ByIndex(byService, service.String())
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

// emitEvent emits an event about a member that belongs to no federated object.
func (m *member) emitEvent(to record.EventRecorder, reason, format string, args ...any) {
	to.Eventf(aboutCluster(m.Name), corev1.EventTypeNormal, reason, format, args...)
}

// aboutCluster returns a Cluster for events.
func aboutCluster(name string) *v1beta1.Cluster {
	return &v1beta1.Cluster{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// members are the engaged members.
type members struct {
	started time.Time

	mu      sync.RWMutex
	engaged map[string]*member
	away    map[string]time.Time // by cluster that is not engaged: since when it could be
}

func newMembers() *members {
	return &members{started: time.Now(), engaged: map[string]*member{}, away: map[string]time.Time{}}
}

// member returns the member of a cluster, or nil.
func (s *members) member(name string) *member {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.engaged[name]
}

// all returns the engaged members, in no order.
func (s *members) all() []*member {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.engaged))
}

// add adds a member, and returns their number.
func (s *members) add(m *member) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engaged[m.Name], m.joined = m, time.Now()
	delete(s.away, m.Name)
	return len(s.engaged)
}

// remove removes a member, unless another one has its name by now, and returns their number.
func (s *members) remove(m *member) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engaged[m.Name] == m {
		delete(s.engaged, m.Name)
		s.away[m.Name] = time.Now()
	}
	return len(s.engaged)
}

// couldBeEngaged records that a cluster can be engaged from now on, and reports whether it is not yet.
func (s *members) couldBeEngaged(cluster string) (awaited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engaged[cluster] != nil {
		return false
	}
	s.away[cluster] = time.Now()
	return true
}

// awaySince returns since when a cluster that could be engaged is not.
func (s *members) awaySince(cluster string) time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if since, known := s.away[cluster]; known {
		return since
	}
	return s.started
}
