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

// meter writes into a drill's report what was predicted and what happens.
type meter struct {
	*run
	report *v1beta1.DrillReport
}

func (r *run) meter() *meter { return &meter{run: r, report: r.next.Report} }

// predict records what the review predicts and the state before.
func (m *meter) predict() {
	r, scope := m.report, m.next.Clusters
	held := m.isIsolation() && m.Review.SuspendedReason != "" // then the failover limits keep everything in place
	for _, change := range m.Review.Records {
		if held {
			break
		}
		r.Prediction.Records++
		if lost := lostData(&change); len(r.Prediction.Followed) < maxFollowed && len(lost) > 0 { // only what it is to lose is followed
			change.Before, change.After = lost[:min(len(lost), maxData)], nil
			r.Prediction.Followed = append(r.Prediction.Followed, change)
		}
	}
	if m.movesReplicas() && !held {
		r.Prediction.Replicas = m.Review.ReplicasMoved
		r.Prediction.Moves = someOf(m.Review.Moves)
	}
	for i := range m.Objects {
		if n := m.Objects[i].replicasIn(scope); n > 0 {
			r.Workloads.Objects++
			r.Workloads.Replicas += n
		}
		r.Workloads.Elsewhere += m.Objects[i].replicasOutside(scope)
	}
	r.Workloads.NotReadyBefore, r.Workloads.LeastReadyPercent = notReady(m.Objects), 100
	r.Workloads.MostNotReady = r.Workloads.NotReadyBefore
	r.Earlier = compareEarlier(m.Drills, m.FailoverDrill, scope) // of a drill that runs, too
}

// measure records first occurrences and worst values.
func (m *meter) measure() {
	r := m.report
	marks, work := &r.Marks, &r.Workloads
	if m.isIsolation() {
		m.recordDetection()
	}
	if n := m.unreadyReplicas(); n > work.MostNotReady {
		work.MostNotReady, work.MostAt = n, m.nowMicro()
		if lost := n - work.NotReadyBefore; work.Replicas > 0 {
			work.LeastReadyPercent = int32(max(0, 100-(100*lost+work.Replicas-1)/work.Replicas))
		}
	}
	r.Prediction.Moved = max(r.Prediction.Moved, m.Moved)
	m.measureBudgets()
	m.measureClients(false)
	if marks.OutOfDNS == nil && m.followed().notOut() == "" {
		marks.OutOfDNS = m.nowMicro()
	}
	if marks.OutOfDNS != nil && marks.LastUse == nil && !m.Now.Before(marks.OutOfDNS.Add(m.TTL+propagationOfDNS)) {
		marks.LastUse = m.nowMicro()
	}
	if m.movesReplicas() && m.isEvacuated() {
		m.measureMoves()
	}
}

// unreadyReplicas returns how many replicas are not ready, as the guardrail counts them.
func (m *meter) unreadyReplicas() int64 {
	if m.isIsolation() {
		return lostElsewhere(m.Objects, m.next.Clusters, m.report.Workloads.Elsewhere)
	}
	return notReady(m.Objects)
}

// isEvacuated reports whether nothing is left in the scope.
func (m *meter) isEvacuated() bool {
	is := tainted
	if m.isIsolation() {
		is = isOut
	}
	return !slices.ContainsFunc(m.scope(), func(c *v1beta1.Cluster) bool { return !is(c) })
}

// measureMoves records when replicas have left the scope and when they are ready elsewhere.
func (m *meter) measureMoves() {
	r := m.report
	marks, work := &r.Marks, &r.Workloads
	var placed int64
	moving := false
	for i := range m.Objects {
		placed += m.Objects[i].replicasIn(m.next.Clusters)
		moving = moving || m.Objects[i].Moving
	}
	if marks.Placed == nil && placed <= work.Replicas-r.Prediction.Replicas {
		marks.Placed = m.nowMicro()
		r.Prediction.Measured, r.Prediction.Differences = work.Replicas-placed, differences(r.Prediction.Moves, m.Objects)
	}
	if marks.Placed == nil || marks.ReadyElsewhere != nil || m.Now.Sub(marks.Placed.Time) < tick { // by then the report shows what moves
		return
	}
	ready := !moving && notReady(m.Objects) <= work.NotReadyBefore
	if m.isIsolation() { // an isolated cluster is never as desired
		ready = missingElsewhere(m.Objects, m.next.Clusters) <= work.NotReadyBefore
	}
	if ready {
		marks.ReadyElsewhere = m.nowMicro()
	}
}

// differences returns the objects whose replicas went elsewhere than predicted.
func differences(predicted []v1beta1.ReplicaMove, objects []Object) (all []string) {
	for _, m := range predicted {
		name := m.Kind + " " + m.Namespace + "/" + m.Name
		i := slices.IndexFunc(objects, func(o Object) bool { return o.Name == name })
		if i < 0 {
			continue // somebody deleted it
		}
		for _, c := range m.Clusters {
			if n := objects[i].Placed[c.Cluster]; n != c.After {
				all = append(all, fmt.Sprintf("%s: %d in %s, predicted %d", name, n, c.Cluster, c.After))
			}
		}
	}
	return all[:min(len(all), maxMoves)]
}

// measureBudgets records since when a budget is violated.
func (m *meter) measureBudgets() {
	work := &m.report.Workloads
	if len(m.brokenBudgets(nil, m.unseen())) == 0 {
		work.BudgetViolatedSince = nil
	} else {
		work.BudgetViolatedSince = cmp.Or(work.BudgetViolatedSince, m.nowMicro())
	}
}

// recordDetection records when the scope is judged lost, and failed over.
func (m *meter) recordDetection() {
	marks := &m.report.Marks
	all := func(is func(*v1beta1.Cluster) bool) bool {
		return !slices.ContainsFunc(m.scope(), func(c *v1beta1.Cluster) bool { return !is(c) })
	}
	if marks.Detected == nil && all(func(c *v1beta1.Cluster) bool { return !c.IsReady() }) {
		marks.Detected = m.nowMicro()
	}
	if marks.Out == nil && all(isOut) {
		marks.Out = m.nowMicro()
	}
}

func isOut(c *v1beta1.Cluster) bool { return c.Phase() == v1beta1.PhaseFailedOver }

// recordReturn records how far the clusters have come back, and reports whether all of them serve, and whether DNS alone is waited for.
func (m *meter) recordReturn() (serve, waitsForDNS bool) {
	marks, least := &m.report.Marks, int32(100)
	for _, c := range m.scope() {
		switch {
		case !c.IsReady() || slices.Contains(m.Blackholed, c.Name):
			return false, false
		case c.Phase() == v1beta1.PhaseFailingBack:
			least = min(least, c.Status.Failover.Percent)
		case c.Phase() != v1beta1.PhaseServing:
			least = 0
		}
	}
	if marks.BackReady = cmp.Or(marks.BackReady, m.nowMicro()); m.followed().answersAgain() {
		marks.BackInDNS = cmp.Or(marks.BackInDNS, m.nowMicro())
	} else {
		waitsForDNS = true
	}
	if step := strconv.Itoa(int(least)); least > 0 && marks.Out != nil {
		if _, noted := marks.Failback[step]; !noted {
			if marks.Failback == nil {
				marks.Failback = map[string]metav1.MicroTime{}
			}
			marks.Failback[step] = *m.nowMicro()
		}
	}
	return least == 100, waitsForDNS
}

// checkObjectives compares the measurements with the objectives.
func (m *meter) checkObjectives() {
	r, o, from := m.report, m.Spec.Objectives, m.report.Marks.Injected
	r.Objectives = nil
	note := func(name string, limit, measured *int32, met func(measured, limit int32) bool) {
		if limit != nil {
			r.Objectives = append(r.Objectives, v1beta1.DrillObjective{Name: name, Limit: *limit, Measured: measured, Met: measured != nil && met(*measured, *limit)})
		}
	}
	atMost := func(measured, limit int32) bool { return measured <= limit }
	note("detectedSeconds", o.DetectedSeconds, secondsAfter(from, r.Marks.Detected), atMost)
	note("outOfDNSSeconds", o.OutOfDNSSeconds, secondsAfter(from, r.Marks.OutOfDNS), atMost)
	note("readyElsewhereSeconds", o.ReadyElsewhereSeconds, secondsAfter(from, r.Marks.ReadyElsewhere), atMost)
	note("maxFailedPerMille", o.MaxFailedPerMille, worstPerMille(r.Probes), atMost)
	note("minReadyPercent", o.MinReadyPercent, &r.Workloads.LeastReadyPercent, func(measured, limit int32) bool { return measured >= limit })
}

// secondsAfter returns how many seconds after the fault a mark was, rounded up; nil if it was never reached.
func secondsAfter(from, mark *metav1.MicroTime) *int32 {
	if mark == nil || from == nil {
		return nil
	}
	return new(int32((mark.Sub(from.Time) + time.Second - 1) / time.Second))
}
