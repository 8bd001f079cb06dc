package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/drilltimes"
	"federation/apiserver/apis/federation/v1beta1"
)

// plant is a federation in which a schedule creates drills, each of which takes a while and then has an outcome.
type plant struct {
	t        *testing.T
	now      time.Time
	schedule *v1beta1.FailoverDrillSchedule
	clusters []*v1beta1.Cluster
	drills   []*v1beta1.FailoverDrill
	made     []*v1beta1.FailoverDrill // all, in order of creation
	takes    time.Duration
	outcome  func(*v1beta1.FailoverDrill) v1beta1.DrillOutcome
}

func newPlant(t *testing.T, cron, zone string) *plant {
	p := &plant{t: t, now: begin, takes: 15 * time.Minute, outcome: func(*v1beta1.FailoverDrill) v1beta1.DrillOutcome { return v1beta1.DrillSucceeded }}
	for i := range 6 {
		c := cluster(fmt.Sprint("c", i))
		c.Status.Region, c.Status.Zones = "east", []string{string(rune('a' + i))}
		p.clusters = append(p.clusters, c)
	}
	p.schedule = &v1beta1.FailoverDrillSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: "weekly", UID: "s", CreationTimestamp: metav1.NewTime(begin)},
		Spec: v1beta1.FailoverDrillScheduleSpec{Schedule: cron, Rotate: v1beta1.RotateZones, DrillWindows: v1beta1.DrillWindows{TimeZone: &zone},
			Template: v1beta1.FailoverDrillTemplate{Spec: v1beta1.FailoverDrillSpec{Method: v1beta1.DrillShift, Reason: "as each week", Scope: v1beta1.FailoverDrillScope{Zones: []string{"*"}}}}},
		Status: v1beta1.FailoverDrillScheduleStatus{RequestedBy: "ann"},
	}
	return p
}

// pass takes one step as the controller does, dying after so many writes unless dies is negative. It returns when to
// run again.
func (p *plant) pass(dies int) time.Duration {
	for _, d := range p.drills {
		if !d.IsFinished() && p.now.Sub(d.CreationTimestamp.Time) >= p.takes {
			d.Status.Phase, d.Status.Outcome, d.Status.PhaseSince = v1beta1.DrillFinished, p.outcome(d), new(metav1.NewMicroTime(p.now))
		}
	}
	step := NextOfSchedule(p.schedule, &Scheduling{Now: p.now, Drills: p.drills, Clusters: p.clusters})
	if step.Make != nil {
		if dies--; dies == -1 {
			return 0
		}
		if !slices.ContainsFunc(p.drills, func(d *v1beta1.FailoverDrill) bool { return d.Name == step.Make.Name }) {
			d := step.Make.DeepCopy()
			d.UID, d.CreationTimestamp = types.UID(d.Name), metav1.NewTime(p.now)
			p.drills, p.made = append(p.drills, d), append(p.made, d)
		}
	}
	if dies--; dies == -1 {
		return 0
	}
	p.schedule.Status = step.Status
	for _, d := range step.Delete {
		p.drills = slices.DeleteFunc(p.drills, func(is *v1beta1.FailoverDrill) bool { return is.Name == d.Name })
	}
	return step.LookAgain
}

// runs lets time pass, from pass to pass.
func (p *plant) runs(d time.Duration) {
	for end := p.now.Add(d); ; {
		next := p.pass(-1)
		if next <= 0 || slices.ContainsFunc(p.drills, func(d *v1beta1.FailoverDrill) bool { return !d.IsFinished() }) {
			next = min(max(next, time.Second), time.Minute)
		}
		if p.now = p.now.Add(next); p.now.After(end) {
			p.now = end
			return
		}
	}
}

func (p *plant) scopes() string {
	var all []string
	for _, d := range p.made {
		all = append(all, strings.Join(slices.Concat(d.Spec.Scope.Zones, d.Spec.Scope.Regions, d.Spec.Scope.Clusters), "+"))
	}
	return strings.Join(all, " ")
}

// 400 days with time zones, clock changes, windows, deaths, and times at which nothing runs: no drill is outside its
// windows, none is created twice, and each zone has its turn within six drills. Acceptance test 22 of drills.
func TestSchedulesOver400Days(t *testing.T) {
	for i, c := range []struct {
		cron, zone string
		windows    v1beta1.DrillWindows
		least      int
	}{
		{"0 10 * * 2", "Europe/Berlin", v1beta1.DrillWindows{}, 50},
		{"30 2 * * *", "America/New_York", v1beta1.DrillWindows{BlockedDates: []string{"2026-12-24", "2026-12-25", "2027-01-01"}}, 350},
		{"30 1 * * *", "America/New_York", v1beta1.DrillWindows{BlockedWindows: []string{"MON-00:00-12:00"}}, 300},
		{"0 */3 * * *", "Australia/Lord_Howe", v1beta1.DrillWindows{AllowedWindows: []string{"TUE-08:00-16:00", "THU-21:00-24:00", "FRI-00:00-04:00"}, BlockedWindows: []string{"TUE-12:00-12:30"}}, 150},
		{"0 0,23 * * *", "Asia/Beirut", v1beta1.DrillWindows{}, 700}, // clocks are put forward at midnight
	} {
		t.Run(c.cron+" "+c.zone, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(1, uint64(i)))
			p := newPlant(t, c.cron, c.zone)
			c.windows.TimeZone = &c.zone
			p.schedule.Spec.DrillWindows = c.windows
			if c.zone == "Europe/Berlin" { // one zone is never drilled with success
				p.outcome = func(d *v1beta1.FailoverDrill) v1beta1.DrillOutcome {
					return map[bool]v1beta1.DrillOutcome{true: v1beta1.DrillBlocked, false: v1beta1.DrillSucceeded}[d.Spec.Scope.Zones[0] == "east/c"]
				}
			}
			for end := begin.AddDate(0, 0, 400); p.now.Before(end); {
				switch chance.IntN(8) {
				case 0: // a process dies after a write, or before it
					p.pass(chance.IntN(3))
				case 1: // nothing runs
					p.now = p.now.Add(time.Duration(chance.IntN(600)) * time.Second)
				}
				next := min(max(p.pass(-1), time.Second), 6*time.Hour)
				if slices.ContainsFunc(p.drills, func(d *v1beta1.FailoverDrill) bool { return !d.IsFinished() }) {
					next = min(next, time.Minute)
				}
				p.now = p.now.Add(next)
			}
			if len(p.made) < c.least {
				t.Errorf("only %d drills in 400 days", len(p.made))
			}
			windows, err := drilltimes.Parse(&p.schedule.Spec.DrillWindows)
			if err != nil {
				t.Fatal(err)
			}
			zone, _ := time.LoadLocation(c.zone)
			seen := map[string]bool{}
			for n, d := range p.made {
				at, err := time.Parse(time.RFC3339, d.Annotations[v1beta1.DrillScheduledAtAnnotation])
				if wall := at.In(zone).Format("2006-01-02 15:04"); err != nil || seen[wall] {
					t.Errorf("a second drill at %s, %v", wall, err)
				} else {
					seen[wall] = true
				}
				if late := d.CreationTimestamp.Sub(at); late < 0 || late > 301*time.Second {
					t.Errorf("%s: made %s after its time", d.Name, late)
				}
				if against := windows.Refuses(at, at.Add(drilltimes.DurationOf(&d.Spec))); against != "" {
					t.Errorf("%s: %s", d.Name, against)
				}
				if n >= 6 {
					turn := map[string]bool{}
					for _, six := range p.made[n-5 : n+1] {
						turn[six.Spec.Scope.Zones[0]] = true
					}
					if len(turn) != 6 {
						t.Fatalf("six drills up to %s are of %v", d.Name, turn)
					}
				}
				if d.Status.RequestedBy != "ann" || d.Spec.Scope.Zones[0] == "*" {
					t.Fatalf("%s: %+v", d.Name, d)
				}
			}
			for _, d := range p.made[1:] {
				before := p.made[slices.Index(p.made, d)-1]
				if d.CreationTimestamp.Time.Before(before.CreationTimestamp.Add(p.takes)) {
					t.Errorf("%s and %s are under way at once", before.Name, d.Name)
				}
			}
			if n := len(p.drills); n > 21 {
				t.Errorf("%d drills are kept", n)
			}
		})
	}
}

func TestTurns(t *testing.T) {
	p := newPlant(t, "0 * * * *", "UTC")
	p.runs(8*time.Hour + 30*time.Minute)
	if got := p.scopes(); got != "east/a east/b east/c east/d east/e east/f east/a east/b" {
		t.Errorf("turns: %s", got)
	}
	// a manual success counts, and a new zone comes first
	readiness := []*v1beta1.FailoverReadiness{{Spec: v1beta1.FailoverReadinessSpec{Zone: "east/c"}, Status: v1beta1.FailoverReadinessStatus{LastDrill: &v1beta1.ReadinessDrill{SucceededAt: new(metav1.NewTime(p.now))}}}}
	next := func() string {
		step := NextOfSchedule(p.schedule, &Scheduling{Now: p.now.Add(time.Hour).Truncate(time.Hour), Drills: p.drills, Clusters: p.clusters, Readiness: readiness})
		return step.Make.Spec.Scope.Zones[0]
	}
	if got := next(); got != "east/d" {
		t.Errorf("after east/c by hand: %s", got)
	}
	p.clusters[5].Status.Zones = []string{"new"}
	if got := next(); got != "east/new" {
		t.Errorf("with a new zone: %s", got)
	}
	p.runs(time.Hour)
	if n := len(p.schedule.Status.Turns); n != 6 {
		t.Errorf("turns %v: a zone that is gone is remembered", p.schedule.Status.Turns)
	}
	for rotate, want := range map[v1beta1.DrillRotation]string{v1beta1.RotateClusters: "c0 c1", v1beta1.RotateRegions: "east east", "": "*+east *+east"} {
		p := newPlant(t, "0 * * * *", "UTC")
		p.schedule.Spec.Rotate = rotate
		scope := &p.schedule.Spec.Template.Spec.Scope
		switch *scope = (v1beta1.FailoverDrillScope{}); rotate {
		case v1beta1.RotateClusters:
			scope.Clusters = []string{"*"}
		case v1beta1.RotateRegions:
			scope.Regions = []string{"*"}
		default:
			scope.Zones, scope.Regions = []string{"*"}, []string{"east"}
		}
		if p.runs(2 * time.Hour); p.scopes() != want {
			t.Errorf("rotate %q: %s, want %s", rotate, p.scopes(), want)
		}
	}
}

// A missed drill is not made up. One that is due during another waits up to its deadline.
func TestWhatIsMissed(t *testing.T) {
	p := newPlant(t, "0 * * * *", "UTC")
	p.pass(-1)
	p.now = p.now.Add(3*time.Hour + 10*time.Minute)
	p.pass(-1)
	if m := p.schedule.Status.LastMissed; len(p.made) > 0 || m == nil || m.Reason != v1beta1.MissedTooLate || !m.Time.Time.Equal(begin.Add(3*time.Hour)) {
		t.Errorf("made %d, missed %+v", len(p.made), m)
	}
	p.now = begin.Add(4*time.Hour + 299*time.Second)
	if p.pass(-1); len(p.made) != 1 {
		t.Errorf("one that is 299 s late is not made: %+v", p.schedule.Status)
	}
	p.takes = 64 * time.Minute
	if p.runs(3 * time.Hour); len(p.made) != 3 || p.made[1].CreationTimestamp.Sub(p.made[0].CreationTimestamp.Time) < p.takes {
		t.Errorf("%d made, at %v", len(p.made), p.made)
	}
	p.takes = 70 * time.Minute
	p.runs(2 * time.Hour)
	if m := p.schedule.Status.LastMissed; m.Reason != v1beta1.MissedStillActive {
		t.Errorf("missed %+v, want %s", m, v1beta1.MissedStillActive)
	}
}

func TestSuspendedSchedules(t *testing.T) {
	p := newPlant(t, "0 * * * *", "UTC")
	p.schedule.Spec.Suspend = new(true)
	p.runs(10 * time.Hour)
	reason := func() string {
		is := meta.FindStatusCondition(p.schedule.Status.Conditions, v1beta1.DrillScheduled)
		return string(is.Status) + " " + is.Reason
	}
	if len(p.made) > 0 || p.schedule.Status.NextScheduleTime != nil || reason() != "False Suspended" {
		t.Errorf("made %d, %+v", len(p.made), p.schedule.Status)
	}
	p.schedule.Spec.Suspend = nil
	p.now = p.now.Add(100 * time.Second) // the last time is 100 s ago
	if p.runs(time.Minute); len(p.made) > 0 || p.schedule.Status.LastMissed != nil || reason() != "True Active" {
		t.Errorf("what came while it was suspended is made up: %d, %+v", len(p.made), p.schedule.Status)
	}
	if p.runs(time.Hour); len(p.made) != 1 {
		t.Errorf("%d made in the hour after", len(p.made))
	}
	for _, c := range p.clusters {
		c.Status.Zones = []string{"a", "b"}
	}
	if p.runs(2 * time.Hour); len(p.made) != 1 || reason() != "False NoScope" {
		t.Errorf("%d made without a zone, %s", len(p.made), reason())
	}
	p.schedule.Spec.Rotate, p.schedule.Spec.AllowedWindows = "", []string{"MON-10:30-10:50"}
	if p.runs(2 * time.Hour); len(p.made) != 1 || reason() != "False NoTime" {
		t.Errorf("%d made outside of the windows, %s", len(p.made), reason())
	}
}

func TestHistoryLimits(t *testing.T) {
	p := newPlant(t, "0 * * * *", "UTC")
	p.schedule.Spec.SuccessfulHistoryLimit, p.schedule.Spec.FailedHistoryLimit = new(int32(3)), new(int32(1))
	p.outcome = func(d *v1beta1.FailoverDrill) v1beta1.DrillOutcome {
		return map[bool]v1beta1.DrillOutcome{true: v1beta1.DrillFailed, false: v1beta1.DrillSucceeded}[d.Spec.Scope.Zones[0] == "east/b"]
	}
	p.runs(12*time.Hour + 30*time.Minute)
	var left []string
	for _, d := range p.drills {
		left = append(left, d.Spec.Scope.Zones[0])
	}
	if got := strings.Join(left, " "); len(p.made) != 12 || got != "east/b east/d east/e east/f" {
		t.Errorf("of %d drills %s are left", len(p.made), got)
	}
	if at := p.schedule.Status.LastSuccessfulTime; at == nil || !at.Time.Equal(begin.Add(12*time.Hour+15*time.Minute)) {
		t.Errorf("last success at %v", at)
	}
}
