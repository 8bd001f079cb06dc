package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// policyFor returns a policy for Widgets in the clusters with these names; all if there are none.
func policyFor(names ...string) *v1beta1.PlacementPolicy {
	p := &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Generation: 4}}
	p.Spec.ResourceSelectors = []v1beta1.ResourceSelector{{APIVersion: "example.org/v1", Kind: "Widget"}}
	if len(names) > 0 {
		p.Spec.Clusters = &v1beta1.ClusterAffinity{Names: names}
	}
	return p
}

func TestAcceptedCondition(t *testing.T) {
	widgets := PolicyKind{Resource: schema.GroupResource{Group: "example.org", Resource: "widgets"}}
	forbid := func(resource string, clusters ...*v1beta1.Cluster) []*v1beta1.Cluster {
		for _, c := range clusters {
			c.Status.InaccessibleResources = []string{resource}
		}
		return clusters
	}
	var many []*v1beta1.Cluster
	for i := range 12 {
		many = append(many, cluster(fmt.Sprintf("c%02d", i), 0))
	}
	constrained := policyFor("a", "b")
	constrained.Spec.SpreadConstraints = []v1beta1.SpreadConstraint{{SpreadBy: v1beta1.SpreadByRegion, MinGroups: 3}}
	for name, c := range map[string]struct {
		policy   *v1beta1.PlacementPolicy
		kind     PolicyKind
		clusters []*v1beta1.Cluster
		reason   string // "": accepted
		says     string
	}{
		"all can be done":        {policyFor(), widgets, []*v1beta1.Cluster{cluster("a", 0)}, "", "all kinds can be spread"},
		"no cluster has joined":  {policyFor("a"), widgets, nil, "", "all kinds can be spread"},
		"the kind is not served": {policyFor(), PolicyKind{Err: errors.New("there is no such kind")}, []*v1beta1.Cluster{cluster("a", 0)}, "KindNotServed", "spec.resourceSelectors[0]: example.org/v1 Widget: there is no such kind"},
		"one of two forbids it":  {policyFor(), widgets, append(forbid("widgets.example.org", cluster("b", 0)), cluster("a", 0)), "", "spec.resourceSelectors[0]: example.org/v1 Widget: forbidden by b: join again with --custom-kinds widgets.example.org"},
		"both forbid it":         {policyFor(), widgets, forbid("widgets.example.org", cluster("b", 0), cluster("a", 0)), "KindForbidden", "forbidden by a, b"},
		"the only selected one forbids it": {policyFor("b"), widgets, append(forbid("widgets.example.org", cluster("b", 0)), cluster("a", 0)),
			"KindForbidden", "forbidden by b"},
		"one that is not selected forbids it": {policyFor("a"), widgets, append(forbid("widgets.example.org", cluster("b", 0)), cluster("a", 0)), "", "all kinds can be spread"},
		"another kind is forbidden":           {policyFor(), widgets, forbid("gadgets.example.org", cluster("a", 0)), "", "all kinds can be spread"},
		"a built-in kind is forbidden": {policyFor(), PolicyKind{Resource: schema.GroupResource{Resource: "configmaps"}}, forbid("configmaps", cluster("a", 0)),
			"KindForbidden", "forbidden by a: join again"},
		"many forbid it":                         {policyFor(), widgets, forbid("widgets.example.org", many...), "KindForbidden", "c08, c09 and 2 more: join again"},
		"a name that no cluster has":             {policyFor("a", "z"), widgets, []*v1beta1.Cluster{cluster("a", 0)}, "", `"z"`},
		"none of its names is that of a cluster": {policyFor("z"), widgets, []*v1beta1.Cluster{cluster("a", 0)}, "NoClusterSelected", "spec.clusters: no cluster is selected"},
		"fewer regions than it asks for":         {constrained, widgets, []*v1beta1.Cluster{cluster("a", 0), cluster("b", 0)}, "SpreadConstraintsUnsatisfiable", "spec.spreadConstraints[0].minGroups: 3 regions are asked for"},
	} {
		got := AcceptedCondition(c.policy, []PolicyKind{c.kind}, c.clusters)
		want := metav1.Condition{Type: v1beta1.PolicyAccepted, Status: metav1.ConditionTrue, Reason: "Accepted", ObservedGeneration: 4}
		if c.reason != "" {
			want.Status, want.Reason = metav1.ConditionFalse, c.reason
		}
		says := got.Message
		if got.Message = ""; got != want || !strings.Contains(says, c.says) {
			t.Errorf("%s: %+v %q", name, got, says)
		}
		if c.reason != "" && strings.Contains(says, "all kinds can be spread") {
			t.Errorf("%s: says both that all is well and that it is not: %q", name, says)
		}
	}
}

// A kind that is not served is what a condition names first, and nothing that is wrong is left out.
func TestAcceptedCondition_NamesAll(t *testing.T) {
	p := policyFor("a", "z")
	p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, v1beta1.ResourceSelector{APIVersion: "example.org/v1", Kind: "Gadget"})
	a := cluster("a", 0)
	a.Status.InaccessibleResources = []string{"widgets.example.org"}
	got := AcceptedCondition(p, []PolicyKind{{Resource: schema.GroupResource{Group: "example.org", Resource: "widgets"}}, {Err: errors.New("no such kind")}}, []*v1beta1.Cluster{a})
	if got.Reason != "KindNotServed" {
		t.Errorf("reason %s", got.Reason)
	}
	at := 0
	for _, want := range []string{"resourceSelectors[1]: example.org/v1 Gadget: no such kind", "resourceSelectors[0]: example.org/v1 Widget: forbidden by a", `"z"`} {
		i := strings.Index(got.Message, want)
		if i < at {
			t.Errorf("%q is not at its place in %q", want, got.Message)
		}
		at = i
	}
}
