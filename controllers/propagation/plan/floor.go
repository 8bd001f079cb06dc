package plan

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Replicas that leave a cluster leave load to others, whose autoscalers notice it only when it has come: too late for
// their pods. So while replicas leave, autoscalers of the federation keep a minimum in the clusters that should have
// them.

// Floor returns the minimum of an autoscaler in a cluster, at most `most`, while so many replicas leave others: its
// share of these.
func (s Source) Floor(cluster string, leaving, most int64) int64 {
	share, placed := s.Share(cluster), s.placedTotal()
	if placed == 0 {
		return 0
	}
	return min(most, share, (leaving*share+placed-1)/placed)
}

// floors returns Floor for each of the shares, while what leaves is what they have in clusters that should have none.
func (s Source) floors(shares []Share) (floors []int64) {
	leaving := Leaving(shares)
	for _, share := range shares {
		floors = append(floors, s.Floor(share.Cluster, leaving, share.Most))
	}
	return floors
}

// Leaving returns the number of replicas in clusters that should have none.
func Leaving(shares []Share) (n int64) {
	for _, share := range shares {
		if share.Placed == 0 {
			n += share.Applied
		}
	}
	return n
}

// Most returns the maximum of the object's autoscalers in a cluster.
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

// keepsAtLeast raises the minimum of an autoscaler.
func keepsAtLeast(autoscaler *unstructured.Unstructured, floor int64) {
	least, _, _ := unstructured.NestedInt64(autoscaler.Object, "spec", "minReplicas")
	most, _, _ := unstructured.NestedInt64(autoscaler.Object, "spec", "maxReplicas")
	if spec, ok := autoscaler.Object["spec"].(map[string]any); ok && min(floor, most) > max(least, 1) {
		spec["minReplicas"] = min(floor, most)
	}
}
