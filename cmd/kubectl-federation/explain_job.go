package main

import (
	"fmt"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	propagation "federation/controllers/propagation/plan"
)

// jobRound is the round that a Job is in, from the second on: what its copies, all complete, had left undone is divided anew.
type jobRound struct {
	propagation.Round
	// Completions are those that are divided in this round.
	Completions int64 `json:"completions"`
}

// jobRoundOf reads it; nil in the first round, and of what is no Job with a number of completions.
func jobRoundOf(o *unstructured.Unstructured) *jobRound {
	all, r := completionsOf(o), propagation.RoundOf(o)
	if all == nil || r.Number < 2 {
		return nil
	}
	return &jobRound{r, *all - r.Succeeded}
}

func (r *jobRound) String() string {
	failed := ""
	if r.Failed > 0 {
		failed = fmt.Sprintf("; %s failed before", count(r.Failed, "pod"))
	}
	return fmt.Sprintf("Round %d: of %s %d were done before, %d are divided anew%s", r.Number, count(r.Succeeded+r.Completions, "completion"), r.Succeeded, r.Completions, failed)
}

// completionsOf are what a Job asks for; nil where it does not say, and of other kinds.
func completionsOf(o *unstructured.Unstructured) *int64 {
	n, ok, _ := unstructured.NestedInt64(o.Object, "spec", "completions")
	if !ok || o.GetKind() != "Job" || o.GroupVersionKind().Group != batchv1.GroupName {
		return nil
	}
	return &n
}

// complete says how many completions of a Job the cluster is asked for in the round that the Job is in, and how many it
// has done of them.
func (one *clusterExplanation) complete(e evidence, c *v1beta1.Cluster) {
	answer := e.copies[c.Name]
	if completionsOf(e.object) == nil || answer.err != nil || one.Copy == copyConflict {
		return
	}
	of := answer.copy
	if of == nil || propagation.Outlived(propagation.SourceOf(e.object), of) {
		wish := e.anew(c)
		if wish.Presence != propagation.Present {
			return
		}
		of = wish.Object
	}
	one.Completions = completionsOf(of)
	one.Succeeded, _, _ = unstructured.NestedInt64(of.Object, "status", "succeeded")
}

// anew is what propagation wants to be in a cluster once nothing is there any more.
func (e evidence) anew(c *v1beta1.Cluster) propagation.Desired {
	e.copies = maps.Clone(e.copies)
	delete(e.copies, c.Name)
	return e.wish(c)
}

// done is how far a cluster is with what it is asked for of a Job.
func (c *clusterExplanation) done() string {
	if c.Completions == nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d", c.Succeeded, *c.Completions)
}
