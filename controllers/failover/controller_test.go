package failover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/failover/plan"
	"federation/controllers/fleettest/memapi"
)

// world is a federation's API with a controller that can be stopped and restarted.
type world struct {
	*testing.T
	api  *memapi.API
	stop context.CancelFunc
	// client belongs to the running controller.
	client *memapi.Client
	// probes returns what the controller knows of probes. Nil means it does not ask.
	probes func() map[string]plan.Probe
	// others returns what other processes report. Nil means there are none.
	others func() map[string]plan.Statement

	mu     sync.Mutex
	writes int
	fails  int
}

// newWorld has ready clusters. It must be called in a bubble.
func newWorld(t *testing.T, names ...string) *world { return newWorldWith(t, nil, names...) }

// newWorldWith is newWorld with probes for the controller.
func newWorldWith(t *testing.T, probes func() map[string]plan.Probe, names ...string) *world {
	w := &world{T: t, probes: probes, api: memapi.New(memapi.Options{Resources: []memapi.Resource{
		{GroupVersionResource: v1beta1.ClustersResource, Kind: "Cluster", Status: true, Generation: true},
	}})}
	for _, name := range names {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "federation/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": name}}}
		if _, err := w.clusters("user").Create(context.Background(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.observe(name, true)
	}
	w.start()
	return w
}

type clusters interface {
	Create(ctx context.Context, obj *unstructured.Unstructured, o metav1.CreateOptions, sub ...string) (*unstructured.Unstructured, error)
	ApplyStatus(ctx context.Context, name string, obj *unstructured.Unstructured, o metav1.ApplyOptions) (*unstructured.Unstructured, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions, sub ...string) error
}

func (w *world) clusters(user string) clusters {
	return w.api.Client(user, nil).Resource(v1beta1.ClustersResource)
}

// observe writes Ready as the registry does.
func (w *world) observe(name string, ready bool) {
	w.Helper()
	status, reason := "True", v1beta1.ReasonClusterReady
	if !ready {
		status, reason = "False", v1beta1.ReasonClusterNotReachable
	}
	u := &unstructured.Unstructured{}
	body := fmt.Sprintf(`{"apiVersion":"federation/v1beta1","kind":"Cluster","metadata":{"name":%q},"status":{"kubernetesVersion":"v1","zones":[%q],
		"conditions":[{"type":"Ready","status":%q,"reason":%q,"lastTransitionTime":%q}]}}`, name, name, status, reason, time.Now().UTC().Format(time.RFC3339))
	if err := json.Unmarshal([]byte(body), &u.Object); err != nil {
		w.Fatal(err)
	}
	if _, err := w.clusters("registry").ApplyStatus(context.Background(), name, u, metav1.ApplyOptions{FieldManager: "registry"}); err != nil {
		w.Fatal(err)
	}
}

// start runs a controller, as a new process would.
func (w *world) start() {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	client := w.api.Client("failover", func(ctx context.Context, q memapi.Request, do func() error) error {
		w.mu.Lock()
		fails := q.Writes() && w.fails > 0
		if q.Writes() {
			if w.writes++; w.writes > 1000 {
				panic("it writes without end")
			}
		}
		if fails {
			w.fails--
		}
		w.mu.Unlock()
		if fails {
			return errors.New("the API is away")
		}
		return do()
	})
	w.client = client
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	recorder := record.NewFakeRecorder(1000)
	c, err := New(Options{Client: client, Recorder: recorder, Settings: plan.DefaultSettings(), Probes: w.probes, Others: w.others,
		Informers: func(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
			return factory.ForResource(gvr).Informer()
		}})
	if err != nil {
		w.Fatal(err)
	}
	factory.Start(ctx.Done())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
		factory.Shutdown()
	}
	w.wait(time.Second) // for the caches
}

func (w *world) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// are checks the phases of all clusters, and returns the number of writes since the last call.
func (w *world) are(want string) (writes int) {
	w.Helper()
	synctest.Wait()
	var got []string
	for _, u := range w.api.List(v1beta1.ClustersResource, nil) {
		c := &v1beta1.Cluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
			w.Fatal(err)
		}
		if c.Status.Failover == nil || c.Condition(v1beta1.ClusterFailedOver) == nil || c.Condition(v1beta1.ClusterReady) == nil {
			w.Fatalf("status of %s: %+v", c.Name, c.Status)
		}
		got = append(got, fmt.Sprintf("%s:%s", c.Name, c.Phase()))
	}
	if strings.Join(got, " ") != want {
		w.Fatalf("%v, want %s", got, want)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	writes, w.writes = w.writes, 0
	return writes
}

func TestOneWriteForEachChangedCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		defer func() { w.stop() }()
		expect := func(want string, writes int) {
			t.Helper()
			if n := w.are(want); n != writes {
				t.Errorf("%s: %d writes, want %d", want, n, writes)
			}
		}
		expect("a:Serving b:Serving c:Serving", 3)
		w.wait(time.Hour)
		expect("a:Serving b:Serving c:Serving", 0)
		w.observe("a", false)
		expect("a:GracePeriod b:Serving c:Serving", 1)
		w.wait(29 * time.Second)
		expect("a:GracePeriod b:Serving c:Serving", 0)
		w.wait(2 * time.Second)
		expect("a:FailedOver b:Serving c:Serving", 1)
		w.observe("a", true)
		expect("a:FailingBack b:Serving c:Serving", 1)
		w.wait(14 * time.Minute) // the hold-down, and three stable periods
		expect("a:Serving b:Serving c:Serving", 3)
		w.wait(time.Hour)
		expect("a:Serving b:Serving c:Serving", 0)
	})
}

func TestARestartGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		defer func() { w.stop() }()
		restart := func() {
			w.stop()
			time.Sleep(time.Hour)
			w.start()
		}
		w.observe("a", false)
		w.are("a:GracePeriod b:Serving c:Serving")
		restart()
		w.are("a:GracePeriod b:Serving c:Serving")
		w.wait(31 * time.Second)
		w.are("a:FailedOver b:Serving c:Serving")
		restart()
		if n := w.are("a:FailedOver b:Serving c:Serving"); n != 0 {
			t.Errorf("%d writes after a restart with nothing new", n)
		}
		w.observe("a", true)
		w.wait(61 * time.Second)
		w.are("a:FailingBack b:Serving c:Serving")
	})
}

func TestFailedWriteIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		defer func() { w.stop() }()
		w.mu.Lock()
		w.fails = 3
		w.mu.Unlock()
		w.observe("a", false)
		w.wait(10 * time.Second)
		w.are("a:GracePeriod b:Serving c:Serving")
	})
}

func TestAClusterThatIsMadeAnewBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		defer func() { w.stop() }()
		w.observe("a", false)
		w.wait(31 * time.Second)
		w.are("a:FailedOver b:Serving c:Serving")
		if err := w.clusters("user").Delete(context.Background(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.are("b:Serving c:Serving")
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "federation/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": "a"}}}
		if _, err := w.clusters("user").Create(context.Background(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.observe("a", true)
		w.are("a:Serving b:Serving c:Serving")
	})
}

// A controller that gets no more events, such as a former leader whose watch hangs, does not overwrite what the new
// leader has written.
func TestWhoJudgesByAnOldClusterWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		defer func() { w.stop() }()
		w.observe("a", false)
		w.are("a:GracePeriod b:Serving c:Serving")
		w.client.Silence(true)
		w.observe("a", true)
		serving := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "federation/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": "a"}, "status": map[string]any{
				"failover":   map[string]any{"phase": "Serving", "since": time.Now().UTC().Format(time.RFC3339)},
				"conditions": []any{map[string]any{"type": "FailedOver", "status": "False"}}}}}
		if _, err := w.clusters("next leader").ApplyStatus(context.Background(), "a", serving, metav1.ApplyOptions{FieldManager: FieldManager, Force: true}); err != nil {
			t.Fatal(err)
		}
		w.wait(35 * time.Second) // as far as it knows, its grace period is over
		w.are("a:Serving b:Serving c:Serving")
	})
}

// The federation's store is restored from a backup and the controller gets no event: its version is newer than the
// stored one. It retries from time to time.
func TestAStoreThatWasPutBackIsNotWrittenWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		defer func() { w.stop() }()
		backup := w.api.Snapshot()
		w.observe("a", false)
		w.are("a:GracePeriod b:Serving c:Serving")
		w.client.Silence(true)
		w.api.Restore(backup)
		w.wait(40 * time.Second) // as far as it knows, the grace period is over after 30 s
		if n := w.are("a:Serving b:Serving c:Serving"); n == 0 || n > 15 {
			t.Errorf("%d writes", n)
		}
	})
}

// The API says that a cluster is lost. The latest probe disagrees, or is old, or there is none: nothing is moved until
// a probe confirms it.
func TestNothingIsMovedAgainstTheLatestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probe atomic.Value // of func() map[string]plan.Probe
		probed := func(p func() plan.Probe) {
			probe.Store(func() map[string]plan.Probe { return map[string]plan.Probe{"a": p()} })
		}
		probed(func() plan.Probe { return plan.Probe{At: time.Now(), Healthy: true} })
		probes := func() map[string]plan.Probe { return probe.Load().(func() map[string]plan.Probe)() }
		w := newWorldWith(t, probes, "a", "b", "c")
		defer func() { w.stop() }()
		lost := time.Now()
		w.observe("a", false)
		w.wait(time.Minute)
		w.are("a:GracePeriod b:Serving c:Serving")
		old := time.Now().Add(-time.Minute)
		probed(func() plan.Probe { return plan.Probe{At: old, LostSince: lost} })
		w.wait(time.Minute)
		w.are("a:GracePeriod b:Serving c:Serving")
		probe.Store(func() map[string]plan.Probe { return map[string]plan.Probe{} })
		w.wait(time.Minute)
		w.are("a:GracePeriod b:Serving c:Serving")
		probed(func() plan.Probe { return plan.Probe{At: time.Now(), LostSince: lost} })
		w.wait(2 * time.Second)
		w.are("a:FailedOver b:Serving c:Serving")
	})
}

// What others report takes effect within a second, though nothing is written.
func TestOthersAreHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said atomic.Pointer[map[string]plan.Statement]
		said.Store(&map[string]plan.Statement{})
		w := newWorld(t, "a", "b", "c")
		defer func() { w.stop() }()
		w.stop()
		w.others = func() map[string]plan.Statement { return *said.Load() }
		w.start()
		w.observe("a", false)
		w.wait(5 * time.Second)
		w.are("a:GracePeriod b:Serving c:Serving")
		said.Store(&map[string]plan.Statement{"2": {Well: []string{"a"}}, "3": {Well: []string{"a"}}})
		w.wait(1100 * time.Millisecond)
		w.are("a:FailoverSuspended b:Serving c:Serving")
		w.wait(time.Hour)
		w.are("a:FailoverSuspended b:Serving c:Serving")
		said.Store(&map[string]plan.Statement{"2": {Lost: []string{"a"}}}) // the third has died
		w.wait(29 * time.Second)
		w.are("a:GracePeriod b:Serving c:Serving")
		w.wait(3 * time.Second)
		w.are("a:FailedOver b:Serving c:Serving")
	})
}
