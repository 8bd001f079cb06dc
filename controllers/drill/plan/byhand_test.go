package plan

import (
	"reflect"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

// Acceptance test 20 of drills: a drain, a weight and a taint that a person sets in any phase stay as set. A drill that
// has put a taint on cannot distinguish another one of that name: with Evacuate a taint that is added meanwhile is
// removed with it.
func TestWhatAPersonDoesInAnyPhaseStays(t *testing.T) {
	for name, do := range map[string]func(*v1beta1.Cluster){
		"weight": func(c *v1beta1.Cluster) { c.Spec.DNSWeight = new(int32(5)) },
		"taint":  func(c *v1beta1.Cluster) { c.Spec.Taints = append(c.Spec.Taints, drainTaint) },
		"drain": func(c *v1beta1.Cluster) {
			c.Annotations = map[string]string{v1beta1.DrainAnnotation: (&v1beta1.Drain{DNSWeight: new(int32(70))}).String()}
			c.Spec.DNSWeight = new(int32)
			if !tainted(c) {
				c.Spec.Taints = append(c.Spec.Taints, drainTaint)
			}
		},
	} {
		for _, method := range []v1beta1.DrillMethod{v1beta1.DrillShift, v1beta1.DrillEvacuate, v1beta1.DrillIsolation, v1beta1.DrillBlackhole} {
			for _, phase := range []v1beta1.DrillPhase{v1beta1.DrillPending, v1beta1.DrillBaseline, v1beta1.DrillInjecting, v1beta1.DrillHolding, v1beta1.DrillRecovering, v1beta1.DrillVerifying} {
				if name == "taint" && method == v1beta1.DrillEvacuate && phase != v1beta1.DrillPending && phase != v1beta1.DrillBaseline && phase != v1beta1.DrillVerifying {
					continue
				}
				t.Run(string(method)+" "+string(phase)+" "+name, func(t *testing.T) {
					m := newMade(t, method)
					if phase == v1beta1.DrillPending {
						m.other = "e"
					}
					m.phase(phase)
					m.clusters[0] = m.clusters[0].DeepCopy()
					do(m.clusters[0])
					m.other = ""
					left := m.clusters[0].DeepCopy()
					if name == "taint" && phase != v1beta1.DrillVerifying { // the drill set the weight
						left.Spec.DNSWeight = new(int32(70))
					}
					m.phase(v1beta1.DrillFinished)
					is := m.clusters[0]
					if !reflect.DeepEqual(is.Spec, left.Spec) || name == "drain" && is.Annotations[v1beta1.DrainAnnotation] != left.Annotations[v1beta1.DrainAnnotation] {
						t.Errorf("left with %+v %v, want %+v %v; %s: %s", is.Spec, is.Annotations, left.Spec, left.Annotations, m.drill.Status.Reason, m.drill.Status.Message)
					}
					if s := m.drill.Status; s.Reason == v1beta1.DrillLeftBehind {
						t.Errorf("what a person did counts as left behind: %s", s.Message)
					}
					if mark := markOf(is); mark != nil && mark.Drill != "" {
						t.Errorf("the drill's note is left: %v", is.Annotations)
					}
				})
			}
		}
	}
}

// Acceptance test 24 of drills: a StatefulSet that would be failed over blocks an isolation, but no evacuation, which
// ends its pods first. One that stays, by its policy, does not block, nor does one that the drill allows to run twice.
func TestDoubleRunning(t *testing.T) {
	for _, c := range []struct {
		method v1beta1.DrillMethod
		stays  bool
		allow  []string
		want   string
	}{
		{v1beta1.DrillIsolation, false, nil, v1beta1.DrillDoubleRunning},
		{v1beta1.DrillIsolation, true, nil, ""},
		{v1beta1.DrillIsolation, false, []string{v1beta1.DrillDoubleRunning}, ""},
		{v1beta1.DrillEvacuate, false, nil, ""},
	} {
		m := newMade(t, c.method)
		m.drill.Spec.Allow = c.allow
		w := m.world()
		w.Review.Moves[0].Kind = "StatefulSet"
		if c.stays {
			w.Review.Moves = nil
		}
		if got, message := Preflight(m.drill, w); got != c.want {
			t.Errorf("%+v: %s %s", c, got, message)
		}
	}
}

// What a drill follows fits into its status, however much moves and however many addresses a name has.
func TestPredictionsAreBounded(t *testing.T) {
	var moves []v1beta1.ReplicaMove
	for range 1000 {
		moves = append(moves, v1beta1.ReplicaMove{Clusters: make([]v1beta1.ReplicaChange, 20)})
	}
	if n := len(someOf(moves)); n != maxChanges/20 {
		t.Errorf("%d moves of 20 clusters each are compared", n)
	}
	if n := len(someOf(moves[:3])); n != 3 {
		t.Errorf("of 3 moves %d are compared", n)
	}
}
