package propagation

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestAReportWaitsUntilTheCopiesSettle(t *testing.T) {
	k := key{NamespacedName: types.NamespacedName{Name: "web"}}
	start := time.Unix(0, 0)
	for _, c := range []struct {
		name    string
		changes []time.Duration
		at      time.Duration
		want    time.Duration
	}{
		{"nothing changed", nil, 0, 0},
		{"just now", []time.Duration{0}, 0, 250 * time.Millisecond},
		{"settled", []time.Duration{0}, 250 * time.Millisecond, 0},
		{"goes on changing", []time.Duration{0, 200 * time.Millisecond}, 250 * time.Millisecond, 200 * time.Millisecond},
		{"goes on for a second", []time.Duration{0, 950 * time.Millisecond}, time.Second, 0},
	} {
		d := newDues(30)
		for _, at := range c.changes {
			d.note(k, start.Add(at))
		}
		if got := d.wait(k, start.Add(c.at)); got != c.want {
			t.Errorf("%s: waits %s, want %s", c.name, got, c.want)
		}
		if c.want == 0 && len(d.of) > 0 {
			t.Errorf("%s: is remembered", c.name)
		}
	}
}

func TestReportsOfManyObjectsTakeTurns(t *testing.T) {
	const aSecond = 10
	d, now := newDues(aSecond), time.Unix(0, 0)
	object := func(i int) key { return key{NamespacedName: types.NamespacedName{Name: fmt.Sprint("web-", i)}} }
	for i := range 50 {
		want := max(0, time.Duration(i+1-burst*aSecond)*time.Second/aSecond)
		for range 2 { // asking again does not take another turn
			if got := d.takeTurn(object(i), now); got != want {
				t.Fatalf("object %d waits %s, want %s", i, got, want)
			}
			if want == 0 {
				break
			}
		}
	}
	if got := d.wait(object(49), now); got != 3*time.Second {
		t.Errorf("asked before it is looked at, it waits %s", got)
	}
	if got := d.takeTurn(object(49), now.Add(3*time.Second)); got != 0 || len(d.turn) != 29 {
		t.Errorf("at its turn it waits %s; %d wait", got, len(d.turn))
	}
}

// Reports are the larger part of what a federated object costs: their number for a number of changes must not grow.
func TestReportsOfManyChangesComeTogether(t *testing.T) {
	replicaSets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	cluster := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "federation/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": "east-a"}}}
	web := func(labels, annotations map[string]string) *unstructured.Unstructured {
		u := configMap(labels, annotations)
		u.Object["apiVersion"], u.Object["kind"], u.Object["data"] = "apps/v1", "ReplicaSet", nil
		u.Object["spec"] = map[string]any{"replicas": int64(100), "template": map[string]any{"spec": map[string]any{"nodeName": "one"}}}
		return u
	}
	federation := newAPI(cluster, web(nil, map[string]string{v1beta1.PlacementAnnotation: `{"clusters":{"east-a":100}}`}))
	member := newAPI(web(mark, nil))
	member.client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no") })
	engage(t, federation, member, func() {
		for _, c := range []struct{ changes, most int }{{1, 1}, {4, 1}, {100, 6}} { // 50 ms apart
			before := len(federation.writes())
			for i := range c.changes {
				u := web(mark, nil)
				u.Object["status"] = map[string]any{"replicas": int64(100), "readyReplicas": int64(c.changes + i)}
				u.SetResourceVersion(fmt.Sprint(10*c.changes + i))
				if _, err := member.client.Resource(replicaSets).Namespace("shop").Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(50 * time.Millisecond)
			}
			settle()
			if got := federation.writes()[before:]; len(got) == 0 || len(got) > c.most {
				t.Errorf("%d changes of a copy: %v, want 1 to %d", c.changes, got, c.most)
			}
		}
	})
}
