package plan

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	propagationplan "federation/controllers/propagation/plan"
)

// jobRoundOf reads the round; nil in the first, and for objects that are no Job with a number of completions.
func jobRoundOf(o *unstructured.Unstructured) *v1beta1.ExplainedJobRound {
	all, r := completionsOf(o), propagationplan.RoundOf(o)
	if all == nil || r.Number < 2 {
		return nil
	}
	return &v1beta1.ExplainedJobRound{Round: r.Number, Succeeded: r.Succeeded, Failed: r.Failed, Completions: *all - r.Succeeded}
}

// completionsOf returns the completions of a Job; nil if unset, and for other kinds.
func completionsOf(o *unstructured.Unstructured) *int64 {
	n, ok, _ := unstructured.NestedInt64(o.Object, "spec", "completions")
	if !ok || o.GetKind() != "Job" || o.GroupVersionKind().Group != batchv1.GroupName {
		return nil
	}
	return &n
}

// setCompletions sets how many completions of a Job's current round the cluster should do, and how many it has done.
func (one *cluster) setCompletions(e Evidence, c *v1beta1.Cluster) {
	answer := e.Copies[c.Name]
	if completionsOf(e.Object) == nil || answer.Err != nil || one.Copy == v1beta1.CopyConflict {
		return
	}
	of := answer.Copy
	if of == nil || propagationplan.Outlived(propagationplan.SourceOf(e.Object), of) {
		wish := e.desiredFromScratch(c)
		if wish.Presence != propagationplan.Present {
			return
		}
		of = wish.Object
	}
	one.Completions = completionsOf(of)
	one.Succeeded, _, _ = unstructured.NestedInt64(of.Object, "status", "succeeded")
}

// desiredFromScratch returns what propagation wants in a cluster once nothing is there any more.
func (e Evidence) desiredFromScratch(c *v1beta1.Cluster) propagationplan.Desired {
	e.Copies = maps.Clone(e.Copies)
	delete(e.Copies, c.Name)
	return e.desiredNow(c)
}
