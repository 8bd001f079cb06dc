package crosscluster

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/crosscluster/plan"
	"federation/controllers/held"
	servicednsplan "federation/controllers/servicedns/plan"
)

// ownEndpoints are what a member itself has of Services, as far as others have asked: so each change is decoded once.
type ownEndpoints struct {
	mu    sync.Mutex
	known map[string]plan.Endpoints
	// pace is that of changes for others, so that endpoints that come and go without end cost them little.
	pace plan.Pace
}

func newOwnEndpoints() ownEndpoints {
	return ownEndpoints{known: map[string]plan.Endpoints{}, pace: plan.Pace{Settle: 50 * time.Millisecond, Every: 500 * time.Millisecond, Burst: 1}}
}

func (o *ownEndpoints) forget(service string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.known, service)
}

// delay returns how long others wait for a change that happens now.
func (o *ownEndpoints) delay(service string) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pace.Delay(service, time.Now())
}

// of returns what the member has of a Service, from read if that is not known.
func (o *ownEndpoints) of(service string, read func() plan.Endpoints) plan.Endpoints {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, known := o.known[service]
	if !known {
		e = read()
		o.known[service] = e
	}
	return e
}

// ownServiceOf returns the Service of one of a member's own slices; nothing for other slices.
func ownServiceOf(obj any) []string {
	slice := held.Object(obj)
	if slice == nil || slice.GetLabels()[discoveryv1.LabelServiceName] == "" {
		return nil
	}
	return []string{slice.GetNamespace() + "/" + slice.GetLabels()[discoveryv1.LabelServiceName]}
}

// exportedBy returns the exported Service for which a Service was made by which other networks reach it (ADR 139); nothing for other Services.
func exportedBy(obj any) []string {
	s := held.Object(obj)
	if s == nil || s.GetLabels()[v1beta1.ExportedServiceLabel] == "" {
		return nil
	}
	return []string{s.GetNamespace() + "/" + s.GetLabels()[v1beta1.ExportedServiceLabel]}
}

func keyOf(obj any) []string {
	key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj) // never fails for objects of informers
	return []string{key}
}

// offerFrom has others look again at the Services of an object that is added, changed or deleted, once the caches are synced; by says
// what the object is to them.
func (m *member) offerFrom(informer cache.SharedIndexInformer, of func(obj any) []string, by way) error {
	do := func(obj any) {
		for _, service := range of(obj) {
			m.own.forget(service)
			if m.isAtWork() {
				m.offer(service, by)
			}
		}
	}
	return m.handle(informer, do, do)
}

func (m *member) isAtWork() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.members[m]
}

// enqueueSlicesOf enqueues the Services of which the member has slices of another one. While that was not at work they stayed, also those that the
// member is to have no longer, because its network is another one now.
func (m *member) enqueueSlicesOf(other string) {
	objs, _ := m.Informers(endpointSlices).GetIndexer().ByIndex(bySource, other) // the index is there
	for _, obj := range objs {
		for _, service := range serviceOf(obj) {
			if m.ownsService(service) {
				m.queue.Add(service)
			}
		}
	}
}

// offerAll enqueues all Services that the member has in the members that use what it has of them.
func (m *member) offerAll() {
	for _, service := range m.Informers(services).GetStore().ListKeys() {
		m.offer(service, pods)
	}
}

// way is how clients reach what a member has of a Service.
type way int

const (
	pods way = iota
	balancers
)

// offer enqueues a Service in the members that use what this one has of it.
func (m *member) offer(service string, by way) {
	offers, _ := m.Offers.of(service)
	if !m.ownsService(service) || !areOfPods(offers) {
		return
	}
	network, use := networkOf(offers, m.Name), map[string]bool{}
	balanced := by == balancers || m.hasBalancer(service)
	if network == "" && !balanced {
		return
	}
	for _, o := range offers {
		use[o.Cluster] = balanced || o.Network == network
	}
	delay := m.own.delay(service)
	m.mu.Lock()
	defer m.mu.Unlock()
	for other := range m.members {
		if other != m && use[other.Name] {
			other.queue.AddAfter(service, delay)
		}
	}
}

// areOfPods reports whether the clusters offer pods. Of one Service all do, or none.
func areOfPods(offers []servicednsplan.Offer) bool { return len(offers) > 0 && offers[0].ByPods }

// networkOf returns the network of a cluster's pods, "" if it is not known.
func networkOf(offers []servicednsplan.Offer, cluster string) string {
	i, found := slices.BinarySearchFunc(offers, cluster, func(o servicednsplan.Offer, name string) int { return strings.Compare(o.Cluster, name) })
	if !found {
		return ""
	}
	return offers[i].Network
}

// endpointsOfOthers returns, for offers of pods, what the members at work have of a Service, as far as this one can use it; and those that
// were at work, and are not now.
func (m *member) endpointsOfOthers(service string, offers []servicednsplan.Offer) (all map[string]plan.Endpoints, away map[string]bool) {
	if !areOfPods(offers) {
		return nil, nil
	}
	m.mu.Lock()
	others, away := maps.Clone(m.members), maps.Clone(m.away)
	m.mu.Unlock()
	all = map[string]plan.Endpoints{}
	network := networkOf(offers, m.Name)
	for other := range others {
		var e plan.Endpoints
		if of := networkOf(offers, other.Name); of != "" && of == network || other.hasBalancer(service) {
			e = other.own.of(service, func() plan.Endpoints { return other.readOwn(service) })
		}
		all[other.Name] = e
	}
	return all, away
}

// readOwn reads what the member itself has of a Service: of its copy, nothing of somebody else's of that name.
func (m *member) readOwn(service string) plan.Endpoints {
	obj, there, _ := m.Informers(services).GetStore().GetByKey(service)
	if !there || !v1beta1.IsCopy(held.Object(obj), schema.GroupKind{Kind: "Service"}, m.Federation) {
		return plan.Endpoints{}
	}
	return plan.EndpointsOf(decoded[discoveryv1.EndpointSlice](m, endpointSlices, byOwn, service), decoded[corev1.Service](m, services, byExported, service))
}

// hasBalancer reports whether a Service was made in the member by which other networks reach an exported one.
func (m *member) hasBalancer(service string) bool {
	keys, err := m.Informers(services).GetIndexer().IndexKeys(byExported, service)
	return err == nil && len(keys) > 0
}

// decoded returns the objects of an index, without those that cannot be decoded.
func decoded[T any](m *member, r schema.GroupVersionResource, index, key string) (all []*T) {
	objs, _ := m.Informers(r).GetIndexer().ByIndex(index, key) // the index is there
	for _, obj := range objs {
		into := new(T)
		if runtime.DefaultUnstructuredConverter.FromUnstructured(held.Object(obj).Object, into) == nil {
			all = append(all, into)
		}
	}
	return all
}
