package shards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/testutil"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/shards/plan"
	"federation/controllers/writegate"
)

// fleet is a set of replicas of one server. It notices when two work with one shard.
type fleet struct {
	*testing.T
	server   *server
	mu       sync.Mutex
	by       [v1beta1.Shards]string
	replicas map[string]*replica
}

type replica struct {
	*wire
	name  string
	stop  context.CancelFunc
	ended chan error
	// suspended is how long its machine was suspended: its timers stopped, CLOCK_BOOTTIME did not.
	suspended atomic.Int64
	gate      *writegate.Gate
	// says has its statements; found are the clusters that it knows, and whether they are well.
	says  *Statements
	found map[string]bool
}

func (r *replica) clock() time.Duration {
	return time.Since(began) + time.Duration(r.suspended.Load())
}

// began is when the time of the tests' bubbles begins.
var began = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func newFleet(t *testing.T, names ...string) *fleet {
	f := &fleet{T: t, server: newServer(), replicas: map[string]*replica{}}
	for _, name := range names {
		f.start(name)
	}
	return f
}

func (f *fleet) start(name string) {
	ctx, stop := context.WithCancel(context.Background())
	r := &replica{wire: &wire{server: f.server}, name: name, stop: stop, ended: make(chan error, 1)}
	r.gate = writegate.New(DefaultTiming().Deadline, r.clock)
	r.says = NewStatements(func() map[string]bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return maps.Clone(r.found)
	}, r.clock)
	r.set(false)
	f.replicas[name] = r
	go func() {
		r.ended <- Run(ctx, Options{Leases: r.wire, Name: name, Clock: r.clock, Renewed: r.gate.Renewed, Statements: r.says, Work: func(ctx context.Context, held plan.Set) error {
			f.works(name, held)
			<-ctx.Done()
			f.rests(name)
			return nil
		}})
	}()
}

func (f *fleet) works(name string, held plan.Set) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, shard := range held.Shards() {
		if other := f.by[shard]; other != "" {
			f.Errorf("shard %d is worked with by %s and %s", shard, other, name)
		}
		f.by[shard] = name
	}
}

func (f *fleet) rests(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for shard, by := range f.by {
		if by == name {
			f.by[shard] = ""
		}
	}
}

// end shuts a replica down in order.
func (f *fleet) end(name string) {
	r := f.replicas[name]
	delete(f.replicas, name)
	r.stop()
	if err := <-r.ended; err != nil {
		f.Errorf("%s ended with %v", name, err)
	}
}

// kill ends a replica at once: none of its requests reach the server any more.
func (f *fleet) kill(name string) {
	r := f.replicas[name]
	delete(f.replicas, name)
	r.set(true)
	f.rests(name)
	r.stop()
	<-r.ended
}

func (f *fleet) endAll() {
	for name := range f.replicas {
		f.end(name)
	}
}

// holders returns who works with each shard.
func (f *fleet) holders() [v1beta1.Shards]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.by
}

// held returns how many shards each replica works with.
func (f *fleet) held() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := map[string]int{}
	for _, by := range f.by {
		held[by]++
	}
	return held
}

// balanced waits until all replicas work with equally many shards, and returns how long that took.
func (f *fleet) balanced(limit time.Duration) time.Duration {
	f.Helper()
	began := time.Now()
	for {
		synctest.Wait()
		held := f.held()
		even := held[""] == 0 && len(held) == len(f.replicas)
		for _, n := range held {
			even = even && n >= v1beta1.Shards/len(f.replicas) && n <= v1beta1.Shards/len(f.replicas)+1
		}
		if even {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			f.Fatalf("after %s: %v", time.Since(began), held)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func TestReplicasComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a")
		t.Logf("alone after %s", f.balanced(time.Second))
		f.start("b")
		f.start("c")
		t.Logf("three after %s", f.balanced(10*time.Second))
		before := f.holders()
		f.kill("b")
		t.Logf("one was killed: taken over after %s", f.balanced(9*time.Second))
		after := f.holders()
		for shard, by := range before {
			if by != "b" && after[shard] != by {
				t.Errorf("shard %d moved from %s to %s", shard, by, after[shard])
			}
		}
		f.end("c")
		if took := f.balanced(time.Second); took > time.Second/2 {
			t.Errorf("one was ended: taken over after %s", took)
		}
		time.Sleep(10 * time.Second)
		if left := f.server.names(); len(left) != 2 {
			t.Errorf("left are %q, want one Lease and the table", left)
		}
		f.endAll()
		if left := f.server.names(); len(left) != 1 {
			t.Errorf("all have ended, and it is left: %v", left)
		}
		f.start("d")
		if took := f.balanced(time.Second); took > time.Second/2 {
			t.Errorf("one came when all had ended: it had all after %s", took)
		}
		f.endAll()
	})
}

func TestWritesAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		f.balanced(10 * time.Second)
		f.server.mu.Lock()
		renewedBefore, before := f.server.renewals, f.server.version
		f.server.mu.Unlock()
		time.Sleep(100 * time.Second)
		f.server.mu.Lock()
		renewals, all := f.server.renewals-renewedBefore, f.server.version-before
		f.server.mu.Unlock()
		if renewals != all || renewals < 98 || renewals > 102 {
			t.Errorf("%d writes in 100 s, %d of them renewals, want 100 and no others", all, renewals)
		}
		f.endAll()
	})
}

// TestWhoWasSuspendedWritesNothing suspends and resumes the machine of a replica. Its timers do not notice, but its
// shards may be another's.
func TestWhoWasSuspendedWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		f.balanced(10 * time.Second)
		a := f.replicas["a"]
		time.Sleep(time.Minute)
		if !a.gate.Open() {
			t.Error("it renews its Lease, and cannot write")
		}
		a.suspended.Add(int64(30 * time.Second))
		if a.gate.Open() {
			t.Error("it was suspended for 30 s, and writes")
		}
		time.Sleep(DefaultTiming().Renew)
		synctest.Wait()
		if f.server.leases["federation-replica-a-1"] == nil || f.server.leases["federation-replica-a-0"] != nil {
			t.Error("it goes on with a Lease that it had not renewed for 30 s")
		}
		f.balanced(30 * time.Second)
		if !a.gate.Open() {
			t.Error("it has shards again, and cannot write")
		}
		f.endAll()
	})
}

func TestWhoIsCutOffStopsBeforeOthersBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		f.balanced(10 * time.Second)
		f.replicas["a"].set(true)
		time.Sleep(20 * time.Second)
		if held := f.held(); held["b"] != v1beta1.Shards {
			t.Errorf("a is cut off: %v", held)
		}
		f.replicas["a"].set(false)
		t.Logf("healed: balanced after %s", f.balanced(60*time.Second))
		for _, r := range f.replicas {
			r.set(true)
		}
		time.Sleep(20 * time.Second)
		if held := f.held(); held[""] != v1beta1.Shards {
			t.Errorf("all are cut off: %v", held)
		}
		for _, r := range f.replicas {
			r.set(false)
		}
		t.Logf("all healed: balanced after %s", f.balanced(60*time.Second))
		f.endAll()
	})
}

// TestNeverTwo makes replicas come, go, die, and lose and regain their connection, at random.
func TestNeverTwo(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			f := newFleet(t, "r0")
			for next := range 40 {
				names := make([]string, 0, len(f.replicas))
				for name := range f.replicas {
					names = append(names, name)
				}
				one := names[r.IntN(len(names))]
				switch what := r.IntN(5); {
				case what == 0 || len(names) == 1:
					f.start(fmt.Sprintf("r%d", next+1))
				case what == 1:
					f.kill(one)
				case what == 2:
					f.replicas[one].set(false)
					f.end(one)
				default:
					f.replicas[one].set(what == 3)
				}
				time.Sleep(time.Duration(r.IntN(12000)) * time.Millisecond)
			}
			for _, one := range f.replicas {
				one.set(false)
			}
			f.balanced(calm + 10*time.Second)
			f.endAll()
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

func TestWorkThatEndsEndsTheReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := &wire{server: s}
		w.set(false)
		boom := errors.New("boom")
		err := Run(t.Context(), Options{Leases: w, Name: "a", Work: func(context.Context, plan.Set) error { return boom }})
		if !errors.Is(err, boom) {
			t.Error(err)
		}
		if len(s.leases) != 1 {
			t.Errorf("it has ended, and its Lease is there: %v", s.leases)
		}
	})
}

// If the table is broken or deleted by hand, nobody works until it is readable or created again.
func TestATableThatSomebodyTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		f.balanced(10 * time.Second)
		hand := &wire{server: f.server}
		hand.set(false)
		table, err := hand.Get(t.Context(), TableName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		table.Annotations[TableAnnotation] = "what?"
		if _, err := hand.Update(t.Context(), table, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if held := f.held(); held[""] != v1beta1.Shards {
			t.Errorf("the table is broken: %v", held)
		}
		if n, err := testutil.GetGaugeMetricValue(unreadable); err != nil || n != 1 {
			t.Errorf("the table is broken, and federation_shards_table_unreadable is %v, %v", n, err)
		}
		if err := hand.Delete(t.Context(), TableName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.balanced(20 * time.Second)
		if n, err := testutil.GetGaugeMetricValue(unreadable); err != nil || n != 0 {
			t.Errorf("the table is read again, and federation_shards_table_unreadable is %v, %v", n, err)
		}
		f.endAll()
	})
}

func TestTimingsThatDoNotFit(t *testing.T) {
	for _, timing := range []Timing{{Renew: time.Hour}, {Deadline: time.Minute}, {Renew: -1}} {
		o := Options{Leases: &wire{}, Name: "a", Work: func(context.Context, plan.Set) error { return nil }, Timing: timing}
		if err := Run(t.Context(), o); err == nil {
			t.Errorf("%+v is taken", timing)
		}
	}
}

func TestADurationOfAnotherVersion(t *testing.T) {
	s := newSightings(DefaultTiming())
	for seconds, want := range map[int32]time.Duration{2: 8 * time.Second, 20: 20 * time.Second} {
		if got := s.leaseDuration(&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds}}); got != want {
			t.Errorf("%d s: %s, want %s", seconds, got, want)
		}
	}
}
