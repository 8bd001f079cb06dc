package v1beta1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScaledBy returns the manager that set spec.replicas of an object by its subresource scale, or "". That is an
// autoscaler: the manager's name is kube-controller-manager, or that of the binary with all controllers in it, such as
// k3s or kubelite. Writes by a person with kubectl, or by us, do not count; nor does a number that we have applied since,
// which both own where it is the autoscaler's last one.
func ScaledBy(o metav1.Object) (manager string) {
	for _, e := range o.GetManagedFields() {
		ours := strings.HasPrefix(e.Manager, "federation")
		switch {
		case e.FieldsV1 == nil || !strings.Contains(e.FieldsV1.GetRawString(), `"f:replicas"`): // all that is written to scale, of a spec
		case ours && e.Subresource == "" && e.Operation == metav1.ManagedFieldsOperationApply:
			return ""
		case e.Subresource == "scale" && !ours && !strings.HasPrefix(e.Manager, "kubectl"):
			manager = e.Manager
		}
	}
	return manager
}
