package v1beta1

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// JobEnd is how a Job, the federation's or a copy, has ended: Complete, Failed, or "" while it goes on, and for what is
// no Job. One that has ended runs no more: nothing of it is to be placed, made, or waited for.
func JobEnd(u *unstructured.Unstructured) string {
	if u == nil || u.GetKind() != "Job" || u.GroupVersionKind().Group != batchv1.GroupName {
		return ""
	}
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	conditions, _ := list.([]any)
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if end, _ := c["type"].(string); c["status"] == "True" && (end == "Complete" || end == "Failed") {
			return end
		}
	}
	return ""
}
