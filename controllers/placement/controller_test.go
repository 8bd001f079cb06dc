package placement

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
)

const grace = 30 * time.Second

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

var replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}

// fleet is a federation in memory with a running placement controller.
type fleet struct {
	t      *testing.T
	client *fake.FakeDynamicClient
	events *record.FakeRecorder
	change func(*Options)
	stop   func()
}

// inFleet runs do beside a controller, in a bubble whose time passes when all goroutines wait.
func inFleet(t *testing.T, do func(*fleet)) {
	t.Helper()
	inFleetWith(t, func(*Options) {}, do)
}

// inFleetWith is inFleet with other options.
func inFleetWith(t *testing.T, change func(*Options), do func(*fleet)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, events: record.NewFakeRecorder(100), change: change}
		lists := map[schema.GroupVersionResource]string{v1beta1.ClustersResource: "ClusterList", v1beta1.PoliciesResource: "PlacementPolicyList"}
		for _, k := range v1beta1.FederatedKinds {
			lists[k.Resource] = k.Kind + "List"
		}
		lists[schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "databases"}] = "DatabaseList"
		lists[definitions] = "CustomResourceDefinitionList"
		f.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
		f.start()
		do(f)
		f.stop()
	})
}

// start starts a controller; stop stops it.
func (f *fleet) start() {
	ctx, stop := context.WithCancel(f.t.Context())
	factory := dynamicinformer.NewDynamicSharedInformerFactory(f.client, 0)
	options := Options{
		Client: f.client, Recorder: f.events, GracePeriod: grace,
		Informers: func(r schema.GroupVersionResource) cache.SharedIndexInformer {
			return factory.ForResource(r).Informer()
		},
		Start: func() { factory.Start(ctx.Done()) },
	}
	f.change(&options)
	c, err := New(options)
	if err != nil {
		f.t.Fatal(err)
	}
	factory.Start(ctx.Done())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	f.settle()
	f.stop = func() {
		stop()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
		factory.Shutdown()
	}
}

// settle lets the controller finish. It takes less time than the grace period.
func (f *fleet) settle() { time.Sleep(time.Second); synctest.Wait() }

func (f *fleet) cluster(name, ready string) {
	f.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "federation/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": name},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": ready, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}},
	}}
	clusters := f.client.Resource(v1beta1.ClustersResource)
	_, err := clusters.Create(f.t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		_, err = clusters.Update(f.t.Context(), u, metav1.UpdateOptions{})
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.settle()
}

func (f *fleet) replicaSet(replicas int64, annotations map[string]any) {
	f.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "ReplicaSet",
		"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "u1", "annotations": annotations},
		"spec":     map[string]any{"replicas": replicas},
	}}
	if _, err := f.client.Resource(replicaSets).Namespace("shop").Create(f.t.Context(), u, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	f.settle()
}

// placement returns the current annotation.
func (f *fleet) placement() string {
	f.t.Helper()
	u, err := f.client.Resource(replicaSets).Namespace("shop").Get(f.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return u.GetAnnotations()[v1beta1.PlacementAnnotation]
}

// patches returns how often the controller wrote.
func (f *fleet) patches() (n int) {
	for _, a := range f.client.Actions() {
		if a.GetVerb() == "patch" {
			n++
		}
	}
	return n
}

func (f *fleet) expect(placement string, patches int) {
	f.t.Helper()
	got := ""
	if p := v1beta1.ParsePlacement(f.placement()); p != nil {
		got = (&v1beta1.Placement{Clusters: p.Clusters, Home: p.Home}).String()
	}
	if n := f.patches(); got != placement || n != patches {
		f.t.Errorf("placement %s after %d patches, want %s after %d", got, n, placement, patches)
	}
}

func TestOneWriteWhenChangedNoneOtherwise(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		f.cluster("west-a", "True")
		f.replicaSet(4, nil)
		f.expect(`{"clusters":{"east-a":2,"west-a":2}}`, 1)

		sets := f.client.Resource(replicaSets).Namespace("shop")
		u, err := sets.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_ = unstructured.SetNestedField(u.Object, int64(4), "status", "readyReplicas")
		if _, err := sets.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.cluster("west-a", "True") // decided again, nothing new
		f.expect(`{"clusters":{"east-a":2,"west-a":2}}`, 1)

		_ = unstructured.SetNestedField(u.Object, int64(6), "spec", "replicas")
		if _, err := sets.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.settle()
		f.expect(`{"clusters":{"east-a":3,"west-a":3}}`, 2)
	})
}

// A write that the API refuses as a conflict, as when many others write the object at once, is followed by no event of its own.
func TestAWriteInConflictIsDecidedAgain(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		conflicts := 1
		f.client.PrependReactor("patch", "replicasets", func(k8stesting.Action) (bool, runtime.Object, error) {
			conflicts--
			return conflicts >= 0, nil, apierrors.NewConflict(replicaSets.GroupResource(), "web", nil)
		})
		f.replicaSet(4, nil)
		time.Sleep(retryAfter)
		f.settle()
		f.expect(`{"clusters":{"east-a":4}}`, 2)
	})
}

func TestReplicasMoveWhenTheGracePeriodIsOver(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		f.cluster("west-a", "True")
		f.replicaSet(4, nil)
		f.cluster("west-a", "False")
		f.expect(`{"clusters":{"east-a":2,"west-a":2}}`, 1)
		time.Sleep(grace)
		f.settle()
		f.expect(`{"clusters":{"east-a":4},"home":{"east-a":2,"west-a":2}}`, 2)
		if got, want := <-f.events.Events, "Normal ReplicasMoved east-a 2→4, west-a 2→0 (cluster west-a: failed over)"; got != want {
			t.Errorf("event %q, want %q", got, want)
		}
		f.cluster("east-a", "False")
		time.Sleep(2 * grace)
		f.expect(`{"clusters":{"east-a":4},"home":{"east-a":2,"west-a":2}}`, 2) // nowhere to move to
	})
}

func TestAClusterThatComesBackInTimeKeepsItsReplicas(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		f.cluster("west-a", "True")
		f.replicaSet(4, nil)
		f.cluster("west-a", "False")
		time.Sleep(grace / 2)
		f.cluster("west-a", "True")
		time.Sleep(2 * grace)
		f.expect(`{"clusters":{"east-a":2,"west-a":2}}`, 1)
	})
}

func TestADeletedClusterLosesItsReplicasAtOnce(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		f.cluster("west-a", "True")
		f.replicaSet(4, nil)
		if err := f.client.Resource(v1beta1.ClustersResource).Delete(t.Context(), "west-a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.settle()
		f.expect(`{"clusters":{"east-a":4}}`, 2)
	})
}

func TestPreferencesThatCannotBeReadPlaceNothing(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		f.replicaSet(4, map[string]any{v1beta1.ReplicaSetPreferencesAnnotation: "{"})
		f.expect("", 0)
		if got := <-f.events.Events; len(got) < 24 || got[:24] != "Warning InvalidPlacement" {
			t.Errorf("event %q", got)
		}
	})
}
