package scheduler

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// scalesAtFederation reports whether the object is an autoscaler that its policy keeps at the federation.
func (q *question) scalesAtFederation() bool {
	return q.o.Kind == "HorizontalPodAutoscaler" && strings.HasPrefix(q.o.APIVersion, "autoscaling/") && q.wants.policy != nil && q.wants.policy.Spec.ScalesAtFederation()
}

// keepAtFederation keeps an autoscaler away from clusters: the federation scales by it.
func (d *deciding) keepAtFederation() {
	d.sendTo(nil)
	d.result.Placement.AtFederation = true
	last := d.o.Current
	d.result.TakesOver = last == nil && !d.o.Pending || last != nil && !last.AtFederation && (last.Everywhere || len(last.Clusters) > 0)
	for _, c := range d.w.Clusters {
		d.reasons.add(c.Name, "the federation scales by it, for all clusters together: spec.autoscaling of the policy "+d.wants.policy.Name)
	}
}

// TakeOver returns how many replicas a workload must ask for before an autoscaler leaves the clusters and scales it at the federation:
// as many as clusters have made by their own numbers, within the autoscaler's maximum. Otherwise the clusters would fall back to the
// workload's old number. ready: it asks for them, and they are placed.
func TakeOver(autoscaler, workload *unstructured.Unstructured) (replicas int64, ready bool) {
	most, _, _ := unstructured.NestedInt64(autoscaler.Object, "spec", "maxReplicas")
	asked, given, _ := unstructured.NestedInt64(workload.Object, "spec", "replicas")
	if !given {
		asked = 1 // Kubernetes' default
	}
	made, _, _ := unstructured.NestedInt64(workload.Object, "status", "replicas")
	replicas = max(asked, min(made, most))
	placed := int64(0)
	if p := v1beta1.ParsePlacement(workload.GetAnnotations()[v1beta1.PlacementAnnotation]); p != nil {
		placed = p.Unschedulable
		for _, n := range p.Clusters {
			placed += n
		}
	}
	return replicas, asked == replicas && placed >= replicas
}
