package plan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

// A review is wanted while a drill waits and the last one counts no more, and at the end of the baseline in any case; never
// afterwards. A slow review counts for as long as keeps reviews to a twentieth of the time.
func TestWantsReview(t *testing.T) {
	for _, c := range []struct {
		phase        v1beta1.DrillPhase
		lasts, holds time.Duration // how long the phase has lasted; for how long the review still counts
		want         bool
	}{
		{"", 0, 0, true},
		{"", 0, time.Second, false},
		{v1beta1.DrillPending, time.Hour, time.Second, false},
		{v1beta1.DrillPending, 0, -time.Second, true},
		{v1beta1.DrillBaseline, 4999 * time.Millisecond, time.Second, false},
		{v1beta1.DrillBaseline, 4999 * time.Millisecond, 0, true},
		{v1beta1.DrillBaseline, 5 * time.Second, time.Hour, true},
		{v1beta1.DrillInjecting, 0, -time.Hour, false},
		{v1beta1.DrillHolding, time.Hour, -time.Hour, false},
		{v1beta1.DrillFinished, time.Hour, -time.Hour, false},
	} {
		m := newMade(t, v1beta1.DrillShift)
		m.drill.Status.Phase, m.drill.Status.PhaseSince = c.phase, new(metav1.NewMicroTime(begin.Add(-c.lasts)))
		if got := WantsReview(m.drill, begin.Add(c.holds), begin); got != c.want {
			t.Errorf("%+v: got %t, want %t", c, got, c.want)
		}
	}
	for took, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 250 * time.Millisecond: 5 * time.Second, time.Second: 20 * time.Second,
		3 * time.Minute: time.Hour} {
		if got := ReviewHolds(took); got != want {
			t.Errorf("a review that took %s counts for %s, want %s", took, got, want)
		}
	}
}

// Somebody is told a minute after a phase that has clusters out should have been over, and of no other phase.
func TestOverdue(t *testing.T) {
	for phase, after := range map[v1beta1.DrillPhase]time.Duration{
		"": 0, v1beta1.DrillPending: 0, v1beta1.DrillBaseline: 0, v1beta1.DrillFinished: 0, // never
		v1beta1.DrillInjecting: 2 * time.Minute, v1beta1.DrillHolding: 60*time.Second + time.Minute,
		v1beta1.DrillRecovering: 90*time.Second + time.Minute, v1beta1.DrillVerifying: time.Minute,
	} {
		m := newMade(t, v1beta1.DrillShift)
		m.drill.Spec.RecoverySeconds = new(int32(90))
		m.drill.Status.Phase = phase
		if Overdue(m.drill, begin.Add(time.Hour)) {
			t.Errorf("%q is overdue though nobody knows when it began", phase)
		}
		m.drill.Status.PhaseSince = new(metav1.NewMicroTime(begin))
		for _, at := range []time.Duration{0, time.Minute, 2 * time.Minute, 150 * time.Second, 48 * time.Hour} {
			for _, more := range []time.Duration{0, time.Second} {
				if got, want := Overdue(m.drill, begin.Add(at+more)), after > 0 && at+more > after; got != want {
					t.Errorf("%q after %s: overdue %t, want %t", phase, at+more, got, want)
				}
			}
		}
	}
}

// The review of a drill asks what would happen if its scope were drained, or lost where it is cut off.
func TestSpecOfTheReview(t *testing.T) {
	scope := v1beta1.FailoverDrillScope{Clusters: []string{"a"}, Zones: []string{"east/b"}, Regions: []string{"west"}}
	for method, drained := range map[v1beta1.DrillMethod]bool{v1beta1.DrillShift: true, v1beta1.DrillEvacuate: true, v1beta1.DrillIsolation: false,
		v1beta1.DrillBlackhole: false} {
		m := newMade(t, method)
		m.drill.Spec.Scope = scope
		want := v1beta1.FailoverReviewSpec{Clusters: scope.Clusters, Zones: scope.Zones, Regions: scope.Regions, Drained: drained}
		if got := Spec(m.drill); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", method, got, want)
		}
	}
}

// anyCluster returns a cluster with random weight, taints and annotations, which serves.
func anyCluster(chance *rand.Rand, name string) *v1beta1.Cluster {
	c := cluster(name)
	if chance.IntN(3) > 0 {
		c.Spec.DNSWeight = new(int32(1 + chance.IntN(100)))
	}
	for i := range chance.IntN(3) {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: fmt.Sprint("team", i), Effect: corev1.TaintEffectNoSchedule})
	}
	if chance.IntN(2) == 0 {
		c.Annotations = map[string]string{"owner": "ann"}
	}
	return c
}

// Taking a cluster out and bringing it back leaves it as it was, whatever it had; each of the steps leaves the Cluster it is made of, which
// is in a cache, as it is. A weight that a person sets meanwhile stays.
func TestTakenOutAndBroughtBack(t *testing.T) {
	chance := rand.New(rand.NewPCG(5, 1))
	for range 500 {
		was := anyCluster(chance, "a")
		before := was.DeepCopy()
		out := takenOut(was, "u", begin.Add(time.Duration(chance.IntN(1e9))))
		outIs := out.DeepCopy()
		empty := emptied(out)
		emptyIs := empty.DeepCopy()
		full := refilled(empty)
		back := broughtBack(full)
		if len(back.Annotations) == 0 {
			back.Annotations = nil
		}
		if !reflect.DeepEqual(back, before) || !reflect.DeepEqual(was, before) || !reflect.DeepEqual(out, outIs) || !reflect.DeepEqual(empty, emptyIs) {
			t.Fatalf("was %+v %v, comes back as %+v %v", before.Spec, before.Annotations, back.Spec, back.Annotations)
		}
		if out.DNSWeight() != 0 || tainted(out) || !bears(out, "u") || bears(out, "v") || bears(was, "u") || !tainted(empty) || !bears(empty, "u") || tainted(full) {
			t.Fatalf("out %+v %v, emptied %+v", out.Spec, out.Annotations, empty.Spec)
		}
		by := full.DeepCopy()
		by.Spec.DNSWeight = new(int32(101))
		if got := broughtBack(by); got.DNSWeight() != 101 || markOf(got) != nil {
			t.Fatalf("a person's weight of 101 comes back as %d, %v", got.DNSWeight(), got.Annotations)
		}
	}
	unreadable := cluster("a")
	unreadable.Annotations = map[string]string{v1beta1.DrainAnnotation: "{"}
	if bears(unreadable, "") || markOf(unreadable) != nil {
		t.Error("a note that cannot be read is taken for one")
	}
}

// Sweeping brings back just the clusters that bear the note of a drill that is not known: a person's drain has no drill, and the others
// belong to theirs.
func TestSweep(t *testing.T) {
	chance := rand.New(rand.NewPCG(6, 1))
	for range 300 {
		known := map[string]bool{"u": chance.IntN(2) == 0, "v": chance.IntN(2) == 0}
		var clusters []*v1beta1.Cluster
		want := map[string]*v1beta1.Cluster{}
		for i := range chance.IntN(6) {
			was := anyCluster(chance, fmt.Sprint("c", i))
			by := []string{"", "u", "v", "w"}[chance.IntN(4)]
			is := was
			if by != "" || chance.IntN(2) == 0 {
				is = takenOut(was, by, begin)
				if chance.IntN(2) == 0 {
					is = emptied(is)
				}
			}
			if clusters = append(clusters, is); by != "" && !known[by] {
				want[is.Name] = was
			}
		}
		changes := Sweep(clusters, known)
		if len(changes) != len(want) {
			t.Fatalf("%d clusters are brought back, want %d", len(changes), len(want))
		}
		for _, c := range changes {
			if was := want[c.Name]; was == nil || !reflect.DeepEqual(c.Spec, was.Spec) || c.Annotations[v1beta1.DrainAnnotation] != "" ||
				c.Annotations["owner"] != was.Annotations["owner"] {
				t.Fatalf("%s is brought back as %+v %v, want %+v", c.Name, c.Spec, c.Annotations, was)
			}
		}
	}
}

// A condition or a Lease is swept just where no drill is under way that isolates, and has the cluster, or the Lease's UID: a drill that waits
// or is over has none of them, nor has one by another method.
func TestSweepIsolation(t *testing.T) {
	chance := rand.New(rand.NewPCG(7, 1))
	phases := []v1beta1.DrillPhase{"", v1beta1.DrillPending, v1beta1.DrillBaseline, v1beta1.DrillInjecting, v1beta1.DrillHolding, v1beta1.DrillRecovering,
		v1beta1.DrillVerifying, v1beta1.DrillFinished}
	methods := []v1beta1.DrillMethod{v1beta1.DrillShift, v1beta1.DrillEvacuate, v1beta1.DrillIsolation, v1beta1.DrillBlackhole}
	for range 2000 {
		var drills []*v1beta1.FailoverDrill
		var keeps, uids []string
		for i := range chance.IntN(3) {
			d := &v1beta1.FailoverDrill{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint("u", i))}}
			p, method := chance.IntN(len(phases)), chance.IntN(len(methods))
			d.Status.Phase, d.Spec.Method, d.Status.Clusters = phases[p], methods[method], []string{[]string{"a", "b", "c"}[chance.IntN(3)]}
			if drills = append(drills, d); p >= 2 && p <= 6 && method >= 2 {
				keeps, uids = append(keeps, d.Status.Clusters...), append(uids, string(d.UID))
			}
		}
		var clusters []*v1beta1.Cluster
		var want, got []string
		for _, name := range []string{"a", "b", "c"} {
			c := cluster(name)
			if chance.IntN(2) == 0 {
				is := corev1.ConditionTrue
				if chance.IntN(4) == 0 {
					is = corev1.ConditionFalse
				}
				c.Status.Conditions = append(c.Status.Conditions, v1beta1.ClusterCondition{Type: v1beta1.ClusterDrill, Status: is})
				if is == corev1.ConditionTrue && !slices.Contains(keeps, name) {
					want = append(want, name)
				}
			}
			clusters = append(clusters, c)
		}
		lease := Lease{Drill: []string{"", "u0", "u1", "gone"}[chance.IntN(4)]}
		marks, lift := SweepIsolation(clusters, drills, lease)
		for _, m := range marks {
			if got = append(got, m.Cluster.Name); m.Condition != nil {
				t.Fatalf("%s gets a condition: %+v", m.Cluster.Name, m.Condition)
			}
		}
		if wantLift := lease.Drill != "" && !slices.Contains(uids, lease.Drill); !slices.Equal(got, want) || lift != wantLift {
			text, _ := json.Marshal(drills)
			t.Fatalf("swept %v %t, want %v %t; lease %q, drills %s", got, lift, want, wantLift, lease.Drill, text)
		}
	}
}

// A zone or region that a drill took out in part, or with more, is not drilled; nor is one that has no clusters, or a cluster in two zones.
func TestDomainIsExact(t *testing.T) {
	chance := rand.New(rand.NewPCG(8, 1))
	for range 2000 {
		var clusters []*v1beta1.Cluster
		var whole []string
		spec := v1beta1.FailoverReadinessSpec{Zone: "east/a"}
		if chance.IntN(2) == 0 {
			spec = v1beta1.FailoverReadinessSpec{Region: "east"}
		}
		for _, i := range chance.Perm(4) {
			c := cluster(fmt.Sprint("c", i))
			c.Status.Region, c.Status.Zones = []string{"east", "west"}[chance.IntN(2)], [][]string{{"a"}, {"b"}, {"a", "b"}, nil}[chance.IntN(4)]
			if clusters = append(clusters, c); c.Status.Region == "east" && (spec.Zone == "" || strings.Join(c.Status.Zones, "+") == "a") {
				whole = append(whole, c.Name)
			}
		}
		d := &v1beta1.FailoverDrill{}
		for i := range 4 {
			if name := fmt.Sprint("c", i); slices.Contains(whole, name) != (chance.IntN(6) == 0) {
				d.Status.Clusters = append(d.Status.Clusters, name)
			}
		}
		slices.Sort(whole)
		if got, want := Domain(spec, clusters, d), len(whole) > 0 && slices.Equal(whole, d.Status.Clusters); got != want {
			t.Fatalf("%+v has %v, drilled %v: got %t, want %t", spec, whole, d.Status.Clusters, got, want)
		}
	}
}
