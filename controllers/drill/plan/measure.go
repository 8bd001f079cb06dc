package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// someOf returns as many of the moves as are compared.
func someOf(moves []v1beta1.ReplicaMove) (some []v1beta1.ReplicaMove) {
	changes := 0
	for _, m := range moves[:min(len(moves), maxMoves)] {
		if changes += len(m.Clusters); changes > maxChanges {
			break
		}
		some = append(some, m)
	}
	return some
}

// predict records what the review predicts and the state before.
func (d *drill) predict() {
	s := &d.step.Status
	r := s.Report
	held := d.isIsolation() && d.Review.SuspendedReason != "" // then the failover limits keep everything in place
	for _, change := range d.Review.Records {
		if held {
			break
		}
		r.Prediction.Records++
		if lost := lostData(&change); len(r.Prediction.Followed) < maxFollowed && len(lost) > 0 { // only what it is to lose is followed
			change.Before, change.After = lost[:min(len(lost), maxData)], nil
			r.Prediction.Followed = append(r.Prediction.Followed, change)
		}
	}
	if d.movesReplicas() && !held {
		r.Prediction.Replicas = d.Review.ReplicasMoved
		r.Prediction.Moves = someOf(d.Review.Moves)
	}
	for i := range d.Objects {
		if n := d.placedIn(&d.Objects[i]); n > 0 {
			r.Workloads.Objects++
			r.Workloads.Replicas += n
		}
		r.Workloads.Elsewhere += d.Objects[i].replicasOutside(s.Clusters)
	}
	r.Workloads.NotReadyBefore, r.Workloads.LeastReadyPercent = d.notReady(), 100
	r.Workloads.MostNotReady = r.Workloads.NotReadyBefore
	r.Earlier = d.compareEarlier() // of a drill that runs, too
}

// measure records first occurrences and worst values.
func (d *drill) measure() {
	r := d.step.Status.Report
	marks, work := &r.Marks, &r.Workloads
	if d.isIsolation() {
		d.recordDetection()
	}
	if n := d.unreadyReplicas(); n > work.MostNotReady {
		work.MostNotReady, work.MostAt = n, d.nowMicro()
		if lost := n - work.NotReadyBefore; work.Replicas > 0 {
			work.LeastReadyPercent = int32(max(0, 100-(100*lost+work.Replicas-1)/work.Replicas))
		}
	}
	r.Prediction.Moved = max(r.Prediction.Moved, d.Moved)
	d.measureBudgets()
	d.measureClients(false)
	if marks.OutOfDNS == nil && d.notOut() == "" {
		marks.OutOfDNS = d.nowMicro()
	}
	if marks.OutOfDNS != nil && marks.LastUse == nil && !d.Now.Before(marks.OutOfDNS.Add(d.TTL+propagationOfDNS)) {
		marks.LastUse = d.nowMicro()
	}
	if d.movesReplicas() && d.isEvacuated() {
		d.measureMoves()
	}
}

// unreadyReplicas returns how many replicas are not ready, as the guardrail counts them.
func (d *drill) unreadyReplicas() int64 {
	if d.isIsolation() {
		return d.lostElsewhere()
	}
	return d.notReady()
}

// isEvacuated reports whether nothing is left in the scope.
func (d *drill) isEvacuated() bool {
	is := tainted
	if d.isIsolation() {
		is = isOut
	}
	return !slices.ContainsFunc(d.scopeClusters(), func(c *v1beta1.Cluster) bool { return !is(c) })
}

// measureMoves records when replicas have left the scope and when they are ready elsewhere.
func (d *drill) measureMoves() {
	r := d.step.Status.Report
	marks, work := &r.Marks, &r.Workloads
	var placed int64
	moving := false
	for i := range d.Objects {
		placed += d.placedIn(&d.Objects[i])
		moving = moving || d.Objects[i].Moving
	}
	if marks.Placed == nil && placed <= work.Replicas-r.Prediction.Replicas {
		marks.Placed = d.nowMicro()
		r.Prediction.Measured, r.Prediction.Differences = work.Replicas-placed, d.differences()
	}
	if marks.Placed == nil || marks.ReadyElsewhere != nil || d.Now.Sub(marks.Placed.Time) < tick { // by then the report shows what moves
		return
	}
	ready := !moving && d.notReady() <= work.NotReadyBefore
	if d.isIsolation() { // an isolated cluster is never as desired
		ready = d.missingElsewhere() <= work.NotReadyBefore
	}
	if ready {
		marks.ReadyElsewhere = d.nowMicro()
	}
}

// differences returns the objects whose replicas went elsewhere than predicted.
func (d *drill) differences() (all []string) {
	for _, m := range d.step.Status.Report.Prediction.Moves {
		name := m.Kind + " " + m.Namespace + "/" + m.Name
		i := slices.IndexFunc(d.Objects, func(o Object) bool { return o.Name == name })
		if i < 0 {
			continue // somebody deleted it
		}
		for _, c := range m.Clusters {
			if n := d.Objects[i].Placed[c.Cluster]; n != c.After {
				all = append(all, fmt.Sprintf("%s: %d in %s, predicted %d", name, n, c.Cluster, c.After))
			}
		}
	}
	return all[:min(len(all), maxMoves)]
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

// recordDetection records when the scope is judged lost, and failed over.
func (d *drill) recordDetection() {
	marks := &d.step.Status.Report.Marks
	all := func(is func(*v1beta1.Cluster) bool) bool {
		return !slices.ContainsFunc(d.scopeClusters(), func(c *v1beta1.Cluster) bool { return !is(c) })
	}
	if marks.Detected == nil && all(func(c *v1beta1.Cluster) bool { return !c.IsReady() }) {
		marks.Detected = d.nowMicro()
	}
	if marks.Out == nil && all(isOut) {
		marks.Out = d.nowMicro()
	}
}

func isOut(c *v1beta1.Cluster) bool { return c.Phase() == v1beta1.PhaseFailedOver }

// recordReturn records how far the clusters have come back, and reports whether all of them serve.
func (d *drill) recordReturn() bool {
	marks, least := &d.step.Status.Report.Marks, int32(100)
	for _, c := range d.scopeClusters() {
		switch {
		case !c.IsReady() || slices.Contains(d.Blackholed, c.Name):
			return false
		case c.Phase() == v1beta1.PhaseFailingBack:
			least = min(least, c.Status.Failover.Percent)
		case c.Phase() != v1beta1.PhaseServing:
			least = 0
		}
	}
	if marks.BackReady = cmp.Or(marks.BackReady, d.nowMicro()); d.answersAgain() {
		marks.BackInDNS = cmp.Or(marks.BackInDNS, d.nowMicro())
	} else {
		d.step.LookAgain = soon
	}
	if step := strconv.Itoa(int(least)); least > 0 && marks.Out != nil {
		if _, noted := marks.Failback[step]; !noted {
			if marks.Failback == nil {
				marks.Failback = map[string]metav1.MicroTime{}
			}
			marks.Failback[step] = *d.nowMicro()
		}
	}
	return least == 100
}

// checkObjectives compares the measurements with the objectives.
func (d *drill) checkObjectives() {
	r, o := d.step.Status.Report, d.Spec.Objectives
	r.Objectives = nil
	note := func(name string, limit, measured *int32, met func(measured, limit int32) bool) {
		if limit != nil {
			r.Objectives = append(r.Objectives, v1beta1.DrillObjective{Name: name, Limit: *limit, Measured: measured, Met: measured != nil && met(*measured, *limit)})
		}
	}
	atMost := func(measured, limit int32) bool { return measured <= limit }
	note("detectedSeconds", o.DetectedSeconds, d.secondsAfter(r.Marks.Detected), atMost)
	note("outOfDNSSeconds", o.OutOfDNSSeconds, d.secondsAfter(r.Marks.OutOfDNS), atMost)
	note("readyElsewhereSeconds", o.ReadyElsewhereSeconds, d.secondsAfter(r.Marks.ReadyElsewhere), atMost)
	note("maxFailedPerMille", o.MaxFailedPerMille, d.worstPerMille(), atMost)
	note("minReadyPercent", o.MinReadyPercent, &r.Workloads.LeastReadyPercent, func(measured, limit int32) bool { return measured >= limit })
}

// secondsAfter returns how many seconds after the fault a mark was, rounded up; nil if it was never reached.
func (d *drill) secondsAfter(mark *metav1.MicroTime) *int32 {
	from := d.step.Status.Report.Marks.Injected
	if mark == nil || from == nil {
		return nil
	}
	return new(int32((mark.Sub(from.Time) + time.Second - 1) / time.Second))
}
