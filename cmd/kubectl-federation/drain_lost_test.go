package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestLost: what runs in a cluster that part of the federation reaches is not given up, though its failover is held.
func TestLost(t *testing.T) {
	for name, c := range map[string]struct {
		ready  corev1.ConditionStatus
		why    string
		phase  v1beta1.FailoverPhase
		partly string
		want   bool
	}{
		"serves":                       {corev1.ConditionTrue, v1beta1.ReasonClusterReady, v1beta1.FailoverServing, "", false},
		"its grace period runs":        {corev1.ConditionFalse, v1beta1.ReasonClusterNotReachable, v1beta1.FailoverWaiting, "", false},
		"failed over":                  {corev1.ConditionFalse, v1beta1.ReasonClusterNotReachable, v1beta1.FailoverOut, "", true},
		"held":                         {corev1.ConditionFalse, v1beta1.ReasonClusterNotReachable, v1beta1.FailoverHeld, "", true},
		"held, for most reach it":      {corev1.ConditionFalse, v1beta1.ReasonClusterNotReachable, v1beta1.FailoverHeld, v1beta1.ReasonOthersReachIt, false},
		"few reach it":                 {corev1.ConditionFalse, v1beta1.ReasonClusterNotReachable, v1beta1.FailoverOut, v1beta1.ReasonFewReachIt, true},
		"held, refuses our credential": {corev1.ConditionFalse, "ClusterCredentialRefused", v1beta1.FailoverHeld, "", false},
	} {
		cluster := &v1beta1.Cluster{}
		cluster.Status.Failover = &v1beta1.ClusterFailover{Phase: c.phase}
		cluster.Status.Conditions = []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: c.ready, Reason: c.why}}
		if c.partly != "" {
			cluster.Status.Conditions = append(cluster.Status.Conditions, v1beta1.ClusterCondition{Type: v1beta1.ClusterPartlyReachable, Status: corev1.ConditionTrue, Reason: c.partly})
		}
		if got := lost(cluster); got != c.want {
			t.Errorf("%s: lost %v", name, got)
		}
	}
}
