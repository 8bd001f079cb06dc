package plan

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// generatedJobLabels are put by the API of each cluster on a Job's template, and into its selector.
var generatedJobLabels = []string{"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"}

// adaptJob takes out what the API of the federation generated, for a member generates its own, and gives a
// cluster its part of the completions.
func adaptJob(content map[string]any, s Source, t Target) {
	spec, _ := content["spec"].(map[string]any)
	if manual, _, _ := unstructured.NestedBool(spec, "manualSelector"); !manual {
		delete(spec, "selector")
		for _, label := range generatedJobLabels {
			unstructured.RemoveNestedField(spec, "template", "metadata", "labels", label)
		}
	}
	completions, ok, _ := unstructured.NestedInt64(spec, "completions")
	if !ok || s.Placement == nil {
		return
	}
	if t.Have != nil { // they cannot be changed any more
		if has, ok, _ := unstructured.NestedInt64(t.Have.Object, "spec", "completions"); ok {
			spec["completions"] = has
		} else {
			delete(spec, "completions")
		}
		return
	}
	spec["completions"] = s.completions(completions, t)
}

// completions is the part of a cluster that has no copy yet: of what is left when those of the clusters that
// work on theirs are taken off, and what was done where no more is to be done.
func (s Source) completions(all int64, t Target) int64 {
	asPlaced := divide(all, s.shares(func(string) bool { return true }))
	left, asDivided := all, true
	for name, copy := range t.Siblings {
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
	return divide(max(0, left), s.shares(func(name string) bool { return t.Siblings[name] == nil }))[t.Cluster.Name]
}

// shares are the clusters that take part, with what the placement gives them.
func (s Source) shares(take func(cluster string) bool) map[string]int64 {
	out := map[string]int64{}
	for name := range s.Placement.Clusters {
		if n := s.Share(name); n > 0 && take(name) {
			out[name] = n
		}
	}
	return out
}

// divide divides a number in proportion to shares: whole parts first, then one each by name.
func divide(number int64, shares map[string]int64) map[string]int64 {
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
