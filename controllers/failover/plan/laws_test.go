package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// world drives a fleet at random and remembers what really happened, to check the decisions against it.
type world struct {
	*fleet
	random *rand.Rand
	down   map[string]int // seconds in a row that a cluster has been down; 0: it is up
	up     map[string]int
	away   map[string]int // seconds down since the cluster last served without a debt
	total  map[string]int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 1)), down: map[string]int{}, up: map[string]int{}, away: map[string]int{}, total: map[string]int{}}
	s := DefaultSettings()
	s.MaxZones = w.random.IntN(4) - 1
	s.Stable = time.Duration(w.random.IntN(3)) * 30 * time.Second
	s.HoldDown = time.Duration(w.random.IntN(2)) * 2 * time.Minute
	var names []string
	for i := range 1 + w.random.IntN(7) {
		names = append(names, fmt.Sprintf("%c/%c", 'p'+w.random.IntN(4), 'a'+i))
	}
	w.fleet = newFleet(t, s, names...)
	return w
}

// second lets one second pass, in which clusters may go and come, alone or together, or the federation restarts.
func (w *world) second() {
	w.now = w.now.Add(time.Second)
	flip := func(c *v1beta1.Cluster, down bool) {
		if (w.down[c.Name] > 0) != down {
			w.down[c.Name], w.up[c.Name] = 0, 0
			w.observe(c.Name, map[bool]string{true: "-", false: "+"}[down])
		}
		if down {
			w.down[c.Name]++
			w.away[c.Name]++
			w.total[c.Name]++
		} else {
			w.up[c.Name]++
		}
	}
	all := w.random.IntN(1000)
	for _, c := range w.clusters {
		if w.random.IntN(200) == 0 {
			if c.Spec.Taints == nil {
				w.observe(c.Name, "D")
			} else {
				c.Spec.Taints = nil
			}
		}
		down := w.down[c.Name] > 0
		switch {
		case all < 2:
			down = w.random.IntN(5) > 0
		case all < 8:
			down = false
		case w.random.IntN(60) == 0:
			down = !down
		}
		flip(c, down)
	}
	if w.random.IntN(500) == 0 {
		w.settings.Seen = w.now
	}
}

// judge checks the laws over one round of decisions.
func (w *world) judge(before map[string]v1beta1.FailoverPhase) {
	w.t.Helper()
	zones, were, more := map[string]bool{}, map[string]bool{}, false
	for _, c := range w.clusters {
		zone := (&member{Cluster: c}).capZone()
		if c.Phase() == v1beta1.PhaseFailedOver && !w.retired(c) {
			zones[zone] = true
		}
		if before[c.Name] == v1beta1.PhaseFailedOver {
			were[zone] = true
		}
	}
	grace := int(w.settings.GracePeriod / time.Second)
	for _, c := range w.clusters {
		was, is := before[c.Name], c.Phase()
		down, up := w.down[c.Name], w.up[c.Name]
		if f := c.Status.Failover; is == v1beta1.PhaseServing && f.LostAt == nil {
			w.away[c.Name] = 0
		}
		switch {
		case is == v1beta1.PhaseFailedOver && (was == v1beta1.PhaseGracePeriod || was == v1beta1.PhaseFailoverSuspended):
			more = more || !were[(&member{Cluster: c}).capZone()] && !w.retired(c)
			if down == 0 || w.away[c.Name] < grace || w.now.Sub(w.settings.Seen) < w.settings.GracePeriod {
				w.t.Fatalf("%s is out, down for %d s, in all %d s, looked at for %s", c.Name, down, w.away[c.Name], w.now.Sub(w.settings.Seen))
			}
			if !w.retired(c) && w.vanished(c.Name, before) {
				w.t.Fatalf("%s is out, and vanished with most others: %v", c.Name, w.down)
			}
		case was == v1beta1.PhaseFailedOver && is != was && down > 0:
			w.t.Fatalf("%s is %s, and down", c.Name, is)
		case down > grace+1 && is != v1beta1.PhaseFailedOver && is != v1beta1.PhaseFailoverSuspended && w.now.Sub(w.settings.Seen) > 2*w.settings.GracePeriod &&
			w.now.Sub(c.Status.Failover.Since.Time) > w.settings.GracePeriod+time.Second:
			w.t.Fatalf("%s is %s, down for %d s", c.Name, is, down)
		case up > int((3*w.settings.Stable+w.settings.HoldDown)/time.Second)+1 && is != v1beta1.PhaseServing && w.now.Sub(w.settings.Seen) > 4*w.settings.Stable:
			w.t.Fatalf("%s is %s, up for %d s", c.Name, is, up)
		}
	}
	w.judgeHolds(len(zones))
	if limit := w.settings.MaxZones; more && limit >= 0 && len(zones) > limit && !w.anyBack(before) {
		w.t.Fatalf("%d zones are out: %s", len(zones), w.phases())
	}
}

// retired reports whether a cluster was drained before it was lost: it has nothing to lose and does not count.
func (w *world) retired(c *v1beta1.Cluster) bool {
	return c.Spec.Taints != nil && (w.down[c.Name] == 0 || w.now.Sub(c.Spec.Taints[0].TimeAdded.Time) >= time.Duration(w.down[c.Name]-1)*time.Second)
}

// judgeHolds checks the cause of each suspension: the cap is used up, or a majority is lost.
func (w *world) judgeHolds(zones int) {
	w.t.Helper()
	lost, there, usable := 0, 0, 0
	for _, c := range w.clusters {
		if w.down[c.Name] == 0 {
			usable++
		}
		switch {
		case w.retired(c):
		case w.down[c.Name] > 0:
			lost++
		default:
			there++
		}
	}
	for _, c := range w.clusters {
		held := c.Condition(v1beta1.ClusterFailoverSuspended)
		switch {
		case c.Phase() != v1beta1.PhaseFailoverSuspended, w.now.Sub(w.settings.Seen) < w.settings.GracePeriod: // nothing is decided yet
		case held.Reason == ReasonCapReached && zones < w.settings.MaxZones:
			w.t.Fatalf("%s is held by the cap, and %d zones are out: %s", c.Name, zones, w.phases())
		case held.Reason == ReasonFailStatic && lost <= there && usable > 0:
			w.t.Fatalf("%s is held for a majority, and %d of %d are lost: %s", c.Name, lost, lost+there, w.phases())
		}
	}
}

// anyBack reports whether a cluster that had nothing yet was lost again. That moves nothing, so the cap does not count.
func (w *world) anyBack(before map[string]v1beta1.FailoverPhase) bool {
	return slices.ContainsFunc(w.clusters, func(c *v1beta1.Cluster) bool {
		return before[c.Name] == v1beta1.PhaseFailingBack && c.Phase() == v1beta1.PhaseFailedOver
	})
}

// vanished reports whether more than half of the clusters went down within a window that includes this one's loss, and
// have been down since. Those with nothing to lose do not count.
func (w *world) vanished(name string, before map[string]v1beta1.FailoverPhase) bool {
	window, together, serving := int((w.settings.Window-w.settings.GracePeriod)/time.Second), 0, 0 // a loss may be put back by a grace period
	for _, c := range w.clusters {
		down := w.down[c.Name]
		if w.retired(c) || down > 0 && (before[c.Name] == v1beta1.PhaseFailedOver || before[c.Name] == v1beta1.PhaseFailingBack) {
			continue
		}
		serving++
		if down > 0 && down <= w.down[name] && w.down[name]-down < window {
			together++
		}
	}
	return 2*together > serving
}

func TestFailoverLaws(t *testing.T) {
	for seed := range uint64(60) {
		w := newWorld(t, seed)
		for range 900 {
			before := map[string]v1beta1.FailoverPhase{}
			for _, c := range w.clusters {
				before[c.Name] = c.Phase()
			}
			w.second()
			w.random.Shuffle(len(w.clusters), func(i, j int) { w.clusters[i], w.clusters[j] = w.clusters[j], w.clusters[i] })
			w.settle() // which fails when Decide does not agree with its own result
			w.judge(before)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, seed)
		for range 200 {
			w.second()
			want := fmt.Sprint(summary(Decide(w.clusters, w.settings, w.now)))
			other := slices.Clone(w.clusters)
			slices.Reverse(other)
			if got := fmt.Sprint(summary(Decide(other, w.settings, w.now))); got != want {
				t.Fatalf("seed %d: in reverse order\n%s\nwant\n%s", seed, got, want)
			}
			w.settle()
		}
	}
}

func summary(verdicts []Verdict) (out []string) {
	for _, v := range verdicts {
		out = append(out, fmt.Sprintf("%s %+v %v %v", v.Cluster, *v.Failover, v.Conditions, v.LookAgain))
	}
	return out
}

// TestNoThrash checks that ten failures in ten minutes, in any rhythm, move the replicas out once and back once.
func TestNoThrash(t *testing.T) {
	for down := 1; down < 60; down++ {
		f := newFleet(t, DefaultSettings(), "a", "b", "c")
		moves := map[string]int{}
		last := f.get("a").Phase()
		note := func() {
			is := f.get("a").Phase()
			if is != last && is == v1beta1.PhaseFailedOver && last != v1beta1.PhaseFailingBack {
				moves["out"]++
			}
			if is == v1beta1.PhaseServing && last == v1beta1.PhaseFailingBack {
				moves["back"]++
			}
			last = is
		}
		for minute := range 10 {
			f.wait(began.Add(time.Duration(minute) * time.Minute).Sub(f.now))
			f.observe("a", "-")
			f.settle()
			note()
			f.tick(time.Duration(down)*time.Second, note)
			f.observe("a", "+")
			f.settle()
			f.tick(time.Duration(60-down)*time.Second, note)
		}
		f.tick(10*time.Minute, note)
		if moves["out"] > 1 || moves["back"] > 1 || down > 30 && moves["out"] != 1 || last != v1beta1.PhaseServing {
			t.Errorf("down %d s of each minute: %v, at last %s", down, moves, last)
		}
	}
}

// TestNoThrashInAnyPattern checks that the hold-down lies between two moves out, and the stable period between two
// shares back.
func TestNoThrashInAnyPattern(t *testing.T) {
	for seed := range uint64(100) {
		chance := rand.New(rand.NewPCG(seed, 2))
		f := newFleet(t, DefaultSettings(), "a", "b", "c")
		var out time.Time
		was := f.get("a").DeepCopy()
		note := func() {
			is := f.get("a").DeepCopy()
			moves := is.Phase() == v1beta1.PhaseFailedOver && (was.Phase() == v1beta1.PhaseGracePeriod || was.Phase() == v1beta1.PhaseFailoverSuspended)
			returns := is.Phase() == v1beta1.PhaseFailingBack && is.Status.Failover.Percent > 0 && was.Status.Failover.Percent == 0
			if (moves || returns) && !out.IsZero() && f.now.Sub(out) < f.settings.HoldDown {
				t.Fatalf("seed %d: a move out at %s, and %s at %s", seed, out.Sub(began), is.Phase(), f.now.Sub(began))
			}
			if moves {
				out = f.now
			}
			was = is
		}
		for range 60 {
			for _, what := range []string{"-", "+"} {
				f.observe("a", what)
				f.settle()
				note()
				f.tick(time.Duration(1+chance.IntN(1+chance.IntN(150)))*time.Second, note)
			}
		}
	}
}

// tick waits second by second.
func (f *fleet) tick(d time.Duration, each func()) {
	for range d / time.Second {
		f.wait(time.Second)
		each()
	}
}

func BenchmarkDecide1000Clusters(b *testing.B) {
	names := make([]string, 1000)
	f := newFleet(b, DefaultSettings())
	for i := range names {
		f.clusters = append(f.clusters, &v1beta1.Cluster{})
		f.clusters[i].Name = fmt.Sprintf("c%04d", i)
		f.observe(f.clusters[i].Name, "+")
	}
	f.settle()
	for i := range 100 {
		f.observe(f.clusters[i].Name, "-")
	}
	for b.Loop() {
		Decide(f.clusters, f.settings, f.now)
	}
}
