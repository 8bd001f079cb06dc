package plan

import (
	"fmt"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	propagationplan "federation/controllers/propagation/plan"
)

// JobRound is the round of a Job, from the second on: completions that its copies, all complete, had left undone are
// divided again.
type JobRound struct {
	propagationplan.Round
	// Completions are those that are divided in this round.
	Completions int64 `json:"completions"`
}

// jobRoundOf reads the round; nil in the first, and for objects that are no Job with a number of completions.
func jobRoundOf(o *unstructured.Unstructured) *JobRound {
	all, r := completionsOf(o), propagationplan.RoundOf(o)
	if all == nil || r.Number < 2 {
		return nil
	}
	return &JobRound{r, *all - r.Succeeded}
}

func (r *JobRound) String() string {
	failed := ""
	if r.Failed > 0 {
		failed = fmt.Sprintf("; %s failed before", phrase.Count(r.Failed, "pod"))
	}
	return fmt.Sprintf("Round %d: of %s %d were done before, %d are divided again%s", r.Number, phrase.Count(r.Succeeded+r.Completions, "completion"), r.Succeeded, r.Completions, failed)
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
func (one *ClusterExplanation) setCompletions(e Evidence, c *v1beta1.Cluster) {
	answer := e.Copies[c.Name]
	if completionsOf(e.Object) == nil || answer.Err != nil || one.Copy == CopyConflict {
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
