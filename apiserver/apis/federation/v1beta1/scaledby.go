package v1beta1

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ScaledBy returns the manager that set spec.replicas of an object by its subresource scale, or "". That is an
// autoscaler: the manager's name is kube-controller-manager, or that of the binary with all controllers in it, such as
// k3s or kubelite. Writes by a person with kubectl, or by us, do not count.
func ScaledBy(o metav1.Object) string {
	if u, ok := o.(*unstructured.Unstructured); ok && !anyEntryOfScale(u) {
		return ""
	}
	i := slices.IndexFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Subresource == "scale" && !strings.HasPrefix(e.Manager, "kubectl") && !strings.HasPrefix(e.Manager, "federation") &&
			e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:replicas"`) // all that such a write can set in a spec
	})
	if i < 0 {
		return ""
	}
	return o.GetManagedFields()[i].Manager
}

// anyEntryOfScale reports whether an entry of an object's managed fields may be of a write by its subresource scale. To read all entries of an unstructured
// object takes long, and each object that comes into a cache is asked for.
func anyEntryOfScale(u *unstructured.Unstructured) bool {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	entries, ok := value.([]any)
	return value != nil && !ok || slices.ContainsFunc(entries, func(entry any) bool {
		e, ok := entry.(map[string]any)
		return !ok || e["subresource"] == "scale"
	})
}
