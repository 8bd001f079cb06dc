package scheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"federation/apiserver/apis/federation/v1beta1"
)

// weighing returns a policy that gives clusters these weights.
func weighing(weights map[string]int64) *v1beta1.PlacementPolicy {
	prefs := &v1beta1.ReplicaPreferences{Rebalance: true, Clusters: map[string]v1beta1.ClusterPreferences{}}
	for name, weight := range weights {
		prefs.Clusters[name] = v1beta1.ClusterPreferences{Weight: weight}
	}
	return governed(v1beta1.PlacementPolicySpec{ReplicaPreferences: prefs})
}

// prefers gives the object an annotation.
func (s *story) prefers(text string) {
	s.o.preferencesText = text
	s.o.Preferences, _ = v1beta1.ParseReplicaPreferences(text, nil)
}

// The cause of a decision is what changed in the object or its policy or, only if nothing did, in the clusters.
func TestDecide_Causes(t *testing.T) {
	for name, c := range map[string]struct {
		first, then func(s *story)
		want        string
	}{
		"the number":  {nil, func(s *story) { s.o.Replicas = 12 }, "spec.replicas 6→12"},
		"preferences": {nil, func(s *story) { s.prefers(`{"rebalance":true,"clusters":{"a":{"weight":1}}}`) }, "preferences changed"},
		"a selector": {nil, func(s *story) {
			s.o.selectorText, s.o.Selector = "[a]", labels.SelectorFromSet(labels.Set{"name": "a"})
		}, "cluster selector changed"},
		"a policy comes": {nil, func(s *story) { s.policy = weighing(numbers{"a": 1}) }, "policy p governs it"},
		"a policy goes": {func(s *story) { s.policy = weighing(numbers{"a": 1}) }, func(s *story) {
			s.policy = nil
			s.prefers(`{"rebalance":true,"clusters":{"b":{"weight":1}}}`)
		},
			"preferences changed, policy p no longer governs it"},
		"the policy changes": {func(s *story) { s.policy = weighing(numbers{"a": 1}) }, func(s *story) { s.policy = weighing(numbers{"b": 1}) },
			"policy p changed"},
		"it asks to be apart": {func(s *story) { s.policy = weighing(numbers{"*": 1}); s.o.Replicas = 1 }, func(s *story) {
			s.policy = weighing(numbers{"*": 1})
			s.policy.Spec.WorkloadAffinity, s.o.Replicas = v1beta1.WorkloadAffinityNone, 4
		}, "spec.replicas 1→4, policy p changed"},
		"the number and its cluster": {nil, func(s *story) { s.o.Replicas = 9; s.phase("a", v1beta1.PhaseFailedOver, 0) }, "spec.replicas 6→9"},
		"a cluster goes":             {nil, func(s *story) { delete(s.clusters, "a") }, "cluster a is not selected, or has left the federation"},
		"a cluster is drained":       {nil, func(s *story) { s.clusters["a"].Spec.Taints = tainted("NoExecute") }, "cluster a: taint k:NoExecute"},
		"two clusters are lost": {nil, func(s *story) {
			s.phase("a", v1beta1.PhaseFailedOver, 0)
			s.phase("b", v1beta1.PhaseFailedOver, 0)
		}, "cluster a: failed over, cluster b: failed over"},
		"a cluster returns in part": {func(s *story) { s.decide(); s.phase("a", v1beta1.PhaseFailedOver, 0) }, func(s *story) {
			s.phase("a",
				v1beta1.PhaseFailingBack, 50)
		}, "cluster a failing back, 50 %"},
		"a cluster returns at once": {func(s *story) {
			s.policy = governed(v1beta1.PlacementPolicySpec{Failover: &v1beta1.FailoverPolicy{Failback: v1beta1.FailbackImmediate}})
			s.decide()
			s.phase("a", v1beta1.PhaseFailedOver, 0)
		}, func(s *story) { s.phase("a", v1beta1.PhaseFailingBack, 10) }, "cluster a failed back"},
		"a cluster has no room": {nil, func(s *story) { s.o.Made = numbers{"a": 1} }, "cluster a has no room"},
		"there is more room": {func(s *story) {
			s.o.Replicas = 400
			for _, c := range s.clusters {
				c.Status.Capacity = &v1beta1.ClusterCapacity{Free: []v1beta1.NodeClass{{Nodes: 1,
					Free: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100")}}}}
			}
		}, func(s *story) { s.clusters["b"].Status.Capacity.Free[0].Nodes = 4 }, "the capacity of clusters changed"},
	} {
		s := newStory(t, replicaSet(6, nil), "a", "b", "c")
		if c.first != nil {
			c.first(s)
		}
		s.decide()
		before := s.o.Current.Clusters
		c.then(s)
		if d := s.decide(); d.Cause != c.want || maps.Equal(d.Placement.Clusters, before) || d.Placement.History[0].Cause != d.Cause {
			t.Errorf("%s: from %v to %v because of %q, want %q", name, before, d.Placement.Clusters, d.Cause, c.want)
		}
	}
}

// A cause names three clusters, and says how many more there are. A decision lists as many changes as fit, in the order of the clusters; a history
// has the last decisions, newest first.
func TestDecide_CausesAndHistoryAreBounded(t *testing.T) {
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("c%02d", i))
	}
	s := newStory(t, replicaSet(60, nil), names...)
	s.decide()
	for _, name := range names[:14] {
		s.phase(name, v1beta1.PhaseFailedOver, 0)
	}
	d := s.decide()
	if want := "cluster c00: failed over, cluster c01: failed over, cluster c02: failed over, and 11 more"; d.Cause != want {
		t.Errorf("cause %q, want %q", d.Cause, want)
	}
	last := d.Placement.History[0]
	if len(last.Changes) != v1beta1.MaxChanges || last.OmittedChanges != 30-v1beta1.MaxChanges ||
		last.Changes[9] != (v1beta1.PlacementChange{Cluster: "c09", From: 2, To: 0}) {
		t.Errorf("%d changes and %d more: %+v", len(last.Changes), last.OmittedChanges, last.Changes)
	}
	for i := range int64(9) {
		s.o.Replicas = 61 + i
		s.decide()
	}
	var causes []string
	for _, h := range s.o.Current.History {
		causes = append(causes, h.Cause)
	}
	if want := []string{"spec.replicas 68→69", "spec.replicas 67→68", "spec.replicas 66→67", "spec.replicas 65→66",
		"spec.replicas 64→65"}; !slices.Equal(causes, want) {
		t.Errorf("history %q, want %q", causes, want)
	}
	for i, h := range s.o.Current.History {
		if want := now.Add(time.Duration(11-i) * time.Minute); !h.At.Time.Equal(want) {
			t.Errorf("decision %d at %s, want %s", i, h.At, want)
		}
	}
}

// A decision that changes no number is written, if it changes what else a placement has, without an entry of history; and one that changes nothing
// is not.
func TestDecide_WritesWithoutMoving(t *testing.T) {
	s := newStory(t, replicaSet(6, nil), "a", "b")
	first := s.decide()
	if again := s.decide(); again.Changed || again.Cause != "" || again.Moved != "" {
		t.Errorf("decided again: %+v", again)
	}
	s.policy = governed(v1beta1.PlacementPolicySpec{})
	d := s.decide()
	if !d.Changed || d.Moved != "" || d.Placement.Policy != "p" || len(d.Placement.History) != 1 || d.Value() != d.Placement.String() ||
		!maps.Equal(d.Placement.Clusters, first.Placement.Clusters) {
		t.Errorf("a policy comes: changed %t, moved %q: %s", d.Changed, d.Moved, d.Value())
	}
	place := v1beta1.Placement{Clusters: numbers{"a": 3}}
	for name, next := range map[string]v1beta1.Placement{
		"a 3→4": {Clusters: numbers{"a": 4}}, "a 3→0, b 0→3": {Clusters: numbers{"b": 3}}, "": {Clusters: numbers{"a": 3, "b": 0}, Policy: "q",
			Notes: []string{"n"}, Home: numbers{"b": 1}},
	} {
		if moved := changesBetween(&place, &next); moved.Summary() != name {
			t.Errorf("from %s to %s: %q, want %q", place.String(), next.String(), moved.Summary(), name)
		}
	}
	if all := changesBetween(nil, &v1beta1.Placement{Everywhere: true, Unschedulable: 2}); all.Everywhere == nil || !*all.Everywhere ||
		all.Unschedulable == nil || *all.Unschedulable != 2 {
		t.Errorf("to everywhere with 2 unschedulable: %+v", all)
	}
}

// A decision holds until LookAgain if nothing else changes: whenever it is made before, its numbers are the same. This tries clusters that are
// tainted, lost and full in all ways that depend on time.
func TestDecide_HoldsUntilLookAgain(t *testing.T) {
	random, looks := rand.New(rand.NewPCG(1, 1)), 0
	ago := func() metav1.Time { return metav1.NewTime(now.Add(-time.Duration(random.IntN(100)) * time.Second)) }
	for range 1500 {
		var clusters []*v1beta1.Cluster
		for i := range 1 + random.IntN(4) {
			c := cluster(fmt.Sprint("c", i), time.Duration(random.IntN(2)*random.IntN(100))*time.Second)
			switch random.IntN(4) {
			case 0:
				c.Spec.Taints = tainted("NoExecute")
				c.Spec.Taints[0].TimeAdded = new(ago())
			case 1:
				c.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailedOver, LostAt: new(ago())}
			case 2:
				c.Status.Capacity = &v1beta1.ClusterCapacity{Free: []v1beta1.NodeClass{{Nodes: 1,
					Free: corev1.ResourceList{"pods": *resource.NewQuantity(random.Int64N(9), resource.DecimalSI)}}}}
				if random.IntN(2) == 0 {
					c.Status.Capacity.Unschedulable = []v1beta1.UnschedulablePods{{Kind: "ReplicaSet", Namespace: "default", Name: "web",
						Pods: int32(random.IntN(5))}}
				}
			}
			clusters = append(clusters, c)
		}
		p := governed(v1beta1.PlacementPolicySpec{
			Failover:    &v1beta1.FailoverPolicy{GracePeriodSeconds: new(int32(random.IntN(120)))},
			Tolerations: []corev1.Toleration{{Key: "k", Operator: "Exists", TolerationSeconds: new(random.Int64N(120))}},
		})
		if random.IntN(3) == 0 {
			p.Spec.WorkloadAffinity, p.Status.Clusters = v1beta1.WorkloadAffinityRequired, []string{"c0"}
		}
		w := NewWorld(clusters, []*v1beta1.PlacementPolicy{p})
		w.Grace = time.Duration(random.IntN(120)) * time.Second
		o := replicaSet(random.Int64N(20), numbers{"c0": random.Int64N(9), "c1": random.Int64N(9)})
		o.Current.Overflow, o.Current.History = numbers{"c0": random.Int64N(3)}, []v1beta1.PlacementDecision{{At: ago()}}
		d := Decide(o, w, now)
		holds := d.LookAgain
		if holds > 0 {
			looks++
		}
		for at := time.Second; at < 200*time.Second && (holds == 0 || at < holds); at += 7 * time.Second {
			if then := Decide(o, w, now.Add(at)); !maps.Equal(then.Placement.Clusters, d.Placement.Clusters) {
				t.Fatalf("it holds for %s, and after %s it is %v, not %v: %v", holds, at, then.Placement.Clusters, d.Placement.Clusters, then.Reasons)
			}
		}
	}
	if looks < 300 {
		t.Errorf("only %d of these depend on time", looks)
	}
}

// The reasons of a cluster that nothing can be put into say why, whatever keeps it from it.
func TestDecide_ReasonsOfClusters(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *story)
		want   string // among those of a
	}{
		"suspended":    {func(s *story) { s.phase("a", v1beta1.PhaseFailoverSuspended, 0) }, "not ready, failover suspended"},
		"grace period": {func(s *story) { s.phase("a", v1beta1.PhaseGracePeriod, 0) }, "not ready, in its grace period"},
		"not ready":    {func(s *story) { s.clusters["a"].Status.Conditions[0].Status = corev1.ConditionFalse }, "not ready"},
		"never seen":   {func(s *story) { s.clusters["a"].Status.Conditions = nil }, "never seen ready"},
		"its own grace": {func(s *story) {
			s.phase("a", v1beta1.PhaseFailedOver, 0)
			s.policy.Spec.Failover.GracePeriodSeconds = new(int32(900))
		}, "failed over, in the policy's grace period"},
		"disabled": {func(s *story) { s.phase("a", v1beta1.PhaseFailedOver, 0); s.policy.Spec.Failover.Disabled = true },
			"failed over, but the policy disables failover"},
		"not made": {func(s *story) { s.o.Made = numbers{"a": 1} }, "2 pods cannot be created there"},
		"named":    {func(s *story) { s.policy.Spec.Clusters = &v1beta1.ClusterAffinity{Names: []string{"a", "b"}} }, "named by the policy p"},
		"selected": {func(s *story) {
			s.policy.Spec.Clusters = &v1beta1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "a"}}}
		}, "selected by the policy p"},
		"not selected": {func(s *story) { s.policy.Spec.Clusters = &v1beta1.ClusterAffinity{Names: []string{"b"}} }, "not selected by the policy p: "},
		"one of two": {func(s *story) {
			s.policy.Spec.SpreadConstraints = []v1beta1.SpreadConstraint{groups(v1beta1.SpreadByCluster, 0, 1)}
			s.o.Current.Clusters = numbers{"b": 6}
		}, "not among the 1 clusters that the spread constraint allows"},
	} {
		s := newStory(t, replicaSet(6, numbers{"a": 3, "b": 3}), "a", "b")
		s.policy = governed(v1beta1.PlacementPolicySpec{Failover: &v1beta1.FailoverPolicy{}})
		c.change(s)
		d := s.decide()
		if !slices.ContainsFunc(d.Reasons["a"], func(why string) bool {
			return why == c.want || strings.HasSuffix(c.want, ": ") && strings.HasPrefix(why, c.want)
		}) {
			t.Errorf("%s: %q, want %q among them", name, d.Reasons["a"], c.want)
		}
		w := NewWorld(slices.Collect(maps.Values(s.clusters)), []*v1beta1.PlacementPolicy{s.policy})
		if w.Terse = true; len(Decide(s.o, w, s.now).Reasons) > 0 {
			t.Errorf("%s: there are reasons though they are not asked for", name)
		}
	}
}
