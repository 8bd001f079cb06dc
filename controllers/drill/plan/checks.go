package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/drilltimes"
	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

// Preflight returns the first check that would block a drill now, and why, with its numbers. "" means that none would.
func Preflight(of *v1beta1.FailoverDrill, w *World) (reason, message string) {
	d := &drill{FailoverDrill: of, World: w, uid: string(of.UID), step: Step{Status: *of.Status.DeepCopy()}}
	return d.checkPreflight()
}

// checkPreflight returns the first failed check and why, with its numbers. "" means that the drill may begin.
func (d *drill) checkPreflight() (reason, message string) {
	switch {
	case d.Stopped != "":
		return v1beta1.DrillNotStopped, "drills are stopped: " + d.Stopped
	case d.Other != "":
		return v1beta1.DrillAlone, "drill " + d.Other + " comes first"
	case d.Review == nil:
		return v1beta1.DrillScopeKnown, d.Problem
	case len(d.Review.Clusters) == len(d.Clusters):
		return v1beta1.DrillOthersServe, "the scope has all clusters: none is left to serve"
	}
	for _, c := range d.Clusters {
		in := slices.Contains(d.Review.Clusters, c.Name)
		check := v1beta1.DrillOthersServe
		if in {
			check = v1beta1.DrillScopeServes
		}
		if !isServing(c) {
			return check, fmt.Sprintf("cluster %s: %s, phase %s; must be ready and Serving", c.Name, readyWord(c), c.Phase())
		}
		if in && (c.Annotations[v1beta1.DrainAnnotation] != "" || c.Drill() != nil || c.OutOfService() != "" || c.DNSWeight() == 0) {
			return check, fmt.Sprintf("cluster %s: out of service already: DNS weight %d, %s", c.Name, c.DNSWeight(), orNothing(c.OutOfService()))
		}
	}
	for _, p := range d.Providers {
		if !p.Published {
			return v1beta1.DrillProvidersCurrent, fmt.Sprintf("DNS provider %s is behind: %s", p.Name, p.Message)
		}
	}
	for _, change := range d.Review.Records {
		if len(change.After) == 0 && !slices.ContainsFunc(d.Review.Records, func(c v1beta1.RecordChange) bool { return c.Name == change.Name && len(c.After) > 0 }) {
			return v1beta1.DrillNamesSurvive, fmt.Sprintf("%s would have no address", change.Name)
		}
	}
	if n, most := d.Review.ReplicasUnschedulable, d.Spec.Guardrails.Unplaced(); d.movesReplicas() && n > most {
		return v1beta1.DrillFits, fmt.Sprintf("%s would fit nowhere, at most %d may", phrase.Count(n, "replica"), most)
	}
	if d.isIsolation() {
		if reason, message := d.mayIsolate(); reason != "" {
			return reason, message
		}
	}
	if reason, message := d.atRest(); reason != "" {
		return reason, message
	}
	if against := d.againstWindows(); against != "" {
		return v1beta1.DrillInWindow, against
	}
	if d.Spec.Approval == v1beta1.DrillApprovalRequired && d.Status.Approved == nil {
		return v1beta1.DrillApproved, "needs the approval of somebody other than " + orNobody(d.Status.RequestedBy)
	}
	return "", ""
}

// againstWindows returns why the drill may not run from now on, or "".
func (d *drill) againstWindows() string {
	windows, err := drilltimes.Parse(d.Spec.Windows)
	if err != nil {
		return "spec.windows: " + err.Error() // admission rejects those
	}
	takes := drilltimes.DurationOf(&d.Spec)
	if d.Status.Phase == v1beta1.DrillBaseline {
		takes -= min(d.phaseDuration(), time.Duration(d.Spec.Baseline())*time.Second)
	}
	return windows.Refuses(d.Now, d.Now.Add(takes))
}

func orNobody(user string) string {
	if user == "" {
		return "who made it"
	}
	return user
}

func readyWord(c *v1beta1.Cluster) string {
	if c.IsReady() {
		return "ready"
	}
	return "not ready"
}

func orNothing(s string) string {
	if s == "" {
		return "not cordoned"
	}
	return s
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

// lostData returns the data that a record set is to lose.
func lostData(c *v1beta1.RecordChange) []string {
	return slices.DeleteFunc(slices.Clone(c.Before), func(data string) bool { return slices.Contains(c.After, data) })
}

// notOut returns what in DNS still points to the scope, or "".
func (d *drill) notOut() string {
	for _, p := range d.Providers {
		if !p.Published {
			return "provider " + p.Name + " is behind: " + p.Message
		}
	}
	for _, followed := range d.step.Status.Report.Prediction.Followed {
		has := d.Records[Record{followed.Name, followed.Type}]
		for _, data := range lostData(&followed) {
			if slices.Contains(has, data) {
				return fmt.Sprintf("%s %s has %s", followed.Name, followed.Type, data)
			}
		}
	}
	return ""
}

// backInDNS reports whether the servers answer with the scope again, or need not be waited for because not all of it
// comes back.
func (d *drill) backInDNS() bool {
	if slices.ContainsFunc(d.Providers, func(p v1beta1.DNSProvider) bool { return !p.Published }) {
		return false
	}
	if slices.ContainsFunc(d.scopeClusters(), func(c *v1beta1.Cluster) bool { return !isServing(c) || c.DNSWeight() == 0 }) {
		return true
	}
	return d.answersAgain() || d.phaseDuration() > behind
}

// answersAgain reports whether everything followed is in DNS again and all providers are in sync.
func (d *drill) answersAgain() bool {
	if slices.ContainsFunc(d.Providers, func(p v1beta1.DNSProvider) bool { return !p.Published }) {
		return false
	}
	for _, followed := range d.step.Status.Report.Prediction.Followed {
		has := d.Records[Record{followed.Name, followed.Type}]
		if slices.ContainsFunc(lostData(&followed), func(data string) bool { return !slices.Contains(has, data) }) {
			return false
		}
	}
	return true
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
