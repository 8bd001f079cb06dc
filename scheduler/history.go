package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// maxCauses bounds how many clusters a cause names.
const maxCauses = 3

// changesBetween returns what changed between two placements.
func changesBetween(last, next *v1beta1.Placement) (d v1beta1.PlacementDecision) {
	if last == nil {
		last = &v1beta1.Placement{}
	}
	if next.Everywhere != last.Everywhere {
		d.Everywhere = new(next.Everywhere)
	}
	addChanges(&d, last.Clusters, next.Clusters, false)
	addChanges(&d, last.Overflow, next.Overflow, true)
	if next.Unschedulable != last.Unschedulable {
		d.Unschedulable = new(next.Unschedulable)
	}
	return d
}

// addChanges adds the numbers that differ, by cluster.
func addChanges(d *v1beta1.PlacementDecision, last, next map[string]int64, overflow bool) {
	both := map[string]int64{}
	maps.Copy(both, last)
	maps.Copy(both, next)
	found := 0
	for _, name := range sortedNames(both) {
		if last[name] == next[name] {
			continue
		}
		if found++; found > v1beta1.MaxChanges {
			d.OmittedChanges++
			continue
		}
		d.Changes = append(d.Changes, v1beta1.PlacementChange{Cluster: name, From: last[name], To: next[name], Overflow: overflow})
	}
}

// prependDecision prepends a decision to a history.
func prependDecision(history []v1beta1.PlacementDecision, d v1beta1.PlacementDecision) []v1beta1.PlacementDecision {
	out := append([]v1beta1.PlacementDecision{d}, history...)
	return out[:min(len(out), v1beta1.MaxDecisions)]
}

func storedTime(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }

// cause returns why the decision differs from the last one: what changed in the object and its policy or, if nothing
// did, in the clusters.
func (d *deciding) cause() string {
	last := d.o.Current
	if last == nil && !d.o.Divided && !d.o.Pending && d.wants.policy != nil { // it was there before, and went everywhere
		return fmt.Sprintf("policy %s governs it", d.wants.policyName())
	}
	if last == nil {
		return "created"
	}
	var parts []string
	if was := sum(last.Clusters) + last.Unschedulable; d.o.Divided && was != d.o.Replicas {
		parts = append(parts, fmt.Sprintf("spec.%s %d→%d", d.o.replicasField, was, d.o.Replicas))
	}
	parts = append(parts, d.changedInputs(last)...)
	if len(parts) == 0 {
		parts = d.changedClusters(last)
	}
	switch {
	case d.result.Unreferred && last.Policy == "":
		return "nothing refers to it any more"
	case d.follows():
		return "what refers to it goes elsewhere: " + strings.Join(d.o.Followed, ", ")
	case d.result.Placement.AtFederation != last.AtFederation:
		return "spec.autoscaling of the policy changed"
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case d.o.Divided:
		return "the capacity of clusters changed"
	}
	return "the clusters that it may use changed"
}

// changedInputs returns the changed inputs of the object and its policy.
func (d *deciding) changedInputs(last *v1beta1.Placement) (parts []string) {
	was, is := splitInputs(last.Inputs), splitInputs(d.wants.inputs)
	if d.o.Divided && was[0] != is[0] {
		parts = append(parts, "preferences changed")
	}
	if d.o.Divided && was[1] != is[1] {
		parts = append(parts, "cluster selector changed")
	}
	switch name := d.wants.policyName(); {
	case name != last.Policy && name == "":
		parts = append(parts, fmt.Sprintf("policy %s no longer governs it", last.Policy))
	case name != last.Policy:
		parts = append(parts, fmt.Sprintf("policy %s governs it", name))
	case d.o.Divided && was[2] != is[2]:
		parts = append(parts, fmt.Sprintf("policy %s changed", name))
	}
	return parts
}

// splitInputs splits Placement.Inputs: preferences, selector, policy.
func splitInputs(text string) (out [3]string) {
	copy(out[:], strings.SplitN(text, "/", 3))
	return out
}

// changedClusters returns the clusters whose state caused the decision.
func (d *deciding) changedClusters(last *v1beta1.Placement) (parts []string) {
	next, seats, with := &d.result.Placement, d.seating.seats, d.seating.with
	seen := map[string]bool{}
	for i := range seats {
		s := &seats[i]
		name := s.cluster.Name
		seen[name] = true
		was, is := last.Clusters[name], next.Clusters[name]
		switch {
		case s.use == out && was > is:
			parts = append(parts, fmt.Sprintf("cluster %s: %s", name, s.because))
		case s.percent < 100 && is > was:
			parts = append(parts, fmt.Sprintf("cluster %s %s", name, s.because))
		case is > was && last.Home[name] > was:
			parts = append(parts, fmt.Sprintf("cluster %s failed back", name))
		case s.cluster.Phase() == v1beta1.PhaseFailingBack && is > was:
			parts = append(parts, fmt.Sprintf("cluster %s failed back", name))
		case s.stuck > 0 && is < was:
			parts = append(parts, "cluster "+name+cmp.Or(withWords("", s.says), " has no room"))
		}
	}
	for _, name := range sortedNames(last.Clusters) {
		if !seen[name] && with != nil && with.why[name] != "" {
			parts = append(parts, fmt.Sprintf("cluster %s: %s", name, with.why[name]))
		} else if !seen[name] && with != nil && d.w.knows(name) {
			parts = append(parts, with.reason())
		} else if !seen[name] {
			parts = append(parts, fmt.Sprintf("cluster %s is not selected, or has left the federation", name))
		}
	}
	if len(parts) > maxCauses {
		parts = append(parts[:maxCauses], fmt.Sprintf("and %d more", len(parts)-maxCauses))
	}
	return parts
}
