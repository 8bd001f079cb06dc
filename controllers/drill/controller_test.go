package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/isolation"
	"federation/controllers/drill/plan"
	"federation/controllers/fleettest/memapi"
)

// oneLease keeps the Lease of drills and counts its writes.
type oneLease struct {
	is     *coordinationv1.Lease
	writes int
}

func (l *oneLease) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	if l.is == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, v1beta1.DrillLease)
	}
	return l.is.DeepCopy(), nil
}

func (l *oneLease) Create(_ context.Context, is *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	l.is, l.writes = is, l.writes+1
	return is, nil
}

func (l *oneLease) Update(_ context.Context, is *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	l.is, l.writes = is, l.writes+1
	return is, nil
}

func (l *oneLease) Delete(context.Context, string, metav1.DeleteOptions) error {
	l.is, l.writes = nil, l.writes+1
	return nil
}

// isolated returns the clusters that the Lease names.
func (l *oneLease) isolated() ([]string, bool) {
	if l.is == nil {
		return nil, true
	}
	_, what, _ := isolation.Read(l.is)
	return what.Clusters, true
}

func objectAs(t *testing.T, kind string, of any) *unstructured.Unstructured {
	t.Helper()
	u, err := plan.Unstructured(of, kind)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Acceptance test 27 of drills: isolating 250 of 1,000 clusters writes the Lease once in 5 s, two statuses per cluster,
// and a drill status below 64 kB.
func TestADrillOfManyClustersWritesLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resources := []memapi.Resource{
			{GroupVersionResource: v1beta1.FailoverDrillsResource, Kind: "FailoverDrill", Status: true, Generation: true}, {GroupVersionResource: v1beta1.ClustersResource, Kind: "Cluster", Status: true, Generation: true},
			{GroupVersionResource: v1beta1.PoliciesResource, Kind: "PlacementPolicy", Namespaced: true}, {GroupVersionResource: v1beta1.ReadinessResource, Kind: "FailoverReadiness", Status: true},
		}
		for _, k := range v1beta1.FederatedKinds {
			resources = append(resources, memapi.Resource{GroupVersionResource: k.Resource, Kind: k.Kind, Namespaced: k.Kind != "Namespace", Status: true})
		}
		resources = append(resources, memapi.Resource{GroupVersionResource: budgets, Kind: "PodDisruptionBudget", Namespaced: true})
		resources = slices.CompactFunc(resources, func(a, b memapi.Resource) bool { return a.GroupVersionResource == b.GroupVersionResource })
		api := memapi.New(memapi.Options{Resources: resources})
		statuses, specs := map[string]int{}, 0
		client := api.Client("federation", func(_ context.Context, r memapi.Request, do func() error) error {
			err := do()
			if err == nil && r.Writes() && r.Resource == v1beta1.ClustersResource { // one that was decided from an older version is refused, and decided again
				if r.Subresource == "status" {
					statuses[r.Name]++
				} else {
					specs++
				}
			}
			return err
		})
		user := api.Client("user", nil)
		create := func(r schema.GroupVersionResource, u *unstructured.Unstructured) {
			t.Helper()
			if _, err := user.Resource(r).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		create(namespaces, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": v1beta1.FederationNamespace}}})
		for i := range 1000 {
			c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%04d-eu-central-1-production", i)}}
			c.Status.Region, c.Status.Zones = fmt.Sprintf("r%d", i%4), []string{"a"}
			c.Status.Conditions = []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: corev1.ConditionTrue}}
			u := objectAs(t, "Cluster", c)
			create(v1beta1.ClustersResource, u)
			u.SetResourceVersion(api.Get(v1beta1.ClustersResource, "", c.Name).GetResourceVersion())
			if _, err := user.Resource(v1beta1.ClustersResource).UpdateStatus(t.Context(), u, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		create(v1beta1.FailoverDrillsResource, objectAs(t, "FailoverDrill", &v1beta1.FailoverDrill{
			ObjectMeta: metav1.ObjectMeta{Name: "large", Finalizers: []string{v1beta1.DrillFinalizer}},
			Spec: v1beta1.FailoverDrillSpec{Scope: v1beta1.FailoverDrillScope{Regions: []string{"r1"}}, Method: v1beta1.DrillIsolation, Reason: "a test", BaselineSeconds: new(int32(5)), HoldSeconds: new(int32(60)),
				Allow: []string{v1beta1.DrillNotHeld}},
		}))
		informers, lease := dynamicinformer.NewDynamicSharedInformerFactory(client, 0), &oneLease{}
		c, err := New(Options{
			Client: client, Informers: func(r schema.GroupVersionResource) cache.SharedIndexInformer {
				return informers.ForResource(r).Informer()
			}, Recorder: &record.FakeRecorder{},
			Info: v1beta1.Info{Name: "fed", DNSZone: "example.test", DNSTTL: 15 * time.Second}, Leases: lease, Isolated: lease.isolated, DeadBehind: func() []string { return nil }, Blackholed: func() []string { return nil }, Process: "p", Writes: &Writes{},
			Records: func(context.Context, []plan.Record) (map[plan.Record][]string, error) { return nil, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		informers.Start(t.Context().Done())
		go func() { _ = c.Run(t.Context()) }()
		drill, largest := &v1beta1.FailoverDrill{}, 0
		for began := time.Now(); !drill.IsFinished() && time.Since(began) < 10*time.Minute; time.Sleep(time.Second) {
			u := api.Get(v1beta1.FailoverDrillsResource, "", "large")
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, drill); err != nil {
				t.Fatal(err)
			}
			status, _ := json.Marshal(drill.Status)
			largest = max(largest, len(status))
		}
		s := drill.Status
		if len(s.Clusters) != 250 || s.Report == nil || s.Report.Marks.Injected == nil || !drill.IsFinished() || len(s.Report.LeftBehind) > 0 {
			t.Fatalf("%d clusters, %s, %s: %s", len(s.Clusters), s.Outcome, s.Reason, s.Message)
		}
		if held := int(s.Report.Marks.Recovering.Sub(s.Report.Marks.Injected.Time) / (5 * time.Second)); lease.writes > held+3 || lease.writes < held-3 {
			t.Errorf("the Lease was written %d times in %d times 5 s", lease.writes, held)
		}
		most := 0
		for _, n := range statuses {
			most = max(most, n)
		}
		if len(statuses) != 250 || most > 2 || specs > 0 {
			t.Errorf("statuses of %d clusters were written, %d times at most; specs %d times", len(statuses), most, specs)
		}
		if t.Logf("status: %d bytes at most; %d writes of the Lease", largest, lease.writes); largest > 64<<10 {
			t.Errorf("the status has %d bytes", largest)
		}
	})
}

// A Lease that a slow API server wrote for a drill after that had ended is deleted, half a minute later at most, though no cluster is isolated.
func TestALateLeaseIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := memapi.New(memapi.Options{Resources: []memapi.Resource{{GroupVersionResource: v1beta1.FailoverDrillsResource, Kind: "FailoverDrill", Status: true}}})
		lease := &oneLease{}
		c := &Controller{Options: Options{Client: api.Client("federation", nil), Leases: lease}}
		sweep := func() {
			t.Helper()
			if err := c.sweepIsolation(t.Context(), nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		sweep()
		lease.is = isolation.Renewed(nil, "ended", v1beta1.Isolation{Clusters: []string{"east-a"}}, time.Now())
		time.Sleep(sweepEvery)
		if sweep(); lease.is != nil {
			t.Errorf("the Lease is there: %v", lease.is)
		}
	})
}
