package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"federation/apiserver/apis/federation/v1beta1"
)

// in returns a drill of cluster a in its world, in the middle of a pass.
func in(m *made, w *World) *drill {
	return newDrill(m.drill, w)
}

// The pods that a budget wants are counted one by one: of minAvailable the fewest that are as large a share of all, of maxUnavailable so many
// that one more missing is too large a share. A share is rounded up, as Kubernetes does.
func TestDesiredHealthy(t *testing.T) {
	for expected := int64(0); expected <= 25; expected++ {
		for percent := range int64(101) {
			share := new(intstr.FromString(fmt.Sprint(percent, "%")))
			up := int64(0)
			for up*100 < percent*expected {
				up++
			}
			if got := (&Budget{MinAvailable: share}).desiredHealthy(expected); got != up {
				t.Fatalf("minAvailable %d %% of %d: got %d, want %d", percent, expected, got, up)
			}
			if got := (&Budget{MaxUnavailable: share}).desiredHealthy(expected); got != expected-up {
				t.Fatalf("maxUnavailable %d %% of %d: got %d, want %d", percent, expected, got, expected-up)
			}
		}
		for n := range int64(30) {
			number := new(intstr.FromInt(int(n)))
			if got, want := (&Budget{MinAvailable: number}).desiredHealthy(expected), min(n, expected); got != want {
				t.Fatalf("minAvailable %d of %d: got %d, want %d", n, expected, got, want)
			}
			if got, want := (&Budget{MaxUnavailable: number}).desiredHealthy(expected), max(0, expected-n); got != want {
				t.Fatalf("maxUnavailable %d of %d: got %d, want %d", n, expected, got, want)
			}
		}
		for _, none := range []Budget{{}, {MinAvailable: new(intstr.FromString("few"))}} {
			if got := none.desiredHealthy(expected); got != 0 {
				t.Fatalf("a budget that asks for nothing wants %d of %d", got, expected)
			}
		}
	}
}

// Whether budgets hold is found by counting pods: each is ready or not, those in an isolated cluster count as ready while the drill is under
// way, and those that would fit nowhere do not.
func TestBrokenBudgetsCountPods(t *testing.T) {
	chance := rand.New(rand.NewPCG(9, 1))
	for range 3000 {
		m := newMade(t, []v1beta1.DrillMethod{v1beta1.DrillEvacuate, v1beta1.DrillIsolation}[chance.IntN(2)])
		w, nowhere := m.world(), map[string]int64{}
		w.Objects = nil
		m.drill.Status.Clusters = []string{"a"}
		if chance.IntN(2) == 0 {
			m.drill.Status.Report = &v1beta1.DrillReport{}
		}
		unseen := m.drill.Spec.Method.Isolates() && m.drill.Status.Report != nil
		b := Budget{Name: "shop/web", MinAvailable: new(intstr.FromString(fmt.Sprint(chance.IntN(101), "%")))}
		if chance.IntN(2) == 0 {
			b = Budget{Name: "shop/web", MaxUnavailable: new(intstr.FromInt(chance.IntN(4)))}
		}
		var pods, healthy int64
		for i := range 1 + chance.IntN(3) {
			o := Object{Name: fmt.Sprint("Deployment shop/", i), Placed: map[string]int64{"a": int64(chance.IntN(4)), "b": int64(chance.IntN(6))}}
			o.Asked = o.Placed["a"] + o.Placed["b"]
			o.Ready = int64(chance.IntN(int(o.Asked) + 1))
			if chance.IntN(4) == 0 { // failed over, or back on the way
				o.Home = map[string]int64{"a": int64(chance.IntN(5))}
			}
			w.Objects, nowhere[o.Name] = append(w.Objects, o), int64(chance.IntN(3))
			if chance.IntN(4) == 0 {
				continue // pods of others
			}
			b.Objects = append(b.Objects, i)
			hidden := o.Placed["a"]
			if o.Home != nil {
				hidden = o.Home["a"]
			}
			runs := o.Ready
			for range hidden {
				if unseen && runs < o.Asked {
					runs++
				}
			}
			pods, healthy = pods+o.Asked, healthy+max(0, runs-nowhere[o.Name])
		}
		w.Budgets = []Budget{b}
		d, want := in(m, w), ""
		got := d.brokenBudgets(nowhere, d.unseen())
		if least := b.desiredHealthy(pods); healthy < least {
			want = fmt.Sprintf("PodDisruptionBudget shop/web: %d of %d pods are healthy, must be %d", healthy, pods, least)
		}
		if strings.Join(got, "; ") != want {
			t.Fatalf("%s, %+v, nowhere %v, budget %+v:\ngot  %v\nwant %s", m.drill.Spec.Method, w.Objects, nowhere, b, got, want)
		}
	}
}

// What the review would leave without a place counts against budgets before a drill that moves replicas, and not before one that leaves them.
func TestBudgetsBeforeADrill(t *testing.T) {
	for method, want := range map[v1beta1.DrillMethod]string{v1beta1.DrillShift: "", v1beta1.DrillEvacuate: v1beta1.DrillBudgets,
		v1beta1.DrillIsolation: v1beta1.DrillBudgets} {
		m := newMade(t, method)
		w := m.world()
		m.drill.Spec.Guardrails.MaxUnplaced = new(int64(5))
		w.Review.ReplicasUnschedulable, w.Review.Moves[0].Unschedulable = 2, 2
		w.Budgets = []Budget{{Name: "shop/web", MaxUnavailable: new(intstr.FromInt32(1)), Objects: []int{0}}}
		if got, message := Preflight(m.drill, w); got != want {
			t.Errorf("%s: got %q %s, want %q", method, got, message, want)
		}
		w.Budgets[0].MaxUnavailable = new(intstr.FromInt32(2))
		if got, message := Preflight(m.drill, w); got != "" {
			t.Errorf("%s, and two may be missing: %q %s", method, got, message)
		}
	}
}

// An object is restless if it changes and has replicas in the scope, or has changed for ten minutes anywhere; one whose beginning nobody knows
// counts only in the scope. The message names five at most.
func TestQuietNamesWhatChanges(t *testing.T) {
	m := newMade(t, v1beta1.DrillShift)
	w := m.world()
	for name, o := range map[string]Object{
		"in":         {Moving: true, Placed: map[string]int64{"a": 1}},
		"in still":   {Placed: map[string]int64{"a": 1}},
		"left":       {Moving: true, Placed: map[string]int64{"a": 0, "b": 2}},
		"elsewhere":  {Moving: true, Placed: map[string]int64{"b": 1}, Since: begin.Add(-stuck + time.Second)},
		"stuck":      {Moving: true, Placed: map[string]int64{"b": 1}, Since: begin.Add(-stuck)},
		"stuck once": {Placed: map[string]int64{"b": 1}, Since: begin.Add(-stuck)},
	} {
		o.Name = name
		w.Objects = append(w.Objects, o)
	}
	if got := changingObjects(w.Objects, w.Review.Clusters, w.Now); !slices.Equal(got, []string{"in", "stuck"}) {
		t.Errorf("got %q, want in, stuck", got)
	}
	for i := range 7 {
		w.Objects = append(w.Objects, Object{Name: fmt.Sprint("more ", i), Moving: true, Placed: map[string]int64{"a": 1}})
	}
	if reason, got := Preflight(m.drill, w); reason != v1beta1.DrillQuiet || got != "9 objects are not as desired: in, more 0, more 1, more 2, more 3" {
		t.Errorf("got %s: %s", reason, got)
	}
}

// A drill rests an hour from the end of the last one that took a cluster of its scope out. Those that took nothing out, are not over, or took others
// out do not count.
func TestRestedLooksForTheLastDrill(t *testing.T) {
	chance := rand.New(rand.NewPCG(10, 1))
	for range 1000 {
		m := newMade(t, v1beta1.DrillShift)
		w := m.world()
		want, last := "", time.Duration(0)
		for _, i := range chance.Perm(5) {
			ago := time.Duration(1+i*20+chance.IntN(20)) * time.Minute
			d := drilled([]string{"a", "b"}[chance.IntN(2)], begin.Add(-ago))
			d.Name, d.UID = fmt.Sprint("d", i), types.UID(fmt.Sprint("u", i))
			counts := d.Status.Clusters[0] == "a"
			switch chance.IntN(6) {
			case 0:
				d.Status.Report, counts = nil, false
			case 1:
				d.Status.Phase, counts = v1beta1.DrillRecovering, false
			case 2:
				d.Status.PhaseSince, counts = nil, false
			case 3:
				d.UID, counts = m.drill.UID, false
			}
			if w.Drills = append(w.Drills, d); counts && (want == "" || ago < last) {
				want, last = d.Name, ago
			}
		}
		name, _ := lastDrill(w.Drills, m.drill.UID, w.Review.Clusters)
		reason, message := Preflight(m.drill, w)
		if rests := want != "" && last < time.Hour; name != want || rests != (reason == v1beta1.DrillRested) || rests && !strings.Contains(message,
			fmt.Sprintf("drill %s took clusters of the scope out until %s ago", want, last)) {
			t.Fatalf("got %q, %q %s; want %q, %s ago", name, reason, message, want, last)
		}
	}
}

// As many replicas may move as were predicted, a fifth more, and ten; one more ends a drill.
func TestUnpredictedBeginsAboveAFifthAndTen(t *testing.T) {
	for predicted, most := range map[int64]int64{0: 10, 4: 14, 5: 16, 100: 130, 10_000: 12_010} {
		for moved, want := range map[int64]string{0: "", most: "", most + 1: v1beta1.DrillUnpredicted} {
			m := newMade(t, v1beta1.DrillEvacuate)
			m.drill.Status.Report = &v1beta1.DrillReport{Prediction: v1beta1.DrillPrediction{Replicas: predicted, Moved: moved}}
			if got, message := in(m, m.world()).guard().exceededLimit(); got != want {
				t.Errorf("%d moved of %d predicted: got %q %s, want %q", moved, predicted, got, message, want)
			}
		}
	}
}

// A leader counts when it is another one than before, while a drill is under way: not the first, not while nobody leads, not while the drill waits.
func TestLeaderChangesAreCounted(t *testing.T) {
	chance := rand.New(rand.NewPCG(11, 1))
	for range 200 {
		m := newMade(t, v1beta1.DrillShift)
		m.other, m.leader = "e", "p0"
		m.step()
		last, changes := "", int32(0)
		if m.drill.Status.Leader != "" {
			t.Fatalf("a drill that waits has the leader %q", m.drill.Status.Leader)
		}
		m.drill.Status.Phase = v1beta1.DrillHolding
		for range 10 {
			leader := []string{"", "p1", "p2"}[chance.IntN(3)]
			if leader != "" {
				if last != "" && last != leader {
					changes++
				}
				last = leader
			}
			w := m.world()
			w.Leader = leader
			d := in(m, w)
			d.recordLeader()
			if m.drill.Status = d.step.Status; m.drill.Status.Leader != last || m.drill.Status.LeaderChanges != changes {
				t.Fatalf("leader %q, %d changes, want %q, %d", m.drill.Status.Leader, m.drill.Status.LeaderChanges, last, changes)
			}
		}
	}
}

// A budget is violated since the first pass in which it is, and no more once it holds.
func TestBudgetsAreViolatedSince(t *testing.T) {
	m := newMade(t, v1beta1.DrillEvacuate)
	m.drill.Status.Report = &v1beta1.DrillReport{}
	m.budgets = []Budget{{MaxUnavailable: new(intstr.FromInt32(1)), Objects: []int{0}}}
	for i, ready := range []int64{30, 29, 28, 20, 29, 28} {
		m.now, m.ready = begin.Add(time.Duration(i)*time.Second), ready
		d := in(m, m.world())
		d.meter().measureBudgets()
		m.drill.Status = d.step.Status
		want := map[int64]*metav1.MicroTime{28: new(metav1.NewMicroTime(m.now)), 20: new(metav1.NewMicroTime(begin.Add(2 * time.Second)))}[ready]
		if got := m.drill.Status.Report.Workloads.BudgetViolatedSince; !got.Equal(want) {
			t.Errorf("pass %d, %d ready: since %v, want %v", i, ready, got, want)
		}
	}
}

// What ends an isolation that is over early: a cluster that is not ready a quarter of a minute later, or was removed or changed by hand.
func TestEndsOnTheWayBack(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*made)
		back time.Duration
		want string
	}{
		"nothing":          {func(*made) {}, time.Hour, ""},
		"not ready yet":    {func(m *made) { m.clusters[0].Status.Conditions[0].Status = corev1.ConditionFalse }, rejoining - time.Second, ""},
		"not ready":        {func(m *made) { m.clusters[0].Status.Conditions[0].Status = corev1.ConditionFalse }, rejoining, v1beta1.DrillRealFailure},
		"another is not":   {func(m *made) { m.clusters[1].Status.Conditions[0].Status = corev1.ConditionFalse }, time.Hour, ""},
		"removed":          {func(m *made) { m.clusters = m.clusters[1:] }, 0, v1beta1.DrillByHand},
		"another weight":   {func(m *made) { m.clusters[0].Spec.DNSWeight = nil }, 0, v1beta1.DrillByHand},
		"cordoned":         {func(m *made) { m.clusters[0].Spec.Taints = []corev1.Taint{{Key: v1beta1.TaintUnschedulable}} }, 0, v1beta1.DrillByHand},
		"another's weight": {func(m *made) { m.clusters[1].Spec.DNSWeight = new(int32(3)) }, 0, ""},
		"aborted":          {func(m *made) { m.drill.Status.Abort = &v1beta1.DrillDecision{By: "ann"} }, 0, v1beta1.DrillOperator},
	} {
		m := newMade(t, v1beta1.DrillIsolation)
		m.drill.Status.Clusters, m.drill.Status.Undo = []string{"a"}, []v1beta1.DrillUndo{{Cluster: "a", DNSWeight: new(int32(70))}}
		w := m.world()
		c.do(m)
		w.Clusters = m.clusters
		if got, message := in(m, w).guard().endsOnTheWay(c.back); got != c.want {
			t.Errorf("%s after %s: got %q %s, want %q", name, c.back, got, message, c.want)
		}
	}
}
