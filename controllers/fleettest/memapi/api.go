package memapi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Resource is a resource that an API serves.
type Resource struct {
	schema.GroupVersionResource
	// Kind is the name of its kind.
	Kind string
	// Namespaced: its objects are in namespaces.
	Namespaced bool
	// Status: it has the subresource status. Without it, status is a field as any other.
	Status bool
	// Generation: its objects count the changes of what is asked for.
	Generation bool
}

func (r Resource) gvk() schema.GroupVersionKind { return r.GroupVersion().WithKind(r.Kind) }

// Options say what an API serves and what it does to objects that come in.
type Options struct {
	Resources []Resource
	// Admit may change an object before it is stored, or refuse it. before is nil for a new one. It is called with
	// the API locked: it must not use the API. Nil admits everything.
	Admit func(r Resource, before, after *unstructured.Unstructured) error
	// Deleting may change an object whose deletion begins, in the write that says so. Locked as Admit is.
	Deleting func(r Resource, object *unstructured.Unstructured, options metav1.DeleteOptions)
}

// API holds objects. It is safe for use by several goroutines.
type API struct {
	options Options
	changes atomic.Uint64

	mu        sync.Mutex
	version   uint64
	uids      uint64
	resources map[schema.GroupVersionResource]*store
	sorted    []Resource // by name
	managers  map[string]manager
}

// store has the objects of one resource and their last changes.
type store struct {
	Resource
	objects map[types.NamespacedName]*unstructured.Unstructured
	history []change
	// forgotten is the version up to which history does not reach any more.
	forgotten uint64
	watches   map[*watcher]bool
}

// change is one write of an object: before is nil for a new one, after for one that is gone.
type change struct {
	at            time.Time
	version       uint64
	before, after *unstructured.Unstructured
	was, is       labels.Set
}

// labelsOf are those of an object; none of nil.
func labelsOf(u *unstructured.Unstructured) labels.Set {
	if u == nil {
		return nil
	}
	return u.GetLabels()
}

// copyOf returns a copy that may be changed, except what is in its managed fields, which are a large part of it: who changes them sets others.
func copyOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	metadata, _ := u.Object["metadata"].(map[string]any)
	managed, ok := metadata["managedFields"]
	if !ok {
		return u.DeepCopy()
	}
	few := maps.Clone(metadata)
	delete(few, "managedFields")
	out := maps.Clone(u.Object)
	out["metadata"] = few
	out = runtime.DeepCopyJSON(out)
	out["metadata"].(map[string]any)["managedFields"] = managed
	return &unstructured.Unstructured{Object: out}
}

// A watch can begin before the last maxHistory changes of a resource, and before all of the last keptFor: other API servers keep theirs for five minutes.
const (
	maxHistory = 1000
	keptFor    = 20 * time.Minute
)

// forget drops the first n changes.
func (s *store) forget(n int) {
	if n > 0 {
		s.forgotten = s.history[n-1].version
		s.history = slices.Clone(s.history[n:])
	}
}

// trim drops what is too much, or too old. It looks for the latter now and then.
func (s *store) trim(now time.Time) {
	n := len(s.history)
	switch old := now.Add(-keptFor); {
	case n > 2*maxHistory:
		s.forget(n - maxHistory)
	case n%64 == 0:
		s.forget(slices.IndexFunc(s.history, func(c change) bool { return c.at.After(old) }))
	}
}

// New makes an API without objects, but for the namespace default where it has namespaces.
func New(o Options) *API {
	a := &API{options: o, version: 1, resources: map[schema.GroupVersionResource]*store{}, managers: map[string]manager{}}
	for _, r := range o.Resources {
		a.Serve(r)
	}
	return a
}

// Serve adds a resource, unless it is served already.
func (a *API) Serve(r Resource) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.resources[r.GroupVersionResource] == nil {
		a.resources[r.GroupVersionResource] = &store{
			Resource: r, objects: map[types.NamespacedName]*unstructured.Unstructured{}, watches: map[*watcher]bool{},
		}
		a.sorted = append(slices.Clone(a.sorted), r) // what Resources has returned stays as it is
		slices.SortFunc(a.sorted, func(x, y Resource) int { return strings.Compare(x.Resource, y.Resource) })
	}
}

// Version is the version of the last write.
func (a *API) Version() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.version
}

// Changes counts what has changed: unlike the version, it does not go back when the API is restored.
func (a *API) Changes() uint64 { return a.changes.Load() }

// Resources returns what is served, sorted by name. It must not be changed.
func (a *API) Resources() []Resource {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sorted
}

// List returns the objects of a resource that a selector matches, sorted by key. Nil matches all. They are what is stored,
// not copies: they never change, and must not be changed.
func (a *API) List(gvr schema.GroupVersionResource, selector labels.Selector) []*unstructured.Unstructured {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.resources[gvr]
	if s == nil {
		return nil
	}
	return s.list("", selector)
}

// Get returns an object, nil where there is none. It is what is stored, not a copy: it must not be changed.
func (a *API) Get(gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.resources[gvr]; s != nil {
		return s.objects[types.NamespacedName{Namespace: namespace, Name: name}]
	}
	return nil
}

// getAsOf returns an object as it was at a version that the history reaches; 0 is now.
func (a *API) getAsOf(s *store, key types.NamespacedName, asOf uint64) *unstructured.Unstructured {
	a.mu.Lock()
	defer a.mu.Unlock()
	if asOf == 0 {
		return s.objects[key]
	}
	return s.before(asOf)[key]
}

// before is what there was at a version, or at the first one that the history reaches.
func (s *store) before(version uint64) map[types.NamespacedName]*unstructured.Unstructured {
	out := maps.Clone(s.objects)
	for _, c := range slices.Backward(s.history) {
		switch {
		case c.version <= version:
			return out
		case c.before == nil:
			delete(out, keyOf(c.after))
		default:
			out[keyOf(c.before)] = c.before
		}
	}
	return out
}

func (s *store) list(namespace string, selector labels.Selector) []*unstructured.Unstructured {
	return listed(s.objects, namespace, selector)
}

func listed(objects map[types.NamespacedName]*unstructured.Unstructured, namespace string, selector labels.Selector) (out []*unstructured.Unstructured) {
	var keys []types.NamespacedName
	for key, u := range objects {
		if (namespace == "" || key.Namespace == namespace) && (selector == nil || selector.Matches(labels.Set(u.GetLabels()))) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(x, y types.NamespacedName) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	for _, key := range keys {
		out = append(out, objects[key])
	}
	return out
}

// find returns the store of a resource, or the error that says it is not served.
func (a *API) find(gvr schema.GroupVersionResource) (*store, error) {
	if s := a.resources[gvr]; s != nil {
		return s, nil
	}
	return nil, apierrors.NewGenericServerResponse(404, "", gvr.GroupResource(), "", "404 page not found", 0, true)
}

// commit stores after in place of before and tells the watches. It returns what is stored.
func (a *API) commit(s *store, before, after *unstructured.Unstructured) *unstructured.Unstructured {
	a.version++
	a.changes.Add(1)
	c := change{time.Now(), a.version, before, after, labelsOf(before), labelsOf(after)}
	key := keyOf(before)
	if after != nil {
		key = keyOf(after)
		after.SetResourceVersion(strconv.FormatUint(a.version, 10))
		s.objects[key] = after
	} else {
		delete(s.objects, key)
	}
	s.history = append(s.history, c)
	s.trim(c.at)
	for w := range s.watches {
		w.tell(c)
	}
	return after
}

// newUID counts: equal runs give equal UIDs.
func (a *API) newUID() types.UID {
	a.uids++
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", a.uids))
}

func keyOf(u *unstructured.Unstructured) types.NamespacedName {
	if u == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
}
