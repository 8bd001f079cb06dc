package autoscaling

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	listers "k8s.io/client-go/listers/autoscaling/v2"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
)

// autoscalers are those that stay at the federation. They are an informer as far as Kubernetes' controller uses one.
type autoscalers struct {
	cache.SharedIndexInformer // of all autoscalers, as others have it
	ours                      cache.Indexer
	synced                    cache.InformerSynced
}

func newAutoscalers(all cache.SharedIndexInformer) *autoscalers {
	return &autoscalers{SharedIndexInformer: all, ours: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
}

// Informer implements Kubernetes' HorizontalPodAutoscalerInformer.
func (a *autoscalers) Informer() cache.SharedIndexInformer { return a }

// Lister implements Kubernetes' HorizontalPodAutoscalerInformer.
func (a *autoscalers) Lister() listers.HorizontalPodAutoscalerLister {
	return listers.NewHorizontalPodAutoscalerLister(a.ours)
}

// HasSynced implements cache.SharedIndexInformer.
func (a *autoscalers) HasSynced() bool { return a.synced != nil && a.synced() }

// AddEventHandlerWithResyncPeriod implements cache.SharedIndexInformer, for the one handler that there is. Nothing is sent again: the
// controller enqueues each autoscaler again by itself.
func (a *autoscalers) AddEventHandlerWithResyncPeriod(to cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	registration, err := a.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { a.take(held.Object(obj), to, initial) },
		UpdateFunc: func(_, is any) { a.take(held.Object(is), to, false) },
		DeleteFunc: func(obj any) { a.drop(held.Object(obj), to) },
	})
	if err == nil {
		a.synced = registration.HasSynced
	}
	return registration, err
}

// take takes in an autoscaler, if it stays at the federation.
func (a *autoscalers) take(u *unstructured.Unstructured, to cache.ResourceEventHandler, initial bool) {
	is := &autoscalingv2.HorizontalPodAutoscaler{}
	if !v1beta1.StaysAtFederation(u) || u.GetDeletionTimestamp() != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, is) != nil {
		a.drop(u, to)
		return
	}
	was, known, _ := a.ours.Get(is) // its key cannot fail
	if known {
		_ = a.ours.Update(is)
		to.OnUpdate(was, is)
		return
	}
	_ = a.ours.Add(is)
	to.OnAdd(is, initial)
}

// drop forgets an autoscaler that is gone, or in clusters.
func (a *autoscalers) drop(u *unstructured.Unstructured, to cache.ResourceEventHandler) {
	key := u.GetNamespace() + "/" + u.GetName()
	if was, known, _ := a.ours.GetByKey(key); known {
		_ = a.ours.Delete(was)
		to.OnDelete(was)
	}
}

// of returns the autoscaler of a workload; the first by name if there are several; nil if there is none.
func (a *autoscalers) of(kind, namespace, name string) (first *autoscalingv2.HorizontalPodAutoscaler) {
	all, _ := a.ours.ByIndex(cache.NamespaceIndex, namespace) // there is such an index
	for _, obj := range all {
		one := obj.(*autoscalingv2.HorizontalPodAutoscaler)
		if to := one.Spec.ScaleTargetRef; to.Kind == kind && to.Name == name && (first == nil || one.Name < first.Name) {
			first = one
		}
	}
	return first
}
