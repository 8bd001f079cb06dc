package propagation

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"

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
		d := newStatusLimiter(30)
		for _, at := range c.changes {
			d.recordChange(k, start.Add(at))
		}
		if yes, got := d.isSettled(k, start.Add(c.at)); got != c.want || yes != (c.want == 0) {
			t.Errorf("%s: settled %t, asks again after %s, want %s", c.name, yes, got, c.want)
		}
		if c.want == 0 && len(d.of) > 0 {
			t.Errorf("%s: is remembered", c.name)
		}
	}
}

func TestTheMoreObjectsAreDueTheLongerTheySettle(t *testing.T) {
	const aSecond = 10
	start := time.Unix(0, 0)
	for _, c := range []struct {
		due         int
		quiet, most time.Duration
	}{
		{1, 250 * time.Millisecond, time.Second},
		{40, time.Second, 4 * time.Second},
		{5000, 5 * time.Second, 20 * time.Second},
	} {
		d := newStatusLimiter(aSecond)
		for i := range c.due {
			d.recordChange(key{NamespacedName: types.NamespacedName{Name: fmt.Sprint(i)}}, start)
		}
		k := key{NamespacedName: types.NamespacedName{Name: "0"}}
		if _, again := d.isSettled(k, start); again != c.quiet {
			t.Errorf("with %d due an object settles for %s, want %s", c.due, again, c.quiet)
		}
		d.recordChange(k, start.Add(c.most-time.Millisecond))
		if yes, again := d.isSettled(k, start.Add(c.most-time.Millisecond)); yes || again != time.Millisecond {
			t.Errorf("with %d due an object that goes on changing is reported after %s more, want 1 ms", c.due, again)
		}
	}
}

func TestATurnForNothingIsGivenOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, began := newStatusLimiter(1), time.Now()
		wait := func(want time.Duration, what string) {
			if err := d.waitForTurn(t.Context()); err != nil || time.Since(began) != want {
				t.Errorf("%s came after %s (%v), want %s", what, time.Since(began), err, want)
			}
		}
		for range burst {
			wait(0, "a turn after a time without")
		}
		d.unspent.Add(1)
		wait(0, "a turn that was for nothing")
		wait(time.Second, "a new one")
	})
}

func TestReportsOfManyObjectsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const aSecond, objects = 10, 50
		c := newController(Options{Workers: 1, Reports: aSecond})
		go c.giveTurns(t.Context())
		began := time.Now()
		told, again := []string(nil), false
		for i := range objects {
			c.reports.Add(key{NamespacedName: types.NamespacedName{Name: fmt.Sprintf("web-%02d", i)}})
		}
		for len(told) < objects {
			k, _ := c.reports.Get()
			if yes, _ := c.dues.isSettled(k, time.Now()); yes && c.dues.acquire(k) {
				told = append(told, k.Name)
			}
			c.reports.Done(k)
			if !again && len(told) == objects/2 {
				again = true
				c.reports.Add(key{NamespacedName: types.NamespacedName{Name: fmt.Sprintf("web-%02d", objects-1)}}) // takes no other turn
			}
		}
		if !slices.IsSorted(told) {
			t.Errorf("told in this order: %v, want first come first served", told)
		}
		if took, want := time.Since(began), time.Duration(objects-burst*aSecond)*time.Second/aSecond; took != want {
			t.Errorf("%d reports took %s, want %s", objects, took, want)
		}
		c.dues.waiting.ShutDown()
		c.reports.ShutDown()
	})
}

func TestReportsYieldToWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := map[string]*member{}
		for _, name := range []string{"a", "b", "c"} {
			m := &member{queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[key]())}
			defer m.queue.ShutDown()
			members[name] = m
		}
		c := newController(Options{Workers: 1, Reports: 1000})
		c.engaged = members
		defer c.reports.ShutDown()
		go c.giveTurns(t.Context())
		turn := func(name string) time.Duration {
			began, k := time.Now(), key{NamespacedName: types.NamespacedName{Name: name}}
			c.dues.turn[key{}] = false // a goroutine is already waiting
			if c.dues.acquire(k) {
				t.Fatalf("%s got its turn before others that wait", name)
			}
			k, _ = c.reports.Get()
			c.reports.Done(k)
			return time.Since(began)
		}
		fill := func(name string) {
			for i := range 2 {
				members[name].queue.Add(key{NamespacedName: types.NamespacedName{Name: fmt.Sprint(i)}})
			}
		}
		fill("a")
		if took := turn("one member is behind"); took != 0 {
			t.Errorf("with one member of three behind a turn took %s, want 0: a sick one holds up nobody", took)
		}
		fill("b")
		if took := turn("two members are behind"); took != yield {
			t.Errorf("with most members behind a turn took %s, want %s", took, yield)
		}
		c.dues.waiting.ShutDown()
	})
}

// Reports are the larger part of an object's cost: they must not grow with the number of changes.
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
	member := newAPI(web(mark, bound("u1", "ReplicaSet.apps")))
	member.client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no") })
	engage(t, federation, member, func() {
		for _, c := range []struct{ changes, most int }{{1, 1}, {4, 1}, {100, 6}} { // 50 ms apart
			before := len(federation.writes())
			for i := range c.changes {
				u := web(mark, bound("u1", "ReplicaSet.apps"))
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
