package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// story is one object while clusters come and go.
type story struct {
	t        *testing.T
	clusters map[string]*v1beta1.Cluster
	policy   *v1beta1.PlacementPolicy
	o        Object
	now      time.Time
}

func newStory(t *testing.T, o Object, clusters ...string) *story {
	s := &story{t: t, clusters: map[string]*v1beta1.Cluster{}, o: o, now: now}
	for _, name := range clusters {
		s.clusters[name] = cluster(name, 0)
	}
	return s
}

func (s *story) phase(name string, phase v1beta1.FailoverPhase, percent int32) {
	ready := corev1.ConditionTrue
	if phase == v1beta1.PhaseFailedOver || phase == v1beta1.PhaseGracePeriod || phase == v1beta1.PhaseFailoverSuspended {
		ready = corev1.ConditionFalse
	}
	c := s.clusters[name]
	c.Status.Conditions[0].Status = ready
	c.Status.Failover = &v1beta1.ClusterFailover{Phase: phase, Percent: percent, LostAt: &metav1.Time{Time: now}}
}

// expect decides and applies, and checks the numbers and the cause.
func (s *story) expect(want map[string]int64, cause string) Decision {
	s.t.Helper()
	d := s.decide()
	if !maps.Equal(d.Placement.Clusters, want) || d.Cause != cause {
		s.t.Errorf("got %v for %q, want %v for %q", d.Placement.Clusters, d.Cause, want, cause)
	}
	return d
}

// decide decides a minute later, and applies.
func (s *story) decide() Decision {
	var policies []*v1beta1.PlacementPolicy
	if s.policy != nil {
		policies = append(policies, s.policy)
	}
	s.now = s.now.Add(time.Minute)
	d := Decide(s.o, NewWorld(slices.Collect(maps.Values(s.clusters)), policies), s.now)
	s.o.Current = &d.Placement
	return d
}

type numbers = map[string]int64

// TestTheReasonsSayOnlyThatItWasPlaced checks the reasons for a returning cluster, in which nothing of the earlier
// placement runs yet.
func TestTheReasonsSayOnlyThatItWasPlaced(t *testing.T) {
	s := newStory(t, replicaSet(20, nil), "a", "b")
	s.decide()
	s.phase("a", v1beta1.PhaseFailedOver, 0)
	s.expect(numbers{"b": 20}, "cluster a: failed over")
	s.phase("a", v1beta1.PhaseFailingBack, 50)
	d := s.decide()
	if got, want := d.Reasons["a"], "10 placed there before, rebalance is off"; !slices.Contains(got, want) {
		t.Errorf("%q lacks %q", got, want)
	}
}

func TestFailbackByStages(t *testing.T) {
	for _, rebalance := range []bool{false, true} {
		t.Run(fmt.Sprintf("rebalance %t", rebalance), func(t *testing.T) {
			o := replicaSet(30, nil)
			o.Preferences = &v1beta1.ReplicaPreferences{Rebalance: rebalance, Clusters: map[string]v1beta1.ClusterPreferences{"*": {Weight: 1}}}
			s := newStory(t, o, "a", "b", "c")
			s.expect(numbers{"a": 10, "b": 10, "c": 10}, "created")
			s.phase("a", v1beta1.PhaseGracePeriod, 0)
			s.expect(numbers{"a": 10, "b": 10, "c": 10}, "")
			s.phase("a", v1beta1.PhaseFailedOver, 0)
			if d := s.expect(numbers{"b": 15, "c": 15}, "cluster a: failed over"); d.Placement.Home["a"] != 10 {
				t.Errorf("home is %v", d.Placement.Home)
			}
			s.phase("a", v1beta1.PhaseFailingBack, 0)
			s.expect(numbers{"b": 15, "c": 15}, "")
			s.phase("a", v1beta1.PhaseFailingBack, 10)
			some := Decide(s.o, NewWorld(slices.Collect(maps.Values(s.clusters)), nil), s.now).Placement.Clusters
			if some["a"] != 1 || some["b"]+some["c"] != 29 {
				t.Errorf("at 10 %%: %v", some)
			}
			s.o.Current.Clusters = some
			s.phase("a", v1beta1.PhaseFailingBack, 50)
			half := Decide(s.o, NewWorld(slices.Collect(maps.Values(s.clusters)), nil), s.now).Placement.Clusters
			if half["a"] != 5 || half["b"] > some["b"] || half["c"] > some["c"] {
				t.Errorf("at 50 %%: %v after %v", half, some)
			}
			s.o.Current.Clusters = half
			s.phase("a", v1beta1.PhaseServing, 0)
			if d := s.expect(numbers{"a": 10, "b": 10, "c": 10}, "cluster a failed back"); d.Placement.Home != nil {
				t.Errorf("home is still %v", d.Placement.Home)
			}
			s.expect(numbers{"a": 10, "b": 10, "c": 10}, "")
		})
	}
}

// TestWhatHasVolumesStaysWhileAnotherClusterReturns checks that a failback takes nothing from a lost cluster with
// volumes: its pods cannot be stopped, and the volumes cannot be moved.
func TestWhatHasVolumesStaysWhileAnotherClusterReturns(t *testing.T) {
	o := replicaSet(12, nil)
	o.Volumes = true
	s := newStory(t, o, "a", "b", "c")
	s.expect(numbers{"a": 4, "b": 4, "c": 4}, "created")
	s.clusters["c"].Spec.Taints = []corev1.Taint{{Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute}}
	s.decide()
	for _, replicas := range []int64{1, 34} {
		s.o.Replicas = replicas
		s.decide()
	}
	s.expect(numbers{"a": 17, "b": 17}, "")
	s.phase("b", v1beta1.PhaseFailedOver, 0)
	s.clusters["c"].Spec.Taints = nil
	s.expect(numbers{"a": 8, "b": 17, "c": 9}, "cluster c failed back")
}

func TestASecondLossAndAScaleOnTheWayBack(t *testing.T) {
	s := newStory(t, replicaSet(30, nil), "a", "b", "c")
	s.expect(numbers{"a": 10, "b": 10, "c": 10}, "created")
	s.phase("a", v1beta1.PhaseFailedOver, 0)
	s.expect(numbers{"b": 15, "c": 15}, "cluster a: failed over")
	s.phase("b", v1beta1.PhaseFailedOver, 0)
	s.expect(numbers{"c": 30}, "cluster b: failed over")
	s.phase("a", v1beta1.PhaseServing, 0)
	s.expect(numbers{"a": 15, "c": 15}, "cluster a failed back")
	s.o.Replicas = 36
	s.expect(numbers{"a": 18, "c": 18}, "spec.replicas 30→36")
	s.phase("b", v1beta1.PhaseServing, 0)
	s.expect(numbers{"a": 12, "b": 12, "c": 12}, "cluster b failed back")
}

func TestASmallPartOfManySmallObjectsReturns(t *testing.T) {
	back := 0
	for i := range 1000 {
		o := replicaSet(1, numbers{"b": 1})
		o.Name, o.Current.Home = fmt.Sprint("web-", i), numbers{"a": 1}
		s := newStory(t, o, "a", "b")
		s.phase("a", v1beta1.PhaseFailingBack, 10)
		if Decide(o, NewWorld(slices.Collect(maps.Values(s.clusters)), nil), now).Placement.Clusters["a"] == 1 {
			back++
		}
	}
	if back < 60 || back > 140 {
		t.Errorf("%d of 1000 single replicas return at 10 %%", back)
	}
}

func governed(spec v1beta1.PlacementPolicySpec) *v1beta1.PlacementPolicy {
	spec.ResourceSelectors = []v1beta1.ResourceSelector{{APIVersion: "apps/v1", Kind: "ReplicaSet"}}
	return &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: spec}
}

func TestFailoverPolicies(t *testing.T) {
	minutes := int32(600)
	even, moved := numbers{"a": 2, "b": 2}, numbers{"b": 4}
	for _, c := range []struct {
		name             string
		policy           v1beta1.FailoverPolicy
		out, back, after numbers
	}{
		{"staged", v1beta1.FailoverPolicy{}, moved, numbers{"a": 1, "b": 3}, even},
		{"at once", v1beta1.FailoverPolicy{Failback: v1beta1.FailbackImmediate}, moved, even, even},
		{"never", v1beta1.FailoverPolicy{Failback: v1beta1.FailbackNever}, moved, moved, moved},
		{"disabled", v1beta1.FailoverPolicy{Disabled: true}, even, even, even},
		{"a longer grace period", v1beta1.FailoverPolicy{GracePeriodSeconds: &minutes}, even, even, even},
	} {
		for _, rebalance := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, rebalance %t", c.name, rebalance), func(t *testing.T) {
				s := newStory(t, replicaSet(4, nil), "a", "b")
				prefs := &v1beta1.ReplicaPreferences{Rebalance: rebalance, Clusters: map[string]v1beta1.ClusterPreferences{"*": {Weight: 1}}}
				s.policy = governed(v1beta1.PlacementPolicySpec{Failover: &c.policy, ReplicaPreferences: prefs})
				for _, step := range []struct {
					phase   v1beta1.FailoverPhase
					percent int32
					want    numbers
				}{{v1beta1.PhaseServing, 0, even}, {v1beta1.PhaseFailedOver, 0, c.out}, {v1beta1.PhaseFailingBack, 50, c.back}, {v1beta1.PhaseServing, 0, c.after}} {
					s.phase("a", step.phase, step.percent)
					d := Decide(s.o, NewWorld(slices.Collect(maps.Values(s.clusters)), []*v1beta1.PlacementPolicy{s.policy}), s.now)
					if !maps.Equal(d.Placement.Clusters, step.want) {
						t.Errorf("%s %d %%: %v, want %v", step.phase, step.percent, d.Placement.Clusters, step.want)
					}
					s.o.Current = &d.Placement
				}
			})
		}
	}
}

func TestADrainIsUndone(t *testing.T) {
	s := newStory(t, replicaSet(6, nil), "a", "b", "c")
	s.expect(numbers{"a": 2, "b": 2, "c": 2}, "created")
	s.clusters["b"].Spec.Taints = []corev1.Taint{{Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute}}
	s.expect(numbers{"a": 3, "c": 3}, "cluster b: taint federation.kubernetes.io/drain:NoExecute")
	s.clusters["b"].Spec.Taints[0].Effect = corev1.TaintEffectNoSchedule
	s.expect(numbers{"a": 3, "c": 3}, "")
	s.clusters["b"].Spec.Taints = nil
	s.expect(numbers{"a": 2, "b": 2, "c": 2}, "cluster b failed back")
}
