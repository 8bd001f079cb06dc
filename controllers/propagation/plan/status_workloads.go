package plan

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// updatedPods counts the pods of the newest template. A copy without the newest template has none, whatever its own cluster
// calls updated.
func updatedPods(copies []Copy, field string) (total int64) {
	for _, c := range copies {
		if c.Object != nil && !c.Outdated {
			total += statusOf(c.Object, field)
		}
	}
	return total
}

var replicaSetSums = sumFields("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")

func replicaSetStatus(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	status := replicaSetSums(federated, copies)
	status["conditions"] = replicaFailureConditions(federated, copies)
	return status
}

var deploymentSums = sumFields("replicas", "readyReplicas", "availableReplicas", "unavailableReplicas")

// deploymentStatus returns what `kubectl rollout status`, Helm and Flux read. Progressing has the reasons of
// Kubernetes' own controller: NewReplicaSetAvailable once each cluster runs all that is placed there.
func deploymentStatus(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	status := deploymentSums(federated, copies)
	status["updatedReplicas"] = updatedPods(copies, "updatedReplicas")
	wanted, _, _ := unstructured.NestedInt64(federated.Object, "spec", "replicas")
	available := status["availableReplicas"].(int64) >= wanted
	complete := status["observedGeneration"] == federated.GetGeneration() && status["updatedReplicas"] == status["replicas"]
	placement := Read(federated)
	var stuck []string
	for _, c := range copies {
		if c.State == Unreachable && placement != nil && placement.Clusters[c.Cluster] == 0 {
			continue // what it had is placed elsewhere: who waits is not to wait for it
		}
		available = available && !hasCondition(c.Object, "Available", "False")
		complete = complete && c.State == Synced && (c.Object == nil || !c.Outdated && deploymentHealthy(c.Object))
		if missed := deadlineMissed(c.Object); missed != "" && !c.Outdated && (missed != c.MissedBefore || hasCondition(c.Object, "ReplicaFailure", "True")) {
			stuck = append(stuck, "cluster "+c.Cluster+": "+conditionMessage(c.Object, "Progressing"))
		}
	}
	progress := "ReplicaSetUpdated"
	if complete && available {
		progress = "NewReplicaSetAvailable"
	}
	status["conditions"] = append(replicaFailureConditions(federated, copies),
		newCondition("Available", available, "MinimumReplicasAvailable", "MinimumReplicasUnavailable", ""),
		newCondition("Progressing", len(stuck) == 0, progress, "ProgressDeadlineExceeded", joinBounded(stuck)))
	return status
}

// MissedBefore returns when the rollout of a Deployment's copy missed its deadline, if the write gives the copy another
// pod template: until the cluster updates that condition, it is about the template before. "" otherwise. Kubernetes'
// own controller leaves it as it is when it takes up an earlier ReplicaSet that has no pods yet.
func MissedBefore(want Desired, have *unstructured.Unstructured) string {
	if missed := deadlineMissed(have); missed != "" && !SameTemplate(want, have) {
		return missed
	}
	return ""
}

// deadlineMissed returns when a Deployment's copy last reported that its rollout missed its deadline, as RFC 3339;
// "unknown" without a time, "" if it does not report that.
func deadlineMissed(copy *unstructured.Unstructured) string {
	if copy == nil || !hasCondition(copy, "Progressing", "False") {
		return ""
	}
	at, _ := v1beta1.ConditionOf(copy, "Progressing")["lastUpdateTime"].(string)
	return cmp.Or(at, "unknown")
}

var statefulSetSums = sumFields("replicas", "readyReplicas", "availableReplicas", "currentReplicas")

// statefulSetStatus returns what `kubectl rollout status`, Helm and Flux read. While any copy rolls, or lacks the
// newest template, its revisions are the object's.
func statefulSetStatus(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	status := statefulSetSums(federated, copies)
	status["updatedReplicas"] = updatedPods(copies, "updatedReplicas")
	revision := func(c Copy, which string) string {
		r, _, _ := unstructured.NestedString(c.Object.Object, "status", which)
		return r
	}
	current, update := "", ""
	for _, c := range copies {
		if c.Object != nil && !c.Outdated && current == update {
			current, update = revision(c, "currentRevision"), revision(c, "updateRevision")
		}
	}
	for _, c := range copies {
		if c.Object != nil && c.Outdated {
			current = revision(c, "updateRevision")
		}
	}
	status["currentRevision"], status["updateRevision"] = current, update
	return status
}

var daemonSetSums = sumFields("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady", "numberAvailable", "numberUnavailable")

func daemonSetStatus(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	status := daemonSetSums(federated, copies)
	status["updatedNumberScheduled"] = updatedPods(copies, "updatedNumberScheduled")
	if slices.ContainsFunc(copies, func(c Copy) bool { return c.Object == nil && (c.State == Rejected || c.State == Conflict) }) {
		status["observedGeneration"] = statusOf(federated, "observedGeneration") // no number asks for pods there: it would seem done
	}
	return status
}

func autoscalerStatus(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	if v1beta1.StaysAtFederation(federated) {
		return map[string]any{} // who scales by it there writes it
	}
	status := sumFields("currentReplicas", "desiredReplicas")(federated, copies)
	status["currentMetrics"] = nil // of when it scaled at the federation
	if at := latestTime(copies, "lastScaleTime"); at != "" {
		status["lastScaleTime"] = at
	}
	var conditions []any
	for _, kind := range []string{"AbleToScale", "ScalingActive"} {
		conditions = append(conditions, summedCondition(copies, kind, "False")...)
	}
	conditions = append(conditions, summedCondition(copies, "ScalingLimited", "True")...)
	for _, item := range conditions { // Argo CD takes either for done
		if c := item.(map[string]any); len(momentary(federated, copies)) > 0 && c["status"] == "True" && c["type"] != "ScalingActive" {
			c["status"], c["reason"], c["message"] = "Unknown", "ClustersPending", "not all clusters have it yet: see the condition "+v1beta1.ConditionPropagated
		}
	}
	status["conditions"] = conditions
	return status
}

// summedCondition returns one condition of the copies: alarm if any of them has it, with their names; else what the
// others report.
func summedCondition(copies []Copy, kind, alarm string) []any {
	var out map[string]any
	var alarmed []string
	for _, c := range copies {
		one := map[string]any{}
		if c.Object != nil {
			one = v1beta1.ConditionOf(c.Object, kind)
		}
		reason, _ := one["reason"].(string)
		switch status := one["status"]; {
		case status == alarm:
			if len(alarmed) == 0 {
				out = map[string]any{"type": kind, "status": alarm, "reason": reason}
			}
			alarmed = append(alarmed, "cluster "+c.Cluster+": "+conditionMessage(c.Object, kind))
		case out == nil && (status == "True" || status == "False"):
			out = map[string]any{"type": kind, "status": status, "reason": reason, "message": conditionMessage(c.Object, kind)}
		}
	}
	if out == nil {
		return nil
	}
	if len(alarmed) > 0 {
		out["message"] = joinBounded(alarmed)
	}
	return []any{out}
}

// latestTime returns the latest of the copies' times, as RFC 3339 in UTC, which sorts as text; "" if there is none.
func latestTime(copies []Copy, field string) (at string) {
	for _, c := range copies {
		if c.Object != nil {
			t, _, _ := unstructured.NestedString(c.Object.Object, "status", field)
			at = max(at, t)
		}
	}
	return at
}

// joinBounded joins texts about clusters, at most maxNamed.
func joinBounded(texts []string) string { return joined(texts, "; ") }

func joined(texts []string, by string) string {
	if len(texts) > maxNamed {
		texts = append(texts[:maxNamed:maxNamed], andMore(len(texts)-maxNamed))
	}
	return strings.Join(texts, by)
}
