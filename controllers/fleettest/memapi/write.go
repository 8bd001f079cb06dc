package memapi

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// write is one change of one object on its way into the store.
type write struct {
	store       *store
	key         types.NamespacedName
	subresource string
	// create: the object may be made where there is none.
	create bool
	// change returns the object as it is to be, from the one there is (nil where there is none), which it must not change.
	change func(live *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// do carries a write out, and returns a copy of what is stored then.
func (a *API) do(w write) (*unstructured.Unstructured, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	live := w.store.objects[w.key]
	if live == nil && !w.create {
		return nil, apierrors.NewNotFound(w.store.GroupResource(), w.key.Name)
	}
	next, err := w.change(live)
	if err != nil {
		return nil, err
	}
	if live == nil {
		next, err = a.prepareNew(w, next)
	} else {
		err = a.prepareUpdate(w, live, next)
	}
	if err == nil && a.options.Admit != nil {
		err = a.options.Admit(w.store.Resource, live, next)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case live != nil && unchanged(live, next):
		return copyOf(live), nil
	case live != nil && next.GetDeletionTimestamp() != nil && finalized(next):
		a.commit(w.store, live, nil)
		return next, nil
	}
	return copyOf(a.commit(w.store, live, next)), nil
}

// prepareNew gives a new object what the system gives.
func (a *API) prepareNew(w write, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if u.GetUID() != "" {
		return nil, conflict(w, "uid mismatch: the provided object specified uid %s, and no existing object was found", u.GetUID())
	}
	if err := a.namespaceTakes(w.store.Resource, w.key.Namespace); err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(w.store.gvk())
	u.SetNamespace(w.key.Namespace)
	u.SetName(w.key.Name)
	u.SetUID(a.newUID())
	u.SetCreationTimestamp(metav1.NewTime(time.Now()))
	u.SetDeletionTimestamp(nil)
	u.SetResourceVersion("")
	u.SetGeneration(0)
	if w.store.Generation {
		u.SetGeneration(1)
	}
	if w.store.Resource.Resource == "namespaces" {
		beginNamespace(u)
	}
	return u, nil
}

func beginNamespace(u *unstructured.Unstructured) {
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["kubernetes.io/metadata.name"] = u.GetName()
	u.SetLabels(labels)
	u.Object["spec"] = map[string]any{"finalizers": []any{"kubernetes"}}
	u.Object["status"] = map[string]any{"phase": "Active"}
}

// namespaceTakes refuses objects in a namespace that is not there, or ends.
func (a *API) namespaceTakes(r Resource, name string) error {
	namespaces := a.resources[namespacesResource]
	if !r.Namespaced || namespaces == nil {
		return nil
	}
	ns := namespaces.objects[types.NamespacedName{Name: name}]
	if ns == nil {
		return apierrors.NewNotFound(namespacesResource.GroupResource(), name)
	}
	if ns.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(r.GroupResource(), "", fmt.Errorf("unable to create new content in namespace %s because it is being terminated", name))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: "NamespaceTerminating", Message: "namespace " + name + " is being terminated", Field: "metadata.namespace",
	})
	return err
}

// prepareUpdate checks the preconditions that the new version of an object bears, and keeps from it what the
// subresource that is written may not change.
func (a *API) prepareUpdate(w write, live, next *unstructured.Unstructured) error {
	if uid := next.GetUID(); uid != "" && uid != live.GetUID() {
		return apierrors.NewInvalid(w.store.gvk().GroupKind(), w.key.Name, field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable")})
	}
	if v := next.GetResourceVersion(); v != "" && v != live.GetResourceVersion() {
		return conflict(w, "the object has been modified; please apply your changes to the latest version and try again")
	}
	next.SetGroupVersionKind(w.store.gvk())
	keepMetadata(live, next)
	if w.store.Generation && !reflect.DeepEqual(asked(live), asked(next)) {
		next.SetGeneration(live.GetGeneration() + 1)
	}
	if live.GetDeletionTimestamp() != nil {
		return refuseNewFinalizers(w, live, next)
	}
	return nil
}

// keepMetadata has next bear what the system has given live.
func keepMetadata(live, next *unstructured.Unstructured) {
	next.SetName(live.GetName()) // there is a map to write to
	from, into := live.Object["metadata"].(map[string]any), next.Object["metadata"].(map[string]any)
	for _, field := range []string{"namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"} {
		if value, ok := from[field]; ok {
			into[field] = value
		} else {
			delete(into, field)
		}
	}
}

// drop takes the parts off an object that what is written to does not take.
func (w write) drop(u *unstructured.Unstructured) {
	for key := range u.Object {
		if key != "metadata" && key != "apiVersion" && key != "kind" && w.keeps(key) {
			delete(u.Object, key)
		}
	}
}

// keepOthers puts back the parts that belong to another subresource.
func (w write) keepOthers(live, next *unstructured.Unstructured) {
	w.drop(next)
	for key, value := range live.Object {
		if key != "metadata" && w.keeps(key) {
			next.Object[key] = value
		}
	}
	if w.subresource == "status" {
		next.SetFinalizers(live.GetFinalizers())
		next.SetOwnerReferences(live.GetOwnerReferences())
	}
	if w.store.Resource.Resource == "namespaces" && w.subresource == "" && live.Object["spec"] != nil {
		next.Object["spec"] = live.Object["spec"]
	}
}

func (w write) keeps(key string) bool {
	switch w.subresource {
	case "status":
		return key != "status"
	case "finalize":
		return key != "spec"
	}
	return key == "status" && w.store.Status
}

// asked is the part of an object that its generation counts.
func asked(u *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for key, value := range u.Object {
		if key != "metadata" && key != "status" {
			out[key] = value
		}
	}
	return out
}

func refuseNewFinalizers(w write, live, next *unstructured.Unstructured) error {
	for _, f := range next.GetFinalizers() {
		if !slices.Contains(live.GetFinalizers(), f) {
			return apierrors.NewInvalid(w.store.gvk().GroupKind(), w.key.Name, field.ErrorList{field.Forbidden(field.NewPath("metadata", "finalizers"),
				"no new finalizers can be added if the object is being deleted, found new finalizers []string{\""+f+"\"}")})
		}
	}
	return nil
}

func conflict(w write, format string, args ...any) error {
	return apierrors.NewConflict(w.store.GroupResource(), w.key.Name, fmt.Errorf(format, args...))
}
