package autoscaling

import (
	"hash/fnv"
	"slices"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	listers "k8s.io/client-go/listers/autoscaling/v2"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
)

// autoscalers are those that stay at the federation, each in the lane of the workload that it scales.
type autoscalers struct {
	all    cache.SharedIndexInformer // of all autoscalers, as others have it
	lanes  []*lane
	synced cache.InformerSynced

	mu        sync.Mutex
	selectors map[string]labels.Selector // what those select that have been looked at, by namespace and name
}

// lane has autoscalers that are looked at one after the other. It is an informer of these as far as Kubernetes' controller uses one.
type lane struct {
	cache.SharedIndexInformer // nil: what is not used
	of                        *autoscalers
	ours                      cache.Indexer
	to                        cache.ResourceEventHandler
}

func newAutoscalers(all cache.SharedIndexInformer) *autoscalers {
	a := &autoscalers{all: all, selectors: map[string]labels.Selector{}}
	for range lanes {
		a.lanes = append(a.lanes, &lane{of: a, ours: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})})
	}
	return a
}

// listen has the lanes told of all autoscalers, when each has who is to be told.
func (a *autoscalers) listen() error {
	registration, err := a.all.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { a.take(held.Object(obj), initial) },
		UpdateFunc: func(_, is any) { a.take(held.Object(is), false) },
		DeleteFunc: func(obj any) { a.drop(held.Object(obj), nil) },
	})
	if err == nil {
		a.synced = registration.HasSynced
	}
	return err
}

// take takes in an autoscaler, if it stays at the federation.
func (a *autoscalers) take(u *unstructured.Unstructured, initial bool) {
	is := &autoscalingv2.HorizontalPodAutoscaler{}
	if !v1beta1.StaysAtFederation(u) || u.GetDeletionTimestamp() != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, is) != nil {
		a.drop(u, nil)
		return
	}
	to := a.lanes[laneOf(is)]
	a.drop(u, to)                    // it may have scaled another workload before
	was, known, _ := to.ours.Get(is) // its key cannot fail
	if known {
		_ = to.ours.Update(is)
		to.to.OnUpdate(was, is)
		return
	}
	_ = to.ours.Add(is)
	to.to.OnAdd(is, initial)
}

// drop has all lanes but one forget an autoscaler.
func (a *autoscalers) drop(u *unstructured.Unstructured, but *lane) {
	key := u.GetNamespace() + "/" + u.GetName()
	for _, l := range a.lanes {
		if was, known, _ := l.ours.GetByKey(key); known && l != but {
			_ = l.ours.Delete(was)
			l.to.OnDelete(was)
		}
	}
	if but == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.selectors, key)
	}
}

// laneOf returns the number of the lane of an autoscaler: those of one workload have the same, so that Kubernetes' controller notices them.
func laneOf(of *autoscalingv2.HorizontalPodAutoscaler) uint32 {
	h, to := fnv.New32a(), of.Spec.ScaleTargetRef
	for _, part := range []string{of.Namespace, to.Kind, to.Name} {
		_, _ = h.Write([]byte(part + "/")) // never fails
	}
	return h.Sum32() % lanes
}

// sharing notes what an autoscaler selects, and returns others of its namespace, by name, that select pods with the same labels. Kubernetes'
// controller notices only those of the same lane.
func (a *autoscalers) sharing(with *autoscalingv2.HorizontalPodAutoscaler, selector labels.Selector, pods labels.Set) (others []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	this := with.Namespace + "/" + with.Name
	a.selectors[this] = selector
	for key, of := range a.selectors {
		namespace, name, _ := cache.SplitMetaNamespaceKey(key)
		if key != this && namespace == with.Namespace && len(pods) > 0 && of.Matches(pods) { // of a custom kind without a template none are known
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return others
}

// Informer implements Kubernetes' HorizontalPodAutoscalerInformer.
func (l *lane) Informer() cache.SharedIndexInformer { return l }

// Lister implements Kubernetes' HorizontalPodAutoscalerInformer.
func (l *lane) Lister() listers.HorizontalPodAutoscalerLister {
	return listers.NewHorizontalPodAutoscalerLister(l.ours)
}

// HasSynced implements cache.SharedIndexInformer.
func (l *lane) HasSynced() bool { return l.of.synced() }

// AddEventHandlerWithResyncPeriod implements cache.SharedIndexInformer, for the one handler that there is. Nothing is sent again: the
// controller enqueues each autoscaler again by itself.
func (l *lane) AddEventHandlerWithResyncPeriod(to cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	l.to = to
	return nil, nil // nobody uses it
}

// scaling returns the autoscaler of a workload; the first by name if there are several; nil if there is none.
func (l *lane) scaling(kind, namespace, name string) (first *autoscalingv2.HorizontalPodAutoscaler) {
	all, _ := l.ours.ByIndex(cache.NamespaceIndex, namespace) // there is such an index
	for _, obj := range all {
		one := obj.(*autoscalingv2.HorizontalPodAutoscaler)
		if to := one.Spec.ScaleTargetRef; to.Kind == kind && to.Name == name && (first == nil || one.Name < first.Name) {
			first = one
		}
	}
	return first
}
