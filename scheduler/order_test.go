package scheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

func tainted(effect string) []corev1.Taint {
	return []corev1.Taint{{Key: "k", Effect: corev1.TaintEffect(effect)}}
}

// Objects are placed by the priority of their policies, then those that lose replicas, then by name: whichever order they come in, and of any
// two the first is the one that this says.
func TestOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	lost, drained := cluster("lost", 0), cluster("drained", 0)
	lost.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailedOver}
	drained.Spec.Taints = tainted("NoExecute")
	var policies []*v1beta1.PlacementPolicy
	for i, priority := range []int32{0, 5, -3} {
		p := governed(v1beta1.PlacementPolicySpec{Priority: priority})
		p.Name = fmt.Sprint("p", i)
		p.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"policy": p.Name}}
		policies = append(policies, p)
	}
	w := NewWorld([]*v1beta1.Cluster{lost, drained, cluster("well", 0)}, policies)
	text := func(o *Object) string { // what comes first by this comes first
		priority := map[string]int{"p1": 0, "p0": 5, "": 5, "p2": 8}[o.Labels["policy"]]
		return fmt.Sprint(priority, o.At("lost")+o.At("drained") == 0, o.Namespace, o.Name, o.Kind)
	}
	for range 200 {
		var objects []Object
		for i := range 9 {
			o := replicaSet(1, numbers{[]string{"lost", "drained", "well", "gone"}[random.IntN(4)]: random.Int64N(2)})
			o.Namespace, o.Name, o.Kind = "default", fmt.Sprint("web-", random.IntN(3)), []string{"ReplicaSet", "Deployment"}[random.IntN(2)]
			if i%4 == 0 {
				o.Current = nil
			}
			if o.Kind == "ReplicaSet" {
				o.Labels = map[string]string{"policy": []string{"", "p0", "p1", "p2"}[random.IntN(4)]}
			}
			objects = append(objects, o)
		}
		var got []string
		for _, i := range Order(objects, w) {
			got = append(got, text(&objects[i]))
		}
		if !slices.IsSorted(got) || len(got) != len(objects) {
			t.Fatalf("placed in the order %q", got)
		}
	}
}

// Whatever a decision depends on of a cluster is in its usability; what it has of room and says of itself is not.
func TestUsability(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *v1beta1.Cluster)
		same   bool
	}{
		"nothing":    {func(*v1beta1.Cluster) {}, true},
		"its room":   {func(c *v1beta1.Cluster) { c.Status.Capacity = &v1beta1.ClusterCapacity{Nodes: 3} }, true},
		"since when": {func(c *v1beta1.Cluster) { c.Status.Conditions[0].Message = "other" }, true},
		"not ready":  {func(c *v1beta1.Cluster) { c.Status.Conditions[0].Status = corev1.ConditionFalse }, false},
		"never seen": {func(c *v1beta1.Cluster) { c.Status.Conditions = nil }, false},
		"a label":    {func(c *v1beta1.Cluster) { c.Labels["tier"] = "gold" }, false},
		"a taint":    {func(c *v1beta1.Cluster) { c.Spec.Taints = tainted("NoSchedule") }, false},
		"its phase":  {func(c *v1beta1.Cluster) { c.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailedOver} }, false},
		"its share":  {func(c *v1beta1.Cluster) { c.Status.Failover = &v1beta1.ClusterFailover{Percent: 10} }, false},
		"since when lost": {func(c *v1beta1.Cluster) {
			c.Status.Failover = &v1beta1.ClusterFailover{LostAt: &metav1.Time{Time: now}}
		}, false},
		"its zones":         {func(c *v1beta1.Cluster) { c.Status.Zones = []string{"a"} }, false},
		"its region":        {func(c *v1beta1.Cluster) { c.Status.Region = "east" }, false},
		"whom it is for":    {func(c *v1beta1.Cluster) { c.Spec.AllowedNamespaces = []string{"shop"} }, false},
		"never seen, false": {func(c *v1beta1.Cluster) { c.Status.Conditions[0].Type = "Other" }, false},
	} {
		then := cluster("a", 0)
		c.change(then)
		if got := Usability(then) == Usability(cluster("a", 0)); got != c.same {
			t.Errorf("%s changes: the same %t, want %t", name, got, c.same)
		}
	}
	unseen, lost := cluster("a", 0), cluster("a", 1)
	unseen.Status.Conditions = nil
	if Usability(unseen) == Usability(lost) {
		t.Error("a cluster that was never seen is as one that is not ready")
	}
}

// A policy is impossible if its namespace, its clusters, its preferences or its lower bounds leave no cluster, or too few. The message names the
// field.
func TestImpossible(t *testing.T) {
	region := func(name, region string) *v1beta1.Cluster {
		c := cluster(name, 0)
		c.Status.Region = region
		return c
	}
	clusters := []*v1beta1.Cluster{region("a", "east"), region("b", "east"), region("c", "west")}
	weights := func(of map[string]v1beta1.ClusterPreferences) *v1beta1.ReplicaPreferences {
		return &v1beta1.ReplicaPreferences{Clusters: of}
	}
	regions := func(n int32) []v1beta1.SpreadConstraint {
		return []v1beta1.SpreadConstraint{{SpreadBy: v1beta1.SpreadByRegion, MinGroups: n}}
	}
	none := weights(map[string]v1beta1.ClusterPreferences{"a": {}, "z": {Weight: 1}})
	least, weight := weights(map[string]v1beta1.ClusterPreferences{"a": {MinReplicas: 1}}), weights(map[string]v1beta1.ClusterPreferences{"*": {Weight: 1}})
	for name, c := range map[string]struct {
		spec         v1beta1.PlacementPolicySpec
		api, kind    string
		reason, says string
	}{
		"it is possible": {v1beta1.PlacementPolicySpec{}, "apps/v1", "ReplicaSet", "", ""},
		"none of its clusters is there": {v1beta1.PlacementPolicySpec{Clusters: &v1beta1.ClusterAffinity{Names: []string{"z"}}}, "apps/v1", "ReplicaSet",
			"NoClusterSelected", "spec.clusters: no cluster is selected"},
		"none gets replicas": {v1beta1.PlacementPolicySpec{ReplicaPreferences: none}, "apps/v1", "ReplicaSet", "NoClusterSelected",
			"spec.replicaPreferences.clusters: none"},
		"none gets any of a custom kind": {v1beta1.PlacementPolicySpec{ReplicaPreferences: none}, "example.org/v1", "Widget", "NoClusterSelected",
			"spec.replicaPreferences.clusters: none"},
		"what is undivided needs none":    {v1beta1.PlacementPolicySpec{ReplicaPreferences: none}, "v1", "ConfigMap", "", ""},
		"one has a minimum":               {v1beta1.PlacementPolicySpec{ReplicaPreferences: least}, "apps/v1", "ReplicaSet", "", ""},
		"one has a weight":                {v1beta1.PlacementPolicySpec{ReplicaPreferences: weight}, "apps/v1", "ReplicaSet", "", ""},
		"as many regions as are asked of": {v1beta1.PlacementPolicySpec{SpreadConstraints: regions(2)}, "apps/v1", "ReplicaSet", "", ""},
		"one region more": {v1beta1.PlacementPolicySpec{SpreadConstraints: regions(3)}, "apps/v1", "ReplicaSet", "SpreadConstraintsUnsatisfiable",
			"spec.spreadConstraints[0].minGroups: 3 regions are asked for, and the selected clusters are in 2"},
		"fewer regions": {v1beta1.PlacementPolicySpec{SpreadConstraints: regions(2), Clusters: &v1beta1.ClusterAffinity{Names: []string{"a", "b"}}},
			"apps/v1", "ReplicaSet", "SpreadConstraintsUnsatisfiable", "the selected clusters are in 1"},
	} {
		p := governed(c.spec)
		p.Spec.ResourceSelectors[0].APIVersion, p.Spec.ResourceSelectors[0].Kind = c.api, c.kind
		if reason, says := Impossible(p, clusters); reason != c.reason || !strings.HasPrefix(says, c.says) && !strings.HasSuffix(says, c.says) ||
			(says == "") != (reason == "") {
			t.Errorf("%s: %s %q, want %s %q", name, reason, says, c.reason, c.says)
		}
		if reason, says := Impossible(p, nil); reason != "" || says != "" {
			t.Errorf("%s, and no cluster has joined: %s %q", name, reason, says)
		}
	}
	if got := Preferences(schema.GroupKind{Kind: "ConfigMap"}); got != "" {
		t.Errorf("preferences of a ConfigMap are in %q", got)
	}
}

// An object of a custom kind is divided if its policy has preferences and it has spec.replicas; else it goes as it is to each
// cluster that its policy selects, whatever the preferences.
func TestDecide_CustomKinds(t *testing.T) {
	prefs := &v1beta1.ReplicaPreferences{Clusters: map[string]v1beta1.ClusterPreferences{"a": {Weight: 2}, "b": {Weight: 1}}}
	for name, c := range map[string]struct {
		head, spec string
		policy     v1beta1.PlacementPolicySpec
		governs    bool
		want       numbers
	}{
		"with replicas and preferences": {"apiVersion: example.org/v1, kind: Widget", "replicas: 9",
			v1beta1.PlacementPolicySpec{ReplicaPreferences: prefs}, true, numbers{"a": 6, "b": 3}},
		"without replicas": {"apiVersion: example.org/v1, kind: Widget", "size: 9", v1beta1.PlacementPolicySpec{ReplicaPreferences: prefs},
			true, numbers{"a": 1, "b": 1, "c": 1}},
		"without preferences": {"apiVersion: example.org/v1, kind: Widget", "replicas: 9", v1beta1.PlacementPolicySpec{}, true, numbers{"a": 1,
			"b": 1, "c": 1}},
		"without a policy": {"apiVersion: example.org/v1, kind: Widget", "replicas: 9",
			v1beta1.PlacementPolicySpec{ReplicaPreferences: prefs}, false, numbers{}},
		"a built-in kind, undivided": {"apiVersion: v1, kind: Service", "replicas: 9", v1beta1.PlacementPolicySpec{ReplicaPreferences: prefs}, true,
			numbers{"a": 1, "b": 1, "c": 1}},
	} {
		o := object(t, "{"+c.head+", metadata: {name: x, namespace: default}, spec: {"+c.spec+"}}")
		p := governed(c.policy)
		if p.Spec.ResourceSelectors[0] = (v1beta1.ResourceSelector{APIVersion: o.APIVersion, Kind: o.Kind}); !c.governs {
			p.Spec.ResourceSelectors[0].Kind = "Gadget"
		}
		w := NewWorld([]*v1beta1.Cluster{cluster("a", 0), cluster("b", 0), cluster("c", 0)}, []*v1beta1.PlacementPolicy{p})
		if d := Decide(o, w, now); !maps.Equal(d.Placement.Clusters, c.want) || d.None == c.governs {
			t.Errorf("%s: %v, want %v, none %t", name, d.Placement.Clusters, c.want, d.None)
		}
		if o.Divided {
			t.Errorf("%s: the object itself was changed", name)
		}
	}
}

// An object may be in the clusters that its annotation or policy selects, of those that are for its namespace.
func TestSelects(t *testing.T) {
	b := cluster("b", 0)
	b.Spec.AllowedNamespaces = []string{"shop"}
	all := []*v1beta1.Cluster{cluster("a", 0), b, cluster("c", 0)}
	p := governed(v1beta1.PlacementPolicySpec{Clusters: &v1beta1.ClusterAffinity{Names: []string{"b", "c"}}})
	chosen := replicaSet(1, nil)
	chosen.Selector = labels.SelectorFromSet(labels.Set{"name": "a"})
	for name, c := range map[string]struct {
		object   Object
		policies []*v1beta1.PlacementPolicy
		want     []string
	}{
		"no policy": {replicaSet(1, nil), nil, []string{"a", "c"}}, "a policy": {replicaSet(1, nil), []*v1beta1.PlacementPolicy{p}, []string{"c"}},
		"an annotation": {chosen, []*v1beta1.PlacementPolicy{p}, []string{"a"}},
	} {
		w, got := NewWorld(all, c.policies), []string(nil)
		for _, one := range all {
			if w.Selects(&c.object, one) {
				got = append(got, one.Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
