package memapi

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
)

// manager says who owns which fields of an object: Kubernetes' own.
type manager = *managedfields.FieldManager

// manager returns the field manager of a resource or one of its subresources.
func (a *API) manager(r Resource, subresource string) (manager, error) {
	key := r.String() + "/" + subresource
	if m := a.managers[key]; m != nil {
		return m, nil
	}
	types := custom()
	if scheme.Scheme.Recognizes(r.gvk()) {
		types = builtin()
	}
	m, err := managedfields.NewDefaultFieldManager(types, oneVersion{}, oneVersion{}, oneVersion{}, r.gvk(), r.GroupVersion(), subresource, nil)
	if err == nil {
		a.managers[key] = m
	}
	return m, err
}

// oneVersion serves a kind that has one version and no defaults.
type oneVersion struct{}

// Default implements runtime.ObjectDefaulter.
func (oneVersion) Default(runtime.Object) {}

// New implements runtime.ObjectCreater.
func (oneVersion) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// Convert implements runtime.ObjectConvertor.
func (oneVersion) Convert(in, out, _ any) error {
	out.(*unstructured.Unstructured).Object = in.(*unstructured.Unstructured).Object
	return nil
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// unchanged reports whether two versions of an object differ in nothing but the times at which fields were
// taken: writing such a one writes nothing.
func unchanged(a, b *unstructured.Unstructured) bool {
	return same(a.Object, b.Object, func(field string, x, y any) bool {
		before, ok := x.(map[string]any)
		after, also := y.(map[string]any)
		if field != "metadata" || !ok || !also {
			return reflect.DeepEqual(x, y)
		}
		return sameMetadata(before, after)
	})
}

func sameMetadata(a, b map[string]any) bool {
	return same(a, b, func(field string, x, y any) bool {
		before, ok := x.([]any)
		after, also := y.([]any)
		switch {
		case field == "resourceVersion":
			return true
		case field != "managedFields" || !ok || !also:
			return reflect.DeepEqual(x, y)
		}
		return slices.EqualFunc(before, after, sameButForTime)
	})
}

// sameButForTime compares entries of managed fields.
func sameButForTime(a, b any) bool {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	return same(x, y, func(field string, x, y any) bool { return field == "time" || reflect.DeepEqual(x, y) })
}

// same reports whether two maps have the same fields, with values that are equal.
func same(a, b map[string]any, equal func(field string, x, y any) bool) bool {
	if len(a) != len(b) {
		return false
	}
	for field, x := range a {
		if y, ok := b[field]; !ok || !equal(field, x, y) {
			return false
		}
	}
	return true
}
