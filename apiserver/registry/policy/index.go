package policy

import (
	"context"
	"fmt"
	"maps"
	"sync"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
)

// Index has all policies by namespace and name. The policies are shared and must not be changed.
type Index struct {
	mu     sync.RWMutex
	spaces map[string]map[string]*v1beta1.PlacementPolicy
	// gone has the version at which a policy was deleted here, by namespace and name, until the watch reports it too:
	// its earlier events are stale.
	gone   map[types.NamespacedName]uint64
	store  *genericregistry.Store
	synced chan struct{}
	once   sync.Once
}

var _ cache.ReflectorStore = &Index{}

// NewIndex returns an empty index, which NewREST and Follow fill.
func NewIndex() *Index {
	return &Index{
		spaces: map[string]map[string]*v1beta1.PlacementPolicy{}, gone: map[types.NamespacedName]uint64{}, synced: make(chan struct{}),
	}
}

// In returns the policies of a namespace, in no order. It costs nothing if there are none.
func (i *Index) In(namespace string) []*v1beta1.PlacementPolicy {
	i.mu.RLock()
	defer i.mu.RUnlock()
	of := i.spaces[namespace]
	if len(of) == 0 {
		return nil
	}
	all := make([]*v1beta1.PlacementPolicy, 0, len(of))
	for _, p := range of {
		all = append(all, p)
	}
	return all
}

// Synced reports whether the index has had all policies that were stored when Follow began.
func (i *Index) Synced() bool {
	select {
	case <-i.synced:
		return true
	default:
		return false
	}
}

// Follow fills the index from the store, and follows writes of other servers, until ctx ends.
func (i *Index) Follow(ctx context.Context) {
	ctx = request.WithNamespace(ctx, metav1.NamespaceAll)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return i.store.List(ctx, internal(o))
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := i.store.Watch(ctx, internal(o))
			if err != nil {
				return nil, err
			}
			return watch.Filter(w, unwrap), nil
		},
	}
	cache.NewReflectorWithOptions(lw, &v1beta1.PlacementPolicy{}, i, cache.ReflectorOptions{Name: "policies of admission"}).RunWithContext(ctx)
}

// unwrap unwraps an object that watchers of one store share to encode it once.
func unwrap(e watch.Event) (watch.Event, bool) {
	if shared, ok := e.Object.(runtime.CacheableObject); ok {
		e.Object = shared.GetObject()
	}
	return e, true
}

func internal(o metav1.ListOptions) *metainternalversion.ListOptions {
	to := &metainternalversion.ListOptions{}
	if err := metainternalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&o, to, nil); err != nil {
		return nil // cannot happen: a reflector selects nothing
	}
	return to
}

// hook makes a store update the index before the client has its response.
func (i *Index) hook(store *genericregistry.Store) {
	i.store = store
	note := func(obj runtime.Object, dry []string, noteIt func(any) error) {
		if !dryrun.IsDryRun(dry) {
			_ = noteIt(obj.DeepCopyObject()) // fails on nothing that this store holds
		}
	}
	store.AfterCreate = func(obj runtime.Object, o *metav1.CreateOptions) { note(obj, o.DryRun, i.Add) }
	store.AfterUpdate = func(obj runtime.Object, o *metav1.UpdateOptions) { note(obj, o.DryRun, i.Update) }
	store.AfterDelete = func(obj runtime.Object, o *metav1.DeleteOptions) { note(obj, o.DryRun, i.deletedHere) }
}

// Add records a policy, if it is newer than the known one.
func (i *Index) Add(obj any) error {
	p, ok := obj.(*v1beta1.PlacementPolicy)
	if !ok {
		return fmt.Errorf("index of policies: %T is none", obj)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if resourceversion.Of(p) <= i.gone[key(p)] {
		return nil
	}
	of := i.spaces[p.Namespace]
	if of == nil {
		of = map[string]*v1beta1.PlacementPolicy{}
		i.spaces[p.Namespace] = of
	}
	if was := of[p.Name]; was == nil || resourceversion.Of(was) < resourceversion.Of(p) {
		of[p.Name] = p
	}
	return nil
}

// Update is Add.
func (i *Index) Update(obj any) error { return i.Add(obj) }

// Delete forgets a policy, unless the known one is newer.
func (i *Index) Delete(obj any) error {
	p, ok := obj.(*v1beta1.PlacementPolicy)
	if !ok {
		return fmt.Errorf("index of policies: %T is none", obj)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forget(p)
	if i.gone[key(p)] <= resourceversion.Of(p) {
		delete(i.gone, key(p))
	}
	return nil
}

// deletedHere is Delete before the watch reports it.
func (i *Index) deletedHere(obj any) error {
	p, ok := obj.(*v1beta1.PlacementPolicy)
	if !ok {
		return fmt.Errorf("index of policies: %T is none", obj)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forget(p)
	i.gone[key(p)] = resourceversion.Of(p)
	return nil
}

func (i *Index) forget(p *v1beta1.PlacementPolicy) {
	of := i.spaces[p.Namespace]
	if was := of[p.Name]; was != nil && resourceversion.Of(was) <= resourceversion.Of(p) {
		delete(of, p.Name)
	}
	if len(of) == 0 {
		delete(i.spaces, p.Namespace)
	}
}

// Replace sets the index to a list, except for what is newer than the list.
func (i *Index) Replace(list []any, resourceVersion string) error {
	at := resourceversion.Parse(resourceVersion)
	i.mu.Lock()
	maps.DeleteFunc(i.gone, func(_ types.NamespacedName, v uint64) bool { return v <= at })
	for namespace, of := range i.spaces {
		maps.DeleteFunc(of, func(_ string, p *v1beta1.PlacementPolicy) bool { return resourceversion.Of(p) <= at })
		if len(of) == 0 {
			delete(i.spaces, namespace)
		}
	}
	i.mu.Unlock()
	for _, p := range list {
		if err := i.Add(p); err != nil {
			return err
		}
	}
	i.once.Do(func() { close(i.synced) })
	return nil
}

// Resync does nothing.
func (*Index) Resync() error { return nil }

func key(p *v1beta1.PlacementPolicy) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}
