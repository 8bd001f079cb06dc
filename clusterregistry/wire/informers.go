package wire

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"federation/clusterregistry/limits"
	"federation/clusterregistry/limits/weight"
)

// Source is where informers read, and what of it they hold.
type Source struct {
	// Kube reads Kubernetes' own kinds: give it protobuf.
	Kube kubernetes.Interface
	// Dynamic reads all others.
	Dynamic dynamic.Interface
	// Slim is asked first.
	Slim Slim
	// Whole tells of an object whether more than its name, labels and the like is held of it. nil: of all.
	Whole func(kind string, o metav1.Object) bool
	// Meter counts what is held; nil: nobody does.
	Meter *limits.Meter
	// Select changes what is listed and watched, if it is not nil.
	Select func(*metav1.ListOptions)
	// Namespace is the only one that is listed and watched; "": all.
	Namespace string
}

// Informers makes informers, one for a resource. They hold objects packed, and give them out as unstructured ones.
type Informers struct {
	Source
	made    sync.Map // schema.GroupVersionResource → cache.SharedIndexInformer
	typed   informers.SharedInformerFactory
	dynamic dynamicinformer.DynamicSharedInformerFactory
}

// NewInformers makes informers that run once they have been started.
func NewInformers(s Source) *Informers {
	if s.Select == nil {
		s.Select = func(*metav1.ListOptions) {}
	}
	i := &Informers{Source: s}
	i.typed = informers.NewSharedInformerFactoryWithOptions(s.Kube, 0, informers.WithNamespace(s.Namespace), informers.WithTweakListOptions(s.Select), informers.WithTransform(i.hold))
	i.dynamic = dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.Dynamic, 0, s.Namespace, s.Select)
	return i
}

// Another returns informers of the same source that nobody else has.
func (i *Informers) Another() *Informers { return NewInformers(i.Source) }

// ForResource returns the informer of a resource. It runs once Start has been called after that.
func (i *Informers) ForResource(r schema.GroupVersionResource) cache.SharedIndexInformer {
	if made, ok := i.made.Load(r); ok {
		return made.(cache.SharedIndexInformer)
	}
	made, _ := i.made.LoadOrStore(r, i.make(r))
	return made.(cache.SharedIndexInformer)
}

func (i *Informers) make(r schema.GroupVersionResource) cache.SharedIndexInformer {
	if typed, err := i.typed.ForResource(r); err == nil {
		return unpacking{typed.Informer()}
	}
	informer := i.dynamic.ForResource(r).Informer()
	_ = informer.SetTransform(i.hold) // fails only on one that runs, and then it is set
	return informer
}

// Start starts the informers that have been asked for and do not run yet.
func (i *Informers) Start(stop <-chan struct{}) {
	i.typed.Start(stop)
	i.dynamic.Start(stop)
}

// hold makes of an object what is held of it.
func (i *Informers) hold(obj any) (any, error) {
	o, ok := obj.(interface {
		runtime.Object
		metav1.Object
	})
	if !ok {
		return obj, nil // it is held already
	}
	kind := o.GetObjectKind().GroupVersionKind()
	u, custom := obj.(*unstructured.Unstructured)
	if !custom { // what comes from typed clients does not say
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			return nil, err
		}
		kind = kinds[0]
	}
	i.Slim(o)
	if i.Whole != nil && !i.Whole(kind.Kind, o) {
		keepMetadata(o)
	}
	if custom {
		limits.Hold(i.Meter, u, sizeOf(u.Object))
		return u, nil
	}
	held, err := pack(o, kind)
	switch held := held.(type) {
	case *packed:
		limits.Hold(i.Meter, held, int(weight.OfContent(kind, held.data))) // as lists of all are made unstructured at once
	case *unstructured.Unstructured:
		limits.Hold(i.Meter, held, sizeOf(held.Object))
	}
	return held, err
}

// sizeOf is about what a value of JSON takes in memory, in bytes.
func sizeOf(value any) int {
	const entry = 64 // of a map or a list
	switch v := value.(type) {
	case map[string]any:
		size := entry
		for key, value := range v {
			size += entry + len(key) + sizeOf(value)
		}
		return size
	case []any:
		size := entry
		for _, value := range v {
			size += sizeOf(value)
		}
		return size
	case string:
		return 16 + len(v)
	}
	return 16
}

// unpacking is an informer that gives out unstructured objects.
type unpacking struct{ cache.SharedIndexInformer }

// Packed returns the same informer, but one that hands objects to its handlers as they are held. Such an object answers
// for its name, UID, resource version, deletion and finalizers, and tells with OnlyStatusDiffers and Unpack more.
func (i unpacking) Packed() cache.SharedIndexInformer { return i.SharedIndexInformer }

// AddEventHandler implements cache.SharedInformer.
func (i unpacking) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(unpackingHandler(h))
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (i unpacking) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(unpackingHandler(h), resync)
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (i unpacking) AddEventHandlerWithOptions(h cache.ResourceEventHandler, o cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithOptions(unpackingHandler(h), o)
}

func unpackingHandler(h cache.ResourceEventHandler) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { h.OnAdd(unpack(obj), initial) },
		UpdateFunc: func(was, is any) { h.OnUpdate(unpack(was), unpack(is)) },
		DeleteFunc: func(obj any) { h.OnDelete(unpack(obj)) },
	}
}

// GetStore implements cache.SharedInformer.
func (i unpacking) GetStore() cache.Store { return i.GetIndexer() }

// GetIndexer implements cache.SharedIndexInformer.
func (i unpacking) GetIndexer() cache.Indexer {
	return unpackingIndexer{i.SharedIndexInformer.GetIndexer()}
}

// AddIndexers implements cache.SharedIndexInformer.
func (i unpacking) AddIndexers(all cache.Indexers) error {
	of := cache.Indexers{}
	for name, index := range all {
		of[name] = func(obj any) ([]string, error) { return index(unpack(obj)) }
	}
	return i.SharedIndexInformer.AddIndexers(of)
}

// unpackingIndexer reads from an indexer. What writes to it is the informer's own.
type unpackingIndexer struct{ cache.Indexer }

func unpackAll(all []any) []any {
	for n := range all {
		all[n] = unpack(all[n])
	}
	return all
}

// List implements cache.Store.
func (i unpackingIndexer) List() []any { return unpackAll(i.Indexer.List()) }

// Get implements cache.Store.
func (i unpackingIndexer) Get(obj any) (any, bool, error) {
	held, ok, err := i.Indexer.Get(obj)
	return unpack(held), ok, err
}

// GetByKey implements cache.Store.
func (i unpackingIndexer) GetByKey(key string) (any, bool, error) {
	held, ok, err := i.Indexer.GetByKey(key)
	return unpack(held), ok, err
}

// Index implements cache.Indexer.
func (i unpackingIndexer) Index(name string, obj any) ([]any, error) {
	all, err := i.Indexer.Index(name, obj)
	return unpackAll(all), err
}

// ByIndex implements cache.Indexer.
func (i unpackingIndexer) ByIndex(name, value string) ([]any, error) {
	all, err := i.Indexer.ByIndex(name, value)
	return unpackAll(all), err
}
