package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	// tick is the period of passes over an active drill.
	tick = time.Second
	// injecting is how long the fault may take to be in force.
	injecting = time.Minute
	// behind is how long DNS may take to have the change.
	behind = time.Minute
	// settling is how long a state must last before it counts: the federation's reports are a moment late.
	settling = 5 * time.Second
	// propagationOfDNS is how long secondaries may take, in addition to the TTL.
	propagationOfDNS = 2 * time.Second
	// maxFollowed is the maximum of record sets followed, each for maxData of what it is to lose. maxMoves is the
	// maximum of moves compared with the prediction, and maxChanges the maximum of cluster numbers they have together.
	// They keep the status below 64 kB.
	maxFollowed, maxData, maxMoves, maxChanges = 50, 8, 100, 300
)

// drill is the course of one drill: a run with the step in the making.
type drill struct {
	*run
	step Step
}

func newDrill(of *v1beta1.FailoverDrill, w *World) *drill {
	d := &drill{step: Step{Status: *of.Status.DeepCopy()}}
	d.run = &run{FailoverDrill: of, World: w, next: &d.step.Status}
	return d
}

// Next returns what a drill does next.
func Next(of *v1beta1.FailoverDrill, w *World) Step {
	d := newDrill(of, w)
	d.recordLeader()
	switch s := &d.step.Status; s.Phase {
	case "", v1beta1.DrillPending:
		d.pending()
	case v1beta1.DrillBaseline:
		d.baseline()
	case v1beta1.DrillInjecting:
		d.inject()
	case v1beta1.DrillHolding:
		d.hold()
	case v1beta1.DrillRecovering:
		d.recover()
	case v1beta1.DrillVerifying:
		d.verify()
	default:
		d.step.Release = true
	}
	if d.UnderWay() {
		d.meter().takeSample()
	}
	return d.step
}

// enterPhase begins a phase.
func (d *drill) enterPhase(phase v1beta1.DrillPhase) {
	d.step.Status.Phase, d.step.Status.PhaseSince, d.step.LookAgain = phase, d.nowMicro(), tick
}

// finish ends the drill.
func (d *drill) finish(outcome v1beta1.DrillOutcome, reason, message string) {
	d.enterPhase(v1beta1.DrillFinished)
	s := &d.step.Status
	s.Outcome, s.Reason, s.Message, d.step.LookAgain, d.step.Release = outcome, reason, message, 0, true
}

// pending waits until all checks hold.
func (d *drill) pending() {
	s := &d.step.Status
	if s.Phase == "" {
		d.enterPhase(v1beta1.DrillPending)
	}
	if asked, message := d.endRequest(); asked != "" && asked != v1beta1.DrillStopped {
		d.finish(v1beta1.DrillInterrupted, asked, message)
		return
	}
	reason, message := d.checkPreflight()
	deadline := d.CreationTimestamp.Add(time.Duration(d.Spec.StartingDeadline()) * time.Second)
	switch {
	case reason == "":
		d.enterPhase(v1beta1.DrillBaseline)
		s.Reason, s.Message, s.Clusters = "", "", d.Review.Clusters
	case !d.Now.Before(deadline):
		d.finish(v1beta1.DrillBlocked, reason, message)
	default:
		s.Reason, s.Message, d.step.LookAgain = reason, message, min(tick, deadline.Sub(d.Now))
	}
}

// baseline waits until all has been well for a while, then stores what is to be undone.
func (d *drill) baseline() {
	if asked, message := d.endRequest(); asked != "" && asked != v1beta1.DrillStopped {
		d.finish(v1beta1.DrillInterrupted, asked, message)
		return
	}
	reason, message := d.checkPreflight()
	if reason == v1beta1.DrillQuiet { // it is waited for again
		d.enterPhase(v1beta1.DrillPending)
		d.step.Status.Reason, d.step.Status.Message = reason, message
		return
	}
	if reason != "" {
		d.finish(v1beta1.DrillBlocked, reason, message)
		return
	}
	d.step.LookAgain = tick
	over := d.phaseDuration() >= time.Duration(d.Spec.Baseline())*time.Second
	if reason, message := d.probes().pass(over); reason != "" {
		d.finish(v1beta1.DrillBlocked, reason, message)
		return
	}
	if !over {
		return
	}
	d.enterPhase(v1beta1.DrillInjecting)
	s := &d.step.Status
	s.Clusters, s.Undo, s.Report = d.Review.Clusters, nil, &v1beta1.DrillReport{}
	for _, c := range d.scope() {
		s.Undo = append(s.Undo, v1beta1.DrillUndo{Cluster: c.Name, DNSWeight: c.Spec.DNSWeight})
	}
	d.meter().predict()
}

// inject takes the clusters out of DNS, or cuts the federation off from them.
func (d *drill) inject() {
	d.step.LookAgain = tick
	if reason, message := d.guard().earlyEnd(); reason != "" {
		d.goBack(reason, message)
		return
	}
	in := true
	if d.isIsolation() {
		in = d.isolate()
	}
	for _, c := range d.scope() {
		if !d.isIsolation() && !bears(c, d.uid()) {
			in = false
			d.step.Changes = append(d.step.Changes, takenOut(c, d.uid(), d.Now))
		}
	}
	switch {
	case in:
		d.enterPhase(v1beta1.DrillHolding)
		d.step.Status.Report.Marks.Injected = d.nowMicro()
	case d.phaseDuration() > injecting:
		d.goBack(v1beta1.DrillDeadline, fmt.Sprintf("the fault was not in force within %s", injecting))
	}
}

// hold measures, and takes the steps of an evacuation, until the time is over or something ends the drill.
func (d *drill) hold() {
	d.step.LookAgain = tick
	d.meter().measure()
	if reason, message := d.guard().earlyEnd(); reason != "" {
		d.goBack(reason, message)
		return
	}
	marks := &d.step.Status.Report.Marks
	if d.isIsolation() {
		d.step.Isolate = d.renewalDue()
	}
	if d.Spec.Method == v1beta1.DrillEvacuate && marks.LastUse != nil {
		for _, c := range d.scope() {
			if !tainted(c) {
				d.step.Changes = append(d.step.Changes, emptied(c))
			}
		}
	}
	if d.Now.Sub(marks.Injected.Time) >= time.Duration(d.Spec.Hold())*time.Second {
		d.goBack("", "")
	}
}

// goBack begins the way back, early if there is a reason.
func (d *drill) goBack(reason, message string) {
	d.enterPhase(v1beta1.DrillRecovering)
	s := &d.step.Status
	s.Reason, s.Message, s.Report.Marks.Recovering = reason, message, d.nowMicro()
	d.step.Changes, d.step.LookAgain = nil, 0
	d.recover()
}

// recover brings the clusters back: first their replicas, then their addresses. A cluster without the drill's mark
// belongs to somebody else.
func (d *drill) recover() {
	d.step.LookAgain = tick
	if d.isIsolation() {
		d.endIsolation()
		return
	}
	marks, late := &d.step.Status.Report.Marks, d.phaseDuration() > time.Duration(d.Spec.Recovery())*time.Second && d.Status.Phase == v1beta1.DrillRecovering
	var ours, full []*v1beta1.Cluster
	for _, c := range d.scope() {
		switch {
		case !bears(c, d.uid()):
		case tainted(c) && d.Spec.Method == v1beta1.DrillEvacuate:
			full = append(full, c)
		default:
			ours = append(ours, c)
		}
	}
	switch {
	case len(full) > 0:
		for _, c := range full {
			d.step.Changes = append(d.step.Changes, refilled(c))
		}
	case len(ours) > 0 && !late && !d.backReady(ours):
	case len(ours) > 0:
		if d.Spec.Method == v1beta1.DrillEvacuate && !late && d.step.Status.Reason == "" && marks.BackReady == nil {
			marks.BackReady = d.nowMicro()
		}
		for _, c := range ours {
			d.step.Changes = append(d.step.Changes, broughtBack(c))
		}
	case late || d.backInDNS():
		if !late && d.followed().answersAgain() {
			marks.BackInDNS = d.nowMicro()
		}
		d.enterPhase(v1beta1.DrillVerifying)
	}
}

// backReady reports whether what is placed in the clusters again is ready. It does not wait for a lost cluster. A drill
// that ends early waits for none: the clusters may be needed now, and names resolve only to what is ready.
func (r *run) backReady(clusters []*v1beta1.Cluster) bool {
	if r.Spec.Method != v1beta1.DrillEvacuate || r.next.Reason != "" || slices.ContainsFunc(clusters, func(c *v1beta1.Cluster) bool { return !isServing(c) }) {
		return true
	}
	moving := slices.ContainsFunc(r.Objects, func(o Object) bool { return o.Moving && o.replicasIn(r.next.Clusters) > 0 })
	return r.phaseDuration() >= settling && !moving && notReady(r.Objects) <= r.next.Report.Workloads.NotReadyBefore
}

func isServing(c *v1beta1.Cluster) bool { return c.IsReady() && c.Phase() == v1beta1.PhaseServing }

// verify looks for leftovers and records the result.
func (d *drill) verify() {
	s := &d.step.Status
	d.meter().measureClients(true)
	s.Report.Earlier = compareEarlier(d.Drills, d.FailoverDrill, s.Clusters)
	s.Report.LeftBehind = d.leftBehind()
	if len(s.Report.LeftBehind) == 0 {
		s.Report.Marks.Clean = d.nowMicro()
	}
	d.meter().checkObjectives()
	missed := slices.DeleteFunc(slices.Clone(s.Report.Objectives), func(o v1beta1.DrillObjective) bool { return o.Met })
	switch {
	case slices.Contains([]string{v1beta1.DrillReadyBelow, v1beta1.DrillUnplaced, v1beta1.DrillBudgetViolated, v1beta1.DrillUnpredicted, v1beta1.DrillClientsFail}, s.Reason):
		d.finish(v1beta1.DrillFailed, s.Reason, s.Message)
	case s.Reason != "":
		d.finish(v1beta1.DrillInterrupted, s.Reason, s.Message)
	case len(s.Report.LeftBehind) > 0:
		d.finish(v1beta1.DrillFailed, v1beta1.DrillLeftBehind, strings.Join(s.Report.LeftBehind, "; "))
	case len(missed) > 0:
		var words []string
		for _, o := range missed {
			words = append(words, o.Name)
		}
		d.finish(v1beta1.DrillFailed, v1beta1.DrillObjectiveMissed, "missed: "+strings.Join(words, ", "))
	default:
		d.finish(v1beta1.DrillSucceeded, v1beta1.DrillCompleted, cmp.Or(s.Message, "held in full, and undone"))
	}
}

// leftBehind returns what still belongs to the drill, or is not as it was though nobody took it over.
func (r *run) leftBehind() (left []string) {
	if r.next.Reason == v1beta1.DrillByHand {
		return nil
	}
	for _, u := range r.next.Undo {
		i := slices.IndexFunc(r.Clusters, func(c *v1beta1.Cluster) bool { return c.Name == u.Cluster })
		if i < 0 {
			continue
		}
		c := r.Clusters[i]
		if bears(c, r.uid()) {
			left = append(left, fmt.Sprintf("cluster %s: annotation %s", c.Name, v1beta1.DrainAnnotation))
		}
		if tainted(c) && bears(c, r.uid()) { // the note is removed last: a taint without it belongs to somebody
			left = append(left, fmt.Sprintf("cluster %s: taint %s", c.Name, drainTaint.ToString()))
		}
		if c.Drill() != nil {
			left = append(left, fmt.Sprintf("cluster %s: condition %s", c.Name, v1beta1.ClusterDrill))
		}
		if slices.Contains(r.Blackholed, c.Name) {
			left = append(left, fmt.Sprintf("cluster %s: the Lease %s/%s there, which runs out within 30 s", c.Name, v1beta1.FederationNamespace, v1beta1.DrillLease))
		}
		if was := weight(u.DNSWeight); c.DNSWeight() != was && c.DNSWeight() == 0 && (markOf(c) == nil || bears(c, r.uid())) { // another weight, and a drain, belong to somebody
			left = append(left, fmt.Sprintf("cluster %s: spec.dnsWeight is %d, was %d", c.Name, c.DNSWeight(), was))
		}
	}
	if r.Lease.Drill == r.uid() {
		left = append(left, "Lease "+v1beta1.FederationNamespace+"/"+v1beta1.DrillLease)
	}
	return left
}

// backInDNS reports whether the servers answer with the scope again, or need not be waited for because not all of it
// comes back.
func (r *run) backInDNS() bool {
	if r.followed().isBehind() {
		return false
	}
	if slices.ContainsFunc(r.scope(), func(c *v1beta1.Cluster) bool { return !isServing(c) || c.DNSWeight() == 0 }) {
		return true
	}
	return r.followed().answersAgain() || r.phaseDuration() > behind
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
