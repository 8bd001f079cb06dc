package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Names are out of DNS when no server has any address that they are to lose, and back when they have all of them; in both cases only once all
// providers have the last change. What the names do not lose does not matter.
func TestWhatIsFollowedInDNS(t *testing.T) {
	chance := rand.New(rand.NewPCG(12, 1))
	data := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}
	some := func() (all []string) {
		for _, d := range data {
			if chance.IntN(2) == 0 {
				all = append(all, d)
			}
		}
		return all
	}
	for range 3000 {
		m := newMade(t, v1beta1.DrillShift)
		w := m.world()
		m.drill.Status.Report, w.Records = &v1beta1.DrillReport{}, map[Record][]string{}
		published := chance.IntN(4) > 0
		w.Providers[0].Published = published
		out, back := published, published
		for i := range 1 + chance.IntN(2) {
			c := v1beta1.RecordChange{Name: fmt.Sprint("web", i, "."), Type: []string{"A", "AAAA"}[chance.IntN(2)], Before: some(), After: some()}
			has := some()
			w.Records[Record{c.Name, c.Type}] = has
			for _, d := range data {
				if slices.Contains(c.Before, d) && !slices.Contains(c.After, d) {
					out, back = out && !slices.Contains(has, d), back && slices.Contains(has, d)
				}
			}
			m.drill.Status.Report.Prediction.Followed = append(m.drill.Status.Report.Prediction.Followed, c)
		}
		d := in(m, w).followed()
		if why := d.notOut(); (why == "") != out || d.answersAgain() != back {
			t.Fatalf("published %t, followed %+v, DNS has %v: not out because of %q, back %t; want out %t, back %t",
				published, m.drill.Status.Report.Prediction.Followed, w.Records, why, d.answersAgain(), out, back)
		}
	}
}

// What DNS still has is named, so that a person can ask for it.
func TestNotOutNamesWhatIsThere(t *testing.T) {
	m := newMade(t, v1beta1.DrillShift)
	w := m.world()
	m.drill.Status.Report = &v1beta1.DrillReport{Prediction: v1beta1.DrillPrediction{Followed: w.Review.Records}}
	if got := in(m, w).followed().notOut(); got != "web. A has 192.0.2.1" {
		t.Errorf("got %q", got)
	}
	w.Providers = append(w.Providers, v1beta1.DNSProvider{Name: "far", Message: "timeout"})
	if got := in(m, w).followed().notOut(); got != "provider far is behind: timeout" {
		t.Errorf("with a provider that is behind: got %q", got)
	}
	if in(m, w).backInDNS() {
		t.Error("names are back though a provider is behind")
	}
}

// A difference is each number of a cluster that is not as predicted; objects that somebody deleted meanwhile have none, and there are a hundred at most.
func TestDifferencesFromThePrediction(t *testing.T) {
	m := newMade(t, v1beta1.DrillEvacuate)
	w := m.world()
	m.drill.Status.Report = &v1beta1.DrillReport{Prediction: v1beta1.DrillPrediction{Moves: []v1beta1.ReplicaMove{
		{Kind: "Deployment", Namespace: "shop", Name: "gone", Clusters: []v1beta1.ReplicaChange{{Cluster: "a", Before: 1}, {Cluster: "b", After: 1}}},
		{Kind: "Deployment", Namespace: "shop", Name: "web", Clusters: []v1beta1.ReplicaChange{{Cluster: "a", Before: 10}, {Cluster: "b", Before: 10, After: 15},
			{Cluster: "c", After: 14}}},
	}}}
	w.Objects[0].Placed = map[string]int64{"b": 15, "c": 13, "d": 2}
	if got, want := differences(m.drill.Status.Report.Prediction.Moves, w.Objects), []string{"Deployment shop/web: 13 in c, predicted 14"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Objects[0].Placed = map[string]int64{"a": 10, "c": 14}
	want := []string{"Deployment shop/web: 10 in a, predicted 0", "Deployment shop/web: 0 in b, predicted 15"}
	if got := differences(m.drill.Status.Report.Prediction.Moves, w.Objects); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	m.drill.Status.Report.Prediction.Moves = slices.Repeat(m.drill.Status.Report.Prediction.Moves, 60)
	if got := differences(m.drill.Status.Report.Prediction.Moves, w.Objects); len(got) != maxMoves {
		t.Errorf("%d differences, want %d", len(got), maxMoves)
	}
}

// Seconds are rounded up, so that an objective of 5 s is missed by 5.001 s. What never came misses its objective, and what is not asked for is not
// in the report.
func TestObjectivesAreCompared(t *testing.T) {
	after := func(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(begin.Add(d))) }
	for _, c := range []struct {
		marks v1beta1.DrillMarks
		least int32
		asks  v1beta1.FailoverDrillObjectives
		want  string
	}{
		{v1beta1.DrillMarks{OutOfDNS: after(5 * time.Second)}, 100, v1beta1.FailoverDrillObjectives{OutOfDNSSeconds: new(int32(5))}, "outOfDNSSeconds 5 of 5 true"},
		{v1beta1.DrillMarks{OutOfDNS: after(5*time.Second + time.Millisecond)}, 100, v1beta1.FailoverDrillObjectives{OutOfDNSSeconds: new(int32(5))},
			"outOfDNSSeconds 6 of 5 false"},
		{v1beta1.DrillMarks{Detected: after(time.Microsecond)}, 100, v1beta1.FailoverDrillObjectives{DetectedSeconds: new(int32(0))}, "detectedSeconds 1 of 0 false"},
		{v1beta1.DrillMarks{Detected: after(0)}, 100, v1beta1.FailoverDrillObjectives{DetectedSeconds: new(int32(0))}, "detectedSeconds 0 of 0 true"},
		{v1beta1.DrillMarks{}, 100, v1beta1.FailoverDrillObjectives{ReadyElsewhereSeconds: new(int32(9000))}, "readyElsewhereSeconds - of 9000 false"},
		{v1beta1.DrillMarks{}, 94, v1beta1.FailoverDrillObjectives{MinReadyPercent: new(int32(95))}, "minReadyPercent 94 of 95 false"},
		{v1beta1.DrillMarks{}, 95, v1beta1.FailoverDrillObjectives{MinReadyPercent: new(int32(95))}, "minReadyPercent 95 of 95 true"},
		{v1beta1.DrillMarks{}, 100, v1beta1.FailoverDrillObjectives{MaxFailedPerMille: new(int32(1000))}, "maxFailedPerMille - of 1000 false"},
		{v1beta1.DrillMarks{OutOfDNS: after(time.Hour)}, 0, v1beta1.FailoverDrillObjectives{}, ""},
	} {
		m := newMade(t, v1beta1.DrillIsolation)
		c.marks.Injected = after(0)
		m.drill.Spec.Objectives, m.drill.Status.Report = c.asks, &v1beta1.DrillReport{Marks: c.marks, Workloads: v1beta1.DrillWorkloads{LeastReadyPercent: c.least}}
		d, got := in(m, m.world()), []string{}
		d.meter().checkObjectives()
		for _, o := range d.step.Status.Report.Objectives {
			measured := "-"
			if o.Measured != nil {
				measured = fmt.Sprint(*o.Measured)
			}
			got = append(got, fmt.Sprintf("%s %s of %d %t", o.Name, measured, o.Limit, o.Met))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%+v: got %q, want %q", c.marks, got, c.want)
		}
	}
}

// The share of replicas that stayed ready is the least that was seen, of those that were in the scope before; what was not ready before does not count
// against it. Each reading is a pass.
func TestLeastReadyPercentIsTheWorstMoment(t *testing.T) {
	chance := rand.New(rand.NewPCG(13, 1))
	for range 300 {
		m := newMade(t, v1beta1.DrillEvacuate)
		m.ready = int64(25 + chance.IntN(6))
		m.phase(v1beta1.DrillInjecting)
		before, worst := 30-m.ready, 30-m.ready
		for range 8 {
			m.now, m.ready = m.now.Add(time.Second), int64(10+chance.IntN(21))
			d := in(m, m.world())
			d.meter().measure()
			m.drill.Status = d.step.Status
			work := m.drill.Status.Report.Workloads
			if worst < 30-m.ready {
				if worst = 30 - m.ready; !work.MostAt.Time.Equal(m.now) {
					t.Fatalf("the worst moment is at %v, want %v", work.MostAt, m.now)
				}
			}
			stayed := max(0, 10-(worst-before)) // of ten in a
			if work.NotReadyBefore != before || work.MostNotReady != worst || int64(work.LeastReadyPercent) != 10*stayed {
				t.Fatalf("%d were not ready before, %d at worst: %+v, want %d %%", before, worst, work, 10*stayed)
			}
		}
	}
}

// Each thing of the drill that is still there is named; what others own, or took over, is not.
func TestLeftBehindIsNamed(t *testing.T) {
	for want, do := range map[string]func(*made, *World){
		"": func(*made, *World) {},
		"cluster a: annotation federation.kubernetes.io/drain; cluster a: spec.dnsWeight is 0, was 70": func(_ *made,
			w *World) {
			w.Clusters[0] = takenOut(w.Clusters[0], "u", begin)
		},
		"cluster a: annotation federation.kubernetes.io/drain; cluster a: taint federation.kubernetes.io/drain:NoExecute": func(_ *made, w *World) {
			w.Clusters[0] = emptied(takenOut(w.Clusters[0], "u", begin))
			w.Clusters[0].Spec.DNSWeight = new(int32(5))
		},
		"cluster a: spec.dnsWeight is 0, was 70": func(_ *made, w *World) { w.Clusters[0].Spec.DNSWeight = new(int32) },
		"cluster a: condition Drill": func(_ *made, w *World) {
			w.Clusters[0].Status.Conditions = append(w.Clusters[0].Status.Conditions, v1beta1.ClusterCondition{Type: v1beta1.ClusterDrill, Status: corev1.ConditionTrue})
		},
		"cluster a: the Lease federation-system/failover-drill there, which runs out within 30 s": func(_ *made, w *World) { w.Blackholed = []string{"a", "b"} },
		"Lease federation-system/failover-drill":                                                  func(_ *made, w *World) { w.Lease.Drill = "u" },
	} {
		m := newMade(t, v1beta1.DrillEvacuate)
		m.drill.Status.Undo = []v1beta1.DrillUndo{{Cluster: "a", DNSWeight: new(int32(70))}, {Cluster: "removed"}}
		w := m.world()
		do(m, w)
		if got := strings.Join(in(m, w).leftBehind(), "; "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if m.drill.Status.Reason = v1beta1.DrillByHand; len(in(m, w).leftBehind()) > 0 {
			t.Errorf("%s: named though somebody took over", want)
		}
	}
	for name, do := range map[string]func(*World){
		"a drain of another":   func(w *World) { w.Clusters[0] = emptied(takenOut(w.Clusters[0], "v", begin)) },
		"another weight":       func(w *World) { w.Clusters[0].Spec.DNSWeight = new(int32(3)) },
		"a taint":              func(w *World) { w.Clusters[0] = emptied(w.Clusters[0]) },
		"another's Lease":      func(w *World) { w.Lease.Drill = "v" },
		"a cluster beside it":  func(w *World) { w.Clusters[1] = takenOut(w.Clusters[1], "v", begin) },
		"a cluster that is no": func(w *World) { w.Clusters = w.Clusters[1:] },
	} {
		m := newMade(t, v1beta1.DrillEvacuate)
		m.drill.Status.Undo = []v1beta1.DrillUndo{{Cluster: "a", DNSWeight: new(int32(70))}}
		w := m.world()
		do(w)
		if got := in(m, w).leftBehind(); len(got) > 0 {
			t.Errorf("%s is named: %q", name, got)
		}
	}
}

// A cluster of the scope that is removed while it is out ends the drill, and so does a taint that is taken off one that is emptied.
func TestByHandWhileHolding(t *testing.T) {
	for _, method := range []v1beta1.DrillMethod{v1beta1.DrillShift, v1beta1.DrillIsolation} {
		m := newMade(t, method)
		m.phase(v1beta1.DrillHolding)
		w := m.world()
		w.Clusters = slices.Clone(w.Clusters)[1:]
		if step := Next(m.drill, w); step.Status.Reason != v1beta1.DrillByHand || step.Status.Message != "a cluster of the scope was removed" {
			t.Errorf("%s: got %s: %s", method, step.Status.Reason, step.Status.Message)
		}
	}
	m := newMade(t, v1beta1.DrillEvacuate)
	m.until("placed", func() bool { r := m.drill.Status.Report; return r != nil && r.Marks.Placed != nil })
	m.clusters[0] = refilled(m.clusters[0])
	step := Next(m.drill, m.world())
	if want := "cluster a: somebody took the taint federation.kubernetes.io/drain:NoExecute off"; step.Status.Reason != v1beta1.DrillByHand ||
		step.Status.Message != want {
		t.Errorf("got %s: %s, want %s", step.Status.Reason, step.Status.Message, want)
	}
}

// While the failover limits hold everything in place, an isolation predicts that nothing moves and that no name changes; an evacuation predicts what the
// review says. Record sets that lose nothing are counted but not followed.
func TestPredictionWhileHeld(t *testing.T) {
	for method, want := range map[v1beta1.DrillMethod][4]int64{v1beta1.DrillShift: {0, 2, 1, 0}, v1beta1.DrillEvacuate: {10, 2, 1, 1},
		v1beta1.DrillIsolation: {0, 0, 0, 0}} {
		m := newMade(t, method)
		m.drill.Spec.Allow = []string{v1beta1.DrillNotHeld}
		m.phase(v1beta1.DrillBaseline)
		m.now = m.now.Add(time.Minute)
		w := m.world()
		w.Review.SuspendedReason = "most clusters"
		w.Review.Records = append(w.Review.Records, v1beta1.RecordChange{Name: "new.", Type: "A", Before: []string{"192.0.2.2"}, After: []string{"192.0.2.2",
			"192.0.2.3"}})
		p := Next(m.drill, w).Status.Report.Prediction
		if got := [4]int64{p.Replicas, int64(p.Records), int64(len(p.Followed)), int64(len(p.Moves))}; got != want {
			t.Errorf("%s: got %v replicas, records, followed and moves, want %v", method, got, want)
		}
		if len(p.Followed) > 0 && !reflect.DeepEqual(p.Followed[0], v1beta1.RecordChange{Name: "web.", Type: "A", Before: []string{"192.0.2.1"}}) {
			t.Errorf("%s: followed %+v, want what web. is to lose", method, p.Followed[0])
		}
	}
}
