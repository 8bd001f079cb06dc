package plan

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// jobStatus sums up the copies. The API lets counts only grow, and a finished Job must stay as it is.
func jobStatus(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	if v1beta1.JobEnd(federated) != "" {
		return map[string]any{}
	}
	before, copies := RoundOf(federated), ofSource(federated, copies)
	status := map[string]any{
		"active": sum(copies, "status", "active"), "ready": sum(copies, "status", "ready"),
		"terminating": sum(copies, "status", "terminating"),
		"succeeded":   max(min(math.MaxInt32, before.Succeeded+sum(copies, "status", "succeeded")), statusOf(federated, "succeeded")),
		"failed":      max(min(math.MaxInt32, before.Failed+sum(copies, "status", "failed")), statusOf(federated, "failed")),
	}
	if started := startOf(federated, copies); started != "" {
		status["startTime"] = started
	}
	end := jobResult(federated, copies)
	if end == "" || !atRest(copies) || status["startTime"] == nil || jobRound(federated, copies) != federated.GetAnnotations()[v1beta1.JobRoundAnnotation] {
		return status
	}
	if end == "Complete" {
		status["completionTime"] = max(latestTime(copies, "completionTime"), status["startTime"].(string))
		status["conditions"] = []any{newCondition("SuccessCriteriaMet", true, "ClustersComplete", "", ""), newCondition("Complete", true, "ClustersComplete", "", "")}
		return status
	}
	var failed []string
	for _, c := range copies {
		if v1beta1.JobEnd(c.Object) == "Failed" {
			failed = append(failed, "cluster "+c.Cluster+": "+conditionMessage(c.Object, "Failed"))
		}
	}
	status["conditions"] = []any{newCondition("FailureTarget", true, "ClusterFailed", "", joinBounded(failed)), newCondition("Failed", true, "ClusterFailed", "", joinBounded(failed))}
	return status
}

// ofSource leaves out copies of another source: an earlier object of the name, or an earlier round. For an Indexed Job
// it also leaves out clusters where it is no longer placed: all of it is done again.
func ofSource(federated *unstructured.Unstructured, copies []Copy) []Copy {
	out, source := slices.Clone(copies), Source{Object: federated, Placement: Read(federated)}
	again := v1beta1.IndexedJob(federated) && source.Placement != nil
	for i := range out {
		if out[i].Object != nil && (Outlived(SourceOf(federated), out[i].Object) || again && source.Share(out[i].Cluster) == 0) {
			out[i].Object = nil
		}
	}
	return out
}

// atRest reports whether no pod of the copies may still succeed.
func atRest(copies []Copy) bool {
	return sum(copies, "status", "active")+sum(copies, "status", "terminating") == 0
}

// startOf returns when the first copy started, as first reported: it is immutable.
func startOf(federated *unstructured.Unstructured, copies []Copy) string {
	if at, _, _ := unstructured.NestedString(federated.Object, "status", "startTime"); at != "" {
		return at
	}
	first := ""
	for _, c := range copies {
		if c.Object == nil {
			continue
		}
		if at, _, _ := unstructured.NestedString(c.Object.Object, "status", "startTime"); at != "" && (first == "" || at < first) {
			first = at
		}
	}
	return first
}

// jobResult returns how a Job ended: Complete, Failed, or "" while it runs. It has ended when it has in each cluster with a
// share of it.
func jobResult(federated *unstructured.Unstructured, copies []Copy) string {
	placement := Read(federated)
	if placement == nil {
		return ""
	}
	ends := map[string]string{}
	for _, c := range copies {
		ends[c.Cluster] = v1beta1.JobEnd(c.Object)
	}
	return allEnded(placement, ends)
}

func allEnded(placement *v1beta1.Placement, ends map[string]string) (end string) {
	for cluster, n := range placement.Clusters {
		switch {
		case n > 0 && ends[cluster] == "":
			return ""
		case n > 0 && end != "Failed":
			end = ends[cluster]
		}
	}
	return end
}

func cronJobStatus(_ *unstructured.Unstructured, copies []Copy) map[string]any {
	status := map[string]any{}
	for _, field := range []string{"lastScheduleTime", "lastSuccessfulTime"} {
		if at := latestTime(copies, field); at != "" {
			status[field] = at
		}
	}
	return status
}
