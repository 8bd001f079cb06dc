package plan

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// replicaFailure is the condition with which the controllers of ReplicaSets and Deployments report that a pod cannot be
// created: the member rejects it, as for a ResourceQuota. Those of StatefulSets and Jobs report it only in events.
const replicaFailure = string(appsv1.ReplicaSetReplicaFailure)

// Unmade returns how many pods of its share a cluster cannot create, and since when. Pods beyond the share, which
// remain if we may not write there, do not count: placement would take away running ones. Nor do those of an
// autoscaler.
func Unmade(copy *unstructured.Unstructured, share int64) (pods int64, since time.Time) {
	c := v1beta1.ConditionOf(copy, replicaFailure)
	if c["status"] != "True" || c["reason"] != "FailedCreate" || ScaledByMember(copy) {
		return 0, since
	}
	wanted, _, _ := unstructured.NestedInt64(copy.Object, "spec", "replicas")
	at, _ := c["lastTransitionTime"].(string)
	since, _ = time.Parse(time.RFC3339, at) // if it cannot be parsed, it counts as old
	return max(0, min(wanted, share)-statusOf(copy, "replicas")), since
}

// podsMade returns the value of v1beta1.CreatedPodsAnnotation; "" if all pods are created. The number of created pods
// stays true if the share shrinks, which the number of missing ones would not.
func podsMade(federated *unstructured.Unstructured, copies []Copy) string {
	pods := map[string]int64{}
	for _, c := range copies {
		if c.Unmade > 0 {
			pods[c.Cluster] = statusOf(c.Object, "replicas")
		}
	}
	if len(pods) == 0 {
		return ""
	}
	return fittedPods(pods, roomFor(federated, v1beta1.CreatedPodsAnnotation))
}

// replicaFailureConditions returns the condition that members cannot create pods; none if they always could.
func replicaFailureConditions(federated *unstructured.Unstructured, copies []Copy) (conditions []any) {
	var failed []string
	for _, c := range copies {
		if c.Unmade > 0 {
			failed = append(failed, fmt.Sprintf("cluster %s could not make %d pods: %s", c.Cluster, c.Unmade, conditionMessage(c.Object, replicaFailure)))
		}
	}
	if len(failed) == 0 && v1beta1.ConditionOf(federated, replicaFailure) == nil {
		return nil
	}
	return []any{newCondition(replicaFailure, len(failed) > 0, "FailedCreate", "PodsCreated", joinBounded(failed))}
}
