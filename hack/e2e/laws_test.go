package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
)

// asked is how many replicas the tests of the law ask for.
const asked = 30

const lawPreferences = `{"rebalance":true,"clusters":{"east-a":{"minReplicas":10,"maxReplicas":20,"weight":2},"*":{"weight":1}}}`

// witness watches the copies of a ReplicaSet in all members, and judges each change by the law: the ready
// replicas in members that can be reached are never less than they were, or than what is asked for.
type witness struct {
	name  string
	mu    sync.Mutex
	ready map[string]int32
	away  map[string]bool
	floor int32
	bad   []string
	doubt int // how often the members had to be asked
	moves int // changes of spec.replicas
	spec  map[string]int32
}

func watchLaw(t *testing.T, name string) *witness {
	t.Helper()
	w := &witness{name: name, ready: map[string]int32{}, away: map[string]bool{}, spec: map[string]int32{}}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for member, c := range s.members {
		all.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
				changes, err := c.client.AppsV1().ReplicaSets(ns).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
				if err != nil {
					continue
				}
				for e := range changes.ResultChan() {
					if rs, ok := e.Object.(*appsv1.ReplicaSet); ok {
						w.see(member, rs)
					}
				}
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		all.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, bad := range w.bad {
			t.Error(bad)
		}
		t.Logf("one watch was behind another %d times", w.doubt)
	})
	return w
}

func (w *witness) see(member string, rs *appsv1.ReplicaSet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok := w.spec[member]; ok && before != *rs.Spec.Replicas {
		w.moves++
	}
	w.ready[member], w.spec[member] = rs.Status.ReadyReplicas, *rs.Spec.Replicas
	if rs.DeletionTimestamp != nil {
		w.ready[member] = 0
	}
	w.judge(fmt.Sprintf("%s has %d ready of %d", member, rs.Status.ReadyReplicas, *rs.Spec.Replicas))
}

func (w *witness) sum() (sum int32) {
	for member, n := range w.ready {
		if !w.away[member] {
			sum += n
		}
	}
	return sum
}

func (w *witness) judge(what string) {
	sum := w.sum()
	if sum < min(w.floor, asked) { // one member's watch may be behind another's: what stands there now is asked for
		w.ask()
		sum = w.sum()
	}
	if sum < min(w.floor, asked) {
		w.bad = append(w.bad, fmt.Sprintf("%s: %d are ready where %d were: %v, away %v", what, sum, w.floor, w.ready, w.away))
	}
	w.floor = min(sum, asked)
}

// ask asks the members that are not away how many are ready.
func (w *witness) ask() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	for member, c := range s.members {
		if w.away[member] {
			continue
		}
		all.Go(func() {
			rs, err := c.client.AppsV1().ReplicaSets(ns).Get(ctx, w.name, metav1.GetOptions{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil && rs.DeletionTimestamp == nil {
				w.ready[member] = rs.Status.ReadyReplicas
			}
		})
	}
	all.Wait()
	w.doubt++
}

// lose and find tell the witness what no law can prevent.
func (w *witness) lose(member string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away[member] = true
	w.floor = min(w.sum(), asked)
}

func (w *witness) find(member string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away[member] = false
	w.floor = min(w.sum(), asked)
}

// moved is how often a copy's number has changed.
func (w *witness) moved() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.moves
}

// lawful makes the ReplicaSet and waits until it stands.
func lawful(t *testing.T, name string) *witness {
	t.Helper()
	sets := s.fed.client.AppsV1().ReplicaSets(ns)
	annotations := map[string]string{v1beta1.ReplicaSetPreferencesAnnotation: lawPreferences}
	if _, err := sets.Create(t.Context(), replicaSet(name, asked, annotations), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return sets.Delete(ctx, name, background) })
	holds(t, name, map[string]int32{"east-a": 20, "east-b": 5, "west-a": 5})
	w := watchLaw(t, name)
	eventually(t, 10*time.Second, func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.sum() != asked {
			return fmt.Sprint(w.ready)
		}
		return ""
	})
	return w
}

// holds waits until members have, and have ready, so many replicas; 0 is also no copy.
func holds(t *testing.T, name string, want map[string]int32) time.Duration {
	t.Helper()
	return eventually(t, 90*time.Second, func() string {
		for member, n := range want {
			rs, err := s.members[member].client.AppsV1().ReplicaSets(ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil && n == 0 {
				continue
			}
			if err != nil || *rs.Spec.Replicas != n || rs.Status.ReadyReplicas != n {
				return fmt.Sprintf("%s in %s: %v %+v, want %d", name, member, err, rs.Status, n)
			}
		}
		return ""
	})
}

// phase waits until a Cluster is in a phase.
func phase(t *testing.T, name string, want v1beta1.FailoverPhase) *v1beta1.Cluster {
	t.Helper()
	c := &v1beta1.Cluster{}
	eventually(t, 60*time.Second, func() string {
		u, err := s.fed.dyn.Resource(v1beta1.ClustersResource).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		c = &v1beta1.Cluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
			return err.Error()
		}
		if c.Phase() != want {
			return fmt.Sprintf("%s is %s (%+v), want %s", name, c.Phase(), c.Status.Failover, want)
		}
		return ""
	})
	return c
}

// home waits until all clusters serve, for what a test leaves must not disturb the next one.
func home(t *testing.T) {
	t.Helper()
	for _, name := range names {
		clusterReady(t, name, corev1.ConditionTrue)
		phase(t, name, v1beta1.PhaseServing)
	}
}

// TestTheLawUnderFaults loses a member in three ways, each for longer than the grace period.
func TestTheLawUnderFaults(t *testing.T) {
	home(t)
	w := lawful(t, "law")
	wire := behindWire(t)
	for _, fault := range []struct {
		name, member string
		begin        func() (end func())
		away         map[string]int32
	}{
		{"it hangs", "east-a", func() func() { return s.stop(t, "east-a") }, map[string]int32{"east-b": 15, "west-a": 15}},
		{"its network is cut", beyond, func() func() { wire.sever(); return func() { wire.heal(true) } }, map[string]int32{"east-a": 20, "west-a": 10}},
		{"it is killed", "west-a", func() func() {
			s.signal(t, syscall.SIGKILL, "members", "west-a", "pid")
			return func() {
				if err := s.up(); err != nil {
					t.Fatal(err)
				}
			}
		}, map[string]int32{"east-a": 20, "east-b": 10}},
	} {
		w.lose(fault.member)
		lost := time.Now()
		end := fault.begin()
		holds(t, "law", fault.away)
		t.Logf("%s: %s: its replicas were ready elsewhere %.1f s after it", fault.member, fault.name, time.Since(lost).Seconds())
		w.find(fault.member) // what it still holds counts again, from the first moment in which the federation may see it
		end()
		back := time.Now()
		holds(t, "law", map[string]int32{"east-a": 20, "east-b": 5, "west-a": 5})
		t.Logf("%s: %s: all was as before %.1f s after its return", fault.member, fault.name, time.Since(back).Seconds())
		home(t)
	}
}

// TestFailStatic: with two of three gone it is us who are cut off, for all we know: nothing moves.
func TestFailStatic(t *testing.T) {
	home(t)
	w := lawful(t, "static")
	w.lose("east-a")
	w.lose("west-a")
	resumeEast, resumeWest := s.stop(t, "east-a"), s.stop(t, "west-a")
	for _, name := range []string{"east-a", "west-a"} {
		c := phase(t, name, v1beta1.PhaseFailoverSuspended)
		if held := c.Condition(v1beta1.ClusterFailoverSuspended); held == nil || held.Status != corev1.ConditionTrue || held.Reason == "" || held.Message == "" {
			t.Errorf("%s: condition FailoverSuspended is %+v", name, held)
		}
	}
	rs, err := s.fed.client.AppsV1().ReplicaSets(ns).Get(t.Context(), "static", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p := v1beta1.ParsePlacement(rs.Annotations[v1beta1.PlacementAnnotation]); p == nil || p.Clusters["east-a"] != 20 || p.Clusters["west-a"] != 5 {
		t.Errorf("moved: %+v", p)
	}
	resumeEast()
	resumeWest()
	home(t)
	if n := w.moved(); n != 0 {
		t.Errorf("numbers have changed %d times", n)
	}
	holds(t, "static", map[string]int32{"east-a": 20, "east-b": 5, "west-a": 5})
}

// TestAFlappingMember goes away and comes back again and again: its replicas move away at most once, and back once.
func TestAFlappingMember(t *testing.T) {
	home(t)
	w := lawful(t, "flap")
	w.lose("east-a")
	for range 6 {
		resume := s.stop(t, "east-a")
		time.Sleep(4500 * time.Millisecond)
		resume()
		time.Sleep(2 * time.Second)
	}
	clusterReady(t, "east-a", corev1.ConditionTrue)
	home(t)
	holds(t, "flap", map[string]int32{"east-a": 20, "east-b": 5, "west-a": 5})
	rs, err := s.fed.client.AppsV1().ReplicaSets(ns).Get(t.Context(), "flap", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := v1beta1.ParsePlacement(rs.Annotations[v1beta1.PlacementAnnotation])
	out := 0
	for _, d := range p.History {
		if slices.ContainsFunc(d.Changes, func(c v1beta1.PlacementChange) bool { return c.Cluster == "east-a" && c.From > 0 && c.To == 0 }) {
			out++
		}
	}
	if out > 1 {
		t.Errorf("moved away %d times: %+v", out, p.History)
	}
	t.Logf("six times away for 4.5 s: %d changes of numbers in members, moved away %d times", w.moved(), out)
}

// TestDrain empties a cluster under the law, and undoes it.
func TestDrain(t *testing.T) {
	home(t)
	lawful(t, "drained")
	plugin := func(args ...string) {
		t.Helper()
		out, err := s.kubectl(t, "", append([]string{"federation"}, args...)...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		t.Logf("%v\n%s", args, out)
	}
	began := time.Now()
	t.Cleanup(func() { // where the test fails half way
		undrain := exec.Command(filepath.Join(s.root, "_output", "bin", "kubectl-federation"), "undrain", "east-a", "--timeout=180s", "--kubeconfig", s.env["FEDERATION_KUBECONFIG"])
		if out, err := undrain.CombinedOutput(); err != nil {
			t.Errorf("undrain: %v\n%s", err, out)
		}
	})
	watcher := exec.Command(filepath.Join(s.root, "_output", "bin", "kubectl-federation"), "drain", "east-a", "--ttl=3s", "--force", "--kubeconfig", s.env["FEDERATION_KUBECONFIG"])
	if err := watcher.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() string {
		out, err := s.kubectl(t, "", "get", "cluster", "east-a", "-o", "jsonpath={.metadata.annotations}")
		if err != nil {
			return err.Error()
		}
		if !strings.Contains(out, v1beta1.DrainAnnotation) {
			return "the drain has not begun"
		}
		return ""
	})
	_ = watcher.Process.Kill() // the drain goes on without who watches it
	_ = watcher.Wait()
	holds(t, "drained", map[string]int32{"east-a": 0, "east-b": 15, "west-a": 15})
	plugin("drain", "east-a", "--timeout=180s")
	t.Logf("drained after %.1f s", time.Since(began).Seconds())
	began = time.Now()
	plugin("undrain", "east-a", "--timeout=180s")
	holds(t, "drained", map[string]int32{"east-a": 20, "east-b": 5, "west-a": 5})
	t.Logf("undrained after %.1f s", time.Since(began).Seconds())
}
