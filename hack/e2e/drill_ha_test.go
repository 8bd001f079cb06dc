package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestAnIsolationAndItsLeader isolates a member by two processes. The one that leads is killed: the other goes on with the drill, and the member is
// lost all the time. Then both are killed for longer than the isolation lasts: who comes back finds nothing isolated, and undoes the rest. Acceptance
// tests 7 and 8 of drills; it takes three minutes, so `make e2e-drills` runs it.
func TestAnIsolationAndItsLeader(t *testing.T) {
	if os.Getenv("E2E_LONG") == "" {
		t.Skip("runs with E2E_LONG=1: make e2e-drills")
	}
	p := &pair{name: "ha-drill", dir: filepath.Join(s.dir, "ha-drill")}
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	p.etcd = startEtcd(t, p.dir)
	t.Cleanup(func() { p.end(t) })
	p.start(t, "serve")
	p.join(t)
	p.apply(t)
	leads := p.leader(t)
	other := p.halves[1-leads]
	_, err := other.fed.dyn.Resource(v1beta1.FailoverDrillsResource).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "FailoverDrill", "metadata": map[string]any{"name": "killed"},
		"spec": map[string]any{"scope": map[string]any{"clusters": []any{"west-a"}}, "method": "Isolate", "reason": "a test", "allow": []any{v1beta1.DrillQuiet, v1beta1.DrillRested}, "baselineSeconds": int64(5), "holdSeconds": int64(600)},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	drill := func(h *half) (*v1beta1.FailoverDrill, error) {
		u, err := h.fed.dyn.Resource(v1beta1.FailoverDrillsResource).Get(t.Context(), "killed", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		d := &v1beta1.FailoverDrill{}
		return d, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d)
	}
	lost := func(h *half) string {
		u, err := h.fed.dyn.Resource(v1beta1.ClustersResource).Get(t.Context(), "west-a", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		c := &v1beta1.Cluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
			return err.Error()
		}
		if ready := c.Condition(v1beta1.ClusterReady); ready == nil || ready.Status == corev1.ConditionTrue || c.Drill() == nil {
			return fmt.Sprintf("ready: %+v, drill: %+v, phase %s", ready, c.Drill(), c.Phase())
		}
		return ""
	}
	eventually(t, 60*time.Second, func() string {
		if d, err := drill(other); err != nil || d.Status.Report == nil || d.Status.Report.Marks.Out == nil {
			return fmt.Sprintf("not failed over: %v, %+v", err, d)
		}
		return lost(other)
	})
	p.halves[leads].controllers.kill(t)
	killed := time.Now()
	for time.Since(killed) < 40*time.Second {
		if why := lost(other); why != "" {
			t.Fatalf("%.1f s after the leader's death the member is not lost: %s", time.Since(killed).Seconds(), why)
		}
		time.Sleep(200 * time.Millisecond)
	}
	if d, err := drill(other); err != nil || d.Status.Phase != v1beta1.DrillHolding {
		t.Fatalf("40 s after the leader's death: %v, %+v", err, d.Status)
	}
	t.Log("the leader was killed; for 40 s the member was lost at each look, and the drill goes on")
	other.controllers.kill(t)
	time.Sleep(35 * time.Second)
	other.controllers = other.run()
	begun := time.Now()
	eventually(t, 90*time.Second, func() string {
		d, err := drill(other)
		if err != nil || !d.IsFinished() {
			return fmt.Sprintf("not over: %v", err)
		}
		if d.Status.Outcome != v1beta1.DrillInterrupted || d.Status.Reason != v1beta1.DrillControllerLost || len(d.Status.Report.LeftBehind) > 0 {
			t.Fatalf("%s, %s: %s; left behind %v", d.Status.Outcome, d.Status.Reason, d.Status.Message, d.Status.Report.LeftBehind)
		}
		return ""
	})
	t.Logf("both were killed for 35 s; %.1f s after the start of one the drill is undone", time.Since(begun).Seconds())
	u, err := other.fed.dyn.Resource(v1beta1.ClustersResource).Get(t.Context(), "west-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := &v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil || !c.IsReady() || c.Phase() != v1beta1.PhaseServing || c.Drill() != nil {
		t.Errorf("the member afterwards: %v, ready %t, %s, %v", err, c.IsReady(), c.Phase(), c.Drill())
	}
	if _, err := other.fed.client.CoordinationV1().Leases(v1beta1.FederationNamespace).Get(t.Context(), v1beta1.DrillLease, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Lease: %v", err)
	}
	p.halves[leads].controllers = p.halves[leads].run() // for what is deleted in the end
	eventually(t, 60*time.Second, func() string {
		_, err := p.halves[leads].fed.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return errText(err)
	})
}
