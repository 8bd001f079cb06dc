package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/drilltimes"
	"federation/apiserver/apis/federation/v1beta1"
)

// Scheduling is what decides whether a schedule creates a drill.
type Scheduling struct {
	Now time.Time
	// Drills are all drills, of any schedule or none.
	Drills []*v1beta1.FailoverDrill
	// Clusters are those that have joined.
	Clusters []*v1beta1.Cluster
	// Readiness has when a zone (REGION/ZONE) or a region was last drilled with success.
	Readiness []*v1beta1.FailoverReadiness
}

// ScheduleStep is what to do about a schedule next.
type ScheduleStep struct {
	// Make is a drill to create before the status is written, or nil. If it exists, a process created it and then died.
	Make *v1beta1.FailoverDrill
	// Status is the schedule's new status.
	Status v1beta1.FailoverDrillScheduleStatus
	// Delete are finished drills beyond the history limit.
	Delete []*v1beta1.FailoverDrill
	// LookAgain is when to decide again at the latest; 0 means at the next change.
	LookAgain time.Duration
}

const (
	// searchAgain is the delay before the next search for a time, if there was none.
	searchAgain = time.Hour
)

// schedule is one schedule in its world, with the step in the making.
type schedule struct {
	*v1beta1.FailoverDrillSchedule
	*Scheduling
	times *drilltimes.Times
	step  ScheduleStep
}

// NextOfSchedule returns what a schedule does next.
func NextOfSchedule(of *v1beta1.FailoverDrillSchedule, w *Scheduling) ScheduleStep {
	s := &schedule{FailoverDrillSchedule: of, Scheduling: w, step: ScheduleStep{Status: *of.Status.DeepCopy()}}
	mine := s.ownDrills()
	s.recordResults(mine)
	candidates := s.candidates()
	var err error
	switch s.times, err = drilltimes.TimesOf(&of.Spec); {
	case err != nil:
		s.setCondition(v1beta1.ScheduleNoTime, err.Error()) // admission rejects those
	case of.Spec.Suspended():
		s.setCondition(v1beta1.ScheduleSuspended, "spec.suspend is true")
	case of.Spec.Rotate != "" && len(candidates) == 0:
		s.setCondition(v1beta1.ScheduleNoScope, fmt.Sprintf("spec.template.spec.scope: there are no %s %s", strings.ToLower(string(of.Spec.Rotate)), strings.Join(of.Spec.Candidates(), ", ")))
	default:
		s.createDue(mine, candidates)
	}
	if s.step.Make == nil {
		s.step.Delete = beyondHistory(&of.Spec, mine)
	}
	return s.step
}

// ownDrills returns the drills of the schedule, the oldest first.
func (s *schedule) ownDrills() []*v1beta1.FailoverDrill {
	mine := slices.DeleteFunc(slices.Clone(s.Drills), func(d *v1beta1.FailoverDrill) bool { return !metav1.IsControlledBy(d, s.FailoverDrillSchedule) })
	slices.SortFunc(mine, func(a, b *v1beta1.FailoverDrill) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return mine
}

// recordResults records in the status what became of the drills.
func (s *schedule) recordResults(mine []*v1beta1.FailoverDrill) {
	status := &s.step.Status
	status.Active = nil
	for _, d := range mine {
		if !d.IsFinished() {
			status.Active = append(status.Active, d.Name)
		}
		if at := d.Status.PhaseSince; d.Status.Outcome == v1beta1.DrillSucceeded && at != nil && (status.LastSuccessfulTime == nil || status.LastSuccessfulTime.Time.Before(at.Truncate(time.Second))) {
			status.LastSuccessfulTime = new(metav1.NewTime(at.Truncate(time.Second)))
		}
		if at, err := time.Parse(time.RFC3339, d.Annotations[v1beta1.DrillScheduledAtAnnotation]); err == nil && (status.LastScheduleTime == nil || status.LastScheduleTime.Time.Before(at)) {
			status.LastScheduleTime = new(metav1.NewTime(at)) // a process created it and died before it recorded that
			if scope := onlyOf(&d.Spec.Scope, s.Spec.Rotate); scope != "" {
				s.recordTurn(scope, at)
			}
		}
	}
}

// setCondition sets the condition Scheduled.
func (s *schedule) setCondition(reason, message string) {
	is := metav1.ConditionFalse
	if reason == v1beta1.ScheduleActive {
		is = metav1.ConditionTrue
	} else {
		s.step.Status.NextScheduleTime = nil
	}
	meta.SetStatusCondition(&s.step.Status.Conditions, metav1.Condition{Type: v1beta1.DrillScheduled, Status: is, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(s.Now.UTC().Truncate(time.Second)), ObservedGeneration: s.Generation})
}

// createDue creates a drill if it is time, and sets when the next one is due.
func (s *schedule) createDue(mine []*v1beta1.FailoverDrill, candidates []string) {
	status := &s.step.Status
	due := s.dueTime()
	waits := !due.IsZero() && len(status.Active) > 0
	if !due.IsZero() && !waits {
		s.step.Make = s.newDrill(due, candidates)
		status.Active = append(status.Active, s.step.Make.Name)
		status.LastScheduleTime = new(metav1.NewTime(due))
	}
	next := due
	if !waits {
		next = s.times.After(s.Now)
	}
	if next.IsZero() {
		s.setCondition(v1beta1.ScheduleNoTime, fmt.Sprintf("no time of %q leaves %s, the baseline and the hold, in the windows within a year", s.Spec.Schedule, drilltimes.DurationOf(&s.Spec.Template.Spec)))
		s.step.LookAgain = searchAgain
		return
	}
	status.NextScheduleTime = new(metav1.NewTime(next))
	s.setCondition(v1beta1.ScheduleActive, "")
	if s.step.LookAgain = next.Sub(s.Now); waits {
		s.step.LookAgain = max(tick, next.Add(s.lateness()).Sub(s.Now))
	}
}

func (s *schedule) lateness() time.Duration {
	return time.Duration(s.Spec.StartingDeadline()) * time.Second
}

// latestTime returns the last time of the schedule that is after begin and before end; zero if there is none.
func (s *schedule) latestTime(begin, end time.Time) (latest time.Time) {
	isBefore := func(t time.Time) bool { return !t.IsZero() && t.Before(end) }
	if latest = s.times.After(begin); !isBefore(latest) {
		return time.Time{}
	}
	for late := end; late.Sub(latest) > time.Second; { // a schedule only tells what comes after a time
		middle := latest.Add(late.Sub(latest) / 2)
		if next := s.times.After(middle); isBefore(next) {
			latest = next
		} else {
			late = middle
		}
	}
	return latest
}

// dueTime returns the time of the schedule for which a drill is to be created now: the latest one, if it is not too long
// ago; else zero. Times that are too long ago are missed.
func (s *schedule) dueTime() time.Time {
	status, since := &s.step.Status, s.CreationTimestamp.Time
	for _, seen := range []*metav1.Time{status.LastScheduleTime, s.unblockedSince()} {
		if seen != nil && seen.After(since) {
			since = seen.Time
		}
	}
	if m := status.LastMissed; m != nil && m.Time.After(since) {
		since = m.Time.Time
	}
	oldest := s.Now.Add(-s.lateness())
	missed := s.latestTime(since, oldest)
	if since.Before(oldest) {
		since = oldest.Add(-time.Nanosecond)
	}
	due := s.latestTime(since, s.Now.Add(time.Nanosecond))
	if !missed.IsZero() {
		status.LastMissed = &v1beta1.MissedDrill{Time: metav1.NewTime(missed), Reason: v1beta1.MissedTooLate}
		if len(status.Active) > 0 {
			status.LastMissed.Reason = v1beta1.MissedStillActive
		}
	}
	return due
}

// unblockedSince returns since when nothing blocks the schedule. Earlier times are not made up.
func (s *schedule) unblockedSince() *metav1.Time {
	is := meta.FindStatusCondition(s.Status.Conditions, v1beta1.DrillScheduled)
	switch {
	case is == nil || is.Reason == v1beta1.ScheduleNoTime:
		return nil
	case is.Status == metav1.ConditionTrue:
		return &is.LastTransitionTime
	}
	return new(metav1.NewTime(s.Now))
}

// newDrill returns the drill of a time of the schedule.
func (s *schedule) newDrill(at time.Time, candidates []string) *v1beta1.FailoverDrill {
	d := s.Drill()
	d.Name = fmt.Sprintf("%s-%d", s.Name, at.Unix()/60)
	d.Annotations[v1beta1.DrillScheduledAtAnnotation] = at.UTC().Format(time.RFC3339)
	if s.Spec.Rotate != "" {
		scope := s.longestWaiting(candidates)
		d.Spec.Scope = s.Spec.Rotate.Of(scope)
		s.recordTurn(scope, at)
	}
	return d
}

// onlyOf returns what a drill took of a rotation, or "".
func onlyOf(s *v1beta1.FailoverDrillScope, rotate v1beta1.DrillRotation) string {
	names := map[v1beta1.DrillRotation][]string{v1beta1.RotateZones: s.Zones, v1beta1.RotateRegions: s.Regions, v1beta1.RotateClusters: s.Clusters}[rotate]
	if len(names) != 1 {
		return ""
	}
	return names[0]
}

// candidates returns the scopes that take turns, sorted. Zones are those that hold all nodes of a cluster.
func (s *schedule) candidates() (all []string) {
	if all = s.Spec.Candidates(); !slices.Equal(all, []string{v1beta1.RotateAll}) {
		all = slices.Clone(all)
	} else {
		all = nil
		for _, c := range s.Clusters {
			switch {
			case s.Spec.Rotate == v1beta1.RotateClusters:
				all = append(all, c.Name)
			case s.Spec.Rotate == v1beta1.RotateRegions && c.Status.Region != "":
				all = append(all, c.Status.Region)
			case s.Spec.Rotate == v1beta1.RotateZones && len(c.Status.Zones) == 1 && c.Status.Region != "" && c.Status.Zones[0] != "":
				all = append(all, c.Status.Region+"/"+c.Status.Zones[0])
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// longestWaiting returns the scope whose last success, or last drill of this schedule, is oldest. A scope that keeps failing
// thus does not starve the others.
func (s *schedule) longestWaiting(candidates []string) string {
	last := map[string]time.Time{}
	seen := func(scope string, at time.Time) {
		if last[scope].Before(at) {
			last[scope] = at
		}
	}
	for _, t := range s.Status.Turns {
		seen(t.Scope, t.Time.Time)
	}
	for _, r := range s.Readiness {
		d, level := r.Status.LastDrill, v1beta1.RotateRegions
		if r.Spec.Zone != "" {
			level = v1beta1.RotateZones
		}
		if level == s.Spec.Rotate && d != nil && d.SucceededAt != nil {
			seen(r.Spec.Domain(), d.SucceededAt.Time)
		}
	}
	return slices.MinFunc(candidates, func(a, b string) int { return cmp.Or(last[a].Compare(last[b]), cmp.Compare(a, b)) })
}

// recordTurn records a scope's turn, and forgets scopes that no longer take part.
func (s *schedule) recordTurn(scope string, at time.Time) {
	candidates, is := s.candidates(), []v1beta1.DrillTurn{{Scope: scope, Time: metav1.NewTime(at)}}
	for _, t := range s.step.Status.Turns {
		if t.Scope != scope && slices.Contains(candidates, t.Scope) {
			is = append(is, t)
		}
	}
	slices.SortFunc(is, func(a, b v1beta1.DrillTurn) int { return cmp.Compare(a.Scope, b.Scope) })
	s.step.Status.Turns = is
}

// beyondHistory returns the oldest finished drills beyond the history limit.
func beyondHistory(spec *v1beta1.FailoverDrillScheduleSpec, mine []*v1beta1.FailoverDrill) (all []*v1beta1.FailoverDrill) {
	oldest := func(most int, is func(*v1beta1.FailoverDrill) bool) {
		over := slices.DeleteFunc(slices.Clone(mine), func(d *v1beta1.FailoverDrill) bool { return !d.IsFinished() || !is(d) })
		all = append(all, over[:max(0, len(over)-most)]...)
	}
	succeeded := func(d *v1beta1.FailoverDrill) bool { return d.Status.Outcome == v1beta1.DrillSucceeded }
	oldest(spec.Succeeded(), succeeded)
	oldest(spec.Failed(), func(d *v1beta1.FailoverDrill) bool { return !succeeded(d) })
	return all
}
