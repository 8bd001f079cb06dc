package readiness

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/testutil"

	"federation/apiserver/apis/federation/v1beta1"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/readiness/plan"
	reviewplan "federation/controllers/review/plan"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// kept is a controller over a federation in memory. Each zone has one cluster of ten nodes, half filled by one
// Deployment of 20 replicas.
type kept struct {
	t           *testing.T
	client      *memapi.Client
	api         *memapi.API
	*Controller // read it while it waits

	mu        sync.Mutex
	evaluated []string
	spent     time.Duration
}

// keeps runs do in a bubble of time in which each evaluation costs a given CPU time.
func keeps(t *testing.T, zones int, costs time.Duration, do func(*kept)) {
	keepsWith(t, zones, costs, nil, do)
}

// keepsWith is keeps with an informer of Jobs, if jobsOf is not nil.
func keepsWith(t *testing.T, zones int, costs time.Duration, jobsOf func(*kept) cache.SharedIndexInformer, do func(*kept)) {
	synctest.Test(t, func(t *testing.T) {
		resources := []memapi.Resource{
			{GroupVersionResource: v1beta1.ReadinessResource, Kind: "FailoverReadiness", Status: true}, {GroupVersionResource: v1beta1.ClustersResource, Kind: "Cluster"},
			{GroupVersionResource: v1beta1.PoliciesResource, Kind: "PlacementPolicy", Namespaced: true},
		}
		for _, k := range v1beta1.FederatedKinds {
			resources = append(resources, memapi.Resource{GroupVersionResource: k.Resource, Kind: k.Kind, Namespaced: k.Kind != "Namespace"})
		}
		k := &kept{t: t, api: memapi.New(memapi.Options{Resources: resources})}
		k.client = k.api.Client("test", nil)
		k.create(corev1.SchemeGroupVersion.WithResource("namespaces"), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default"}}})
		for i := range zones {
			k.create(v1beta1.ClustersResource, asObject(t, "Cluster", zoned(i, 10)))
			k.create(deployments, deployment(i, 20))
		}
		informers := dynamicinformer.NewDynamicSharedInformerFactory(k.client, 0)
		var ofJobs cache.SharedIndexInformer
		if jobsOf != nil {
			ofJobs = jobsOf(k)
		}
		calls := 0
		c, err := New(Options{
			Client: k.client, Informers: func(r schema.GroupVersionResource) cache.SharedIndexInformer {
				if r == jobs && ofJobs != nil {
					return ofJobs
				}
				return informers.ForResource(r).Informer()
			},
			Recorder: &record.FakeRecorder{}, Levels: []plan.Level{plan.Zone}, Settings: failoverplan.DefaultSettings(),
			Info: v1beta1.Info{Name: "fed", DNSZone: "example.test", DNSTTL: 15 * time.Second, FailoverMaxZones: 1},
			Spent: func() time.Duration {
				if calls++; calls%2 == 0 { // the end of a measurement
					k.spent += costs
				}
				return k.spent
			},
			Evaluated: func(domain string, _ *reviewplan.Loss) {
				k.mu.Lock()
				defer k.mu.Unlock()
				k.evaluated = append(k.evaluated, domain)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		k.Controller = c
		informers.Start(t.Context().Done())
		go func() { _ = c.Run(t.Context()) }()
		do(k)
	})
}

// evaluations returns the evaluated domains since the last call.
func (k *kept) evaluations() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.evaluated
	k.evaluated = nil
	slices.Sort(all)
	return all
}

func (k *kept) create(r schema.GroupVersionResource, u *unstructured.Unstructured) {
	k.t.Helper()
	if _, err := k.client.Resource(r).Namespace(u.GetNamespace()).Create(k.t.Context(), u, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kept) update(r schema.GroupVersionResource, u *unstructured.Unstructured) {
	k.t.Helper()
	is := k.api.Get(r, u.GetNamespace(), u.GetName())
	u.SetResourceVersion(is.GetResourceVersion())
	if _, err := k.client.Resource(r).Namespace(u.GetNamespace()).Update(k.t.Context(), u, metav1.UpdateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kept) verdict(zone int) metav1.Condition {
	r := &v1beta1.FailoverReadiness{}
	u := k.api.Get(v1beta1.ReadinessResource, "", fmt.Sprintf("zone.r.z%02d", zone))
	if u == nil {
		return metav1.Condition{}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r); err != nil {
		k.t.Fatal(err)
	}
	return plan.Verdict(&r.Status)
}

// receiver returns the number of the first cluster that would receive replicas if a zone were lost.
func (k *kept) receiver(zone int) (i int) {
	k.t.Helper()
	if _, err := fmt.Sscanf(k.domains[fmt.Sprintf("zone.r.z%02d", zone)].room.Gets()[0], "c%d", &i); err != nil {
		k.t.Fatal(err)
	}
	return i
}

func asObject(t *testing.T, kind string, of any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(kind))
	return u
}

// zoned returns a ready cluster in a zone of its own, with room for 4 pods on each node.
func zoned(i int, nodes int32) *v1beta1.Cluster {
	before := metav1.NewTime(time.Now().Add(-time.Hour))
	have := func(pods int64) corev1.ResourceList {
		return corev1.ResourceList{"cpu": *resource.NewQuantity(pods, resource.DecimalSI), "memory": *resource.NewQuantity(pods<<30, resource.BinarySI), "pods": *resource.NewQuantity(pods, resource.DecimalSI)}
	}
	return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%02d", i)}, Status: v1beta1.ClusterStatus{
		Region: "r", Zones: []string{fmt.Sprintf("z%02d", i)},
		Conditions: []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: corev1.ConditionTrue, LastTransitionTime: before}},
		Failover:   &v1beta1.ClusterFailover{Phase: v1beta1.PhaseServing, Since: before},
		Capacity:   &v1beta1.ClusterCapacity{Nodes: nodes, Allocatable: have(80), ObservedAt: before, Free: []v1beta1.NodeClass{{Nodes: nodes, Free: have(4)}}},
	}}
}

// deployment returns a Deployment with its replicas in one cluster.
func deployment(i int, replicas int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": replicas, "template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}}}}}}}}
	u.SetNamespace("default")
	u.SetName(fmt.Sprintf("w%02d", i))
	p := v1beta1.Placement{Clusters: map[string]int64{fmt.Sprintf("c%02d", i): replicas}}
	u.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: p.String()})
	return u
}

// Acceptance test 30 of drills, second half: a change of one object evaluates only its zones. Without a change nothing
// is evaluated or written.
func TestOnlyWhatIsTouchedIsEvaluated(t *testing.T) {
	keeps(t, 8, time.Millisecond, func(k *kept) {
		time.Sleep(5 * time.Minute)
		if all := k.evaluations(); len(all) < 8 || k.verdict(3).Status != metav1.ConditionTrue {
			t.Fatalf("at first %v are evaluated; zone 3: %+v", all, k.verdict(3))
		}
		version := k.api.Version()
		time.Sleep(time.Hour)
		if all := k.evaluations(); len(all) > 0 || k.api.Version() != version {
			t.Errorf("in a quiet hour %v are evaluated, and %d writes are made", all, k.api.Version()-version)
		}
		k.update(deployments, deployment(3, 24))
		time.Sleep(5 * time.Minute)
		if all := k.evaluations(); !slices.Equal(all, []string{"zone.r.z03"}) {
			t.Errorf("after a change in zone 3 %v are evaluated", all)
		}
	})
}

// Acceptance test 31 of drills, if all clusters lose room at once and evaluating all zones takes long: within a minute
// each zone reports that it would not survive, or that this is no longer known.
func TestAMassLossOfNodesIsToldInTime(t *testing.T) {
	for every, want := range map[int]string{1: "False InsufficientCapacity", 2: "Unknown NotEvaluated"} { // which clusters lose all nodes
		t.Run(want, func(t *testing.T) {
			keeps(t, 40, 4*time.Second, func(k *kept) {
				time.Sleep(2 * time.Hour)
				k.evaluations()
				for i := range 40 {
					if v := k.verdict(i); v.Status != metav1.ConditionTrue {
						t.Fatalf("zone %d at first: %+v", i, v)
					}
				}
				for i := 0; i < 40; i += every {
					c := zoned(i, 0)
					if i == 8 { // that more has changed hides nothing
						c.Labels = map[string]string{"maintained": "yes"}
					}
					k.update(v1beta1.ClustersResource, asObject(t, "Cluster", c))
				}
				time.Sleep(time.Minute)
				evaluated, said := k.evaluations(), map[string]int{}
				for i := range 40 {
					v := k.verdict(i)
					said[fmt.Sprint(v.Status, " ", v.Reason)]++
				}
				if len(evaluated) > 5 || said[want] < 35 { // the others have had their turn
					t.Errorf("a minute after it, with %d zones evaluated, is said: %v", len(evaluated), said)
				}
				time.Sleep(3 * time.Hour)
				if v := k.verdict(20); (v.Status == metav1.ConditionTrue) != (every > 1) || v.Reason == v1beta1.ReadinessNotEvaluated {
					t.Errorf("when all have had their turn: %+v", v)
				}
			})
		})
	}
}

// TestRoomThatShrinksIsRefitted: where a cluster has become too full for what losses would give it, and others have room, all zones stay survivable, and are
// evaluated in their turn.
func TestRoomThatShrinksIsRefitted(t *testing.T) {
	keeps(t, 40, 5*time.Millisecond, func(k *kept) {
		time.Sleep(10 * time.Minute)
		k.evaluations()
		before := refitted(t)
		full := k.receiver(3)
		k.update(v1beta1.ClustersResource, asObject(t, "Cluster", zoned(full, 0)))
		for range 300 {
			time.Sleep(time.Second)
			for i := range 40 {
				if v := k.verdict(i); v.Status != metav1.ConditionTrue {
					t.Fatalf("zone %d: %+v", i, v)
				}
			}
		}
		if n := refitted(t) - before; n < 30 {
			t.Errorf("%v zones are refitted, want nearly all of 40", n)
		}
		if all := slices.Compact(k.evaluations()); len(all) != 40 {
			t.Errorf("%d zones are evaluated in their turn, want 40", len(all))
		}
		if name := zoned(full, 0).Name; slices.Contains(k.domains["zone.r.z03"].room.Gets(), name) {
			t.Errorf("%s has no node, and would receive replicas", name)
		}
	})
}

func refitted(t *testing.T) float64 {
	n, err := testutil.GetCounterMetricValue(refits.WithLabelValues(refitSurvivable))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAClusterThatReportsOftenStarvesNobody: one that is full, and says so each 15 s, has zones refitted all the time, and all are evaluated nevertheless.
func TestAClusterThatReportsOftenStarvesNobody(t *testing.T) {
	keeps(t, 40, 50*time.Millisecond, func(k *kept) {
		time.Sleep(30 * time.Minute)
		full := k.receiver(20)
		k.evaluations()
		for i := range 240 {
			c := zoned(full, 1)
			c.Status.Capacity.Free[0].Free["cpu"] = *resource.NewQuantity(1, resource.DecimalSI)
			c.Status.Capacity.ObservedAt = metav1.NewTime(time.Now())
			k.update(v1beta1.ClustersResource, asObject(t, "Cluster", c))
			if i == 20 { // each has room, and both have none
				for n := range 2 {
					u := deployment(20, 900)
					u.SetName(fmt.Sprint("more", n))
					k.create(deployments, u)
				}
			}
			time.Sleep(15 * time.Second)
			if v := k.verdict(20); i == 60 && v.Status == metav1.ConditionTrue {
				t.Errorf("ten minutes later: %+v", v)
			}
		}
		if all := slices.Compact(k.evaluations()); len(all) != 40 {
			t.Errorf("%d zones are evaluated in an hour, want 40", len(all))
		}
	})
}

// TestNotSurvivableIsNotInDoubt: less room, or a larger object, does not change what is said of a zone that would not survive, so it does not go before others.
func TestNotSurvivableIsNotInDoubt(t *testing.T) {
	keeps(t, 10, 4*time.Second, func(k *kept) {
		k.update(deployments, deployment(3, 5000))
		time.Sleep(2 * time.Hour)
		if v := k.verdict(3); v.Status != metav1.ConditionFalse {
			t.Fatalf("zone 3 at first: %+v", v)
		}
		for i := 4; i < 10; i++ {
			k.update(v1beta1.ClustersResource, asObject(t, "Cluster", zoned(i, 0)))
		}
		k.update(deployments, deployment(3, 6000))
		time.Sleep(20 * time.Second)
		doubtful := 0
		for name, d := range k.domains {
			if !d.Doubtful.IsZero() {
				doubtful++
				if name == "zone.r.z03" {
					t.Errorf("%s is in doubt", name)
				}
			}
		}
		if doubtful < 5 {
			t.Errorf("%d zones are in doubt, want most of 10", doubtful)
		}
	})
}

// TestWhatGrewMostIsCheckedFirst checks that many small changes, each dear to check, do not hide the one that no other cluster has room for.
func TestWhatGrewMostIsCheckedFirst(t *testing.T) {
	keeps(t, 40, 4*time.Second, func(k *kept) {
		time.Sleep(2 * time.Hour)
		for i := range 40 {
			grown := int64(21)
			if i == 23 {
				grown = 5000
			}
			k.update(deployments, deployment(i, grown))
		}
		time.Sleep(time.Minute)
		if v := k.verdict(23); v.Status == metav1.ConditionTrue {
			t.Errorf("a minute after it, zone 23 is said to be: %+v", v)
		}
	})
}
