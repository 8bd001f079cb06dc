package outside

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/controllers/fleettest"
)

// TestUndoWithoutTheFederation ends a drill under way after the last process of the federation has gone: the Cluster has the spec that it had before.
func TestUndoWithoutTheFederation(t *testing.T) {
	for _, method := range []v1beta1.DrillMethod{v1beta1.DrillShift, v1beta1.DrillEvacuate} {
		t.Run(string(method), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fleet, f := fleetAndPlugin(t, 2*time.Minute)
				defer fleet.Close()
				before := specOf(fleet)
				replay(t, fleet, "drill "+string(method)+" a 600", "wait 60s", "processes 0")
				if reflect.DeepEqual(specOf(fleet), before) {
					t.Fatal("the drill has changed nothing")
				}
				abort(t, f, "drill-1")
				out := &strings.Builder{}
				if err := Finish(t.Context(), f, to(out), "drill-1"); err != nil {
					t.Fatal(err)
				}
				if d, err := client.Read[v1beta1.FailoverDrill](t.Context(), f.Dynamic.Resource(v1beta1.FailoverDrillsResource), "drill-1"); err != nil || d.Status.Outcome != v1beta1.DrillInterrupted || d.Status.Reason != v1beta1.DrillOperator {
					t.Errorf("%v; the drill: %+v", err, d.Status)
				}
				if after := specOf(fleet); !reflect.DeepEqual(after, before) {
					t.Errorf("the Cluster was\n%v\nand is\n%v", before, after)
				}
				if !strings.Contains(out.String(), "failoverdrill/drill-1: Interrupted, Operator") {
					t.Errorf("it printed:\n%s", out)
				}
			})
		})
	}
}

// TestUndoLeavesItToTheFederation: while a process leads, or acts on the abort, the plugin changes nothing.
func TestUndoLeavesItToTheFederation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet, f := fleetAndPlugin(t, time.Second)
		defer fleet.Close()
		out := &strings.Builder{}
		if err := Finish(t.Context(), f, to(out), "drill-1"); err == nil || !strings.Contains(err.Error(), "process one decides") {
			t.Errorf("while a process leads: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		fleet, f := fleetAndPlugin(t, 2*time.Minute)
		defer fleet.Close()
		replay(t, fleet, "drill Shift a 600", "wait 60s")
		abort(t, f, "drill-1")
		out := &strings.Builder{}
		if err := Finish(t.Context(), f, to(out), "drill-1"); err != nil || !strings.Contains(out.String(), "the federation undoes it itself") {
			t.Errorf("while a process acts: %v\n%s", err, out)
		}
	})
}

// fleetAndPlugin returns a fleet of three clusters, and the plugin's clients of its federation, whose leader renewed its Lease some time ago.
func fleetAndPlugin(t *testing.T, renewed time.Duration) (*fleettest.Fleet, *client.Federation) {
	t.Helper()
	fleet, err := fleettest.New(t.Context(), fleettest.DefaultSettings(), synctest.Wait)
	if err != nil {
		t.Fatal(err)
	}
	replay(t, fleet, "cluster add a region=east zone=a nodes=3 pods=40", "cluster add b region=east zone=b nodes=3 pods=40", "cluster add c region=west zone=a nodes=3 pods=40", "settle")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: leaderLease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("one"), RenewTime: new(metav1.NewMicroTime(time.Now().Add(-renewed)))}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.FederationNamespace}}
	return fleet, &client.Federation{Kube: kubefake.NewClientset(namespace, lease), Dynamic: fleet.Federation.Client("administrator", nil), Namespace: "default"}
}

func replay(t *testing.T, fleet *fleettest.Fleet, lines ...string) {
	t.Helper()
	if err := fleettest.Replay(fleet, lines, nil); err != nil {
		t.Fatal(err)
	}
}

// abort notes in a drill what its subresource abort would.
func abort(t *testing.T, f *client.Federation, name string) {
	t.Helper()
	drills := f.Dynamic.Resource(v1beta1.FailoverDrillsResource)
	u, err := drills.Get(t.Context(), name, metav1.GetOptions{})
	if err == nil {
		err = unstructured.SetNestedMap(u.Object, map[string]any{"by": "ann", "reason": "enough", "at": time.Now().UTC().Format(time.RFC3339)}, "status", "abort")
	}
	if err == nil {
		_, err = drills.UpdateStatus(t.Context(), u, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func specOf(fleet *fleettest.Fleet) any {
	u := fleet.Federation.Get(v1beta1.ClustersResource, "", "a")
	return []any{u.Object["spec"], u.GetAnnotations()}
}

// to writes lines to a text.
func to(out *strings.Builder) func(string, ...any) {
	return func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
}
