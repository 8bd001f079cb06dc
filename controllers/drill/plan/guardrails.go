package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

const (
	// stuck is how long an object may be out of sync anywhere before it blocks drills.
	stuck = 10 * time.Minute
	// rest is the minimum time between two drills of a cluster.
	rest = time.Hour
	// budgetFor is how long a PodDisruptionBudget may be violated.
	budgetFor = 30 * time.Second
	// slow is the limit of the 99th percentile of writes to the federation's API: the objective of SIG Scalability.
	slow = time.Second
	// maxLeaders is the number of leader changes that ends a drill.
	maxLeaders = 2
	// morePercent and more are how many more replicas than predicted may move.
	morePercent, more = 20, 10
)

// ignoresCheck reports whether the drill ignores a failed check.
func (d *drill) ignoresCheck(check string) bool { return slices.Contains(d.Spec.Allow, check) }

// atRest returns the first failed check of those that require that nothing else happens.
func (d *drill) atRest() (reason, message string) {
	if broken := d.brokenBudgets(d.predictedUnplaced()); len(broken) > 0 {
		return v1beta1.DrillBudgets, broken[0]
	}
	if !d.ignoresCheck(v1beta1.DrillQuiet) {
		if restless := d.changingObjects(); len(restless) > 0 {
			return v1beta1.DrillQuiet, fmt.Sprintf("%s not as desired: %s", phrase.Subject(int64(len(restless)), "object", "is", "are"), strings.Join(restless[:min(len(restless), 5)], ", "))
		}
	}
	if other, at := d.lastDrill(); !d.ignoresCheck(v1beta1.DrillRested) && other != "" && d.Now.Sub(at) < rest {
		return v1beta1.DrillRested, fmt.Sprintf("drill %s took clusters of the scope out until %s ago; must be %s", other, d.Now.Sub(at).Round(time.Second), rest)
	}
	return "", ""
}

// changingObjects returns the objects that are changing: those with replicas in the scope that are not as desired, and all
// that have not been for long.
func (d *drill) changingObjects() (names []string) {
	for i := range d.Objects {
		o := &d.Objects[i]
		in := slices.ContainsFunc(d.Review.Clusters, func(c string) bool { return o.Placed[c] > 0 })
		if o.Moving && (in || !o.Since.IsZero() && d.Now.Sub(o.Since) >= stuck) {
			names = append(names, o.Name)
		}
	}
	slices.Sort(names)
	return names
}

// lastDrill returns the drill that last took a cluster of the scope out, and when it ended; "" if there is none.
func (d *drill) lastDrill() (name string, at time.Time) {
	for _, o := range d.Drills {
		ended := o.Status.PhaseSince
		if o.UID == d.UID || !o.IsFinished() || o.Status.Report == nil || ended == nil || !ended.After(at) {
			continue
		}
		if slices.ContainsFunc(o.Status.Clusters, func(c string) bool { return slices.Contains(d.Review.Clusters, c) }) {
			name, at = o.Name, ended.Time
		}
	}
	return name, at
}

// predictedUnplaced returns the replicas that would fit nowhere, by object.
func (d *drill) predictedUnplaced() map[string]int64 {
	unplaced := map[string]int64{}
	if d.movesReplicas() {
		for _, m := range d.Review.Moves {
			unplaced[m.Kind+" "+m.Namespace+"/"+m.Name] = m.Unschedulable
		}
	}
	return unplaced
}

// brokenBudgets returns the PodDisruptionBudgets that would be violated if so many more replicas were not ready, over
// all clusters together. Pods of an isolated cluster cannot be seen: they count as running.
func (d *drill) brokenBudgets(more map[string]int64) (broken []string) {
	for _, b := range d.Budgets {
		var expected, gone int64
		for _, i := range b.Objects {
			o := &d.Objects[i]
			missing := o.Asked - o.Ready
			if d.isIsolation() && d.Status.Report != nil {
				missing -= o.replicasAtHome(d.step.Status.Clusters)
			}
			expected += o.Asked
			gone += min(o.Asked, max(0, missing)+more[o.Name])
		}
		if desired := b.desiredHealthy(expected); expected-gone < desired {
			broken = append(broken, fmt.Sprintf("PodDisruptionBudget %s: %d of %d pods are healthy, must be %d", b.Name, expected-gone, expected, desired))
		}
	}
	return broken
}

// replicasAtHome returns how many replicas an object had in clusters before they were failed over.
func (o *Object) replicasAtHome(clusters []string) (n int64) {
	placed := o.Home
	if placed == nil {
		placed = o.Placed
	}
	for _, c := range clusters {
		n += placed[c]
	}
	return n
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

// measureBudgets records since when a budget is violated.
func (d *drill) measureBudgets() {
	work := &d.step.Status.Report.Workloads
	if len(d.brokenBudgets(nil)) == 0 {
		work.BudgetViolatedSince = nil
	} else {
		work.BudgetViolatedSince = cmp.Or(work.BudgetViolatedSince, d.nowMicro())
	}
}

// exceededLimit returns which effect of a drill exceeds its limit.
func (d *drill) exceededLimit() (reason, message string) {
	if reason, message := d.clientsFail(false); reason != "" {
		return reason, message
	}
	r := d.step.Status.Report
	if since := r.Workloads.BudgetViolatedSince; since != nil && d.Now.Sub(since.Time) >= budgetFor {
		if broken := d.brokenBudgets(nil); len(broken) > 0 {
			return v1beta1.DrillBudgetViolated, fmt.Sprintf("for %s: %s", d.Now.Sub(since.Time).Round(time.Second), broken[0])
		}
	}
	if most := r.Prediction.Replicas*(100+morePercent)/100 + more; r.Prediction.Moved > most {
		return v1beta1.DrillUnpredicted, fmt.Sprintf("%d replicas have moved, %d were predicted: at most %d may", r.Prediction.Moved, r.Prediction.Replicas, most)
	}
	if n := d.step.Status.LeaderChanges; n >= maxLeaders {
		return v1beta1.DrillControlPlane, fmt.Sprintf("another process has taken over %d times", n)
	}
	if !slices.ContainsFunc(d.SlowWrites[:], func(p99 time.Duration) bool { return p99 <= slow }) {
		return v1beta1.DrillControlPlane, fmt.Sprintf("for 30 s writes at the federation's API take %s, must be %s", slices.Min(d.SlowWrites[:]), slow)
	}
	return "", ""
}

// recordLeader records which process leads.
func (d *drill) recordLeader() {
	if s := &d.step.Status; d.Leader != "" && s.Leader != d.Leader && d.UnderWay() {
		if s.Leader != "" {
			s.LeaderChanges++
		}
		s.Leader = d.Leader
	}
}
