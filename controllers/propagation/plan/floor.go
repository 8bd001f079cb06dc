package plan

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// What leaves a cluster is load elsewhere, which the autoscalers there see when it has come: too late for the pods that it finds. So while
// replicas leave, autoscalers of the federation keep a number of them at least in the clusters that are to have them.

// Floor is how many replicas an autoscaler keeps at least in a cluster, and no more than most, while so many leave others: its part of these.
func (s Source) Floor(cluster string, leaving, most int64) int64 {
	share, placed := s.Share(cluster), s.placed()
	if placed == 0 {
		return 0
	}
	return min(most, share, (leaving*share+placed-1)/placed)
}

// Leaving sums up the replicas in clusters that are to have none.
func Leaving(shares []Share) (n int64) {
	for _, share := range shares {
		if share.Placed == 0 {
			n += share.Applied
		}
	}
	return n
}

// Most is how many replicas the autoscalers of an object make in a cluster at most.
func (s Source) Most(t Target) (most int64) {
	for _, a := range s.Autoscalers {
		d := Desire(a, Target{Cluster: t.Cluster, Federation: t.Federation})
		if d.Object == nil {
			continue
		}
		if n, _, _ := unstructured.NestedInt64(d.Object.Object, "spec", "maxReplicas"); most == 0 || n < most {
			most = n
		}
	}
	return most
}

// keepsAtLeast raises the least number of an autoscaler.
func keepsAtLeast(autoscaler *unstructured.Unstructured, floor int64) {
	least, _, _ := unstructured.NestedInt64(autoscaler.Object, "spec", "minReplicas")
	most, _, _ := unstructured.NestedInt64(autoscaler.Object, "spec", "maxReplicas")
	if spec, ok := autoscaler.Object["spec"].(map[string]any); ok && min(floor, most) > max(least, 1) {
		spec["minReplicas"] = min(floor, most)
	}
}
