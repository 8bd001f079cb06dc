package plan_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/failover/plan"
)

// One of three clusters is not ready: it gets a grace period and is failed over at its end.
func ExampleDecide() {
	start := time.Unix(1_000_000, 0)
	cluster := func(name string, ready corev1.ConditionStatus) *v1beta1.Cluster {
		c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Zones = []string{name}
		c.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseServing, Since: metav1.NewTime(start.Add(-time.Hour))}
		c.Status.Conditions = []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: ready, Reason: "ClusterNotReachable", LastTransitionTime: metav1.NewTime(start)}}
		return c
	}
	clusters := []*v1beta1.Cluster{cluster("east-a", corev1.ConditionFalse), cluster("east-b", corev1.ConditionTrue), cluster("west-a", corev1.ConditionTrue)}
	settings := plan.DefaultSettings()
	settings.Seen = start.Add(-time.Hour)
	for _, after := range []time.Duration{time.Second, 31 * time.Second} {
		for _, verdict := range plan.Decide(clusters, settings, start.Add(after)) {
			if verdict.Cluster == "east-a" {
				fmt.Println(after, verdict.Failover.Phase)
				clusters[0].Status.Failover = verdict.Failover
			}
		}
	}
	// Output:
	// 1s GracePeriod
	// 31s FailedOver
}
