package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// brokenBudgets returns the PodDisruptionBudgets that would be violated if so many more replicas were not ready, over
// all clusters together. Pods in unseen clusters count as running.
func (w *World) brokenBudgets(more map[string]int64, unseen []string) (broken []string) {
	for _, b := range w.Budgets {
		var expected, gone int64
		for _, i := range b.Objects {
			o := &w.Objects[i]
			missing := o.Asked - o.Ready - o.replicasAtHome(unseen)
			expected += o.Asked
			gone += min(o.Asked, max(0, missing)+more[o.Name])
		}
		if desired := b.desiredHealthy(expected); expected-gone < desired {
			broken = append(broken, fmt.Sprintf("PodDisruptionBudget %s: %d of %d pods are healthy, must be %d", b.Name, expected-gone, expected, desired))
		}
	}
	return broken
}

// desiredHealthy returns how many of so many pods must be healthy. It rounds percentages up, as Kubernetes does.
func (b *Budget) desiredHealthy(expected int64) int64 {
	of := func(n *intstr.IntOrString) int64 {
		scaled, err := intstr.GetScaledValueFromIntOrPercent(n, int(expected), true)
		if err != nil {
			return 0 // the API rejects those
		}
		return int64(scaled)
	}
	switch {
	case b.MinAvailable != nil:
		return min(of(b.MinAvailable), expected)
	case b.MaxUnavailable != nil:
		return max(0, expected-of(b.MaxUnavailable))
	}
	return 0
}

// unseen are the clusters whose pods cannot be seen, because the drill has isolated them.
func (r *run) unseen() []string {
	if r.isIsolation() && r.Status.Report != nil {
		return r.next.Clusters
	}
	return nil
}
