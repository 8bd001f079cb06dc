package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// Conditions that kstatus reads of objects of any kind, and Helm 4, Flux and kpt by it. They are there only while they are true (ADR 127).
const (
	// ConditionReconciling: a cluster is on its way to what is wanted.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: a cluster refuses it.
	ConditionStalled = "Stalled"
)

// momentary is the one of these that is true, if any is. Who waits for an object is not to wait for a cluster that cannot be reached.
func momentary(federated *unstructured.Unstructured, copies []Copy) []any {
	if federated.GetAnnotations()[v1beta1.PlacementAnnotation] == v1beta1.PlacementPending {
		return []any{newCondition(ConditionReconciling, true, "PlacementPending", "", "where it goes is not decided yet")}
	}
	for _, c := range []struct {
		kind   string
		states []State
	}{{ConditionStalled, []State{Rejected, Conflict}}, {ConditionReconciling, []State{Pending, Progressing}}} {
		var named []string
		reason := ""
		for _, of := range copies {
			if slices.Contains(c.states, of.State) {
				named, reason = append(named, of.Cluster+": "+of.Message), worseReason(reason, string(of.State))
			}
		}
		if len(named) > 0 {
			return []any{newCondition(c.kind, true, reason, "", joinBounded(named))}
		}
	}
	return nil
}

// isPast reports whether a condition is a momentary one that is not wanted any more.
func isPast(old any, wanted []any) bool {
	o, _ := old.(map[string]any)
	return (o["type"] == ConditionReconciling || o["type"] == ConditionStalled) && !slices.ContainsFunc(wanted, func(c any) bool { return c.(map[string]any)["type"] == o["type"] })
}
