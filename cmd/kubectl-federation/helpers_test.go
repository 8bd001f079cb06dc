package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"federation/apiserver/apis/federation/v1beta1"
)

var seenAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// clusterAt returns a cluster that is ready, or has not been for a while.
func clusterAt(name string, lostFor time.Duration) *v1beta1.Cluster {
	c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	ready := v1beta1.ClusterCondition{Type: v1beta1.ClusterReady, Status: corev1.ConditionTrue}
	if lostFor > 0 {
		lost := metav1.NewTime(seenAt.Add(-lostFor))
		ready = v1beta1.ClusterCondition{Type: v1beta1.ClusterReady, Status: corev1.ConditionFalse, LastTransitionTime: lost,
			Reason: v1beta1.ReasonClusterNotReachable, Message: "cluster is not reachable"}
		c.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseGracePeriod, Since: lost, LostAt: &lost}
	}
	c.Status.Conditions = []v1beta1.ClusterCondition{ready}
	return c
}

func fromJSON(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal([]byte(text), &u.Object); err != nil { // whole numbers are integers, as in what clients read
		t.Fatal(err)
	}
	return u
}
