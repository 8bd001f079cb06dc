package plan

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// replicaFailure is what the controllers of ReplicaSets and of Deployments say where a pod cannot be made: the member refuses it, as
// for a ResourceQuota. Those of StatefulSets and Jobs say so in events only.
const replicaFailure = string(appsv1.ReplicaSetReplicaFailure)

// Unmade is how many pods of its share a cluster cannot make, and since when. A copy that asks for more than the share, as its member
// does not let us write, lacks no more than that: placement would take away what runs. Those of an autoscaler are its own business.
func Unmade(copy *unstructured.Unstructured, share int64) (pods int64, since time.Time) {
	c := v1beta1.ConditionOf(copy, replicaFailure)
	if c["status"] != "True" || c["reason"] != "FailedCreate" || ScaledByMember(copy) {
		return 0, since
	}
	wanted, _, _ := unstructured.NestedInt64(copy.Object, "spec", "replicas")
	at, _ := c["lastTransitionTime"].(string)
	since, _ = time.Parse(time.RFC3339, at) // if it cannot be read, it has been so for long
	return max(0, min(wanted, share)-statusOf(copy, "replicas")), since
}

// podsMade is the value of v1beta1.CreatedPodsAnnotation; "" where all are made. What is there stays true when the share has been made
// smaller since, which what is not there would not.
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

// failure is the condition that members cannot make pods; none where they always could.
func failure(federated *unstructured.Unstructured, copies []Copy) (conditions []any) {
	var failed []string
	for _, c := range copies {
		if c.Unmade > 0 {
			failed = append(failed, fmt.Sprintf("cluster %s could not make %d pods: %s", c.Cluster, c.Unmade, conditionMessage(c.Object, replicaFailure)))
		}
	}
	if len(failed) == 0 && v1beta1.ConditionOf(federated, replicaFailure) == nil {
		return nil
	}
	return []any{condition(replicaFailure, len(failed) > 0, "FailedCreate", "PodsCreated", bounded(failed))}
}
