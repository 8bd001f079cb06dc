package v1beta1

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A number that a drill leaves out is that of the reference; one that it has counts as it is, also where it is 0.
func TestNumbersOfDrillsHaveDefaults(t *testing.T) {
	spec, schedule := &FailoverDrillSpec{}, &FailoverDrillScheduleSpec{}
	for name, c := range map[string]struct {
		without int64
		got     func() int64
		set     func(n int32)
	}{
		"baseline":         {60, func() int64 { return int64(spec.Baseline()) }, func(n int32) { spec.BaselineSeconds = &n }},
		"hold":             {600, func() int64 { return int64(spec.Hold()) }, func(n int32) { spec.HoldSeconds = &n }},
		"recovery":         {3600, func() int64 { return int64(spec.Recovery()) }, func(n int32) { spec.RecoverySeconds = &n }},
		"deadline":         {3600, func() int64 { return int64(spec.StartingDeadline()) }, func(n int32) { spec.StartingDeadlineSeconds = &n }},
		"ready":            {95, func() int64 { return int64(spec.Guardrails.MinReady()) }, func(n int32) { spec.Guardrails.MinReadyPercent = &n }},
		"unplaced":         {0, func() int64 { return spec.Guardrails.Unplaced() }, func(n int32) { spec.Guardrails.MaxUnplaced = new(int64(n)) }},
		"failed":           {10, func() int64 { return int64(spec.Guardrails.FailedPerMille()) }, func(n int32) { spec.Guardrails.MaxFailedPerMille = &n }},
		"window":           {30, func() int64 { return int64(spec.Guardrails.Window()) }, func(n int32) { spec.Guardrails.WindowSeconds = &n }},
		"schedule's delay": {300, schedule.StartingDeadline, func(n int32) { schedule.StartingDeadlineSeconds = new(int64(n)) }},
		"succeeded":        {10, func() int64 { return int64(schedule.Succeeded()) }, func(n int32) { schedule.SuccessfulHistoryLimit = &n }},
		"others":           {10, func() int64 { return int64(schedule.Failed()) }, func(n int32) { schedule.FailedHistoryLimit = &n }},
	} {
		if got := c.got(); got != c.without {
			t.Errorf("%s: %d where it is left out, want %d", name, got, c.without)
		}
		for _, n := range []int32{0, 1, 7200} {
			if c.set(n); c.got() != int64(n) {
				t.Errorf("%s: %d of %d", name, c.got(), n)
			}
		}
	}
	for suspend, want := range map[*bool]bool{nil: false, new(true): true, new(false): false} {
		if got := (&FailoverDrillScheduleSpec{Suspend: suspend}).Suspended(); got != want {
			t.Errorf("suspended: %t, want %t", got, want)
		}
	}
}

// What probes ask, and how often, has defaults too; and the name is that of DNS, in small letters and with the last dot.
func TestProbesAskForNames(t *testing.T) {
	web := &DrillProbeService{Namespace: "Shop", Name: "web"}
	for name, c := range map[string]struct {
		probe           DrillProbe
		name            string
		period, timeout int32
	}{
		"a Service":                    {DrillProbe{Service: web}, "web.shop.fed.svc.example.com.", 1, 2},
		"a host":                       {DrillProbe{Host: "WWW.example.com", PeriodSeconds: 1, TimeoutSeconds: 1}, "www.example.com.", 1, 1},
		"a host with the dot":          {DrillProbe{Host: "www.example.com.", PeriodSeconds: 60, TimeoutSeconds: 5}, "www.example.com.", 60, 5},
		"a Service, slowly":            {DrillProbe{Service: web, PeriodSeconds: 2}, "web.shop.fed.svc.example.com.", 2, 2},
		"a Service counts, not a host": {DrillProbe{Service: web, Host: "www.example.com"}, "web.shop.fed.svc.example.com.", 1, 2},
	} {
		for _, zone := range []string{"example.com", "Example.com."} {
			if got := c.probe.DNSName("Fed", zone); got != c.name || c.probe.Period() != c.period || c.probe.Timeout() != c.timeout {
				t.Errorf("%s: %s each %d s within %d s, want %s, %d, %d", name, got, c.probe.Period(), c.probe.Timeout(), c.name, c.period, c.timeout)
			}
		}
		if own := strings.TrimSuffix(c.probe.DNSName("Fed", "example.com"), "."); ServiceName("fed", "example.com", own) != (c.probe.Service != nil) {
			t.Errorf("%s: %s has the form of a Service's name: %t", name, own, c.probe.Service == nil)
		}
	}
}

// A drill is at most one of pending, under way and finished, by its phase; two of the methods cut clusters off, silently unless they say otherwise.
func TestPhasesAndMethodsOfDrills(t *testing.T) {
	for phase, want := range map[DrillPhase]string{"": "", DrillPending: "", DrillBaseline: "under way", DrillInjecting: "under way", DrillHolding: "under way",
		DrillRecovering: "under way", DrillVerifying: "under way", DrillFinished: "finished"} {
		d := &FailoverDrill{Status: FailoverDrillStatus{Phase: phase}}
		if d.UnderWay() != (want == "under way") || d.IsFinished() != (want == "finished") {
			t.Errorf("%q: under way %t, finished %t, want %q", phase, d.UnderWay(), d.IsFinished(), want)
		}
	}
	for method, want := range map[DrillMethod]bool{DrillShift: false, DrillEvacuate: false, DrillIsolation: true, DrillBlackhole: true, "": false} {
		if got := method.Isolates(); got != want {
			t.Errorf("%s isolates: %t", method, got)
		}
	}
	for as, want := range map[*DrillIsolate]IsolationMode{nil: IsolateSilent, {}: IsolateSilent, {As: IsolateSilent}: IsolateSilent,
		{As: IsolateRefused}: IsolateRefused} {
		if got := (&FailoverDrillSpec{Isolate: as}).IsolationMode(); got != want {
			t.Errorf("%+v: %s, want %s", as, got, want)
		}
	}
}

// scheduleOf returns a schedule that is filled at random.
func scheduleOf(r *rand.Rand) *FailoverDrillSchedule {
	s := &FailoverDrillSchedule{ObjectMeta: metav1.ObjectMeta{Name: "weekly", UID: types.UID("u")}}
	fillAny(r, reflect.ValueOf(&s.Spec).Elem())
	return s
}

// A change of a schedule is one of what it makes, except that it stops, which anybody may have it do who may change it: to start again is one.
func TestScheduleMakesOther(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for range 300 {
		was := scheduleOf(r)
		before := was.DeepCopy()
		if was.MakesOther(was.DeepCopy()) {
			t.Fatalf("%+v makes other drills than it does", was.Spec)
		}
		for _, suspend := range []*bool{nil, new(false), new(true)} {
			now := was.DeepCopy()
			now.Spec.Suspend = suspend
			if got, want := was.MakesOther(now), was.Spec.Suspended() && !now.Spec.Suspended(); got != want {
				t.Fatalf("suspended %t, then %t: makes other drills: %t", was.Spec.Suspended(), now.Spec.Suspended(), got)
			}
			other := now.DeepCopy()
			other.Spec.Template.Spec.Reason += "x"
			if !was.MakesOther(other) {
				t.Fatalf("another reason makes no other drills, suspended %t", now.Spec.Suspended())
			}
		}
		labelled := was.DeepCopy()
		labelled.Labels, labelled.Status.RequestedBy = map[string]string{"a": "b"}, "somebody"
		if was.MakesOther(labelled) || !reflect.DeepEqual(was, before) {
			t.Fatalf("labels of the schedule, or its status, make other drills, or the answer changes it: %+v", was)
		}
	}
}

// A drill of a schedule is what the template says, in the schedule's name and time: the schedule owns it, its windows are the drill's where there
// are any, and nothing that is done to the drill changes the schedule.
func TestScheduleMakesDrills(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 300 {
		s := scheduleOf(r)
		s.Status.RequestedBy = "ann"
		before := s.DeepCopy()
		d := s.Drill()
		owner := metav1.GetControllerOf(d)
		if owner == nil || owner.UID != s.UID || owner.Name != "weekly" || owner.Kind != "FailoverDrillSchedule" ||
			owner.APIVersion != "federation/v1beta1" || d.Name != "" || d.Status.RequestedBy != "ann" {
			t.Fatalf("%+v, of %+v", d.ObjectMeta, owner)
		}
		if !maps.Equal(d.Labels, s.Spec.Template.Labels) || d.Annotations == nil || !maps.Equal(d.Annotations, s.Spec.Template.Annotations) {
			t.Fatalf("labels %v and annotations %v, want %v and %v", d.Labels, d.Annotations, s.Spec.Template.Labels, s.Spec.Template.Annotations)
		}
		want := s.Spec.Template.Spec.DeepCopy()
		if w := s.Spec.DrillWindows; len(w.AllowedWindows) > 0 || len(w.BlockedWindows) > 0 || len(w.BlockedDates) > 0 {
			want.Windows = &w
		}
		if !equality.Semantic.DeepEqual(&d.Spec, want) {
			t.Fatalf("%+v, want %+v", d.Spec, want)
		}
		alter(reflect.ValueOf(d))
		if d.Annotations["x"] = "y"; d.Labels != nil {
			d.Labels["x"] = "y"
		}
		if !reflect.DeepEqual(s, before) {
			t.Fatalf("what was done to the drill made %+v of %+v", s, before)
		}
	}
}

// What takes turns is one part of the scope, and the scope of each turn is just its name, in that part.
func TestRotationsTakeOnePart(t *testing.T) {
	scope := FailoverDrillScope{Zones: []string{"east/a", "east/b"}, Regions: []string{"east"}, Clusters: []string{"c"}}
	for rotation, want := range map[DrillRotation][]string{"": nil, RotateZones: scope.Zones, RotateRegions: scope.Regions,
		RotateClusters: scope.Clusters, "Racks": nil} {
		s := &FailoverDrillScheduleSpec{Rotate: rotation, Template: FailoverDrillTemplate{Spec: FailoverDrillSpec{Scope: scope}}}
		if got := s.Candidates(); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", rotation, got, want)
		}
		for _, name := range want {
			one := FailoverDrillScheduleSpec{Rotate: rotation, Template: FailoverDrillTemplate{Spec: FailoverDrillSpec{Scope: rotation.Of(name)}}}
			if got := one.Candidates(); !slices.Equal(got, []string{name}) {
				t.Errorf("%s: the turn of %s is that of %q", rotation, name, got)
			}
			if s := rotation.Of(name); len(s.Zones)+len(s.Regions)+len(s.Clusters) != 1 {
				t.Errorf("%s: the turn of %s is %+v", rotation, name, s)
			}
		}
	}
}
