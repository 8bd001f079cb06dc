package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/drilltimes"
	"federation/apiserver/apis/federation/v1beta1"
)

// follows are the phases that may come after each, as the design's diagram has them.
var follows = map[v1beta1.DrillPhase][]v1beta1.DrillPhase{
	"":                      {v1beta1.DrillPending, v1beta1.DrillBaseline, v1beta1.DrillFinished},
	v1beta1.DrillPending:    {v1beta1.DrillBaseline, v1beta1.DrillFinished},
	v1beta1.DrillBaseline:   {v1beta1.DrillPending, v1beta1.DrillInjecting, v1beta1.DrillFinished},
	v1beta1.DrillInjecting:  {v1beta1.DrillHolding, v1beta1.DrillRecovering, v1beta1.DrillVerifying},
	v1beta1.DrillHolding:    {v1beta1.DrillRecovering, v1beta1.DrillVerifying},
	v1beta1.DrillRecovering: {v1beta1.DrillVerifying},
	v1beta1.DrillVerifying:  {v1beta1.DrillFinished},
}

// happens lets something happen to a drill, or nothing: processes die and hand over, pods are not ready for a moment, DNS is slow, people ask for an end.
func happens(m *made, chance *rand.Rand) {
	switch chance.IntN(60) {
	case 0, 1, 2:
		m.dies = m.writes + 1 + chance.IntN(3)
	case 3:
		m.lag = time.Duration(chance.IntN(90)) * time.Second
	case 4, 5:
		m.ready = int64(25 + chance.IntN(6))
	case 6, 7, 8:
		m.ready = 30
	case 9:
		m.moving = !m.moving
	case 10:
		m.moved += int64(chance.IntN(8))
	case 11:
		m.leader = []string{"p1", "p2"}[chance.IntN(2)]
	case 12:
		m.now = m.now.Add(time.Duration(chance.IntN(40)) * time.Second)
	case 13:
		if chance.IntN(5) == 0 {
			m.drill.Status.Abort = &v1beta1.DrillDecision{By: "ann"}
		}
	case 14:
		if chance.IntN(5) == 0 {
			m.stopped = "a storm"
		}
	}
}

// Whatever happens, a drill goes by the diagram, has stored what it must undo before a cluster is taken out, leaves the clusters as they were,
// and has succeeded only if it held in full. Each seed is a course of its own.
func TestNextEndsWhateverHappens(t *testing.T) {
	outcomes := map[v1beta1.DrillOutcome]int{}
	for seed := range uint64(240) {
		method := []v1beta1.DrillMethod{v1beta1.DrillShift, v1beta1.DrillEvacuate, v1beta1.DrillIsolation, v1beta1.DrillBlackhole}[seed%4]
		t.Run(fmt.Sprint(method, " ", seed), func(t *testing.T) {
			chance, m := rand.New(rand.NewPCG(seed, 14)), newMade(t, method)
			m.drill.Spec.RecoverySeconds, m.leader = new(int32(120)), "p1"
			was := m.drill.Status
			for range 3000 {
				if was.Phase == v1beta1.DrillFinished {
					break
				}
				if happens(m, chance); was.Phase == v1beta1.DrillRecovering { // what went wrong is over
					m.ready, m.moving, m.lag = 30, false, time.Second
				}
				m.step()
				is := m.drill.Status
				if is.Phase != was.Phase && !slices.Contains(follows[was.Phase], is.Phase) {
					t.Fatalf("%q comes after %q", is.Phase, was.Phase)
				}
				if a := m.clusters[0]; (bears(a, "u") || a.Drill() != nil || m.lease.Drill != "") && (len(is.Undo) != 1 || !m.drill.UnderWay()) {
					t.Fatalf("in phase %q a is out, and to be undone is %v", is.Phase, is.Undo)
				}
				was = is
			}
			outcomes[was.Outcome]++
			if m.asBefore(); was.Phase != v1beta1.DrillFinished {
				t.Fatalf("it is in phase %q after 3000 passes: %s", was.Phase, was.Message)
			}
			inOrder(t, method, &was)
		})
	}
	for _, outcome := range []v1beta1.DrillOutcome{v1beta1.DrillSucceeded, v1beta1.DrillFailed, v1beta1.DrillInterrupted, v1beta1.DrillBlocked} {
		if outcomes[outcome] < 5 {
			t.Errorf("only %d of the drills are %s: %v", outcomes[outcome], outcome, outcomes)
		}
	}
}

// inOrder checks that the marks of a drill that is over are in order of time, and that it succeeded only if it held in full.
func inOrder(t *testing.T, method v1beta1.DrillMethod, s *v1beta1.FailoverDrillStatus) {
	t.Helper()
	if s.Report == nil {
		if s.Outcome == v1beta1.DrillSucceeded || s.Outcome == v1beta1.DrillFailed {
			t.Errorf("%s without a report", s.Outcome)
		}
		return
	}
	marks := &s.Report.Marks
	chains := [][]*metav1.MicroTime{{marks.Injected, marks.OutOfDNS, marks.LastUse, marks.Recovering, marks.Clean}, {marks.Injected, marks.Placed,
		marks.ReadyElsewhere, marks.Recovering}}
	if method == v1beta1.DrillEvacuate { // replicas go when no resolver keeps the addresses
		chains = append(chains, []*metav1.MicroTime{marks.LastUse, marks.Placed})
	}
	for _, chain := range chains {
		came := slices.DeleteFunc(chain, func(mark *metav1.MicroTime) bool { return mark == nil })
		if !slices.IsSortedFunc(came, func(a, b *metav1.MicroTime) int { return a.Compare(b.Time) }) {
			t.Errorf("marks are not in order: %v", came)
		}
	}
	if s.Outcome == v1beta1.DrillSucceeded && (marks.Injected == nil || marks.Recovering.Sub(marks.Injected.Time) < time.Minute || marks.Clean == nil ||
		len(s.Report.LeftBehind) > 0) {
		t.Errorf("it succeeded with %+v", s.Report)
	}
	if slices.Contains([]v1beta1.DrillOutcome{v1beta1.DrillInterrupted, v1beta1.DrillBlocked}, s.Outcome) && s.Reason == v1beta1.DrillCompleted {
		t.Errorf("%s: %s", s.Outcome, s.Reason)
	}
}

// A schedule makes the drill of the latest of its times that is not too long ago, and of none that it has seen: the times are tried one by
// one, minute by minute.
func TestNextOfScheduleTakesTheLatestTime(t *testing.T) {
	chance := rand.New(rand.NewPCG(15, 1))
	for range 300 {
		p := newPlant(t, "*/7 * * * *", "UTC")
		late := time.Duration(10+chance.IntN(1500)) * time.Second
		p.schedule.Spec.StartingDeadlineSeconds = new(int64(late / time.Second))
		since := begin
		if chance.IntN(2) == 0 {
			since = begin.Add(time.Duration(chance.IntN(90)) * time.Minute)
			p.schedule.Status.LastScheduleTime = new(metav1.NewTime(since))
		}
		p.now = since.Add(time.Duration(chance.IntN(7200)) * time.Second)
		times, err := drilltimes.TimesOf(&p.schedule.Spec)
		if err != nil {
			t.Fatal(err)
		}
		var due, missed time.Time
		for at := since.Truncate(time.Minute).Add(time.Minute); !at.After(p.now); at = at.Add(time.Minute) {
			if !times.After(at.Add(-time.Second)).Equal(at) || !at.After(since) {
				continue // it is no time of the schedule
			}
			if due = at; at.Before(p.now.Add(-late)) {
				due, missed = time.Time{}, at
			}
		}
		step := NextOfSchedule(p.schedule, &Scheduling{Now: p.now, Clusters: p.clusters})
		got := ""
		if step.Make != nil {
			got = step.Make.Annotations[v1beta1.DrillScheduledAtAnnotation]
		}
		if want := due.Format(time.RFC3339); got != want && (got != "" || !due.IsZero()) {
			t.Fatalf("since %s, now %s, %s late: made for %q, want %s", since, p.now, late, got, want)
		}
		if m := step.Status.LastMissed; (m == nil) != missed.IsZero() || m != nil && !m.Time.Time.Equal(missed) {
			t.Fatalf("since %s, now %s, %s late: missed %+v, want %s", since, p.now, late, m, missed)
		}
	}
}

// An isolation does not wait longer than recoverySeconds for clusters that come back slowly, and what it marked is clean all the same.
func TestNextBoundsTheWayBackOfAnIsolation(t *testing.T) {
	for seconds, most := range map[int32]time.Duration{10: 13 * time.Second, 600: 30 * time.Second} { // here failback takes 20 s
		m := newMade(t, v1beta1.DrillIsolation)
		m.drill.Spec.RecoverySeconds = &seconds
		m.phase(v1beta1.DrillRecovering)
		since := m.now
		m.phase(v1beta1.DrillVerifying)
		if took := m.now.Sub(since); took > most || took < most-10*time.Second {
			t.Errorf("recoverySeconds %d: the way back took %s, want at most %s", seconds, took, most)
		}
		m.ends(v1beta1.DrillSucceeded, v1beta1.DrillCompleted)
	}
}

// A report says that DNS has the scope back only when it has: not where that takes too long, and not where a person keeps the weight at 0.
func TestNextMarksDNSOnlyWhenItIsBack(t *testing.T) {
	for name, tc := range map[string]struct {
		in   v1beta1.DrillPhase
		do   func(*made)
		back bool
	}{
		"it takes long": {v1beta1.DrillRecovering, func(m *made) { m.lag = time.Hour }, false},
		"a person keeps it out": {v1beta1.DrillHolding, func(m *made) {
			for range 10 {
				m.step()
			}
			m.clusters[0].Spec.DNSWeight = new(int32(0))
			delete(m.clusters[0].Annotations, v1beta1.DrainAnnotation)
		}, false},
		"it is back": {v1beta1.DrillRecovering, func(*made) {}, true},
	} {
		m := newMade(t, v1beta1.DrillShift)
		m.phase(tc.in)
		tc.do(m)
		m.phase(v1beta1.DrillFinished)
		if got := m.drill.Status.Report.Marks.BackInDNS; (got != nil) != tc.back {
			t.Errorf("%s: backInDNS %v", name, got)
		}
	}
}

// The last missed time is the last one, however many were missed; with a deadline of seconds, too.
func TestNextOfScheduleTellsTheLastOfManyMissedTimes(t *testing.T) {
	p := newPlant(t, "* * * * *", "UTC")
	p.pass(-1)
	p.now = begin.Add(3000*time.Minute + 30*time.Second)
	p.schedule.Spec.StartingDeadlineSeconds = new(int64(10))
	step := NextOfSchedule(p.schedule, &Scheduling{Now: p.now, Clusters: p.clusters})
	if got, want := step.Status.LastMissed, begin.Add(3000*time.Minute); got == nil || !got.Time.Time.Equal(want) {
		t.Errorf("missed %+v, want %s", got, want)
	}
}
