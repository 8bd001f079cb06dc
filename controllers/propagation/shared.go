package propagation

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// Members go through objects concurrently, but not in step. So what was read and made of an object for one member is
// cached for the others while it is used, and then for one or two terms: for all objects together it would be too much.
const (
	term     = 5 * time.Second
	termMost = 512 // objects; with more of them a term ends sooner
)

// shared caches what several members need of federated objects.
type shared struct {
	mu          sync.Mutex
	recent, old map[key]*version
	ends        *time.Timer // the term; nil while the cache is empty
}

// version is one version of a federated object.
type version struct {
	uid    types.UID
	number string // its resourceVersion
	object *unstructured.Unstructured
	common plan.Common
	// placement returns plan.Read of the object.
	placement func() *v1beta1.Placement
}

func (v *version) is(o held.Named) bool {
	return v != nil && v.uid == o.GetUID() && v.number == o.GetResourceVersion()
}

// versionOf returns what is cached of an object as it is held.
func (s *shared) versionOf(k key, obj any) *version {
	about := held.About(obj)
	s.mu.Lock()
	v := s.recent[k]
	if !v.is(about) {
		v = s.old[k]
	}
	s.mu.Unlock()
	if !v.is(about) {
		object := held.Object(obj)
		v = &version{
			uid: about.GetUID(), number: about.GetResourceVersion(), object: object,
			placement: sync.OnceValue(func() *v1beta1.Placement { return plan.Read(object) }),
		}
	}
	s.keep(k, v)
	return v
}

func (s *shared) keep(k key, v *version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recent) >= termMost {
		s.old, s.recent = s.recent, nil
	}
	if s.recent == nil {
		s.recent = map[key]*version{}
	}
	s.recent[k] = v
	if s.ends == nil {
		s.ends = time.AfterFunc(term, s.end)
	}
}

// end ends a term.
func (s *shared) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old, s.recent = s.recent, nil
	if s.ends = nil; len(s.old) > 0 {
		s.ends = time.AfterFunc(term, s.end)
	}
}
