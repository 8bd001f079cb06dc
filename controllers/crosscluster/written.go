package crosscluster

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/resourceversion"
	"federation/controllers/held"
)

// written is what our writes left in a member that its cache has not seen yet: what comes of one write must not look as if the
// next ones were still to be made.
type written struct {
	mu   sync.Mutex
	left map[string]map[string]left // by Service, and the slice's name
}

// left is what one write left: the slice, or its UID where it was deleted.
type left struct {
	slice   *unstructured.Unstructured
	deleted types.UID
}

func (w *written) note(service, name string, l left) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == nil {
		w.left = map[string]map[string]left{}
	}
	if w.left[service] == nil {
		w.left[service] = map[string]left{}
	}
	w.left[service][name] = l
}

// gone notes that the cache has seen an object go. That our write of it came before that is known by the UID.
func (w *written) gone(u *unstructured.Unstructured) {
	for _, service := range serviceOf(u) {
		w.mu.Lock()
		if l := w.left[service][u.GetName()]; l.slice != nil && l.slice.GetUID() == u.GetUID() || l.deleted == u.GetUID() {
			w.drop(service, u.GetName())
		}
		w.mu.Unlock()
	}
}

// forget drops what was noted of a slice that is not there.
func (w *written) forget(service, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(service, name)
}

func (w *written) drop(service, name string) {
	if delete(w.left[service], name); len(w.left[service]) == 0 {
		delete(w.left, service)
	}
}

// over returns the slices of a Service as the cache has them, with what our writes left put over them where the cache is behind.
func (w *written) over(service string, cached []any) (all []*unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[string]bool{}
	for _, obj := range cached {
		u := held.Object(obj)
		l, noted := w.left[service][u.GetName()]
		seen[u.GetName()] = true
		switch {
		case !noted:
			all = append(all, u)
		case l.slice == nil && l.deleted == u.GetUID():
		case l.slice != nil && resourceversion.Of(l.slice) > resourceversion.Of(u):
			all = append(all, l.slice)
		default:
			w.drop(service, u.GetName())
			all = append(all, u)
		}
	}
	for name, l := range w.left[service] {
		if !seen[name] && l.slice != nil {
			all = append(all, l.slice)
		} else if !seen[name] {
			w.drop(service, name)
		}
	}
	return all
}
