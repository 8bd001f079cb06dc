package servicedns

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

// followConfigMap calls learn with a ConfigMap of the federation's namespace whenever it changes, and with an empty one
// when it is deleted, until ctx ends. synced reports whether it has been read once.
func followConfigMap(ctx context.Context, running *sync.WaitGroup, kube kubernetes.Interface, name string, learn func(*corev1.ConfigMap)) (synced cache.InformerSynced) {
	maps := kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace)
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	informer := cache.NewSharedInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return maps.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return maps.Watch(ctx, o)
		},
	}, kube), &corev1.ConfigMap{}, 0)
	is := func(obj any) {
		if m, ok := obj.(*corev1.ConfigMap); ok && m.Name == name { // fake clients ignore field selectors
			learn(m)
		}
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    is,
		UpdateFunc: func(_, now any) { is(now) },
		DeleteFunc: func(gone any) {
			if last, ok := gone.(cache.DeletedFinalStateUnknown); ok {
				gone = last.Obj
			}
			if m, ok := gone.(*corev1.ConfigMap); ok && m.Name == name {
				learn(&corev1.ConfigMap{})
			}
		},
	})
	if err != nil {
		klog.ErrorS(err, "Cannot watch a ConfigMap", "configMap", name) // fails only for a stopped informer
		return func() bool { return true }
	}
	running.Go(func() { informer.RunWithContext(ctx) })
	return handler.HasSynced
}
