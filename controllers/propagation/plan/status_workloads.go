package plan

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// updated sums up the pods of the newest template. A copy that has not got the newest yet has none of these,
// whatever its own cluster calls updated.
func updated(copies []Copy, field string) (total int64) {
	for _, c := range copies {
		if c.Object != nil && !c.Outdated {
			total += statusOf(c.Object, field)
		}
	}
	return total
}

var replicaSetSums = sums("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")

func replicaSetStatus(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	status := replicaSetSums(federated, copies)
	status["conditions"] = failure(federated, copies)
	return status
}

var deploymentSums = sums("replicas", "readyReplicas", "availableReplicas", "unavailableReplicas")

// deploymentStatus is what `kubectl rollout status` reads.
func deploymentStatus(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	status := deploymentSums(federated, copies)
	status["updatedReplicas"] = updated(copies, "updatedReplicas")
	wanted, _, _ := unstructured.NestedInt64(federated.Object, "spec", "replicas")
	available := status["availableReplicas"].(int64) >= wanted
	var stuck []string
	for _, c := range copies {
		available = available && !hasCondition(c.Object, "Available", "False")
		if hasCondition(c.Object, "Progressing", "False") {
			stuck = append(stuck, "cluster "+c.Cluster+": "+conditionMessage(c.Object, "Progressing"))
		}
	}
	status["conditions"] = append(failure(federated, copies),
		condition("Available", available, "MinimumReplicasAvailable", "MinimumReplicasUnavailable", ""),
		condition("Progressing", len(stuck) == 0, "ClustersProgress", "ProgressDeadlineExceeded", bounded(stuck)))
	return status
}

var statefulSetSums = sums("replicas", "readyReplicas", "availableReplicas", "currentReplicas")

// statefulSetStatus is what `kubectl rollout status` reads: while any copy rolls, its revisions are the object's.
func statefulSetStatus(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	status := statefulSetSums(federated, copies)
	status["updatedReplicas"] = updated(copies, "updatedReplicas")
	for _, c := range copies {
		if c.Object == nil {
			continue
		}
		current, _, _ := unstructured.NestedString(c.Object.Object, "status", "currentRevision")
		update, _, _ := unstructured.NestedString(c.Object.Object, "status", "updateRevision")
		if status["updateRevision"] == nil || current != update {
			status["currentRevision"], status["updateRevision"] = current, update
		}
		if current != update {
			break
		}
	}
	return status
}

var daemonSetSums = sums("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady", "numberAvailable", "numberUnavailable")

func daemonSetStatus(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	status := daemonSetSums(federated, copies)
	status["updatedNumberScheduled"] = updated(copies, "updatedNumberScheduled")
	return status
}

func autoscalerStatus(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	status := sums("currentReplicas", "desiredReplicas")(federated, copies)
	if at := latest(copies, "lastScaleTime"); at != "" {
		status["lastScaleTime"] = at
	}
	return status
}

// latest is the latest of the copies' times, as RFC 3339 in UTC, which sorts as text; "" where there is none.
func latest(copies []Copy, field string) (at string) {
	for _, c := range copies {
		if c.Object != nil {
			t, _, _ := unstructured.NestedString(c.Object.Object, "status", field)
			at = max(at, t)
		}
	}
	return at
}

// bounded joins what is said of clusters, of at most maxNamed.
func bounded(texts []string) string { return joined(texts, "; ") }

func joined(texts []string, by string) string {
	if len(texts) > maxNamed {
		texts = append(texts[:maxNamed:maxNamed], andMore(len(texts)-maxNamed))
	}
	return strings.Join(texts, by)
}
