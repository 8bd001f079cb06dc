package scheduler

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"federation/apiserver/apis/federation/v1beta1"
)

// plain returns an undivided object of a kind.
func plain(apiVersion, kind string) Object {
	return Object{APIVersion: apiVersion, Kind: kind, Namespace: "default", Name: "x"}
}

// What follows an object goes to all clusters that have it, get it when there is room, or get it back; everywhere, if it has no placement and
// its kind needs none; nowhere, while nothing is decided.
func TestReach(t *testing.T) {
	w := NewWorld([]*v1beta1.Cluster{cluster("a", 0), cluster("b", 0), cluster("c", 0)}, nil)
	chosen := plain("v1", "ConfigMap")
	chosen.Selector = labels.SelectorFromSet(labels.Set{"name": "b"})
	for name, c := range map[string]struct {
		object   Object
		decision Decision
		want     Reach
	}{
		"it is not decided":          {plain("v1", "ConfigMap"), Decision{Wait: true}, Reach{}},
		"a built-in kind":            {plain("v1", "ConfigMap"), Decision{None: true}, Reach{Everywhere: true}},
		"a custom kind":              {plain("example.org/v1", "ConfigMap"), Decision{None: true}, Reach{}},
		"a selector":                 {chosen, Decision{None: true}, Reach{Clusters: []string{"b"}}},
		"a selector and a placement": {chosen, Decision{Placement: v1beta1.Placement{Clusters: numbers{"c": 1}}}, Reach{Clusters: []string{"c"}}},
		"it goes everywhere":         {plain("v1", "Secret"), Decision{Placement: v1beta1.Placement{Everywhere: true}}, Reach{Everywhere: true}},
		"all that it has and will get": {replicaSet(9, nil), Decision{Placement: v1beta1.Placement{Clusters: numbers{"c": 2, "d": 0},
			Overflow: numbers{"a": 1}, Home: numbers{"b": 9, "c": 1}}}, Reach{Clusters: []string{"a", "b", "c"}}},
		"of a custom kind, placed": {plain("example.org/v1", "Widget"), Decision{Placement: v1beta1.Placement{Clusters: numbers{"a": 1}}},
			Reach{Clusters: []string{"a"}}},
	} {
		if got := w.Reach(&c.object, &c.decision); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// An object goes to all clusters of all its referrers, each once.
func TestFollow(t *testing.T) {
	in := func(names ...string) Reach { return Reach{Clusters: names} }
	for want, referrers := range map[string][]Reach{
		"false []": nil, "false [a b c]": {in("c", "b"), in("a", "b")}, "true []": {in("a"), {Everywhere: true}}, "false [a]": {in(), in("a")},
	} {
		got := Follow(referrers)
		if is := fmt.Sprint(got.Everywhere, got.Clusters); is != want {
			t.Errorf("%+v: %s, want %s", referrers, is, want)
		}
	}
}

// The last decision about an object is its annotation. Without one it is still to be decided if it needs one.
func TestStanding(t *testing.T) {
	with := func(o Object, change func(o *Object)) Object {
		change(&o)
		return o
	}
	placed := v1beta1.Placement{Clusters: numbers{"a": 1}}
	for name, c := range map[string]struct {
		object Object
		want   Decision
	}{
		"placed":                   {replicaSet(1, placed.Clusters), Decision{Placement: placed}},
		"divided":                  {replicaSet(1, nil), Decision{Wait: true}},
		"undivided":                {plain("v1", "ConfigMap"), Decision{None: true}},
		"pending":                  {with(plain("v1", "ConfigMap"), func(o *Object) { o.Pending = true }), Decision{Wait: true}},
		"a Secret":                 {plain("v1", "Secret"), Decision{Wait: true}},
		"a Secret with a selector": {with(plain("v1", "Secret"), func(o *Object) { o.Selector = labels.Everything() }), Decision{None: true}},
		"a Secret of a custom API": {plain("example.org/v1", "Secret"), Decision{None: true}},
	} {
		if got := Standing(&c.object); !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, *got, c.want)
		}
	}
}

// What an object takes along is what it refers to of confined kinds, unless these go everywhere; and all of it, if its policy says so.
func TestReferences(t *testing.T) {
	o := object(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, namespace: default}, spec: {template: {spec: {serviceAccountName: runner,
  containers: [{name: a, envFrom: [{configMapRef: {name: env}}, {secretRef: {name: pass}}]}]}}}}`)
	takes, takesNot := governed(v1beta1.PlacementPolicySpec{PropagateReferences: true}), governed(v1beta1.PlacementPolicySpec{})
	for _, c := range []struct {
		policy     *v1beta1.PlacementPolicy
		everywhere bool
		want       string
	}{
		{nil, false, "[{Secret pass} {ServiceAccount runner}]"}, {nil, true, "[]"}, {takesNot, false, "[{Secret pass} {ServiceAccount runner}]"},
		{takesNot, true, "[]"}, {takes, false, "[{ConfigMap env} {Secret pass} {ServiceAccount runner}]"}, {takes, true,
			"[{ConfigMap env} {Secret pass} {ServiceAccount runner}]"},
	} {
		w := NewWorld(nil, slices.DeleteFunc([]*v1beta1.PlacementPolicy{c.policy}, func(p *v1beta1.PlacementPolicy) bool { return p == nil }))
		w.SecretsEverywhere = c.everywhere
		if got := fmt.Sprint(w.References(&o)); got != c.want {
			t.Errorf("policy %v, everywhere %t: %s, want %s", c.policy, c.everywhere, got, c.want)
		}
	}
}

// ungoverned is an undivided object without a policy, and what becomes of it: "WHERE, why".
type ungoverned struct {
	name       string
	kind       string
	change     func(o *Object)
	everywhere bool // Secrets and ServiceAccounts go everywhere
	takes      bool // a policy of the namespace takes references along
	want       string
}

func (c *ungoverned) decide() string {
	o := plain("v1", c.kind)
	o.Created = now.Add(-time.Second)
	if c.change != nil {
		c.change(&o)
	}
	p := governed(v1beta1.PlacementPolicySpec{PropagateReferences: c.takes})
	w := NewWorld([]*v1beta1.Cluster{cluster("a", 0), cluster("b", 0)}, []*v1beta1.PlacementPolicy{p})
	w.SecretsEverywhere = c.everywhere
	d := Decide(o, w, now)
	switch {
	case d.Wait:
		return fmt.Sprint("waits ", d.LookAgain)
	case d.None:
		return fmt.Sprintf("no annotation %q, changed %t", d.Value(), d.Changed)
	}
	return fmt.Sprintf("%t %v, notes %q, a: %s, cause %q", d.Placement.Everywhere, sortedNames(d.Placement.Clusters), d.Notes, strings.Join(d.Reasons["a"],
		"; "), d.Cause)
}

// An undivided object without a policy goes where its selector says, then where its referrers go. Without any it goes everywhere, unless its kind
// is confined; a new one waits for a referrer for a while, if one may take it along.
func TestDecide_Ungoverned(t *testing.T) {
	pending := func(o *Object) { o.Pending = true }
	follows := func(r Reach) func(o *Object) {
		return func(o *Object) { o.Follow, o.Followed = &r, []string{"Deployment web", "Job once"} }
	}
	nowhere := fmt.Sprintf("false [], notes [%q], a: %s, cause ", Unreferred, Unreferred)
	for _, c := range []ungoverned{
		{"a ConfigMap", "ConfigMap", nil, false, false, `no annotation "", changed false`},
		{"a ConfigMap that waited", "ConfigMap", pending, false, false, `no annotation "", changed true`},
		{"a ConfigMap that was placed", "ConfigMap", func(o *Object) { o.Current = &v1beta1.Placement{Clusters: numbers{"a": 1}} }, false, false,
			`no annotation "", changed true`},
		{"a new ConfigMap where references are taken along", "ConfigMap", pending, false, true, "waits 2s"},
		{"it is not new any more", "ConfigMap", func(o *Object) { o.Pending, o.Created = true, now.Add(-patience) }, false, true,
			`no annotation "", changed true`},
		{"it did not wait", "ConfigMap", nil, false, true, `no annotation "", changed false`},
		{"a new Service, to which nothing refers", "Service", pending, false, true, `no annotation "", changed true`},
		{"a new Secret", "Secret", pending, false, false, "waits 2s"},
		{"a Secret", "Secret", nil, false, false, nowhere + `"created"`},
		{"a new Secret, to everywhere", "Secret", pending, true, false,
			`true [], notes [], a: goes to every cluster, by --propagate-secrets=All, cause "created"`},
		{"a Secret that has lost its referrers", "Secret", func(o *Object) { o.Current = &v1beta1.Placement{Clusters: numbers{"a": 1}} }, false, false,
			nowhere + `"nothing refers to it any more"`},
		{"a Secret that has lost its policy", "Secret", func(o *Object) { o.Current = &v1beta1.Placement{Clusters: numbers{"a": 1}, Policy: "q"} }, false,
			false, nowhere + `"policy q no longer governs it"`},
		{"a selector", "Secret", func(o *Object) { o.Selector = labels.Everything() }, false, false, `no annotation "", changed false`},
		{"referrers in one cluster", "Secret", follows(Reach{Clusters: []string{"a"}}), false, false,
			`false [a], notes [], a: goes where its referrers go: Deployment web, Job once, cause "created"`},
		{"referrers in another", "ConfigMap", follows(Reach{Clusters: []string{"b"}}), false, false,
			`false [b], notes [], a: does not go there, because Deployment web, Job once does not, cause "created"`},
		{"referrers everywhere", "ConfigMap", follows(Reach{Everywhere: true}), false, false,
			`true [], notes [], a: goes where its referrers go: Deployment web, Job once, cause "created"`},
		{"referrers nowhere yet", "Secret", follows(Reach{}), false, false,
			`false [], notes [], a: does not go there, because Deployment web, Job once does not, cause "created"`},
	} {
		if got := c.decide(); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// What is undivided stays in a cluster that is lost or drained, where taking it away gains nothing, unless it runs something, or its policy lets
// it be in so many clusters only.
func TestDecide_UndividedStays(t *testing.T) {
	one := int32(1)
	for _, c := range []struct {
		name, kind  string
		phase       v1beta1.FailoverPhase
		taint       string
		constrained bool
		want        []string
	}{
		{"a ConfigMap where its cluster is lost", "ConfigMap", v1beta1.PhaseFailedOver, "", false, []string{"a", "b"}},
		{"a DaemonSet where its cluster is lost", "DaemonSet", v1beta1.PhaseFailedOver, "", false, []string{"a", "b"}},
		{"a ConfigMap where its cluster is drained", "ConfigMap", v1beta1.PhaseServing, "NoExecute", false, []string{"a", "b"}},
		{"a DaemonSet where its cluster is drained", "DaemonSet", v1beta1.PhaseServing, "NoExecute", false, []string{"b"}},
		{"a DaemonSet where its cluster is drained and lost", "DaemonSet", v1beta1.PhaseFailedOver, "NoExecute", false, []string{"b"}},
		{"a DaemonSet where its cluster gets nothing new", "DaemonSet", v1beta1.PhaseServing, "NoSchedule", false, []string{"a", "b"}},
		{"a ConfigMap in one cluster, which is lost", "ConfigMap", v1beta1.PhaseFailedOver, "", true, []string{"b"}},
		{"a ConfigMap in one cluster, which is drained", "ConfigMap", v1beta1.PhaseServing, "NoExecute", true, []string{"a"}},
	} {
		a, b := cluster("a", 0), cluster("b", 0)
		a.Status.Failover = &v1beta1.ClusterFailover{Phase: c.phase}
		if c.taint != "" {
			a.Spec.Taints = tainted(c.taint)
		}
		o := plain(map[string]string{"ConfigMap": "v1", "DaemonSet": "apps/v1"}[c.kind], c.kind)
		o.Current = &v1beta1.Placement{Clusters: numbers{"a": 1}, Policy: "p"}
		p := &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
		p.Spec.ResourceSelectors = []v1beta1.ResourceSelector{{APIVersion: o.APIVersion, Kind: o.Kind}}
		if c.constrained {
			p.Spec.SpreadConstraints = []v1beta1.SpreadConstraint{{SpreadBy: v1beta1.SpreadByCluster, MaxGroups: &one}}
		}
		if d := Decide(o, NewWorld([]*v1beta1.Cluster{a, b}, []*v1beta1.PlacementPolicy{p}), now); !slices.Equal(sortedNames(d.Placement.Clusters), c.want) {
			t.Errorf("%s: in %v, want %v, because %q", c.name, d.Placement.Clusters, c.want, d.Reasons)
		}
	}
}
