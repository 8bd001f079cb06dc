package plan

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

// Verb is an operation on a member's copy.
type Verb string

const (
	// Nothing: the copy is as desired.
	Nothing Verb = ""
	// Wait: a copy is terminating; the next operation needs it gone.
	Wait Verb = "wait"
	// Create applies the object if none of that name exists.
	Create Verb = "create"
	// Update applies the object if it is still the observed one.
	Update Verb = "update"
	// Delete deletes the observed copy.
	Delete Verb = "delete"
	// Release removes our marks from the copy and leaves it.
	Release Verb = "release"
)

// Operate returns the one operation that takes a member from the observed to the desired state. observed is our copy
// there, or nil. settled is what the member changed of the last apply (Settle), or "".
func Operate(d Desired, observed *unstructured.Unstructured, settled string) Verb {
	switch {
	case d.Presence == Undecided:
		return Nothing
	case observed == nil:
		if d.Presence == Present {
			return Create
		}
		return Nothing
	case d.Presence == Released:
		return Release
	case observed.GetDeletionTimestamp() != nil:
		return Wait
	case d.Presence == Absent, Outlived(d.Source, observed):
		return Delete
	case InSync(d, observed, settled):
		return Nothing
	}
	return Update
}

// SourceOf returns the source that copies of a federated object name: its UID, and for a Job its round.
func SourceOf(federated *unstructured.Unstructured) string {
	if r := RoundOf(federated); r.Number > 1 {
		return fmt.Sprintf("%s/%d", federated.GetUID(), r.Number)
	}
	return string(federated.GetUID())
}

// Outlived reports whether a copy has another source: an object that was deleted at the federation and created again
// while the member was away, or an earlier round of a Job. It is deleted first, as it would have been, and its
// immutable fields with it. (A copy of an object without a known deletion is Adopted.)
func Outlived(source string, observed *unstructured.Unstructured) bool {
	of := observed.GetAnnotations()[v1beta1.SourceAnnotation]
	return source != "" && of != "" && of != source
}

// SourceUID returns the UID that a copy names as its source.
func SourceUID(observed *unstructured.Unstructured) types.UID {
	uid, _, _ := strings.Cut(observed.GetAnnotations()[v1beta1.SourceAnnotation], "/")
	return types.UID(uid)
}

// OfAnother reports whether a copy's source is another object than the one that has the name now.
func OfAnother(federated, observed *unstructured.Unstructured) bool {
	uid := SourceUID(observed)
	return uid != "" && uid != federated.GetUID()
}

// Adopted returns a copy without its source: what differs from the desired state is written, like any drift.
func Adopted(observed *unstructured.Unstructured) *unstructured.Unstructured {
	about, _ := observed.Object["metadata"].(map[string]any)
	annotations, _ := about["annotations"].(map[string]any)
	object := maps.Clone(observed.Object)
	about, annotations = maps.Clone(about), maps.Clone(annotations)
	delete(annotations, v1beta1.SourceAnnotation)
	about["annotations"], object["metadata"] = annotations, about
	return &unstructured.Unstructured{Object: object}
}

// InSync reports whether a copy is as desired: it has the hash of the desired object, and each desired value is in it,
// or differs only as the member changed it when we applied it.
func InSync(d Desired, observed *unstructured.Unstructured, settled string) bool {
	if !d.Kept && observed.GetAnnotations()[v1beta1.AppliedHashAnnotation] != d.Hash {
		return false
	}
	return contains(d.Object.Object, observed.Object) || settled != "" && settled == Settle(d, observed)
}

// Settle returns an identifier of the changes that a member (its admission, its defaults, its version) makes to what we
// apply; "" if none. Without it, we and the member would write for ever.
func Settle(d Desired, observed *unstructured.Unstructured) string {
	if contains(d.Object.Object, observed.Object) {
		return ""
	}
	return d.Hash + hashOf(project(d.Object.Object, observed.Object))
}

// contains reports whether have has each value of want. Lists are matched by the items' names if they have one, so that
// items added by the member do not matter; else item by item.
func contains(want, have any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		for key, item := range w {
			if !ok || !contains(item, h[key]) {
				return false
			}
		}
		return true
	case []any:
		h, _ := have.([]any)
		if named(w) {
			for _, item := range w {
				if !contains(item, byName(h, item)) {
					return false
				}
			}
			return true
		}
		if len(w) != len(h) {
			return false
		}
		for i := range w {
			if !contains(w[i], h[i]) {
				return false
			}
		}
		return true
	}
	return equal(want, have)
}

// equal compares scalars. A missing value equals an empty one.
func equal(want, have any) bool {
	if have == nil {
		return want == nil || reflect.ValueOf(want).IsZero()
	}
	return want == have || number(want) != nil && number(have) != nil && *number(want) == *number(have)
}

func number(v any) *float64 {
	var f float64
	switch n := v.(type) {
	case int64:
		f = float64(n)
	case float64:
		f = n
	default:
		return nil
	}
	return &f
}

// project returns the values of have at the places that want has.
func project(want, have any) any {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return have
		}
		out := map[string]any{}
		for key, item := range w {
			out[key] = project(item, h[key])
		}
		return out
	case []any:
		if h, _ := have.([]any); named(w) {
			out := []any{}
			for _, item := range w {
				out = append(out, project(item, byName(h, item)))
			}
			return out
		}
	}
	return have
}

func named(list []any) bool {
	for _, item := range list {
		if nameOf(item) == "" {
			return false
		}
	}
	return len(list) > 0
}

func nameOf(item any) string {
	m, _ := item.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

func byName(list []any, like any) any {
	for _, item := range list {
		if nameOf(item) == nameOf(like) {
			return item
		}
	}
	return nil
}

// SameSource reports whether two versions of a federated object, or of a copy, ask the same of the
// members: only their status, or what we ourselves noted on them, differs. Another generation has to be looked at, whatever it changes: annotations of a
// Deployment make one, and until it is looked at the status does not say that it was.
func SameSource(a, b *unstructured.Unstructured) bool {
	if a.GetUID() != b.GetUID() || (a.GetDeletionTimestamp() == nil) != (b.GetDeletionTimestamp() == nil) ||
		!reflect.DeepEqual(a.GetLabels(), b.GetLabels()) || !reflect.DeepEqual(a.GetFinalizers(), b.GetFinalizers()) ||
		!reflect.DeepEqual(requestAnnotations(a.GetAnnotations()), requestAnnotations(b.GetAnnotations())) {
		return false
	}
	if a.GetGeneration() > 0 {
		return a.GetGeneration() == b.GetGeneration()
	}
	return reflect.DeepEqual(content(a), content(b))
}

// asked are the federation's annotations, on an object or on a copy, that members' copies depend on.
var asked = []string{
	v1beta1.PlacementAnnotation, v1beta1.ClusterSelectorAnnotation, v1beta1.JobRoundAnnotation,
	v1beta1.AppliedHashAnnotation, v1beta1.CopyOfAnnotation, v1beta1.SourceAnnotation, v1beta1.ScaledByAnnotation, TemplateAnnotation, AutoscaledAnnotation,
}

func requestAnnotations(annotations map[string]string) map[string]string {
	out := passedOn(annotations)
	for _, key := range asked {
		out[key] = annotations[key]
	}
	return out
}

func content(u *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for key, value := range u.Object {
		if key != "metadata" && key != "status" {
			out[key] = value
		}
	}
	return out
}
