package memapi

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

var namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")

// delete deletes an object, or marks it where something has to be done first.
func (a *API) delete(s *store, key types.NamespacedName, options metav1.DeleteOptions) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	live := s.objects[key]
	if live == nil {
		return apierrors.NewNotFound(s.GroupResource(), key.Name)
	}
	if p := options.Preconditions; p != nil {
		w := write{store: s, key: key}
		if p.UID != nil && *p.UID != live.GetUID() {
			return conflict(w, "Precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, live.GetUID())
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != live.GetResourceVersion() {
			return conflict(w, "Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", *p.ResourceVersion, live.GetResourceVersion())
		}
	}
	next := copyOf(live)
	if live.GetDeletionTimestamp() == nil && a.options.Deleting != nil {
		a.options.Deleting(s.Resource, next, options)
	}
	next.SetFinalizers(withDependents(next.GetFinalizers(), options))
	if finalized(next) {
		a.commit(s, live, nil)
		return nil
	}
	markDeleted(s, next)
	if !unchanged(live, next) {
		a.commit(s, live, next)
	}
	return nil
}

func markDeleted(s *store, u *unstructured.Unstructured) {
	if u.GetDeletionTimestamp() != nil {
		return
	}
	now, none := metav1.NewTime(time.Now()), int64(0)
	u.SetDeletionTimestamp(&now)
	if s.Resource.Resource == "namespaces" {
		u.Object["status"] = map[string]any{"phase": "Terminating"}
		return // it has no grace period at all
	}
	u.SetDeletionGracePeriodSeconds(&none)
	if s.Generation {
		u.SetGeneration(u.GetGeneration() + 1)
	}
}

// withDependents are the finalizers by which the garbage collector learns what becomes of dependents: as the options
// say, else as they are.
func withDependents(finalizers []string, options metav1.DeleteOptions) (out []string) {
	if options.PropagationPolicy == nil {
		return finalizers
	}
	for _, f := range finalizers {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			out = append(out, f)
		}
	}
	switch *options.PropagationPolicy {
	case metav1.DeletePropagationOrphan:
		out = append(out, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		out = append(out, metav1.FinalizerDeleteDependents)
	}
	return out
}

// finalized reports whether nobody has anything left to do before an object can go.
func finalized(u *unstructured.Unstructured) bool {
	if u.GetKind() == "Namespace" {
		if left, _, _ := unstructured.NestedSlice(u.Object, "spec", "finalizers"); len(left) > 0 {
			return false
		}
	}
	return len(u.GetFinalizers()) == 0
}

// Collect does what the garbage collector and the namespace controller do: it takes their finalizers off what is
// being deleted, and empties namespaces that end. It returns whether there was anything to do.
func (a *API) Collect() (busy bool) {
	for _, r := range a.Resources() {
		for _, u := range a.ending(r) {
			left := slices.DeleteFunc(u.GetFinalizers(), func(f string) bool {
				return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
			})
			if len(left) != len(u.GetFinalizers()) {
				busy = true
				a.collect(r, u, func(u *unstructured.Unstructured) { u.SetFinalizers(left) }, "")
			}
			if r.Resource == "namespaces" && a.empty(u.GetName()) && u.Object["spec"] != nil {
				busy = true
				a.collect(r, u, func(u *unstructured.Unstructured) { delete(u.Object, "spec") }, "finalize")
			}
		}
	}
	return busy
}

// ending returns the objects of a resource that are being deleted, sorted by key.
func (a *API) ending(r Resource) []*unstructured.Unstructured {
	a.mu.Lock()
	defer a.mu.Unlock()
	some := map[types.NamespacedName]*unstructured.Unstructured{}
	for key, u := range a.resources[r.GroupVersionResource].objects {
		if u.GetDeletionTimestamp() != nil {
			some[key] = u
		}
	}
	return listed(some, "", nil)
}

func (a *API) collect(r Resource, u *unstructured.Unstructured, change func(*unstructured.Unstructured), subresource string) {
	s, err := a.find(r.GroupVersionResource)
	if err != nil {
		return
	}
	_, _ = a.do(write{store: s, key: keyOf(u), subresource: subresource, change: func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		next := copyOf(live)
		change(next)
		return next, nil
	}}) // it may be gone by now, which is as good
}

// empty begins to delete what is in a namespace, and reports whether nothing is.
func (a *API) empty(namespace string) bool {
	background, left := metav1.DeletePropagationBackground, false
	for _, r := range a.Resources() {
		if !r.Namespaced {
			continue
		}
		s, err := a.find(r.GroupVersionResource)
		if err != nil {
			continue
		}
		for _, u := range a.List(r.GroupVersionResource, nil) {
			if u.GetNamespace() == namespace {
				_ = a.delete(s, keyOf(u), metav1.DeleteOptions{PropagationPolicy: &background}) // the next round sees what is left
				left = left || a.Get(r.GroupVersionResource, namespace, u.GetName()) != nil
			}
		}
	}
	return !left
}
