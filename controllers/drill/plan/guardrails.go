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

// endRequest returns a person's request to end the drill: abort, delete, or the stop switch.
func (r *run) endRequest() (reason, message string) {
	switch a := r.Status.Abort; {
	case a != nil:
		return v1beta1.DrillOperator, strings.TrimSuffix(fmt.Sprintf("aborted by %s: %s", a.By, a.Reason), ": ")
	case r.DeletionTimestamp != nil:
		return v1beta1.DrillOperator, "deleted"
	case r.Stopped != "":
		return v1beta1.DrillStopped, "drills are stopped: " + r.Stopped
	}
	return "", ""
}

// guard watches over a drill that has its clusters out.
type guard struct {
	*run
	report *v1beta1.DrillReport
	// scope are the clusters that exist.
	scope []*v1beta1.Cluster
}

func (r *run) guard() *guard { return &guard{run: r, report: r.next.Report, scope: r.scope()} }

// earlyEnd returns why an active drill goes back early.
func (g *guard) earlyEnd() (reason, message string) {
	if reason, message := g.endRequest(); reason != "" {
		return reason, message
	}
	for _, c := range g.Clusters {
		if g.isIsolation() && slices.Contains(g.next.Clusters, c.Name) {
			if slices.Contains(g.DeadBehind, c.Name) {
				return v1beta1.DrillRealFailure, fmt.Sprintf("cluster %s: does not answer, isolated or not", c.Name)
			}
			continue
		}
		if !isServing(c) {
			return v1beta1.DrillRealFailure, fmt.Sprintf("cluster %s: %s, phase %s", c.Name, readyWord(c), c.Phase())
		}
	}
	if reason, message := g.byHand(); reason != "" {
		return reason, message
	}
	if g.isIsolation() && g.Status.Phase == v1beta1.DrillHolding && g.notInForce() != "" {
		return v1beta1.DrillControllerLost, g.notInForce()
	}
	work, marks := g.report.Workloads, g.report.Marks
	if least := g.Spec.Guardrails.MinReady(); work.LeastReadyPercent < least {
		return v1beta1.DrillReadyBelow, fmt.Sprintf("%s not ready, %d before: %d %% of %d stayed ready, must be %d %%",
			phrase.Subject(work.MostNotReady, "replica", "is", "are"), work.NotReadyBefore, work.LeastReadyPercent, work.Replicas, least)
	}
	var unplaced int64
	for i := range g.Objects {
		unplaced += g.Objects[i].Unplaced
	}
	if most := g.Spec.Guardrails.Unplaced(); g.movesReplicas() && unplaced > most {
		return v1beta1.DrillUnplaced, fmt.Sprintf("%s nowhere, at most %d may", phrase.Subject(unplaced, "replica", "fits", "fit"), most)
	}
	if reason, message := g.exceededLimit(); reason != "" {
		return reason, message
	}
	if marks.Injected != nil && marks.OutOfDNS == nil && g.Now.Sub(marks.Injected.Time) > behind {
		return v1beta1.DrillDNSBehind, fmt.Sprintf("%s after the fault DNS does not have it: %s", behind, g.followed().notOut())
	}
	return "", ""
}

// byHand returns what somebody changed of the clusters that are out.
func (g *guard) byHand() (reason, message string) {
	if g.isIsolation() {
		return g.isolatedByHand()
	}
	if g.Status.Phase != v1beta1.DrillHolding {
		for _, c := range g.scope {
			if mark := markOf(c); mark != nil && mark.Drill != g.uid() {
				return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody drains it", c.Name)
			}
		}
		return "", ""
	}
	if len(g.scope) < len(g.Status.Clusters) {
		return v1beta1.DrillByHand, "a cluster of the scope was removed"
	}
	emptying := g.Spec.Method == v1beta1.DrillEvacuate
	for _, c := range g.scope {
		switch {
		case !bears(c, g.uid()):
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody took it over", c.Name)
		case c.DNSWeight() != 0:
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody set spec.dnsWeight to %d", c.Name, c.DNSWeight())
		case tainted(c) && !emptying:
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody put the taint %s on it", c.Name, drainTaint.ToString())
		case !tainted(c) && emptying && g.Status.Report.Marks.Placed != nil:
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody took the taint %s off", c.Name, drainTaint.ToString())
		}
	}
	return "", ""
}

// isolatedByHand returns what somebody changed of the isolated clusters. The drill itself does not change their specs.
func (g *guard) isolatedByHand() (reason, message string) {
	if len(g.scope) < len(g.Status.Clusters) {
		return v1beta1.DrillByHand, "a cluster of the scope was removed"
	}
	for _, c := range g.scope {
		i := slices.IndexFunc(g.next.Undo, func(u v1beta1.DrillUndo) bool { return u.Cluster == c.Name })
		switch {
		case c.Annotations[v1beta1.DrainAnnotation] != "" || c.OutOfService() != "":
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody took it out of service", c.Name)
		case i >= 0 && weight(g.next.Undo[i].DNSWeight) != c.DNSWeight():
			return v1beta1.DrillByHand, fmt.Sprintf("cluster %s: somebody set spec.dnsWeight to %d", c.Name, c.DNSWeight())
		}
	}
	return "", ""
}

// endsOnTheWay returns why an isolation that is over is not undone step by step. back is how long it has been over.
func (g *guard) endsOnTheWay(back time.Duration) (reason, message string) {
	if reason, message = g.endRequest(); reason != "" {
		return reason, message
	}
	if reason, message = g.isolatedByHand(); reason != "" {
		return reason, message
	}
	for _, c := range g.scope {
		if back >= rejoining && !c.IsReady() {
			return v1beta1.DrillRealFailure, fmt.Sprintf("cluster %s: not ready %s after the isolation", c.Name, rejoining)
		}
	}
	return "", ""
}

// exceededLimit returns which effect of a drill exceeds its limit.
func (g *guard) exceededLimit() (reason, message string) {
	if reason, message := g.probes().fail(false); reason != "" {
		return reason, message
	}
	if since := g.report.Workloads.BudgetViolatedSince; since != nil && g.Now.Sub(since.Time) >= budgetFor {
		if broken := g.brokenBudgets(nil, g.unseen()); len(broken) > 0 {
			return v1beta1.DrillBudgetViolated, fmt.Sprintf("for %s: %s", g.Now.Sub(since.Time).Round(time.Second), broken[0])
		}
	}
	if p := &g.report.Prediction; p.Moved > p.Replicas*(100+morePercent)/100+more {
		return v1beta1.DrillUnpredicted, fmt.Sprintf("%d replicas have moved, %d were predicted: at most %d may", p.Moved, p.Replicas, p.Replicas*(100+morePercent)/100+more)
	}
	if n := g.next.LeaderChanges; n >= maxLeaders {
		return v1beta1.DrillControlPlane, fmt.Sprintf("another process has taken over %d times", n)
	}
	if !slices.ContainsFunc(g.SlowWrites[:], func(p99 time.Duration) bool { return p99 <= slow }) {
		return v1beta1.DrillControlPlane, fmt.Sprintf("for 30 s writes at the federation's API take %s, must be %s", slices.Min(g.SlowWrites[:]), slow)
	}
	return "", ""
}
