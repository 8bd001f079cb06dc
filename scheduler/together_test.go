package scheduler

import (
	"fmt"
	"maps"
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

// application is a policy and the objects that it governs, over time.
type application struct {
	t        *testing.T
	policy   *v1beta1.PlacementPolicy
	clusters map[string]*v1beta1.Cluster
	objects  []Object
	last     []Decision
}

func newApplication(t *testing.T, spec v1beta1.PlacementPolicySpec, clusters ...string) *application {
	spec.WorkloadAffinity = v1beta1.WorkloadAffinityRequired
	spec.ResourceSelectors = []v1beta1.ResourceSelector{{APIVersion: "apps/v1", Kind: "ReplicaSet"}, {APIVersion: "v1", Kind: "ConfigMap"}, {APIVersion: "batch/v1", Kind: "Job"}}
	a := &application{t: t, clusters: map[string]*v1beta1.Cluster{},
		policy: &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}, Spec: spec}}
	for _, name := range clusters {
		a.join(name)
	}
	for i, replicas := range []int64{1, 3, 20} {
		o := replicaSet(replicas, nil)
		o.Name = fmt.Sprint("web-", i)
		a.objects = append(a.objects, o)
	}
	a.objects = append(a.objects, Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "settings"})
	return a
}

func (a *application) join(name string) {
	a.clusters[name] = cluster(name, 0)
	region, zone, _ := strings.Cut(name, "-")
	a.clusters[name].Status.Region, a.clusters[name].Status.Zones = region, []string{zone}
}

func (a *application) phase(name string, phase v1beta1.FailoverPhase, percent int32) {
	lost := metav1.NewTime(now.Add(-time.Hour))
	a.clusters[name].Status.Failover = &v1beta1.ClusterFailover{Phase: phase, Percent: percent, LostAt: &lost}
}

// decide decides all, keeps that as their placements and, as the controller does, in the policy's status; it returns the clusters of
// the policy. Decided again, nothing changes.
func (a *application) decide() string {
	a.t.Helper()
	for again := range 2 {
		w := NewWorld(slices.Collect(maps.Values(a.clusters)), []*v1beta1.PlacementPolicy{a.policy})
		decisions := DecideAll(a.objects, w, now)
		for i, d := range decisions {
			if again > 0 && d.Changed {
				a.t.Errorf("%s changes when it is decided again: %s", a.objects[i].Name, d.Moved)
			}
			placement := d.Placement
			a.objects[i].Current = &placement
		}
		if again == 0 {
			a.last = decisions
		}
		clusters, home, _, ok := w.Together(a.policy, now)
		if !ok {
			a.t.Fatal("the policy does not keep anything together")
		}
		next := a.policy.DeepCopy()
		if next.Status.Home = home; len(clusters) > 0 {
			next.Status.Clusters = clusters
		}
		a.policy = next
	}
	return strings.Join(a.policy.Status.Clusters, " ")
}

// isTogether fails the test unless all is in the policy's clusters, whole, and the small ones in some of these.
func (a *application) isTogether() {
	a.t.Helper()
	for i, d := range a.last {
		names := sortedNames(d.Placement.Clusters)
		for _, name := range names {
			if !slices.Contains(a.policy.Status.Clusters, name) {
				a.t.Errorf("%s is in %s, not only in %v", a.objects[i].Name, name, a.policy.Status.Clusters)
			}
		}
		want := len(a.policy.Status.Clusters)
		if a.objects[i].Divided {
			want = min(want, int(a.objects[i].Replicas))
		}
		if len(names) != want || a.objects[i].Divided && sum(d.Placement.Clusters) != a.objects[i].Replicas {
			a.t.Errorf("%s is in %v of %v", a.objects[i].Name, d.Placement.Clusters, a.policy.Status.Clusters)
		}
	}
}

func groups(by v1beta1.SpreadBy, least, most int32) v1beta1.SpreadConstraint {
	c := v1beta1.SpreadConstraint{SpreadBy: by, MinGroups: least}
	if most > 0 {
		c.MaxGroups = &most
	}
	return c
}

var six = []string{"east-a", "east-b", "north-a", "south-a", "west-a", "west-b"}

// A policy without bounds keeps all in one cluster, leaves it as one when it is lost, and comes back as one when it serves in full.
func TestMovedAndFailedOverAsOne(t *testing.T) {
	a := newApplication(t, v1beta1.PlacementPolicySpec{}, six...)
	home := a.decide()
	a.isTogether()
	if len(a.policy.Status.Clusters) != 1 {
		t.Fatalf("in %v", a.policy.Status.Clusters)
	}

	a.phase(home, v1beta1.PhaseGracePeriod, 0)
	if is := a.decide(); is != home {
		t.Fatalf("moves from %s to %s in the grace period", home, is)
	}
	a.phase(home, v1beta1.PhaseFailedOver, 0)
	away := a.decide()
	a.isTogether()
	if away == home || strings.Join(a.policy.Status.Home, " ") != home {
		t.Fatalf("in %s, home %v, after %s was lost", away, a.policy.Status.Home, home)
	}
	for i, d := range a.last {
		if want := "cluster " + home + ": failed over"; d.Cause != want {
			t.Errorf("%s: cause %q, want %q", a.objects[i].Name, d.Cause, want)
		}
	}
	a.phase(home, v1beta1.PhaseFailingBack, 50)
	if is := a.decide(); is != away {
		t.Fatalf("part of it is back: in %s", is)
	}
	a.join("zulu-a") // a new cluster attracts nothing
	if is := a.decide(); is != away {
		t.Fatalf("a new cluster has it: in %s", is)
	}
	a.phase(home, v1beta1.PhaseServing, 100)
	if is := a.decide(); is != home || len(a.policy.Status.Home) > 0 {
		t.Fatalf("back in %s, home %v, want %s", is, a.policy.Status.Home, home)
	}
	a.isTogether()
}

func TestWhereAnApplicationIs(t *testing.T) {
	drained := func(c *v1beta1.Cluster) {
		c.Spec.Taints = []corev1.Taint{{Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute}}
	}
	cordoned := func(c *v1beta1.Cluster) {
		c.Spec.Taints = []corev1.Taint{{Key: "unschedulable", Effect: corev1.TaintEffectNoSchedule}}
	}
	for name, c := range map[string]struct {
		spec  v1beta1.PlacementPolicySpec
		first func(a *application) // before it is placed
		then  func(a *application) // when it has been
		want  func(was, is []string, a *application) bool
	}{
		"never back": {spec: v1beta1.PlacementPolicySpec{Failover: &v1beta1.FailoverPolicy{Failback: v1beta1.FailbackNever}}, then: func(a *application) {
			home := a.policy.Status.Clusters[0]
			a.phase(home, v1beta1.PhaseFailedOver, 0)
			a.decide()
			a.phase(home, v1beta1.PhaseServing, 100)
		}, want: func(was, is []string, _ *application) bool { return is[0] != was[0] }},
		"at once": {spec: v1beta1.PlacementPolicySpec{Failover: &v1beta1.FailoverPolicy{Failback: v1beta1.FailbackImmediate}}, then: func(a *application) {
			home := a.policy.Status.Clusters[0]
			a.phase(home, v1beta1.PhaseFailedOver, 0)
			a.decide()
			a.phase(home, v1beta1.PhaseFailingBack, 10)
		}, want: func(was, is []string, _ *application) bool { return slices.Equal(was, is) }},
		"failover disabled": {spec: v1beta1.PlacementPolicySpec{Failover: &v1beta1.FailoverPolicy{Disabled: true}}, then: func(a *application) {
			a.phase(a.policy.Status.Clusters[0], v1beta1.PhaseFailedOver, 0)
		}, want: func(was, is []string, _ *application) bool { return slices.Equal(was, is) }},
		"drained and undrained": {then: func(a *application) {
			home := a.clusters[a.policy.Status.Clusters[0]]
			drained(home)
			if is := a.decide(); is == home.Name {
				a.t.Errorf("it stays in %s, which is drained", is)
			}
			a.isTogether()
			home.Spec.Taints = nil
		}, want: func(was, is []string, _ *application) bool { return slices.Equal(was, is) }},
		"cordoned with it": {then: func(a *application) { cordoned(a.clusters[a.policy.Status.Clusters[0]]) },
			want: func(was, is []string, _ *application) bool { return slices.Equal(was, is) }},
		"cordoned before it": {first: func(a *application) {
			for _, name := range six[1:] {
				cordoned(a.clusters[name])
			}
		}, then: func(a *application) {
			for _, name := range six[1:] {
				a.clusters[name].Spec.Taints = nil
			}
		}, want: func(was, is []string, _ *application) bool { return is[0] == six[0] && slices.Equal(was, is) }},
		"all are lost": {then: func(a *application) {
			for _, name := range six {
				a.phase(name, v1beta1.PhaseFailedOver, 0)
			}
		}, want: func(was, is []string, _ *application) bool { return slices.Equal(was, is) }},
		"two clusters, one of which is lost": {spec: v1beta1.PlacementPolicySpec{SpreadConstraints: []v1beta1.SpreadConstraint{groups(v1beta1.SpreadByCluster, 0, 2)}}, then: func(a *application) {
			a.phase(a.policy.Status.Clusters[0], v1beta1.PhaseFailedOver, 0)
		}, want: func(was, is []string, _ *application) bool {
			return len(was) == 2 && len(is) == 2 && slices.Contains(is, was[1]) && !slices.Contains(is, was[0])
		}},
		"two regions": {spec: v1beta1.PlacementPolicySpec{SpreadConstraints: []v1beta1.SpreadConstraint{groups(v1beta1.SpreadByRegion, 2, 0)}}, want: func(_, is []string, _ *application) bool {
			return len(is) == 2 && is[0][:4] != is[1][:4]
		}},
		"one region of two zones, which is lost": {spec: v1beta1.PlacementPolicySpec{SpreadConstraints: []v1beta1.SpreadConstraint{groups(v1beta1.SpreadByRegion, 0, 1), groups(v1beta1.SpreadByZone, 2, 0)}},
			first: func(a *application) { delete(a.clusters, "north-a"); delete(a.clusters, "south-a") },
			then: func(a *application) {
				for _, name := range a.policy.Status.Clusters {
					a.phase(name, v1beta1.PhaseFailedOver, 0)
				}
			}, want: func(was, is []string, _ *application) bool {
				return len(was) == 2 && len(is) == 2 && was[0][:4] == was[1][:4] && is[0][:4] == is[1][:4] && is[0][:4] != was[0][:4]
			}},
		"where its minimum is": {spec: v1beta1.PlacementPolicySpec{ReplicaPreferences: &v1beta1.ReplicaPreferences{Clusters: map[string]v1beta1.ClusterPreferences{
			"west-a": {MinReplicas: 1, Weight: 1}, "*": {Weight: 1}}}}, want: func(_, is []string, _ *application) bool { return slices.Equal(is, []string{"west-a"}) }},
		"not where its weight is none": {spec: v1beta1.PlacementPolicySpec{ReplicaPreferences: &v1beta1.ReplicaPreferences{Clusters: map[string]v1beta1.ClusterPreferences{
			"west-b": {Weight: 1}}}}, want: func(_, is []string, _ *application) bool { return slices.Equal(is, []string{"west-b"}) }},
		"the policy selects others": {then: func(a *application) {
			a.policy.Spec.Clusters = &v1beta1.ClusterAffinity{Names: slices.DeleteFunc(slices.Clone(six), func(name string) bool { return name == a.policy.Status.Clusters[0] })}
		}, want: func(was, is []string, a *application) bool {
			return len(is) == 1 && is[0] != was[0] && len(a.policy.Status.Home) == 0
		}},
		"its cluster leaves": {then: func(a *application) { delete(a.clusters, a.policy.Status.Clusters[0]) },
			want: func(was, is []string, _ *application) bool { return len(is) == 1 && is[0] != was[0] }},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApplication(t, c.spec, six...)
			if c.first != nil {
				c.first(a)
			}
			a.decide()
			a.isTogether()
			was := a.policy.Status.Clusters
			if c.then != nil {
				c.then(a)
				a.decide()
			}
			if is := a.policy.Status.Clusters; !c.want(was, is, a) {
				t.Errorf("in %v, then in %v, home %v", was, is, a.policy.Status.Home)
			}
			if name != "all are lost" && name != "failover disabled" {
				a.isTogether()
			}
		})
	}
}

// Whichever clusters are first in a namespace, they are in as many regions as are asked for.
func TestAnApplicationMeetsItsSpreadConstraints(t *testing.T) {
	for i := range 30 {
		a := newApplication(t, v1beta1.PlacementPolicySpec{SpreadConstraints: []v1beta1.SpreadConstraint{groups(v1beta1.SpreadByRegion, 2, 0), groups(v1beta1.SpreadByCluster, 0, 3)}}, "east-a", "east-b", "east-c", "west-a")
		a.policy.Namespace = fmt.Sprint("team-", i)
		for i := range a.objects {
			a.objects[i].Namespace = a.policy.Namespace
		}
		a.decide()
		a.isTogether()
		if is := a.policy.Status.Clusters; len(is) != 3 || !slices.Contains(is, "west-a") {
			t.Errorf("%s: in %v, which is one region", a.policy.Namespace, is)
		}
	}
}

// What cannot be where the others are says why; it does not take them along.
func TestWhatCannotBeTogetherSaysWhy(t *testing.T) {
	a := newApplication(t, v1beta1.PlacementPolicySpec{}, six...)
	home := a.decide()
	odd := replicaSet(2, nil)
	odd.Name = "odd"
	odd.Selector = labels.SelectorFromSet(labels.Set{"name": "nowhere"})
	stays := replicaSet(2, map[string]int64{home: 2})
	stays.Name, stays.Volumes, stays.Current.Inputs = "stays", true, a.objects[0].Current.Inputs
	a.objects = append(a.objects, odd, stays)
	a.phase(home, v1beta1.PhaseFailedOver, 0)
	away := a.decide()
	notes := func(i int) string { return strings.Join(a.last[len(a.last)-i].Notes, "; ") }
	if want := "policy shop keeps all that it governs together in " + away + ", and this one has no other place"; !strings.Contains(notes(2), want) {
		t.Errorf("%q, want %q", notes(2), want)
	}
	if want := "2 replicas in cluster " + home + " cannot be together with the others of policy shop: the volumes are there"; !strings.Contains(notes(1), want) ||
		a.last[len(a.last)-1].Placement.Clusters[home] != 2 {
		t.Errorf("%q with %v, want %q", notes(1), a.last[len(a.last)-1].Placement.Clusters, want)
	}

	full := newApplication(t, v1beta1.PlacementPolicySpec{}, six...)
	for _, c := range full.clusters {
		c.Status.Capacity = &v1beta1.ClusterCapacity{Free: []v1beta1.NodeClass{{Nodes: 1, Free: corev1.ResourceList{"pods": resource.MustParse("10")}}}}
	}
	all := DecideAll(full.objects, NewWorld(slices.Collect(maps.Values(full.clusters)), []*v1beta1.PlacementPolicy{full.policy}), now)
	if d := all[2]; d.Placement.Unschedulable != 14 || !strings.Contains(strings.Join(d.Notes, "; "), "and this one has no other place") {
		t.Errorf("20 replicas beside 4, room for 10: %d unschedulable, %q", d.Placement.Unschedulable, d.Notes)
	}

	two := newApplication(t, v1beta1.PlacementPolicySpec{SpreadConstraints: []v1beta1.SpreadConstraint{groups(v1beta1.SpreadByCluster, 0, 2)}}, six...)
	two.decide()
	if got := strings.Join(two.last[0].Notes, "; "); !strings.Contains(got, "and this one has fewer replicas than these are") {
		t.Errorf("1 replica in two clusters: %q", got)
	}
}

// explain says of each cluster why it has the object, or not.
func TestReasonsOfTogether(t *testing.T) {
	a := newApplication(t, v1beta1.PlacementPolicySpec{}, six...)
	home := a.decide()
	for _, name := range six {
		if want := "policy shop keeps all that it governs together in " + home; !slices.Contains(a.last[1].Reasons[name], want) {
			t.Errorf("%s: %q, want %q", name, a.last[1].Reasons[name], want)
		}
	}
}

// By default small objects of a namespace are together, and where its applications are; a policy can ask for the contrary.
func TestSmallObjectsOfANamespace(t *testing.T) {
	a := newApplication(t, v1beta1.PlacementPolicySpec{}, six...)
	home := a.decide()
	for affinity, want := range map[v1beta1.WorkloadAffinity]int{"": 1, v1beta1.WorkloadAffinityPreferred: 1, v1beta1.WorkloadAffinityNone: 6} {
		p := governed(v1beta1.PlacementPolicySpec{WorkloadAffinity: affinity})
		w := NewWorld(slices.Collect(maps.Values(a.clusters)), []*v1beta1.PlacementPolicy{p})
		in := map[string]int64{}
		for i := range 100 {
			o := replicaSet(1, nil)
			o.Name = fmt.Sprint("web-", i)
			d := Decide(o, w, now)
			if d.Policy != p.Name {
				t.Fatalf("governed by %q", d.Policy)
			}
			for name, n := range d.Placement.Clusters {
				in[name] += n
			}
		}
		if len(in) != want || want == 1 && in[home] != 100 {
			t.Errorf("%q: 100 single replicas in %v, want %d clusters, %s among them", affinity, in, want, home)
		}
	}
}
