package crosscluster

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/resourceversion"
	"federation/controllers/held"
)

// expectations has the results of our writes that a member's cache has not seen yet: an event of one write must not repeat
// the next ones.
type expectations struct {
	mu   sync.Mutex
	left map[string]map[string]left // by Service, then slice name
}

// left is the result of one write: the slice, or its UID if it was deleted.
type left struct {
	slice   *unstructured.Unstructured
	deleted types.UID
	resourceversion.Left
}

func (w *expectations) recordWrite(service, name string, l left) {
	if l.slice == nil {
		l.Left = resourceversion.LeftAt(0)
	} else {
		l.Left = resourceversion.LeftAt(resourceversion.Of(l.slice))
	}
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

// recordDeletion records that the cache has seen an object go. The UID shows whether our write came before.
func (w *expectations) recordDeletion(u *unstructured.Unstructured) {
	for _, service := range serviceOf(u) {
		w.mu.Lock()
		if l := w.left[service][u.GetName()]; l.slice != nil && l.slice.GetUID() == u.GetUID() || l.deleted == u.GetUID() {
			w.drop(service, u.GetName())
		}
		w.mu.Unlock()
	}
}

// forget drops the record of a slice that does not exist.
func (w *expectations) forget(service, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(service, name)
}

func (w *expectations) drop(service, name string) {
	if delete(w.left[service], name); len(w.left[service]) == 0 {
		delete(w.left, service)
	}
}

// overlay returns the slices of a Service from the cache, replaced by our newer writes where the cache is stale.
func (w *expectations) overlay(service string, cached []any) (all []*unstructured.Unstructured) {
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
		case l.slice == nil && l.deleted == u.GetUID() && l.Awaited():
		case l.slice != nil && l.Unseen(u):
			all = append(all, l.slice)
		default:
			w.drop(service, u.GetName())
			all = append(all, u)
		}
	}
	for name, l := range w.left[service] {
		if !seen[name] && l.slice != nil && l.Awaited() {
			all = append(all, l.slice)
		} else if !seen[name] {
			w.drop(service, name)
		}
	}
	return all
}
