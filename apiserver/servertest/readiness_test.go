package servertest

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// A FailoverReadiness is about one zone or region for its whole life; its status is bounded, and `kubectl get` prints
// it in a line.
func TestFailoverReadinessIsServed(t *testing.T) {
	client := in("", v1beta1.ReadinessResource)
	const head = "{apiVersion: federation/v1beta1, kind: FailoverReadiness, "
	for spec, want := range map[string]string{
		"spec: {}}":                              "must name either a zone or a region",
		"spec: {zone: east/a, region: east}}":    "must name either a zone or a region",
		"spec: {zone: east/a/b}}":                "spec.zone",
		"spec: {region: 'a b'}, status: {}}":     "spec.region",
		"spec: {zone: east/a, cluster: east-a}}": `unknown field "spec.cluster"`,
	} {
		_, err := client.Create(t.Context(), newObject(t, head+spec, "x"), metav1.CreateOptions{FieldValidation: "Strict"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", spec, err, want)
		}
	}
	r, err := client.Create(t.Context(), newObject(t, head+"spec: {zone: east/a}, status: {replicas: 7}}", "zone.east.a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Delete(t.Context(), r.GetName(), metav1.DeleteOptions{}) })
	if row := firstRow(t, "/apis/federation/v1beta1/failoverreadinesses"); !strings.HasPrefix(row, "zone.east.a Unknown 0 0/0 0 - <unknown> <unknown> never") {
		t.Errorf("a new one is shown as %q", row)
	}
	status := newObject(t, `{status: {replicas: 40, placed: 37, unschedulable: 3, clusters: 2, names: {served: 9, survive: 9}, headroom: {percent: 4, resource: cpu, cluster: east-b},
  worst: [{kind: Deployment, namespace: shop, name: web, replicas: 10, unschedulable: 3}], evaluatedAt: "2026-01-01T00:00:00Z",
  conditions: [{type: Survivable, status: "False", reason: InsufficientCapacity, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, "")
	r.Object["status"] = status.Object["status"]
	if r, err = client.UpdateStatus(t.Context(), r, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if row := firstRow(t, "/apis/federation/v1beta1/failoverreadinesses"); !strings.HasPrefix(row, "zone.east.a False InsufficientCapacity 2 37/40 3 9/9 4% cpu <unknown> ") || !strings.HasSuffix(row, " east-b Deployment shop/web") {
		t.Errorf("shown as %q", row)
	}
	changed := r.DeepCopy()
	changed.Object["spec"] = map[string]any{"zone": "east/b"}
	if _, err := client.Update(t.Context(), changed, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("another zone: %v", err)
	}
	worst := []any{}
	for range 21 {
		worst = append(worst, map[string]any{"kind": "Deployment", "name": "web", "replicas": int64(1)})
	}
	r.Object["status"].(map[string]any)["worst"] = worst
	if _, err := client.UpdateStatus(t.Context(), r, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "status.worst") {
		t.Errorf("21 objects: %v", err)
	}
}
