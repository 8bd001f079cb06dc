package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

func clusters(n int) (all []*v1beta1.Cluster) {
	for i := range n {
		all = append(all, &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%03d", n-1-i), Labels: map[string]string{"even": fmt.Sprint(i%2 == 0)}}})
	}
	return all
}

func object(kind string, annotations map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": kind}}
	u.SetNamespace("shop")
	u.SetName("web")
	u.SetUID("u-1")
	u.SetLabels(map[string]string{v1beta1.PlacementKeyLabel: "release-7"})
	u.SetAnnotations(annotations)
	return u
}

func placed(p v1beta1.Placement) map[string]string {
	return map[string]string{v1beta1.PlacementAnnotation: p.String()}
}

func TestDecisions(t *testing.T) {
	got, decided := Decisions(object("Deployment", placed(v1beta1.Placement{Policy: "gold", Clusters: map[string]int64{"c001": 3, "c000": 1, "c002": 0, "gone": 4}})), clusters(3))
	want := map[string]any{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: PlacementDecision
metadata:
  namespace: shop
  name: deployment-web-0
  labels: {multicluster.x-k8s.io/placement-key: release-7, multicluster.x-k8s.io/decision-key: deployment-web, multicluster.x-k8s.io/decision-index: "0"}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u-1, controller: true}]
schedulerName: federation-scheduler
decisions:
- {clusterProfileRef: {namespace: federation-system, name: c000}, reason: by PlacementPolicy gold}
- {clusterProfileRef: {namespace: federation-system, name: c001}, reason: by PlacementPolicy gold}
`), &want); err != nil {
		t.Fatal(err)
	}
	if !decided || len(got) != 1 {
		t.Fatalf("decided %t, %d", decided, len(got))
	}
	if diff := cmp.Diff(want, got[0].Object); diff != "" {
		t.Error(diff)
	}
}

// Where an object goes is what propagation makes of its placement and its selector.
func TestWhereAnObjectGoes(t *testing.T) {
	selector := map[string]string{v1beta1.ClusterSelectorAnnotation: `[{"key": "even", "operator": "In", "values": ["true"]}]`}
	both := placed(v1beta1.Placement{Clusters: map[string]int64{"c000": 1, "c001": 1, "c002": 1}})
	both[v1beta1.ClusterSelectorAnnotation] = selector[v1beta1.ClusterSelectorAnnotation]
	for name, c := range map[string]struct {
		kind        string
		annotations map[string]string
		change      func(*unstructured.Unstructured, []*v1beta1.Cluster)
		want        string
	}{
		"a workload that waits":                {kind: "Deployment", want: "?"},
		"a workload that waits for its policy": {kind: "Deployment", annotations: map[string]string{v1beta1.PlacementAnnotation: "pending"}, want: "?"},
		"a Service that waits":                 {kind: "Service", annotations: map[string]string{v1beta1.PlacementAnnotation: "pending"}, want: "?"},
		"a Service":                            {kind: "Service", want: "c000 c001 c002"},
		"a Secret that nothing refers to yet":  {kind: "Secret", want: "?"},
		"a Secret with a selector":             {kind: "Secret", annotations: selector, want: "c000 c002"},
		"a selector":                           {kind: "ConfigMap", annotations: selector, want: "c000 c002"},
		"a selector and a placement":           {kind: "Deployment", annotations: both, want: "c000 c002"},
		"a selector that nobody can read":      {kind: "ConfigMap", annotations: map[string]string{v1beta1.ClusterSelectorAnnotation: "{"}, want: "?"},
		"everywhere":                           {kind: "ConfigMap", annotations: placed(v1beta1.Placement{Everywhere: true}), want: "c000 c001 c002"},
		"nowhere":                              {kind: "Secret", annotations: placed(v1beta1.Placement{Clusters: map[string]int64{}}), want: ""},
		"asked for where it has no room":       {kind: "Deployment", annotations: placed(v1beta1.Placement{Clusters: map[string]int64{"c000": 1}, Overflow: map[string]int64{"c001": 1}}), want: "c000 c001"},
		"a cluster for other namespaces": {kind: "Service", want: "c001 c002", change: func(_ *unstructured.Unstructured, all []*v1beta1.Cluster) {
			all[2].Spec.AllowedNamespaces = []string{"bank"}
		}},
		"a custom kind": {kind: "Rollout", want: "?"},
		"being deleted": {kind: "Service", want: "-", change: func(u *unstructured.Unstructured, _ []*v1beta1.Cluster) {
			at := metav1.NewTime(time.Unix(1, 0))
			u.SetDeletionTimestamp(&at)
		}},
		"without the label": {kind: "Service", want: "-", change: func(u *unstructured.Unstructured, _ []*v1beta1.Cluster) { u.SetLabels(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			all, u := clusters(3), object(c.kind, c.annotations)
			if c.change != nil {
				c.change(u, all)
			}
			if got := show(Decisions(u, all)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func show(all []*unstructured.Unstructured, decided bool) string {
	if !decided {
		return "?"
	}
	if len(all) == 0 {
		return "-"
	}
	var out []string
	for _, u := range all {
		decisions, _, _ := unstructured.NestedSlice(u.Object, "decisions")
		for _, d := range decisions {
			name, _, _ := unstructured.NestedString(d.(map[string]any), "clusterProfileRef", "name")
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

func TestAtMostAHundredClustersInEach(t *testing.T) {
	for n, want := range map[int][]int{0: {0}, 1: {1}, 100: {100}, 101: {100, 1}, 1000: {100, 100, 100, 100, 100, 100, 100, 100, 100, 100}} {
		all, _ := Decisions(object("Service", nil), clusters(n))
		var sizes []int
		for i, u := range all {
			decisions, _, _ := unstructured.NestedSlice(u.Object, "decisions")
			sizes = append(sizes, len(decisions))
			if u.GetName() != fmt.Sprintf("service-web-%d", i) || u.GetLabels()[v1beta1.DecisionIndexLabel] != fmt.Sprint(i) {
				t.Errorf("%d clusters: %s with labels %v is at %d", n, u.GetName(), u.GetLabels(), i)
			}
		}
		if !slices.Equal(sizes, want) {
			t.Errorf("%d clusters: %v, want %v", n, sizes, want)
		}
		if names := strings.Fields(show(all, true)); len(names) != n || !slices.IsSorted(names) {
			t.Errorf("%d clusters: %v", n, names)
		}
	}
}

// Whatever an object is called, its PlacementDecisions have names and labels that the API takes, and of their own.
func TestNamesOfDecisions(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"web", "web-0", "web.x", strings.Repeat("a", 54), strings.Repeat("a", 55), strings.Repeat("a", 253), strings.Repeat("a", 252) + "b", strings.Repeat("a.", 60) + "a", "system:odd", "a..b"} {
		u := object("Service", nil)
		u.SetName(name)
		all, _ := Decisions(u, clusters(101))
		for _, d := range all {
			if errs := append(validation.IsDNS1123Subdomain(d.GetName()), validation.IsValidLabelValue(d.GetLabels()[v1beta1.DecisionKeyLabel])...); len(errs) > 0 {
				t.Errorf("%q: %s: %v", name, d.GetName(), errs)
			}
			if other, taken := seen[d.GetName()]; taken {
				t.Errorf("%q and %q: %s", name, other, d.GetName())
			}
			seen[d.GetName()] = name
		}
	}
}

func TestChanges(t *testing.T) {
	have, _ := Decisions(object("Service", nil), clusters(250))
	for name, c := range map[string]struct {
		want, have func([]*unstructured.Unstructured) []*unstructured.Unstructured
		apply      string
		remove     string
	}{
		"nothing": {},
		"what others add stays": {have: func(all []*unstructured.Unstructured) []*unstructured.Unstructured {
			all[0].SetLabels(map[string]string{"team": "a", v1beta1.PlacementKeyLabel: "release-7", v1beta1.DecisionKeyLabel: "service-web", v1beta1.DecisionIndexLabel: "0"})
			all[0].SetResourceVersion("9")
			return all
		}},
		"one cluster less": {want: func([]*unstructured.Unstructured) []*unstructured.Unstructured {
			all, _ := Decisions(object("Service", nil), clusters(250)[:249]) // without c000, the first
			return all
		}, apply: "service-web-0 service-web-1 service-web-2"},
		"another release": {want: func([]*unstructured.Unstructured) []*unstructured.Unstructured {
			u := object("Service", nil)
			u.SetLabels(map[string]string{v1beta1.PlacementKeyLabel: "release-8"})
			all, _ := Decisions(u, clusters(250))
			return all
		}, apply: "service-web-0 service-web-1 service-web-2"},
		"made again": {want: func([]*unstructured.Unstructured) []*unstructured.Unstructured {
			u := object("Service", nil)
			u.SetUID("u-2")
			all, _ := Decisions(u, clusters(250))
			return all
		}, apply: "service-web-0 service-web-1 service-web-2"},
		"one is gone": {have: func(all []*unstructured.Unstructured) []*unstructured.Unstructured { return all[1:] }, apply: "service-web-0"},
		"fewer":       {want: func(all []*unstructured.Unstructured) []*unstructured.Unstructured { return all[:1] }, remove: "service-web-1 service-web-2"},
		"the last of it": {want: func([]*unstructured.Unstructured) []*unstructured.Unstructured { return nil },
			remove: "service-web-0 service-web-1 service-web-2"},
		"cluster by somebody": {have: func(all []*unstructured.Unstructured) []*unstructured.Unstructured {
			all[1].Object["decisions"] = []any{}
			return all
		}, apply: "service-web-1"},
	} {
		t.Run(name, func(t *testing.T) {
			copies := func(change func([]*unstructured.Unstructured) []*unstructured.Unstructured) (all []*unstructured.Unstructured) {
				for _, u := range have {
					all = append(all, u.DeepCopy())
				}
				if change != nil {
					all = change(all)
				}
				return all
			}
			apply, remove := Changes(copies(c.want), copies(c.have))
			if names(apply) != c.apply || names(remove) != c.remove {
				t.Errorf("apply %q, remove %q; want %q, %q", names(apply), names(remove), c.apply, c.remove)
			}
		})
	}
}

func names(all []*unstructured.Unstructured) string {
	out := make([]string, 0, len(all))
	for _, u := range all {
		out = append(out, u.GetName())
	}
	return strings.Join(out, " ")
}
