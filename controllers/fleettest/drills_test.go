package fleettest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/drill/plan"
	"federation/controllers/fleettest/memapi"
)

// howMany is a number that the environment may raise: what takes minutes is not for each run.
func howMany(t *testing.T, variable string, without int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return without
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s: must be a number", variable, text)
	}
	return n
}

// makeDrill makes a drill of a cluster.
func makeDrill(t *testing.T, p *player, name string, method v1beta1.DrillMethod, cluster string, hold int64) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "FailoverDrill", "metadata": map[string]any{"name": name, "finalizers": []any{v1beta1.DrillFinalizer}},
		"spec": map[string]any{"scope": map[string]any{"clusters": []any{cluster}}, "method": string(method), "reason": "a test", "baselineSeconds": int64(5), "holdSeconds": hold,
			"startingDeadlineSeconds": int64(86400), "allow": []any{v1beta1.DrillRested}},
	}}
	if _, err := p.user.Resource(v1beta1.FailoverDrillsResource).Create(p.ctx, u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func drillNamed(t *testing.T, p *player, name string) *v1beta1.FailoverDrill {
	t.Helper()
	d := &v1beta1.FailoverDrill{}
	u := p.Federation.Get(v1beta1.FailoverDrillsResource, "", name)
	if u == nil {
		t.Fatalf("there is no drill %s", name)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// until lets time pass until something is so.
func until(t *testing.T, p *player, what string, patience time.Duration, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); p.Pass(time.Second) {
		if time.Now().After(end) {
			t.Fatalf("%s after %s: never", what, patience)
		}
	}
}

// Acceptance test 19 of drills: of many (DRILLS=200 for the design's number) that are made one second after the other one is under way at any version of the API, and they come in the order in which they were made. The
// process that leads stands still for 20 s meanwhile, twice: there are never two faults.
func TestDrillsComeOneAfterTheOther(t *testing.T) {
	n := howMany(t, "DRILLS", 15)
	begun(t, func(p *player) {
		run(t, p, "processes 2", "settle")
		watch, err := p.user.Resource(v1beta1.FailoverDrillsResource).Watch(p.ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		phases, order := map[string]string{}, []string{}
		seen := make(chan struct{})
		go func() {
			defer close(seen)
			for e := range watch.ResultChan() {
				u, ok := e.Object.(*unstructured.Unstructured)
				if !ok {
					continue
				}
				phase := valueAt(u, "status.phase")
				if was := phases[u.GetName()]; phase == string(v1beta1.DrillBaseline) && was != phase {
					order = append(order, u.GetName())
				}
				phases[u.GetName()] = phase
				active := slices.DeleteFunc(slices.Sorted(maps.Keys(phases)), func(name string) bool {
					return slices.Contains([]string{"none", "", string(v1beta1.DrillPending), string(v1beta1.DrillFinished)}, phases[name])
				})
				if len(active) > 1 {
					t.Errorf("under way at once: %v", active)
				}
			}
		}()
		var want []string
		for i := range n {
			want = append(want, fmt.Sprintf("drill-%03d", i))
			makeDrill(t, p, want[i], v1beta1.DrillShift, []string{"a", "b", "c"}[i%3], 10)
			p.Pass(time.Second) // a name decides between drills of the same second
		}
		run(t, p, "pause leader 20s", "wait 60s", "pause leader 20s")
		until(t, p, "the last drill is over", time.Duration(n)*time.Minute, func() bool { d := drillNamed(t, p, want[n-1]); return d.IsFinished() })
		watch.Stop()
		<-seen
		if !slices.Equal(order, want) {
			t.Errorf("they came in the order %v", order)
		}
		for _, name := range want {
			if s := drillNamed(t, p, name).Status; s.Outcome != v1beta1.DrillSucceeded && s.Reason != v1beta1.DrillControlPlane {
				t.Errorf("%s: %s, %s: %s", name, s.Outcome, s.Reason, s.Message)
			}
		}
	})
}

// Acceptance test 21 of drills: when they are stopped, what is under way is ended within 3 s, whatever the method; what is made then waits with NotStopped, and goes
// on when they may begin again.
func TestDrillsAreStopped(t *testing.T) {
	for _, method := range []v1beta1.DrillMethod{v1beta1.DrillShift, v1beta1.DrillEvacuate, v1beta1.DrillIsolation} {
		t.Run(string(method), func(t *testing.T) {
			begun(t, func(p *player) {
				stop := func(why any) {
					body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1beta1.StopDrillsAnnotation: why}}})
					if err != nil {
						t.Fatal(err)
					}
					if _, err := p.user.Resource(namespaces).Patch(p.ctx, v1beta1.FederationNamespace, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				makeDrill(t, p, "first", method, "a", 600)
				until(t, p, "it is in force", time.Minute, func() bool { return drillNamed(t, p, "first").Status.Phase == v1beta1.DrillHolding })
				p.Pass(30 * time.Second)
				makeDrill(t, p, "second", method, "b", 10)
				stop("the fair")
				p.Pass(3 * time.Second)
				c := p.clusters.named("a")
				if s := drillNamed(t, p, "first").Status; s.Reason != v1beta1.DrillStopped || !strings.Contains(s.Message, "the fair") || c.DNSWeight() == 0 || p.Federation.Get(leasesResource.GroupVersionResource, v1beta1.FederationNamespace, v1beta1.DrillLease) != nil {
					t.Errorf("3 s after they were stopped: %s, %s: %s; weight %d", s.Phase, s.Reason, s.Message, c.DNSWeight())
				}
				p.Pass(time.Minute)
				if s := drillNamed(t, p, "second").Status; s.Phase != v1beta1.DrillPending || s.Reason != v1beta1.DrillNotStopped {
					t.Errorf("one that is made then: %s, %s: %s", s.Phase, s.Reason, s.Message)
				}
				if s := drillNamed(t, p, "first").Status; s.Outcome != v1beta1.DrillInterrupted || len(s.Report.LeftBehind) > 0 {
					t.Errorf("the first is %s, %s; left behind %v", s.Outcome, s.Reason, s.Report.LeftBehind)
				}
				stop(nil)
				until(t, p, "the second begins", 20*time.Minute, func() bool { return drillNamed(t, p, "second").UnderWay() })
				run(t, p, "drill end")
			})
		})
	}
}

// Acceptance test 25 of drills, in memory: after a drill everything that the federation and its members hold is as it was before, but for versions, dates, the
// history of placements, events, the drill itself, and what is said of it.
func TestADrillLeavesNothing(t *testing.T) {
	for _, method := range []v1beta1.DrillMethod{v1beta1.DrillShift, v1beta1.DrillEvacuate, v1beta1.DrillIsolation} {
		t.Run(string(method), func(t *testing.T) {
			begun(t, func(p *player) {
				run(t, p, "settle")
				before := dump(p)
				makeDrill(t, p, "one", method, "a", 120)
				until(t, p, "it is over", time.Hour, func() bool { return drillNamed(t, p, "one").IsFinished() })
				if s := drillNamed(t, p, "one").Status; s.Outcome != v1beta1.DrillSucceeded {
					t.Errorf("%s, %s: %s", s.Outcome, s.Reason, s.Message)
				}
				run(t, p, "settle")
				after := dump(p)
				for key := range before {
					if before[key] != after[key] {
						t.Errorf("%s was\n%s\nand is\n%s", key, before[key], after[key])
					}
				}
				for key := range after {
					if _, was := before[key]; !was {
						t.Errorf("%s is new:\n%s", key, after[key])
					}
				}
			})
		})
	}
}

// dump is all that the federation and its members hold, less what may differ after a drill.
func dump(p *player) map[string]string {
	all := map[string]string{}
	of := func(whose string, api *memapi.API) {
		for _, r := range api.Resources() {
			if slices.Contains([]string{"failoverdrills", "failoverreadinesses", "leases"}, r.Resource) {
				continue
			}
			for _, u := range api.List(r.GroupVersionResource, nil) {
				u = u.DeepCopy()
				u.SetManagedFields(nil)
				u.SetResourceVersion("")
				u.SetGeneration(0)
				if r.Kind == "EndpointSlice" { // one that went is made again
					u.SetUID("")
					unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
				}
				a := u.GetAnnotations()
				if placed := v1beta1.ParsePlacement(a[v1beta1.PlacementAnnotation]); placed != nil {
					placed.History = nil
					a[v1beta1.PlacementAnnotation] = placed.String()
					u.SetAnnotations(a)
				}
				text, _ := json.MarshalIndent(Timeless(u.Object), "", " ")
				all[strings.Join([]string{whose, r.Kind, u.GetNamespace(), u.GetName()}, " ")] = string(text)
			}
		}
	}
	of("federation", p.Federation)
	for name, m := range p.members {
		of(name, m.API)
	}
	text, _ := json.MarshalIndent(fmt.Sprint(p.DNS.data()), "", " ")
	all["DNS"] = string(text)
	return all
}

// Acceptance test 6 of drills: in random fleets in which nothing else happens, where replicas go and which addresses leave DNS is what was predicted, object by object
// and record by record. DRILL_FLEETS=1000 makes as many as the design asks for.
func TestPredictionIsMeasurement(t *testing.T) {
	fleets := howMany(t, "DRILL_FLEETS", 8)
	first := howMany(t, "DRILL_FLEETS_FROM", 0)
	moved, records := 0, 0
	for seed := range uint64(fleets) {
		seed += uint64(first)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, r := predicted(t, seed)
				moved, records = moved+n, records+r
			})
		})
	}
	if t.Logf("%d fleets: %d replicas left as predicted, and %d addresses", fleets, moved, records); moved < 5*fleets {
		t.Error("these fleets show too little")
	}
}

// predicted makes a random fleet, drills a cluster of it, and compares.
func predicted(t *testing.T, seed uint64) (moved, records int) {
	chance := rand.New(rand.NewPCG(seed, 6))
	f, err := New(t.Context(), DefaultSettings(), synctest.Wait)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := &player{Fleet: f, files: map[string]string{}}
	clusters := 3 + chance.IntN(3)
	for i := range clusters {
		run(t, p, fmt.Sprintf("cluster add c%d region=%s zone=%c nodes=%d pods=%d", i, []string{"east", "west"}[i%2], 'a'+rune(i/2), 1+chance.IntN(3), 20+chance.IntN(30)))
	}
	run(t, p, "settle")
	for i := range 1 + chance.IntN(5) {
		preferences, size := "", chance.IntN(24)+1
		if chance.IntN(2) == 0 {
			one := chance.IntN(clusters)
			preferences = fmt.Sprintf(`  annotations: {federation.kubernetes.io/deployment-preferences: '{"rebalance":%t,"clusters":{"*":{"weight":1},"c%d":{"weight":%d,"minReplicas":%d}}}'}`+"\n",
				chance.IntN(2) == 0, one, chance.IntN(4), chance.IntN(3))
		}
		p.files["w.yaml"] = fmt.Sprintf(randomWorkload, i, preferences, size, i, i, i, i)
		run(t, p, "apply w.yaml", "wait 2s")
	}
	run(t, p, "settle")
	method := []v1beta1.DrillMethod{v1beta1.DrillEvacuate, v1beta1.DrillIsolation}[chance.IntN(2)]
	makeDrill(t, p, "one", method, fmt.Sprintf("c%d", chance.IntN(clusters)), 240)
	d := func() *v1beta1.FailoverDrill { return drillNamed(t, p, "one") }
	for end := time.Now().Add(2 * time.Minute); d().Status.Phase != v1beta1.DrillHolding; p.Pass(time.Second) {
		if time.Now().After(end) { // it would fit nowhere, say: nothing to compare
			if s := d().Status; s.Reason != v1beta1.DrillFits && s.Reason != v1beta1.DrillNamesSurvive && s.Reason != v1beta1.DrillNotHeld {
				t.Errorf("does not begin: %s: %s", s.Reason, s.Message)
			}
			return 0, 0
		}
	}
	p.Pass(200 * time.Second)
	r := d().Status.Report
	if d().Status.Phase != v1beta1.DrillHolding || r.Prediction.Measured != r.Prediction.Replicas || len(r.Prediction.Differences) > 0 {
		t.Errorf("%s, %s: %s; %d left, %d predicted; %v", d().Status.Phase, d().Status.Reason, d().Status.Message, r.Prediction.Measured, r.Prediction.Replicas, r.Prediction.Differences)
	}
	for _, m := range r.Prediction.Moves {
		u := p.Federation.Get(deploymentsOf, m.Namespace, m.Name)
		placed := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
		for _, c := range m.Clusters {
			if n := placed.Clusters[c.Cluster]; n != c.After {
				t.Errorf("%s %s: %d in %s, predicted %d", m.Kind, m.Name, n, c.Cluster, c.After)
			}
			moved += int(max(0, c.Before-c.After))
		}
	}
	data := p.DNS.data()
	for _, followed := range r.Prediction.Followed {
		for _, gone := range followed.Before {
			if records++; slices.Contains(data[plan.Record{Name: followed.Name, Type: followed.Type}], gone) {
				t.Errorf("%s %s still has %s", followed.Name, followed.Type, gone)
			}
		}
	}
	return moved, records
}

const randomWorkload = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: w%d
%sspec:
  replicas: %d
  selector: {matchLabels: {app: w%d}}
  template:
    metadata: {labels: {app: w%d}}
    spec: {containers: [{name: web, image: "web:1"}]}
---
apiVersion: v1
kind: Service
metadata: {name: w%d}
spec: {type: LoadBalancer, selector: {app: w%d}, ports: [{port: 80}]}
`

var deploymentsOf = appsv1.SchemeGroupVersion.WithResource("deployments")
