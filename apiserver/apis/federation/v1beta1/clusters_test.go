package v1beta1

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// clusterWith returns a cluster with conditions, as TYPE=STATUS or TYPE=STATUS/REASON.
func clusterWith(conditions ...string) *Cluster {
	c := &Cluster{}
	for _, text := range conditions {
		kind, status, _ := strings.Cut(text, "=")
		status, reason, _ := strings.Cut(status, "/")
		c.Status.Conditions = append(c.Status.Conditions, ClusterCondition{Type: ClusterConditionType(kind), Status: corev1.ConditionStatus(status),
			Reason: reason})
	}
	return c
}

// A cluster is ready by its own answer, and reached also where at least half of all processes have one; it is in a drill while the condition says so.
func TestConditionsOfClusters(t *testing.T) {
	for conditions, want := range map[string]struct{ ready, reached, drill bool }{
		"":                         {},
		"Ready=True":               {ready: true, reached: true},
		"Ready=False":              {},
		"Ready=Unknown":            {},
		"Offline=True":             {},
		"Offline=False Ready=True": {ready: true, reached: true},
		"Ready=False PartiallyReachable=True/ReachableByMajority":  {reached: true},
		"Ready=False PartiallyReachable=True/ReachableByMinority":  {},
		"Ready=False PartiallyReachable=False/ReachableByMajority": {},
		"Ready=True PartiallyReachable=True/ReachableByLeader":     {ready: true, reached: true},
		"PartiallyReachable=True/ReachableByMajority":              {reached: true},
		string(ClusterDrill) + "=True":                             {drill: true},
		string(ClusterDrill) + "=False Ready=True":                 {ready: true, reached: true},
		"Ready=False " + string(ClusterDrill) + "=True":            {drill: true},
	} {
		c := clusterWith(strings.Fields(conditions)...)
		if c.IsReady() != want.ready || c.IsReached() != want.reached || (c.Drill() != nil) != want.drill {
			t.Errorf("%s: ready %t, reached %t, drill %v, want %+v", conditions, c.IsReady(), c.IsReached(), c.Drill(), want)
		}
		for i := range c.Status.Conditions {
			if got := c.Condition(c.Status.Conditions[i].Type); got != &c.Status.Conditions[i] {
				t.Errorf("%s: of type %s there is %v", conditions, c.Status.Conditions[i].Type, got)
			}
		}
		if c.Condition("Other") != nil {
			t.Errorf("%s: a condition that is not there", conditions)
		}
	}
}

// A cluster of which nothing is written serves, with the default weight; a share is shown while it fails back only.
func TestPhasesAndWeightsOfClusters(t *testing.T) {
	for phase, want := range map[FailoverPhase]string{"": "Serving", PhaseServing: "Serving", PhaseGracePeriod: "GracePeriod",
		PhaseFailoverSuspended: "FailoverSuspended",
		PhaseFailedOver:        "FailedOver", PhaseFailingBack: "FailingBack 50%"} {
		c := &Cluster{}
		if phase != "" {
			c.Status.Failover = &ClusterFailover{Phase: phase, Percent: 50}
		}
		if got := c.PhaseWithShare(); got != want || !strings.HasPrefix(want, string(c.Phase())) || c.Phase() == "" {
			t.Errorf("%q: %q, %q, want %q", phase, c.Phase(), got, want)
		}
	}
	for _, weight := range []int32{0, 1, 1000} {
		if got := (&Cluster{Spec: ClusterSpec{DNSWeight: &weight}}).DNSWeight(); got != weight {
			t.Errorf("weight %d: %d", weight, got)
		}
	}
	if got := (&Cluster{}).DNSWeight(); got != 100 {
		t.Errorf("no weight: %d, want 100", got)
	}
	for connection, want := range map[ClusterConnection]bool{"": false, ConnectionPush: false, ConnectionPull: true} {
		if got := (&Cluster{Spec: ClusterSpec{Connection: connection}}).IsPull(); got != want {
			t.Errorf("connection %q: pull %t", connection, got)
		}
	}
}

// The user of an agent is one of just one cluster, and no other user is taken for an agent: not one of a bootstrap token, nor its own group.
func TestAgentsAreOfOneCluster(t *testing.T) {
	for _, cluster := range []string{"a", "east-a", strings.Repeat("x", 63), "system"} {
		if got, ok := ClusterOfAgent(AgentUserName(cluster)); !ok || got != cluster {
			t.Errorf("the agent of %s is taken for that of %q, %t", cluster, got, ok)
		}
		if got, ok := ClusterOfAgent(BootstrapGroup(cluster)); ok {
			t.Errorf("a token of %s is taken for the agent of %q", cluster, got)
		}
		if BootstrapGroup(cluster) == BootstrapGroups || AgentUserName(cluster) == AgentsGroup {
			t.Errorf("%s: one is taken for all", cluster)
		}
	}
	for _, user := range []string{"", "a", AgentsGroup, AgentUserName(""), "x" + AgentUserName("a"), "system:federation:cluster-agent", "system:admin",
		strings.ToUpper(AgentUserName("a"))} {
		if got, ok := ClusterOfAgent(user); ok {
			t.Errorf("%q is taken for the agent of %q", user, got)
		}
	}
	if got := BootstrapSecretName("abcdef"); got != "bootstrap-token-abcdef" {
		t.Errorf("%s, and kubeadm has another name", got)
	}
}

// oracleMatches says of each condition of an affinity by itself whether the cluster meets it.
func oracleMatches(a *ClusterAffinity, c *Cluster) bool {
	in := func(allowed []string, has ...string) bool {
		for _, one := range has {
			for _, other := range allowed {
				if one == other {
					return true
				}
			}
		}
		return len(allowed) == 0
	}
	selected := true
	if a.LabelSelector != nil {
		for key, value := range a.LabelSelector.MatchLabels {
			is, has := c.Labels[key]
			selected = selected && has && is == value
		}
	}
	return selected && in(a.Names, c.Name) && in(a.Zones, c.Status.Zones...) && in(a.Regions, c.Status.Region)
}

// An affinity selects what meets all that is given; adding something to it never makes it select more, and naming the cluster's own never less.
func TestAffinitiesSelectWhatMeetsAll(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	some := func(of ...string) (chosen []string) {
		for _, one := range of {
			if r.IntN(3) == 0 {
				chosen = append(chosen, one)
			}
		}
		return chosen
	}
	selected := 0
	for range 3000 {
		c := &Cluster{ObjectMeta: metav1.ObjectMeta{Name: []string{"a", "b", "c"}[r.IntN(3)], Labels: map[string]string{"tier": []string{"gold",
			"silver"}[r.IntN(2)]}},
			Status: ClusterStatus{Zones: some("z1", "z2", "z3"), Region: []string{"", "r1", "r2"}[r.IntN(3)]}}
		a := &ClusterAffinity{Names: some("a", "b", "c"), Zones: some("z1", "z2", "z3"), Regions: some("r1", "r2")}
		if r.IntN(2) == 0 {
			a.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{[]string{"tier", "tier", "rack"}[r.IntN(3)]: "gold"}}
		}
		got := a.Matches(c)
		if want := oracleMatches(a, c); got != want || (a.Refuses(c) == "") != want {
			t.Fatalf("%+v of %+v: %t, %q, want %t", a, c, got, a.Refuses(c), want)
		}
		if len(a.Names) > 0 {
			wider := a.DeepCopy()
			if wider.Names = append(wider.Names, c.Name); got && !wider.Matches(c) {
				t.Fatalf("%+v does not select %s, and %+v does", wider, c.Name, a)
			}
		}
		if got {
			selected++
		}
	}
	if selected < 300 || selected > 2700 {
		t.Errorf("%d of 3000 are selected: this says little", selected)
	}
}

// A mark of a copy counts on the object that it names alone, and with the federation's own UID: not on what somebody made of a copy.
func TestCopiesAreMarked(t *testing.T) {
	deployments, secrets := schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Kind: "Secret"}
	marked := func(namespace, name, copyOf, federation string) metav1.Object {
		return &metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{ManagedByLabel: federation},
			Annotations: map[string]string{CopyOfAnnotation: copyOf}}
	}
	for want, got := range map[string]string{
		"Deployment.apps/shop/web": CopyOf(deployments, "shop", "web"), "Secret/shop/web": CopyOf(secrets, "shop", "web"),
		"Namespace/shop": CopyOf(schema.GroupKind{Kind: "Namespace"}, "", "shop"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for name, c := range map[string]struct {
		object metav1.Object
		want   bool
	}{
		"a copy":                {marked("shop", "web", "Deployment.apps/shop/web", "uid"), true},
		"of another federation": {marked("shop", "web", "Deployment.apps/shop/web", "other"), false},
		"under another name":    {marked("shop", "web-2", "Deployment.apps/shop/web", "uid"), false},
		"in another namespace":  {marked("bank", "web", "Deployment.apps/shop/web", "uid"), false},
		"of another kind":       {marked("shop", "web", "ReplicaSet.apps/shop/web", "uid"), false},
		"without a mark":        {marked("shop", "web", "", "uid"), false},
		"with nothing":          {&metav1.ObjectMeta{Namespace: "shop", Name: "web"}, false},
	} {
		if got := IsCopy(c.object, deployments, "uid"); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for label, want := range map[string]bool{ManagedByLabel + "=uid": true, AcceptLabel + "=uid": true, AlsoAcceptLabel + "uid=": true,
		AlsoAcceptLabel + "uid=false": true,
		ManagedByLabel + "=other":     false, AcceptLabel + "=other": false, AlsoAcceptLabel + "other=uid": false, AcceptLabel + "=": false, "a=uid": false} {
		key, value, _ := strings.Cut(label, "=")
		if got := NamespaceOf(&metav1.ObjectMeta{Labels: map[string]string{key: value}}, "uid"); got != want {
			t.Errorf("a namespace with %s is the federation's: %t", label, got)
		}
	}
}

// UnknownClusters lists each name that no cluster has once, in order; of very many, the first ten and the number of the others.
func TestUnknownClustersAreTold(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	path := field.NewPath("spec", "clusters")
	for range 300 {
		var clusters []*Cluster
		joined, named := map[string]bool{"*": true}, map[string]int{}
		for i := range 30 {
			name := fmt.Sprintf("c-%02d", i)
			if r.IntN(2) == 0 {
				clusters, joined[name] = append(clusters, &Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}), true
			}
			if r.IntN(3) > 0 {
				named[name] = i
			}
		}
		if r.IntN(2) == 0 {
			named["*"] = 1
		}
		var want []string
		for i := range 30 {
			if name := fmt.Sprintf("c-%02d", i); !joined[name] {
				if _, is := named[name]; is {
					want = append(want, fmt.Sprintf("spec.clusters[%s]: no cluster %q has joined", name, name))
				}
			}
		}
		if more := len(want) - 10; more > 0 {
			want = append(want[:10:10], fmt.Sprintf("and %d more", more))
		}
		if got := UnknownClusters(named, path, clusters); !slices.Equal(got, want) {
			t.Fatalf("%v: %q, want %q", named, got, want)
		}
	}
}

// Whatever the labels of nodes say, the FailoverReadiness of a zone or region has a name that an object may have, the same each time, and that of
// a zone is never that of a region.
func TestReadinessNamesAreNames(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	letters := []rune("abzAZ09-_.ü /")
	word := func() string {
		text := make([]rune, r.IntN(12))
		for i := range text {
			text[i] = letters[r.IntN(len(letters))]
		}
		return string(text)
	}
	for range 2000 {
		region, zone := word(), word()
		for domain, s := range map[string]FailoverReadinessSpec{region + "/" + zone: {Zone: region + "/" + zone}, zone: {Region: zone}} {
			name := ReadinessName(s)
			if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
				t.Fatalf("%+v: %s: %v", s, name, faults)
			}
			if level, want := strings.SplitN(name, ".", 2)[0], map[bool]string{true: "zone", false: "region"}[s.Zone != ""]; level != want || s.Domain() != domain {
				t.Fatalf("%+v: %s of %q", s, name, s.Domain())
			}
			lower := FailoverReadinessSpec{Zone: strings.ToLower(s.Zone), Region: strings.ToLower(s.Region)}
			if ReadinessName(lower) != name {
				t.Fatalf("%+v: %s, and in small letters %s", s, name, ReadinessName(lower))
			}
		}
	}
	for want, s := range map[string]FailoverReadinessSpec{
		"zone.east.a": {Zone: "east/a"}, "zone.a": {Zone: "a"}, "region.east": {Region: "east"}, "zone.east-1.a-b": {Zone: "East_1/a.b"},
		"region.x": {Region: "_"}, "zone.x.x": {Zone: "/"},
		"zone.a.b-c": {Zone: "a/b/c"},
	} {
		if got := ReadinessName(s); got != want {
			t.Errorf("%+v: %s, want %s", s, got, want)
		}
	}
}

// The selector of the annotation selects by each operator what a selector of Kubernetes does; all of its terms must hold.
func TestClusterSelectorsSelect(t *testing.T) {
	east := labels.Set{"tier": "gold", "rank": "5", "zone": ""}
	for terms, want := range map[string]bool{
		``: true,
		`{"key":"tier","operator":"In","values":["gold","silver"]}`:             true,
		`{"key":"tier","operator":"in","values":["silver"]}`:                    false,
		`{"key":"tier","operator":"NotIn","values":["silver"]}`:                 true,
		`{"key":"rack","operator":"NotIn","values":["silver"]}`:                 true,
		`{"key":"tier","operator":"notin","values":["gold"]}`:                   false,
		`{"key":"zone","operator":"Exists"}`:                                    true,
		`{"key":"rack","operator":"Exists"}`:                                    false,
		`{"key":"rack","operator":"DoesNotExist"}`:                              true,
		`{"key":"zone","operator":"!"}`:                                         false,
		`{"key":"tier","operator":"=","values":["gold"]}`:                       true,
		`{"key":"tier","operator":"==","values":["silver"]}`:                    false,
		`{"key":"tier","operator":"!=","values":["silver"]}`:                    true,
		`{"key":"rank","operator":"Gt","values":["4"]}`:                         true,
		`{"key":"rank","operator":">","values":["4"]}`:                          true,
		`{"key":"rank","operator":">","values":["5"]}`:                          false,
		`{"key":"rank","operator":"Lt","values":["6"]}`:                         true,
		`{"key":"rank","operator":"<","values":["5"]}`:                          false,
		`{"key":"tier","operator":"Gt","values":["4"]}`:                         false,
		`{"key":"tier","operator":"Exists"},{"key":"rank","operator":"Exists"}`: true,
		`{"key":"tier","operator":"Exists"},{"key":"rack","operator":"Exists"}`: false,
	} {
		s, errs := ParseClusterSelector("["+terms+"]", root)
		if len(errs) > 0 || s.Matches(east) != want {
			t.Errorf("[%s]: %v, selects %v: %t, want %t", terms, errs, east, !want, want)
		}
	}
}
