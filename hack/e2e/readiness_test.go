package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
)

// readinessOf reads what is said of a zone or region.
func readinessOf(ctx context.Context, name string) (*v1beta1.FailoverReadiness, error) {
	u, err := s.fed.dyn.Resource(v1beta1.ReadinessResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	r := &v1beta1.FailoverReadiness{}
	return r, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r)
}

// halfANode is a little less than half of the cpu that is free on the fullest node of all members.
func halfANode(t *testing.T) resource.Quantity {
	t.Helper()
	least := int64(0)
	for name := range s.members {
		u, err := s.fed.dyn.Resource(v1beta1.ClustersResource).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := &v1beta1.Cluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil || c.Status.Capacity == nil {
			t.Fatalf("%s: %v, capacity %v", name, err, c.Status.Capacity)
		}
		for _, class := range c.Status.Capacity.Free {
			if n := class.Free.Cpu().MilliValue(); least == 0 || n < least {
				least = n
			}
		}
	}
	return *resource.NewMilliQuantity(least*45/100, resource.DecimalSI)
}

// TestReadinessTellsOfALackOfRoom: a workload is scaled so far that a zone's replicas would fit nowhere else. That is said of the zone, in the
// table, in an event and by the object's name; and when it is small again, that it would be survived. How soon is measured by `make bench-readiness`: within a
// minute where the machine has nothing else to do. Acceptance test 31 of drills, in part.
func TestReadinessTellsOfALackOfRoom(t *testing.T) {
	const zone, name = "zone.east.a", "roomy"
	web := replicaSet(name, 3, nil)
	web.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: halfANode(t)}
	if _, err := s.fed.client.AppsV1().ReplicaSets("default").Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error {
		return s.fed.client.AppsV1().ReplicaSets("default").Delete(ctx, name, metav1.DeleteOptions{})
	})
	says := func(unschedulable bool, replicas int64) time.Duration {
		t.Helper()
		return eventually(t, 2*time.Minute, func() string {
			r, err := readinessOf(t.Context(), zone)
			if err != nil {
				return err.Error()
			}
			verdict := meta.FindStatusCondition(r.Status.Conditions, v1beta1.ReadinessSurvivable)
			named := slices.ContainsFunc(r.Status.Worst, func(o v1beta1.ReadinessObject) bool { return o.Name == name && o.Unschedulable > 0 })
			if verdict == nil || named != unschedulable || unschedulable && (verdict.Reason != v1beta1.ReadinessInsufficientCapacity || r.Status.Replicas < replicas) || !unschedulable && r.Status.Unschedulable > 0 {
				return fmt.Sprintf("%s: %+v, %d replicas, %d placed, %d unschedulable, worst %+v", zone, verdict, r.Status.Replicas, r.Status.Placed, r.Status.Unschedulable, r.Status.Worst)
			}
			return ""
		})
	}
	t.Logf("created → survivable: %s", says(false, 1).Round(100*time.Millisecond))
	scale := func(n int) {
		t.Helper()
		if out, err := s.kubectl(t, "", "scale", "replicaset", name, fmt.Sprintf("--replicas=%d", n)); err != nil {
			t.Fatal(out, err)
		}
	}
	scale(15) // 5 of the 6 that each has room for
	t.Logf("scaled → not survivable: %s", says(true, 5).Round(100*time.Millisecond))
	if out, err := s.kubectl(t, "", "get", "failoverreadiness"); err != nil {
		t.Error(out, err)
	} else {
		t.Logf("\n%s", out)
	}
	eventually(t, 10*time.Second, func() string {
		events, err := s.fed.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=NotSurvivable,involvedObject.name=" + zone})
		if err != nil || len(events.Items) == 0 {
			return fmt.Sprintf("no event: %v", err)
		}
		return ""
	})
	scale(3)
	t.Logf("scaled back → survivable: %s", says(false, 1).Round(100*time.Millisecond))
}
