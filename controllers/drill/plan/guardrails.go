package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

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

// endRequest returns a person's request to end the drill: abort, delete, or the stop switch.
func (d *drill) endRequest() (reason, message string) {
	switch a := d.Status.Abort; {
	case a != nil:
		return v1beta1.DrillOperator, strings.TrimSuffix(fmt.Sprintf("aborted by %s: %s", a.By, a.Reason), ": ")
	case d.DeletionTimestamp != nil:
		return v1beta1.DrillOperator, "deleted"
	case d.Stopped != "":
		return v1beta1.DrillStopped, "drills are stopped: " + d.Stopped
	}
	return "", ""
}

// earlyEnd returns why an active drill goes back early.
func (d *drill) earlyEnd() (reason, message string) {
	if reason, message := d.endRequest(); reason != "" {
		return reason, message
	}
	for _, c := range d.Clusters {
		if d.isIsolation() && slices.Contains(d.step.Status.Clusters, c.Name) {
			if slices.Contains(d.DeadBehind, c.Name) {
				return v1beta1.DrillRealFailure, fmt.Sprintf("cluster %s: does not answer, isolated or not", c.Name)
			}
			continue
		}
		if !isServing(c) {
			return v1beta1.DrillRealFailure, fmt.Sprintf("cluster %s: %s, phase %s", c.Name, readyWord(c), c.Phase())
		}
	}
	if reason, message := d.byHand(); reason != "" {
		return reason, message
	}
	if d.isIsolation() && d.Status.Phase == v1beta1.DrillHolding && !d.inForce() {
		return v1beta1.DrillControllerLost, d.notInForce()
	}
	work, marks := d.step.Status.Report.Workloads, d.step.Status.Report.Marks
	if least := d.Spec.Guardrails.MinReady(); work.LeastReadyPercent < least {
		return v1beta1.DrillReadyBelow, fmt.Sprintf("%s not ready, %d before: %d %% of %d stayed ready, must be %d %%",
			phrase.Subject(work.MostNotReady, "replica", "is", "are"), work.NotReadyBefore, work.LeastReadyPercent, work.Replicas, least)
	}
	var unplaced int64
	for i := range d.Objects {
		unplaced += d.Objects[i].Unplaced
	}
	if most := d.Spec.Guardrails.Unplaced(); d.movesReplicas() && unplaced > most {
		return v1beta1.DrillUnplaced, fmt.Sprintf("%s nowhere, at most %d may", phrase.Subject(unplaced, "replica", "fits", "fit"), most)
	}
	if reason, message := d.exceededLimit(); reason != "" {
		return reason, message
	}
	if marks.Injected != nil && marks.OutOfDNS == nil && d.Now.Sub(marks.Injected.Time) > behind {
		return v1beta1.DrillDNSBehind, fmt.Sprintf("%s after the fault DNS does not have it: %s", behind, d.notOut())
	}
	return "", ""
}

// byHand returns what somebody changed of the clusters that are out.
func (d *drill) byHand() (reason, message string) {
	if d.isIsolation() {
		return d.isolatedByHand()
	}
	if d.Status.Phase != v1beta1.DrillHolding {
		for _, c := range d.scopeClusters() {
			if mark := markOf(c); mark != nil && mark.Drill != d.uid {
				return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody drains it", c.Name)
			}
		}
		return "", ""
	}
	scope := d.scopeClusters()
	if len(scope) < len(d.Status.Clusters) {
		return v1beta1.DrillByHand, "a cluster of the scope was removed"
	}
	emptying := d.Spec.Method == v1beta1.DrillEvacuate
	for _, c := range scope {
		switch {
		case !bears(c, d.uid):
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody took it over", c.Name)
		case c.DNSWeight() != 0:
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody set spec.dnsWeight to %d", c.Name, c.DNSWeight())
		case tainted(c) && !emptying:
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody put the taint %s on it", c.Name, drainTaint.ToString())
		case !tainted(c) && emptying && d.Status.Report.Marks.Placed != nil:
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody took the taint %s off", c.Name, drainTaint.ToString())
		}
	}
	return "", ""
}

// isolatedByHand returns what somebody changed of the isolated clusters. The drill itself does not change their specs.
func (d *drill) isolatedByHand() (reason, message string) {
	scope := d.scopeClusters()
	if len(scope) < len(d.Status.Clusters) {
		return v1beta1.DrillByHand, "a cluster of the scope was removed"
	}
	for _, c := range scope {
		i := slices.IndexFunc(d.step.Status.Undo, func(u v1beta1.DrillUndo) bool { return u.Cluster == c.Name })
		switch {
		case c.Annotations[v1beta1.DrainAnnotation] != "" || c.OutOfService() != "":
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody took it out of service", c.Name)
		case i >= 0 && weight(d.step.Status.Undo[i].DNSWeight) != c.DNSWeight():
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody set spec.dnsWeight to %d", c.Name, c.DNSWeight())
		}
	}
	return "", ""
}

// endsOnTheWay returns why an isolation that is over is not undone step by step. back is how long it has been over.
func (d *drill) endsOnTheWay(back time.Duration) (reason, message string) {
	if reason, message = d.endRequest(); reason != "" {
		return reason, message
	}
	if reason, message = d.isolatedByHand(); reason != "" {
		return reason, message
	}
	for _, c := range d.scopeClusters() {
		if back >= rejoining && !c.IsReady() {
			return v1beta1.DrillRealFailure, fmt.Sprintf("cluster %s: not ready %s after the isolation", c.Name, rejoining)
		}
	}
	return "", ""
}
