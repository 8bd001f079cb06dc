package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest"
	"federation/hack/procusage"
)

// TestManyDrills runs DRILLS drills of each method, one after the other. Outside of their scope no ready replica is lost, at any of the looks of 100 ms;
// afterwards the federation and its members hold what they held before, and the federation takes no more memory than after the first drills. Acceptance
// tests 5 and 25 of drills; with the 20 of each that these ask for it takes an hour: `make e2e-drills`.
func TestManyDrills(t *testing.T) {
	if os.Getenv("E2E_LONG") == "" {
		t.Skip("runs with E2E_LONG=1: make e2e-drills")
	}
	home(t)
	serve(t, "many", 6)
	eventually(t, time.Minute, func() string {
		for _, member := range names {
			if n, err := readyReplicas(t, member, "many"); err != nil || n != 2 {
				return fmt.Sprintf("%d replicas are ready in %s: %v", n, member, err)
			}
		}
		return ""
	})
	before := dump(t)
	methods := []string{"Shift", "Evacuate", "Isolate"}
	hold := map[string]int64{"Shift": 10, "Evacuate": 30, "Isolate": 30}
	rounds := int(fromEnv("DRILLS", 20))
	var first int64 // bytes
	for n := range rounds * len(methods) {
		method := methods[n%len(methods)]
		lowest, looks := watchReady(t, "many", "east-a", func() { drillOnce(t, fmt.Sprintf("many-%d", n), method, hold[method]) })
		t.Logf("%s %d: at least %d replicas were ready outside of the scope, by %d looks", method, n/len(methods)+1, lowest, looks)
		if lowest < 4 {
			t.Errorf("%s: %d replicas were ready outside of the scope, 4 before", method, lowest)
		}
		if n == 2*len(methods)-1 {
			first = procusage.Of(pidOf(t, "federation.pid")).RSS
		}
	}
	if last := procusage.Of(pidOf(t, "federation.pid")).RSS; first > 0 {
		t.Logf("the federation takes %d MiB after %d drills, %d MiB after %d", first>>20, 2*len(methods), last>>20, rounds*len(methods))
		if last > first+first/20 {
			t.Errorf("memory has grown by more than 5 %%")
		}
	}
	eventually(t, 2*time.Minute, func() string { return difference(before, dump(t)) })
}

// drillOnce runs a drill of east-a, fails the test unless it succeeds, and deletes it.
func drillOnce(t *testing.T, name, method string, hold int64) {
	t.Helper()
	drills := s.fed.dyn.Resource(v1beta1.FailoverDrillsResource)
	if _, err := drills.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "FailoverDrill", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"scope": map[string]any{"clusters": []any{"east-a"}}, "method": method, "reason": "a test", "allow": []any{v1beta1.DrillQuiet, v1beta1.DrillRested},
			"baselineSeconds": int64(5), "holdSeconds": hold},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d := &v1beta1.FailoverDrill{}
	eventually(t, 5*time.Minute, func() string {
		time.Sleep(200 * time.Millisecond)
		u, err := drills.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d)
		}
		if err != nil || !d.IsFinished() {
			return fmt.Sprintf("%s is %s: %v", name, d.Status.Phase, err)
		}
		return ""
	})
	if d.Status.Outcome != v1beta1.DrillSucceeded || len(d.Status.Report.LeftBehind) > 0 {
		t.Errorf("%s, %s: %s: %s; left behind %v", name, d.Status.Outcome, d.Status.Reason, d.Status.Message, d.Status.Report.LeftBehind)
	}
	if err := drills.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// watchReady counts the ready replicas of a ReplicaSet outside of one member every 100 ms while do runs.
func watchReady(t *testing.T, name, scope string, do func()) (lowest int32, looks int) {
	done := make(chan struct{})
	var running sync.WaitGroup
	lowest = 1 << 30
	running.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			var sum int32
			for _, member := range names {
				if member == scope {
					continue
				}
				n, err := readyReplicas(t, member, name)
				if err != nil {
					t.Errorf("%s: %v", member, err)
				}
				sum += n
			}
			lowest, looks = min(lowest, sum), looks+1
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	do()
	close(done)
	running.Wait()
	return lowest, looks
}

func readyReplicas(t *testing.T, member, name string) (int32, error) {
	set, err := s.members[member].client.AppsV1().ReplicaSets(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	return set.Status.ReadyReplicas, nil
}

// passing are resources whose objects come and go, or change, by themselves or with pods that move.
var passing = []string{"events", "pods", "endpoints", "endpointslices", "leases", "nodes", "componentstatuses", "failoverdrills", "failoverreadinesses", "ipaddresses", "podmetrics", "nodemetrics", "flowschemas", "prioritylevelconfigurations"}

// dump returns all that the federation and its members hold, by API, kind and name, without dates and what drills may change.
func dump(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for whose, c := range map[string]cluster{"federation": s.fed, "east-a": s.members["east-a"], "east-b": s.members["east-b"], "west-a": s.members["west-a"]} {
		lists, err := c.client.Discovery().ServerPreferredResources()
		if err != nil {
			t.Fatalf("%s: %v", whose, err)
		}
		for _, list := range lists {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list.APIResources {
				if slices.Contains(r.Verbs, "list") && !slices.Contains(passing, r.Name) {
					dumpResource(t, all, whose, c, gv.WithResource(r.Name))
				}
			}
		}
	}
	return all
}

func dumpResource(t *testing.T, into map[string]string, whose string, c cluster, gvr schema.GroupVersionResource) {
	t.Helper()
	list, err := c.dyn.Resource(gvr).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("%s: %s: %v", whose, gvr.Resource, err)
	}
	for i := range list.Items {
		u := &list.Items[i]
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		if gvr == v1beta1.ClustersResource { // pods may be on other nodes
			unstructured.RemoveNestedField(u.Object, "status", "capacity")
		}
		annotations := u.GetAnnotations()
		if placed := v1beta1.ParsePlacement(annotations[v1beta1.PlacementAnnotation]); placed != nil {
			placed.History = nil
			annotations[v1beta1.PlacementAnnotation] = placed.String()
			u.SetAnnotations(annotations)
		}
		text, err := json.Marshal(fleettest.Timeless(u.Object))
		if err != nil {
			t.Fatal(err)
		}
		into[strings.Join([]string{whose, gvr.Resource, u.GetNamespace(), u.GetName()}, " ")] = string(text)
	}
}

// difference names the first object in which two dumps differ; "": there is none.
func difference(before, after map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if before[key] != after[key] {
			return fmt.Sprintf("%s was\n%s\nand is\n%s", key, before[key], after[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, was := before[key]; !was {
			return fmt.Sprintf("%s is new:\n%s", key, after[key])
		}
	}
	return ""
}
