package drill

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/drill/plan"
)

// Moves since the fault are counted, scaling is not; the next process continues from what the previous one recorded.
func TestMoved(t *testing.T) {
	at := func(a, b int64) []plan.Object {
		return []plan.Object{{Name: "web", Placed: map[string]int64{"a": a, "b": b}}, {Name: "db", Placed: map[string]int64{"a": 5}}}
	}
	d := &v1beta1.FailoverDrill{ObjectMeta: metav1.ObjectMeta{UID: "d"}, Status: v1beta1.FailoverDrillStatus{Phase: v1beta1.DrillBaseline}}
	var first, second before
	want := func(b *before, a, other, moved int64) {
		t.Helper()
		if got := b.moved(d, at(a, other)); got != moved {
			t.Errorf("with %d and %d: %d have moved, want %d", a, other, got, moved)
		}
	}
	want(&first, 20, 0, 0)
	want(&first, 10, 10, 0) // before the fault
	d.Status.Phase, d.Status.Report = v1beta1.DrillInjecting, &v1beta1.DrillReport{}
	want(&first, 10, 10, 0)
	want(&first, 4, 16, 6)
	want(&first, 4, 30, 6) // scaled up
	want(&first, 4, 10, 0) // scaled down
	want(&first, 0, 12, 2) // and moved: of ten that left, eight are no longer requested
	d.Status.Report.Prediction.Moved = 7
	want(&second, 0, 12, 7)
	want(&second, 3, 9, 10)
	d.Status.Phase = v1beta1.DrillFinished
	want(&second, 9, 3, 0)
}

func TestBudgetsAreOfTheObjectsThatTheySelect(t *testing.T) {
	object := func(namespace, kind, app string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"namespace": namespace, "name": app},
			"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": app}}}}}}
	}
	w := &plan.World{}
	w.AddBudget(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}})
	for _, u := range []*unstructured.Unstructured{object("other", "Deployment", "web"), object("shop", "Deployment", "db"), object("shop", "Job", "web"), object("shop", "Deployment", "web")} {
		w.Add(new(plan.ReadObject(u)))
	}
	if got := w.Budgets[0].Objects; len(got) != 1 || got[0] != 3 {
		t.Errorf("the budget is of %v", got)
	}
}

// An object is decoded again only when it has changed: decoding all of them each second would be the cost of a drill in
// a large federation.
func TestObjectsAreReadWhenTheyChange(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "1"},
		"status": map[string]any{"readyReplicas": int64(3)}}}
	c := &Controller{}
	read := func() int64 {
		now := map[types.UID]kept{}
		o := c.object(u, now)
		c.objects = now
		return o.Ready
	}
	if got := read(); got != 3 {
		t.Errorf("%d are ready", got)
	}
	u.Object["status"] = map[string]any{"readyReplicas": int64(2)} // an object does not change without a new version, so this change is not read
	if got := read(); got != 3 {
		t.Errorf("of the same version %d are ready", got)
	}
	u.SetResourceVersion("2")
	if got := read(); got != 2 {
		t.Errorf("of the next version %d are ready", got)
	}
}
