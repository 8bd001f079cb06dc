package memapi

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is all that an API holds at a time. The zero value is that of an API that holds nothing.
type Snapshot struct {
	version uint64
	objects map[schema.GroupVersionResource]map[types.NamespacedName]*unstructured.Unstructured
}

// Snapshot returns what the API holds now.
func (a *API) Snapshot() Snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := Snapshot{a.version, map[schema.GroupVersionResource]map[types.NamespacedName]*unstructured.Unstructured{}}
	for gvr, s := range a.resources {
		out.objects[gvr] = maps.Clone(s.objects)
	}
	return out
}

// Restore brings everything back to what it was, the version as well, and ends all watches: as an API server does whose store is
// restored. UIDs are not given again.
func (a *API) Restore(to Snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version = max(to.version, 1)
	a.changes.Add(1)
	for gvr, s := range a.resources {
		s.objects = maps.Clone(to.objects[gvr])
		if s.objects == nil {
			s.objects = map[types.NamespacedName]*unstructured.Unstructured{}
		}
		s.history, s.forgotten = nil, a.version
		for w := range s.watches {
			w.Stop()
		}
	}
}
