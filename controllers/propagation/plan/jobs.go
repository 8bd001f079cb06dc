package plan

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// generatedJobLabels are added by each cluster's API to a Job's template and selector.
var generatedJobLabels = []string{"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"}

// adaptJob removes what the federation's API generated, because a member generates its own, and gives a cluster its
// share of the completions; of an Indexed Job, all.
func adaptJob(content map[string]any, s Source, t Target) {
	spec, _ := content["spec"].(map[string]any)
	if manual, _, _ := unstructured.NestedBool(spec, "manualSelector"); !manual {
		delete(spec, "selector")
		for _, label := range generatedJobLabels {
			unstructured.RemoveNestedField(spec, "template", "metadata", "labels", label)
		}
	}
	completions, ok, _ := unstructured.NestedInt64(spec, "completions")
	if !ok || s.Placement == nil || v1beta1.IndexedJob(s.Object) {
		return
	}
	completions -= RoundOf(s.Object).Succeeded
	if t.Have != nil { // they are immutable
		if has, ok, _ := unstructured.NestedInt64(t.Have.Object, "spec", "completions"); ok {
			spec["completions"] = has
		} else {
			delete(spec, "completions")
		}
		return
	}
	spec["completions"] = s.remainingShare(completions, t)
}

// remainingShare returns the share of a cluster without a copy: of what is left without the shares of the clusters that
// work on theirs and the results of those that do nothing more.
func (s Source) remainingShare(all int64, t Target) int64 {
	asPlaced := divideByShares(all, s.placementShares(func(string) bool { return true }))
	left, asDivided := all, true
	siblings := maps.Clone(t.Siblings)
	maps.DeleteFunc(siblings, func(_ string, copy *unstructured.Unstructured) bool { return Outlived(SourceOf(s.Object), copy) })
	for name, copy := range siblings {
		has, _, _ := unstructured.NestedInt64(copy.Object, "spec", "completions")
		if s.Share(name) == 0 {
			has = statusOf(copy, "succeeded")
		}
		left -= has
		asDivided = asDivided && has == asPlaced[name]
	}
	if asDivided {
		return asPlaced[t.Cluster.Name]
	}
	return divideByShares(max(0, left), s.placementShares(func(name string) bool { return siblings[name] == nil }))[t.Cluster.Name]
}

// Round is one division of a Job's completions among clusters. A copy's completions are immutable. If completions are
// missing when all copies are complete, because a cluster was lost or drained with its share, they are divided in
// another round, with new copies in place of the old.
type Round struct {
	Number int64 `json:"round"`
	// Succeeded and Failed are the pods of the earlier rounds.
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed,omitempty"`
}

// RoundOf reads the current round of a federated object; the first by default.
func RoundOf(federated *unstructured.Unstructured) Round {
	r := Round{}
	text := federated.GetAnnotations()[v1beta1.JobRoundAnnotation]
	if text == "" || json.Unmarshal([]byte(text), &r) != nil {
		return Round{Number: 1}
	}
	return r
}

// next returns the next round, with the results of these copies.
func (r Round) next(copies []Copy) string {
	r.Number++
	r.Succeeded += sum(copies, "status", "succeeded")
	r.Failed += sum(copies, "status", "failed")
	text, _ := json.Marshal(r) // numbers can be said
	return string(text)
}

// jobRound returns the round that a Job should be in: the next one if its copies are complete and completions are
// missing. A success policy decides by itself when enough have succeeded.
func jobRound(federated *unstructured.Unstructured, copies []Copy) string {
	r, copies := RoundOf(federated), ofSource(federated, copies)
	all, counted, _ := unstructured.NestedInt64(federated.Object, "spec", "completions")
	_, judged, _ := unstructured.NestedFieldNoCopy(federated.Object, "spec", "successPolicy")
	if counted && !judged && !v1beta1.IndexedJob(federated) && v1beta1.JobEnd(federated) == "" && jobResult(federated, copies) == "Complete" && atRest(copies) && r.Succeeded+sum(copies, "status", "succeeded") < all {
		return r.next(copies)
	}
	return federated.GetAnnotations()[v1beta1.JobRoundAnnotation]
}

// placementShares returns the shares of the clusters that take part, by the placement.
func (s Source) placementShares(take func(cluster string) bool) map[string]int64 {
	out := map[string]int64{}
	for name := range s.Placement.Clusters {
		if n := s.Share(name); n > 0 && take(name) {
			out[name] = n
		}
	}
	return out
}

// divideByShares divides a number in proportion to shares: whole parts first, then one each by name.
func divideByShares(number int64, shares map[string]int64) map[string]int64 {
	var sum int64
	for _, n := range shares {
		sum += n
	}
	out, left := map[string]int64{}, number
	if sum == 0 {
		return out
	}
	for name, n := range shares {
		out[name] = number * n / sum
		left -= out[name]
	}
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		if left == 0 {
			break
		}
		out[name]++
		left--
	}
	return out
}
