package servertest

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

// A drill has its finalizer from the first, its status is not its maker's, it cannot be changed, and who aborts it is who the server knows.
func TestDrillsAreKeptAsTheyWereMade(t *testing.T) {
	drills := shared.dynamic.Resource(v1beta1.FailoverDrillsResource)
	u, err := drills.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "federation/v1beta1", "kind": "FailoverDrill", "metadata": map[string]any{"name": "kept"},
		"spec":   map[string]any{"scope": map[string]any{"regions": []any{"nowhere"}}, "method": "Shift", "reason": "a test"},
		"status": map[string]any{"phase": "Finished", "abort": map[string]any{"by": "mallory"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = drills.Patch(context.Background(), "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		_ = drills.Delete(context.Background(), "kept", metav1.DeleteOptions{})
	})
	if f := u.GetFinalizers(); len(f) != 1 || f[0] != v1beta1.DrillFinalizer || u.Object["status"] != nil && len(u.Object["status"].(map[string]any)) > 0 {
		t.Errorf("finalizers %v, status %v", f, u.Object["status"])
	}
	if _, err := drills.Patch(t.Context(), "kept", types.MergePatchType, []byte(`{"spec":{"holdSeconds":20}}`), metav1.PatchOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "cannot be changed") {
		t.Errorf("its spec can be changed: %v", err)
	}
	body := []byte(`{"metadata":{"labels":{"a":"b"}},"status":{"phase":"Finished","abort":{"by":"somebody else","reason":"enough"}}}`)
	u, err = drills.Patch(t.Context(), "kept", types.MergePatchType, body, metav1.PatchOptions{}, "abort")
	if err != nil {
		t.Fatal(err)
	}
	by, _, _ := unstructured.NestedString(u.Object, "status", "abort", "by")
	why, _, _ := unstructured.NestedString(u.Object, "status", "abort", "reason")
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	if by != "federation-admin" || why != "enough" || phase != "" || len(u.GetLabels()) > 0 {
		t.Errorf("aborted by %q: %q, phase %q, labels %v", by, why, phase, u.GetLabels())
	}
	u, err = drills.Patch(t.Context(), "kept", types.MergePatchType, []byte(`{"status":{"abort":null,"phase":"Holding"}}`), metav1.PatchOptions{}, "status")
	if by, _, _ = unstructured.NestedString(u.Object, "status", "abort", "by"); err != nil || by != "federation-admin" {
		t.Errorf("the controller's status takes the abort away: %q, %v", by, err)
	}
}

func TestWhoMayDrill(t *testing.T) {
	const all = "create failoverdrills, delete failoverdrills, update failoverdrills/abort x, update failoverdrills/status x, list failoverdrills"
	for role, want := range map[string]string{
		"federation-cluster-viewer": "list failoverdrills",
		"federation-operator":       "update failoverdrills/abort x, list failoverdrills",
		"federation-drill-operator": "create failoverdrills, delete failoverdrills, update failoverdrills/abort x, list failoverdrills",
	} {
		bind(t, role)
		becomesTrue(t, role, func() bool { return mayDo(t, role, "list failoverdrills") })
		for _, asked := range strings.Split(all, ", ") {
			if got := mayDo(t, role, asked); got != strings.Contains(", "+want+",", ", "+asked+",") {
				t.Errorf("%s may %s: %v", role, asked, got)
			}
		}
	}
}
