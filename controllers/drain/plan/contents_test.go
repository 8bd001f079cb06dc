package plan

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestLost checks that what runs in a cluster that part of the federation reaches is not given up, though its failover
// is suspended.
func TestLost(t *testing.T) {
	for name, c := range map[string]struct {
		ready  corev1.ConditionStatus
		why    string
		phase  v1beta1.FailoverPhase
		partly string
		want   bool
	}{
		"serves":                       {corev1.ConditionTrue, v1beta1.ReasonClusterReady, v1beta1.PhaseServing, "", false},
		"in its grace period":          {corev1.ConditionFalse, v1beta1.ReasonClusterNotReachable, v1beta1.PhaseGracePeriod, "", false},
		"failed over":                  {corev1.ConditionFalse, v1beta1.ReasonClusterNotReachable, v1beta1.PhaseFailedOver, "", true},
		"held":                         {corev1.ConditionFalse, v1beta1.ReasonClusterNotReachable, v1beta1.PhaseFailoverSuspended, "", true},
		"held, for most reach it":      {corev1.ConditionFalse, v1beta1.ReasonClusterNotReachable, v1beta1.PhaseFailoverSuspended, v1beta1.ReasonReachableByMajority, false},
		"few reach it":                 {corev1.ConditionFalse, v1beta1.ReasonClusterNotReachable, v1beta1.PhaseFailedOver, v1beta1.ReasonReachableByMinority, true},
		"held, refuses our credential": {corev1.ConditionFalse, "ClusterCredentialRejected", v1beta1.PhaseFailoverSuspended, "", false},
	} {
		cluster := &v1beta1.Cluster{}
		cluster.Status.Failover = &v1beta1.ClusterFailover{Phase: c.phase}
		cluster.Status.Conditions = []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: c.ready, Reason: c.why}}
		if c.partly != "" {
			cluster.Status.Conditions = append(cluster.Status.Conditions, v1beta1.ClusterCondition{Type: v1beta1.ClusterPartiallyReachable, Status: corev1.ConditionTrue, Reason: c.partly})
		}
		if got := IsLost(cluster); got != c.want {
			t.Errorf("%s: lost %v", name, got)
		}
	}
}
