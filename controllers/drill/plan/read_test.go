package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"federation/apiserver/apis/federation/v1beta1"
)

// The annotation stops drills whatever its value is, and each stop has a reason to show.
func TestStoppedBy(t *testing.T) {
	for value, want := range map[string]string{"a storm": "a storm", "": "no reason is given", "false": "false"} {
		if got := StoppedBy(map[string]string{v1beta1.StopDrillsAnnotation: value}); got != want {
			t.Errorf("value %q: got %q, want %q", value, got, want)
		}
	}
	for _, none := range []map[string]string{nil, {}, {v1beta1.DrainAnnotation: "a storm"}} {
		if got := StoppedBy(none); got != "" {
			t.Errorf("annotations %v stop drills: %q", none, got)
		}
	}
}

// object returns a federated object of a kind with a placement, a status, and the labels of its pods.
func object(kind, placement string, status map[string]any, pods map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "status": status,
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": pods}}}}}
	u.SetNamespace("shop")
	u.SetName("web")
	u.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: placement})
	return u
}

// propagated returns a status with the condition Propagated, and the replicas that are ready.
func propagated(status, since string, ready int64) map[string]any {
	return map[string]any{"readyReplicas": ready, "conditions": []any{map[string]any{"type": v1beta1.ConditionPropagated, "status": status,
		"lastTransitionTime": since}}}
}

// What is asked for is what is placed and what fits nowhere. A Job asks for nothing, as its pods end; whether an object moves is
// what its condition says, and a time that cannot be read is no time.
func TestReadObject(t *testing.T) {
	const placed = `{"clusters":{"a":3,"b":4},"unschedulable":2,"home":{"a":9}}`
	for name, c := range map[string]struct {
		of   *unstructured.Unstructured
		want string
	}{
		"a Deployment":          {object("Deployment", placed, propagated("True", "2026-05-01T10:00:00Z", 5), nil), "counts asked=9 ready=5"},
		"a Deployment that is":  {object("Deployment", placed, propagated("False", "2026-05-01T10:00:00Z", 5), nil), "counts asked=9 ready=5 moving since 10:00:00"},
		"one of which nothing":  {object("Deployment", placed, map[string]any{}, nil), "counts asked=9 ready=0"},
		"an unknown condition":  {object("StatefulSet", placed, propagated("Unknown", "", 1), nil), "counts asked=9 ready=1 moving"},
		"a time that is none":   {object("StatefulSet", placed, propagated("False", "today", 1), nil), "counts asked=9 ready=1 moving"},
		"a Job":                 {object("Job", placed, propagated("False", "2026-05-01T11:00:00Z", 5), nil), "asked=0 ready=0 moving since 11:00:00"},
		"one without placement": {object("Deployment", "", propagated("True", "", 5), nil), "counts asked=0 ready=5"},
		"one that cannot be":    {object("Deployment", "{", propagated("True", "", 5), nil), "counts asked=0 ready=5"},
	} {
		is := ReadObject(c.of)
		got := fmt.Sprintf("asked=%d ready=%d", is.Asked, is.Ready)
		if is.Counts {
			got = "counts " + got
		}
		if is.Moving {
			got += " moving"
		}
		if !is.Since.IsZero() {
			got += is.Since.UTC().Format(" since 15:04:05")
		}
		if got != c.want || is.Name != c.of.GetKind()+" shop/web" {
			t.Errorf("%s: got %s %q, want %q", name, is.Name, got, c.want)
		}
		if hasPlacement := strings.Contains(c.of.GetAnnotations()[v1beta1.PlacementAnnotation], "home"); hasPlacement &&
			(!maps.Equal(is.Placed, map[string]int64{"a": 3, "b": 4}) || is.Unplaced != 2 || !maps.Equal(is.Home, map[string]int64{"a": 9})) {
			t.Errorf("%s: placed %v, home %v, %d nowhere", name, is.Placed, is.Home, is.Unplaced)
		}
	}
}

// A budget has just those objects of its namespace whose pods its selector selects, and none that do not count; a selector that is empty
// selects all, as in policy/v1. The selector is applied word by word here.
func TestAddBudgetFindsItsObjects(t *testing.T) {
	chance := rand.New(rand.NewPCG(3, 1))
	pick := func(of ...string) string { return of[chance.IntN(len(of))] }
	for range 300 {
		w, budgets, objects := &World{}, []*policyv1.PodDisruptionBudget{}, []*unstructured.Unstructured{}
		for i := range chance.IntN(6) {
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: pick("shop", "bank"), Name: fmt.Sprint(i)},
				Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}, MinAvailable: new(intstr.FromInt(i))}}
			if chance.IntN(3) > 0 {
				b.Spec.Selector.MatchLabels = map[string]string{"app": pick("web", "db")}
			}
			if chance.IntN(3) == 0 {
				b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}
			}
			switch chance.IntN(8) {
			case 0:
				b.Spec.Selector = nil
			case 1:
				b.DeletionTimestamp = new(metav1.NewTime(begin))
			case 2:
				b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Perhaps"}}
			}
			w.AddBudget(b)
			budgets = append(budgets, b)
		}
		for range chance.IntN(8) {
			pods := map[string]any{"app": pick("web", "db")}
			if chance.IntN(2) == 0 {
				pods["tier"] = "front"
			}
			u := object(pick("Deployment", "StatefulSet", "Job"), "", nil, pods)
			u.SetNamespace(pick("shop", "bank"))
			o := ReadObject(u)
			w.Add(&o)
			objects = append(objects, u)
		}
		if got, want := w.Budgets, selectedByHand(budgets, objects); !reflect.DeepEqual(got, want) {
			t.Fatalf("budgets %v over objects %v:\ngot  %+v\nwant %+v", budgets, objects, got, want)
		}
	}
}

// selectedByHand is what budgets select, by the words of the API.
func selectedByHand(budgets []*policyv1.PodDisruptionBudget, objects []*unstructured.Unstructured) (all []Budget) {
	for _, b := range budgets {
		s := b.Spec.Selector
		if b.DeletionTimestamp != nil || s == nil || slices.ContainsFunc(s.MatchExpressions,
			func(r metav1.LabelSelectorRequirement) bool { return r.Operator == "Perhaps" }) {
			continue
		}
		is := Budget{Name: b.Namespace + "/" + b.Name, MinAvailable: b.Spec.MinAvailable}
		for i, u := range objects {
			pods, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
			fits := u.GetKind() != "Job" && u.GetNamespace() == b.Namespace
			for key, value := range s.MatchLabels {
				fits = fits && pods[key] == value
			}
			for _, r := range s.MatchExpressions {
				_, has := pods[r.Key]
				fits = fits && has
			}
			if fits {
				is.Objects = append(is.Objects, i)
			}
		}
		all = append(all, is)
	}
	return all
}

// A mark says what a Cluster's condition is to be, of the version that it was decided from, and nothing else: with force it would
// take what others own.
func TestMarkObject(t *testing.T) {
	of := cluster("a")
	of.UID, of.ResourceVersion = "u-a", "77"
	condition := v1beta1.ClusterCondition{Type: v1beta1.ClusterDrill, Status: "True", Reason: v1beta1.ReasonIsolated, LastTransitionTime: metav1.NewTime(begin)}
	for _, is := range []*v1beta1.ClusterCondition{nil, &condition} {
		u, err := Mark{Cluster: of, Condition: is}.Object()
		if err != nil {
			t.Fatal(err)
		}
		meta := map[string]any{"name": "a", "uid": "u-a", "resourceVersion": "77"}
		if !reflect.DeepEqual(u.Object["metadata"], meta) || u.GetAPIVersion() != "federation/v1beta1" || u.GetKind() != "Cluster" || len(u.Object) != 4 {
			t.Errorf("got %v, want metadata %v", u.Object, meta)
		}
		status, want := u.Object["status"].(map[string]any), 0
		conditions, _ := status["conditions"].([]any)
		if is != nil {
			want = 1
		}
		if len(conditions) != want || len(status) != want {
			t.Errorf("status %v, want %d conditions and nothing else", status, want)
		}
		if want == 1 && !reflect.DeepEqual([]any{conditions[0].(map[string]any)["type"], conditions[0].(map[string]any)["status"]}, []any{"Drill", "True"}) {
			t.Errorf("condition %v", conditions[0])
		}
	}
}

// A drill stays the same on its way to a dynamic client and back.
func TestUnstructured(t *testing.T) {
	m := newMade(t, v1beta1.DrillEvacuate)
	m.phase(v1beta1.DrillFinished)
	u, err := Unstructured(m.drill, "FailoverDrill")
	if err != nil {
		t.Fatal(err)
	}
	if u.GetAPIVersion() != "federation/v1beta1" || u.GetKind() != "FailoverDrill" || u.GetName() != "d" {
		t.Errorf("got %s %s %s", u.GetAPIVersion(), u.GetKind(), u.GetName())
	}
	if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase != "Finished" {
		t.Errorf("phase %q, want Finished", phase)
	}
	if _, err := Unstructured("a text", "FailoverDrill"); err == nil {
		t.Error("a text is taken for a drill")
	}
}
