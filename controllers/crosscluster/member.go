package crosscluster

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/crosscluster/plan"
	"federation/controllers/held"
	"federation/controllers/supervisor"
)

// member is one engaged member. The items of its queue are Services, namespace/name.
type member struct {
	*Controller
	Member
	queue   workqueue.TypedRateLimitingInterface[string]
	written expectations
	undo    []func() error
	told    eventTimes
	own     ownEndpoints
}

// Indexes by Services: of our slices, of the member's own, and of what was made for exported ones. Our slices are also indexed by the cluster
// whose endpoints they have.
const byRemote, byOwn, byExported, bySource = "remote service", "own service", "exported service", "source cluster"

func (c *Controller) newMember(mem Member) (*member, error) {
	m := &member{Controller: c, Member: mem, own: newOwnEndpoints()}
	m.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](10*time.Millisecond, 30*time.Second))
	slices, all := m.Informers(endpointSlices), m.Informers(services)
	err := errors.Join(
		index(slices, cache.Indexers{byRemote: indexed(serviceOf), byOwn: indexed(ownServiceOf), bySource: indexed(sourceOf)}), index(all, cache.Indexers{byExported: indexed(exportedBy)}),
		m.enqueueFrom(slices, serviceOf), m.enqueueFrom(all, keyOf),
		m.offerFrom(slices, ownServiceOf, pods), m.offerFrom(all, keyOf, pods), m.offerFrom(all, exportedBy, balancers),
	)
	if err != nil {
		m.stop()
		return nil, err
	}
	return m, nil
}

// index adds indexes to an informer, unless an earlier member of the connection has.
func index(informer cache.SharedIndexInformer, add cache.Indexers) error {
	for name := range add {
		if _, there := informer.GetIndexer().GetIndexers()[name]; there {
			return nil
		}
	}
	return informer.AddIndexers(add)
}

func indexed(of func(obj any) []string) cache.IndexFunc {
	return func(obj any) ([]string, error) { return of(obj), nil }
}

// enqueueFrom enqueues the Services of an object that is added, changed or deleted.
func (m *member) enqueueFrom(informer cache.SharedIndexInformer, of func(obj any) []string) error {
	add := func(obj any) {
		for _, service := range of(obj) {
			if m.ownsService(service) {
				m.queue.Add(service)
			}
		}
	}
	return m.handle(informer, add, func(obj any) { m.written.recordDeletion(held.Object(obj)); add(obj) })
}

// handle calls is with each object of an informer that is added or changed, and gone with those that are deleted, until the member is stopped.
func (m *member) handle(informer cache.SharedIndexInformer, is, gone func(obj any)) error {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: is, UpdateFunc: func(_, now any) { is(now) }, DeleteFunc: gone})
	if err == nil {
		m.undo = append(m.undo, func() error { return informer.RemoveEventHandler(registration) })
	}
	return err
}

// serviceOf returns the Service of one of our slices; nothing for other slices.
func serviceOf(obj any) []string {
	slice := held.Object(obj)
	if slice == nil || !plan.Ours(slice.GetLabels()) {
		return nil
	}
	return []string{slice.GetNamespace() + "/" + slice.GetLabels()[v1beta1.RemoteServiceLabel]}
}

// sourceOf returns the cluster whose endpoints one of our slices has; nothing for other slices.
func sourceOf(obj any) []string {
	slice := held.Object(obj)
	if slice == nil || !plan.Ours(slice.GetLabels()) {
		return nil
	}
	return []string{slice.GetLabels()[v1beta1.SourceClusterLabel]}
}

// stop removes our handlers from the informers, and shuts down the queue.
func (m *member) stop() {
	m.queue.ShutDown()
	for _, undo := range m.undo {
		_ = undo() // a stopped informer has no handlers to remove
	}
}

// serve works until ctx is done. It begins when the member's caches are synced and the offers are known: before that,
// every slice would look superfluous. By then the queue has everything that is in the caches.
func (m *member) serve(ctx context.Context) {
	defer m.stop()
	if !cache.WaitForCacheSync(ctx.Done(), m.Informers(services).HasSynced, m.Informers(endpointSlices).HasSynced) {
		return
	}
	if !m.Withdraw {
		select {
		case <-ctx.Done():
			return
		case <-m.Offers.planned:
		}
	}
	m.addMember(m)
	defer m.removeMember(m)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer m.queue.ShutDown()
	for range m.Workers {
		workers.Go(func() { supervisor.ProcessQueue(ctx, "crosscluster", m.queue, m.sync) })
	}
	<-ctx.Done()
}

// snapshot returns what is known of a Service here. ok is false if nothing can be concluded from it: if the federation's
// object cannot be parsed, members keep what they have.
func (m *member) snapshot(service string) (in plan.Input, ok bool) {
	offers, known := m.Offers.of(service)
	in = plan.Input{Member: m.Name, Federation: m.Federation, Offers: offers}
	if obj, there, _ := m.Informers(services).GetStore().GetByKey(service); there && !m.Withdraw &&
		v1beta1.IsCopy(held.Object(obj), schema.GroupKind{Kind: "Service"}, m.Federation) {
		in.Service = &corev1.Service{}
		ok = runtime.DefaultUnstructuredConverter.FromUnstructured(held.Object(obj).Object, in.Service) == nil
	} else {
		known, ok = true, true
	}
	slices, err := m.Informers(endpointSlices).GetIndexer().ByIndex(byRemote, service)
	for _, obj := range m.written.overlay(service, slices) {
		slice := &discoveryv1.EndpointSlice{}
		ok = ok && runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, slice) == nil
		in.Have = append(in.Have, slice)
	}
	if in.Service != nil {
		in.Endpoints, in.Away = m.endpointsOfOthers(service, offers)
	}
	return in, ok && known && err == nil
}
