package plan

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// withLost returns the clusters, with those that are lost marked as lost for longer than any grace period.
func withLost(clusters []*v1beta1.Cluster, lost []string, now time.Time) []*v1beta1.Cluster {
	long := metav1.NewTime(now.Add(-48 * time.Hour))
	then := make([]*v1beta1.Cluster, len(clusters))
	for i, c := range clusters {
		if then[i] = c; !slices.Contains(lost, c.Name) {
			continue
		}
		then[i] = c.DeepCopy()
		then[i].Status.Conditions = []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: "False", LastTransitionTime: long}}
		then[i].Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailedOver, Since: long, LostAt: &long}
	}
	return then
}

// withDrained returns the clusters, with some of them drained.
func withDrained(clusters []*v1beta1.Cluster, some []string) []*v1beta1.Cluster {
	then := make([]*v1beta1.Cluster, len(clusters))
	for i, c := range clusters {
		if then[i] = c; slices.Contains(some, c.Name) {
			then[i] = c.DeepCopy()
			then[i].Spec.DNSWeight = new(int32)
			then[i].Spec.Taints = append(then[i].Spec.Taints, corev1.Taint{Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute})
		}
	}
	return then
}
