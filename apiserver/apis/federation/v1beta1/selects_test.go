package v1beta1

import (
	"math/rand"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestResourceSelector_Selects(t *testing.T) {
	web := map[string]string{"app": "web"}
	apps := func(change func(*ResourceSelector)) ResourceSelector {
		s := ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
		if change != nil {
			change(&s)
		}
		return s
	}
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	deployments := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	for name, c := range map[string]struct {
		selector ResourceSelector
		kind     schema.GroupKind
		want     bool
	}{
		"all of a kind":             {apps(nil), deployments, true},
		"another version of it":     {apps(func(s *ResourceSelector) { s.APIVersion = "apps/v1beta2" }), deployments, true},
		"another kind":              {apps(nil), schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, false},
		"the kind of another group": {apps(nil), schema.GroupKind{Group: "example.org", Kind: "Deployment"}, false},
		"a core kind":               {ResourceSelector{APIVersion: "v1", Kind: "Secret"}, schema.GroupKind{Kind: "Secret"}, true},
		"by name":                   {apps(func(s *ResourceSelector) { s.Names = []string{"db", "web"} }), deployments, true},
		"by another name":           {apps(func(s *ResourceSelector) { s.Names = []string{"db"} }), deployments, false},
		"by labels":                 {apps(func(s *ResourceSelector) { s.LabelSelector = &metav1.LabelSelector{MatchLabels: web} }), deployments, true},
		"by other labels": {apps(func(s *ResourceSelector) {
			s.LabelSelector = metav1.AddLabelToSelector(&metav1.LabelSelector{}, "app", "db")
		}), deployments, false},
		"by name and other labels": {apps(func(s *ResourceSelector) {
			s.Names, s.LabelSelector = []string{"web"}, metav1.AddLabelToSelector(&metav1.LabelSelector{}, "app", "db")
		}), deployments, false},
		"an empty label selector":          {apps(func(s *ResourceSelector) { s.LabelSelector = &metav1.LabelSelector{} }), deployments, true},
		"what is no selector selects none": {apps(func(s *ResourceSelector) { s.LabelSelector = bad }), deployments, false},
	} {
		if got := c.selector.Selects(c.kind, "web", web); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		p := PlacementPolicy{Spec: PlacementPolicySpec{ResourceSelectors: []ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}, c.selector}}}
		if got := p.Selects(c.kind, "web", web); got != c.want {
			t.Errorf("%s, in a policy beside another: %t", name, got)
		}
	}
}

// TestGoverning_IsTheFirstInOrder: of random policies, the one that governs is the first of those that select, sorted by priority and name,
// in whatever order they come.
func TestGoverning_IsTheFirstInOrder(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	for round := range 500 {
		var all []*PlacementPolicy
		for i := range random.Intn(6) {
			p := &PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}}
			p.Spec.Priority = int32(random.Intn(3))
			p.Spec.ResourceSelectors = []ResourceSelector{{APIVersion: "apps/v1", Kind: []string{"Deployment", "ReplicaSet"}[random.Intn(2)]}}
			all = append(all, p)
		}
		var want *PlacementPolicy
		for priority := int32(2); priority >= 0 && want == nil; priority-- {
			for _, p := range all { // by name
				if want == nil && p.Spec.Priority == priority && p.Spec.ResourceSelectors[0].Kind == "Deployment" {
					want = p
				}
			}
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if got := Governing(all, kind, "web", nil); got != want {
			t.Fatalf("round %d: %v, want %v", round, got, want)
		}
	}
}

func TestCluster_RefusesNamespace(t *testing.T) {
	open, shop := &Cluster{}, &Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east-a"}, Spec: ClusterSpec{AllowedNamespaces: []string{"shop"}}}
	for namespace, want := range map[string]string{"": "", "shop": "", "bank": "namespace bank may not use cluster east-a: its spec.allowedNamespaces does not name it"} {
		if got := open.RefusesNamespace(namespace); got != "" {
			t.Errorf("%q in a cluster for all: %s", namespace, got)
		}
		if got := shop.RefusesNamespace(namespace); got != want {
			t.Errorf("%q: %q, want %q", namespace, got, want)
		}
	}
}

// TestPlacementPolicySpec_UnknownNamesEachField: each field that names clusters, zones or regions says which of them nobody has.
func TestPlacementPolicySpec_UnknownNamesEachField(t *testing.T) {
	clusters := []*Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "east-a"}, Status: ClusterStatus{Region: "east", Zones: []string{"e1"}}}}
	affinity := &ClusterAffinity{Names: []string{"east-a", "mars"}, Zones: []string{"e1", "m1"}, Regions: []string{"east", "space"}}
	spec := PlacementPolicySpec{
		Clusters:           affinity,
		ReplicaPreferences: &ReplicaPreferences{Clusters: map[string]ClusterPreferences{"*": {}, "east-a": {}, "venus": {}}},
		DNS:                &DNSSettings{Clusters: map[string]DNSClusterSettings{"moon": {}}},
		Rollout:            &RolloutPolicy{Order: []string{"sun"}},
		Overrides:          []Override{{}, {Clusters: &ClusterAffinity{Names: []string{"pluto"}}}},
	}
	want := []string{
		`spec.clusters.names[1]: no cluster "mars" has joined`, `spec.clusters.zones[1]: no cluster is in zone "m1"`, `spec.clusters.regions[1]: no cluster is in region "space"`,
		`spec.replicaPreferences.clusters[venus]: no cluster "venus" has joined`, `spec.dns.clusters[moon]: no cluster "moon" has joined`,
		`spec.rollout.order[0]: no cluster "sun" has joined`, `spec.overrides[1].clusters.names[0]: no cluster "pluto" has joined`,
	}
	if got := spec.Unknown(clusters); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := (&PlacementPolicySpec{}).Unknown(clusters); len(got) > 0 {
		t.Errorf("a policy that names none: %q", got)
	}
	many := &PlacementPolicySpec{Clusters: &ClusterAffinity{}}
	for range 3 * maxUnknown {
		many.Clusters.Names = append(many.Clusters.Names, "mars")
	}
	if got := many.Unknown(clusters); len(got) != maxUnknown+1 || got[maxUnknown] != "and 20 more" {
		t.Errorf("many: %q", got)
	}
}
