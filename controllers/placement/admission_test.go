package placement

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
)

func readyCluster(name string) *v1beta1.Cluster {
	return &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     v1beta1.ClusterStatus{Conditions: []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: "True"}}},
	}
}

func testAdmitter(clusters ...*v1beta1.Cluster) *Admitter {
	p := NewAdmitter()
	p.now = func() time.Time { return time.Unix(1000, 0) }
	p.synced = true
	for _, c := range clusters {
		p.clusters[types.NamespacedName{Name: c.Name}] = c
	}
	return p
}

func newReplicaSet(replicas int64, annotations map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": map[string]any{"replicas": replicas, "template": map[string]any{}},
	}}
	u.SetNamespace("shop")
	u.SetName("web")
	u.SetAnnotations(annotations)
	return u
}

// What is placed as it is created must be what the controller would decide, or each object would be placed twice.
func TestAdmitter_DecidesAsTheControllerDoes(t *testing.T) {
	for _, annotations := range []map[string]string{
		nil,
		{v1beta1.ReplicaSetPreferencesAnnotation: `{"rebalance":true,"clusters":{"east-a":{"weight":2},"*":{"weight":1}}}`},
		{v1beta1.ReplicaSetPreferencesAnnotation: `{"clusters":{"west-a":{"minReplicas":5},"*":{"weight":1}}}`},
	} {
		p := testAdmitter(readyCluster("east-a"), readyCluster("east-b"), readyCluster("west-a"))
		u := newReplicaSet(10, annotations)
		value := p.Place(u)
		if placement := v1beta1.ParsePlacement(value); placement == nil || len(placement.Clusters) != 3 {
			t.Fatalf("%v: placed as %q", annotations, value)
		}
		all := map[string]string{v1beta1.PlacementAnnotation: value}
		for key, v := range annotations {
			all[key] = v
		}
		o, err := scheduler.Read(newReplicaSet(10, all))
		if err != nil {
			t.Fatal(err)
		}
		if d := scheduler.Decide(o, p.world, p.now().Add(time.Minute)); d.Changed {
			t.Errorf("%v: placed as %s, the controller wants %s", annotations, value, d.Value())
		}
	}
}

func TestAdmitter_LeavesItToTheController(t *testing.T) {
	unread := NewAdmitter()
	if got := unread.Place(newReplicaSet(3, nil)); got != "" {
		t.Errorf("before the clusters are read: %q", got)
	}
	if got := testAdmitter().Place(newReplicaSet(3, nil)); got != "" {
		t.Errorf("without clusters: %q", got)
	}
	capped := map[string]string{v1beta1.ReplicaSetPreferencesAnnotation: `{"clusters":{"east-a":{"maxReplicas":2}}}`}
	if got := testAdmitter(readyCluster("east-a")).Place(newReplicaSet(3, capped)); got != "" {
		t.Errorf("where replicas have no place: %q", got)
	}
}

// Objects that are created one right after the other must not all count on the same room.
func TestAdmitter_RemembersWhatItGaveAway(t *testing.T) {
	small, large := readyCluster("east-a"), readyCluster("east-b")
	small.Status.Capacity = capacityOf(4)
	large.Status.Capacity = capacityOf(100)
	p := testAdmitter(small, large)
	inSmall := int64(0)
	for range 10 {
		placement := v1beta1.ParsePlacement(p.Place(newReplicaSet(2, nil)))
		if placement == nil {
			t.Fatal("not placed")
		}
		inSmall += placement.Clusters["east-a"]
		p.world = nil // a report comes in that does not know of it yet
	}
	if inSmall > 4 {
		t.Errorf("%d replicas in a cluster with room for 4", inSmall)
	}
	p.now = func() time.Time { return time.Unix(1000, 0).Add(2 * seenAfter) }
	p.world = nil
	p.Place(newReplicaSet(2, nil))
	if len(p.given) != 1 {
		t.Errorf("remembers %d objects after %s", len(p.given), 2*seenAfter)
	}
}

func capacityOf(pods int64) *v1beta1.ClusterCapacity {
	room := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}
	return &v1beta1.ClusterCapacity{Nodes: 1, Allocatable: room, Free: []v1beta1.NodeClass{{Nodes: 1, Free: room}}}
}
