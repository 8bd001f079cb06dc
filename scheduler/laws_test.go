package scheduler

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// walk is an object in a world that changes at random, step by step.
type walk struct {
	t        *testing.T
	rng      *rand.Rand
	clusters []*v1beta1.Cluster
	policy   *v1beta1.PlacementPolicy
	o        Object
	now      time.Time
	log      []string
	steadies int // how often it was steady
}

func newWalk(t *testing.T, seed int64) *walk {
	w := &walk{t: t, rng: rand.New(rand.NewSource(seed)), now: now}
	for i := range 1 + w.rng.Intn(6) {
		c := cluster(fmt.Sprint("c", i), 0)
		c.Status.Zones, c.Status.Region = []string{string(rune('a' + i%3))}, []string{"east", "west"}[i%2]
		w.clusters = append(w.clusters, c)
	}
	w.o = replicaSet(w.rng.Int63n(40), nil)
	w.o.template = map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": "500m"}}}}}}
	w.policy = &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	w.policy.Spec.ResourceSelectors = []v1beta1.ResourceSelector{{APIVersion: "apps/v1", Kind: "ReplicaSet"}}
	w.newPolicy()
	return w
}

func (w *walk) say(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *walk) fatal(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.log[max(0, len(w.log)-25):] {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

// newPolicy changes the policy at random.
func (w *walk) newPolicy() {
	spec := &w.policy.Spec
	spec.ReplicaPreferences = &v1beta1.ReplicaPreferences{Rebalance: w.rng.Intn(2) == 0, Clusters: map[string]v1beta1.ClusterPreferences{"*": {Weight: 1}}}
	if w.rng.Intn(2) == 0 {
		most := w.rng.Int63n(30)
		spec.ReplicaPreferences.Clusters["c0"] = v1beta1.ClusterPreferences{Weight: w.rng.Int63n(4), MaxReplicas: &most, MinReplicas: min(most, w.rng.Int63n(6))}
		if most%4 == 0 {
			delete(spec.ReplicaPreferences.Clusters, "*")
		}
	}
	spec.SpreadConstraints = nil
	for _, by := range coarse {
		if w.rng.Intn(4) == 0 {
			c := v1beta1.SpreadConstraint{SpreadBy: by, MinGroups: int32(w.rng.Intn(4))}
			if w.rng.Intn(2) == 0 {
				most := max(c.MinGroups, int32(1+w.rng.Intn(3)))
				c.MaxGroups = &most
			}
			spec.SpreadConstraints = append(spec.SpreadConstraints, c)
		}
	}
	spec.Failover = &v1beta1.FailoverPolicy{Disabled: w.rng.Intn(8) == 0, Failback: []v1beta1.Failback{"", v1beta1.FailbackImmediate, v1beta1.FailbackNever}[w.rng.Intn(3)]}
	spec.WorkloadAffinity = []v1beta1.WorkloadAffinity{"", v1beta1.WorkloadAffinityNone, v1beta1.WorkloadAffinityRequired}[w.rng.Intn(3)]
	w.say("policy %s", asText(w.policy.Spec))
}

// together checks that a policy which keeps what it governs together has it in its clusters, and keeps these in its status.
func (w *walk) together(world *World, d *Decision) {
	clusters, home, _, ok := world.Together(w.policy, w.now)
	for name, n := range d.Placement.Clusters {
		if ok && n > 0 && len(clusters) > 0 && !slices.Contains(clusters, name) {
			w.fatal("%s has %d, and the policy is in %v", name, n, clusters)
		}
	}
	next := w.policy.DeepCopy()
	if next.Status.Home = home; !ok || len(clusters) > 0 {
		next.Status.Clusters = clusters
	}
	w.policy = next
	w.say("together in %v, home %v", clusters, home)
}

var coarse = []v1beta1.SpreadBy{v1beta1.SpreadByRegion, v1beta1.SpreadByZone, v1beta1.SpreadByCluster}

func asText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// change changes something of the world.
func (w *walk) change() {
	c := w.clusters[w.rng.Intn(len(w.clusters))]
	switch w.rng.Intn(8) {
	case 0:
		w.o.Replicas = w.rng.Int63n(40)
		w.say("replicas %d", w.o.Replicas)
	case 1:
		w.newPolicy()
	case 2:
		c.Spec.Taints = nil
		if w.rng.Intn(2) == 0 {
			effect := []corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule}[w.rng.Intn(2)]
			c.Spec.Taints = []corev1.Taint{{Key: "k", Effect: effect}}
		}
		w.say("%s taints %v", c.Name, c.Spec.Taints)
	case 3:
		c.Status.Capacity = nil
		if w.rng.Intn(2) == 0 {
			c.Status.Capacity = &v1beta1.ClusterCapacity{Free: []v1beta1.NodeClass{{Nodes: 1 + int32(w.rng.Intn(3)), Free: corev1.ResourceList{
				"cpu": *resource.NewMilliQuantity(w.rng.Int63n(5000), resource.DecimalSI), "pods": *resource.NewQuantity(w.rng.Int63n(9), resource.DecimalSI)}}}}
			if w.rng.Intn(2) == 0 {
				c.Status.Capacity.Unschedulable = []v1beta1.UnschedulablePods{{Kind: "ReplicaSet", Namespace: "default", Name: "web", Pods: int32(1 + w.rng.Intn(9))}}
			}
		}
		w.say("%s capacity %v", c.Name, asText(c.Status.Capacity))
	default:
		w.phase(c)
	}
}

// phase takes a cluster one step further: lost, out, returning by stages, serving.
func (w *walk) phase(c *v1beta1.Cluster) {
	ready := corev1.ConditionFalse
	f := v1beta1.ClusterFailover{LostAt: &metav1.Time{Time: w.now.Add(-time.Minute)}}
	switch {
	case c.Phase() == v1beta1.PhaseServing && w.rng.Intn(2) == 0:
		f.Phase = v1beta1.PhaseGracePeriod
	case c.Phase() == v1beta1.PhaseServing, c.Phase() == v1beta1.PhaseGracePeriod:
		f.Phase = v1beta1.PhaseFailedOver
	case c.Phase() == v1beta1.PhaseFailedOver:
		f.Phase, ready = v1beta1.PhaseFailingBack, corev1.ConditionTrue
	case c.Status.Failover.Percent < 50:
		f.Phase, ready, f.Percent = v1beta1.PhaseFailingBack, corev1.ConditionTrue, c.Status.Failover.Percent*4+10
	default:
		f.Phase, ready = v1beta1.PhaseServing, corev1.ConditionTrue
	}
	c.Status.Failover, c.Status.Conditions[0].Status = &f, ready
	w.say("%s %s %d", c.Name, f.Phase, f.Percent)
}

func (w *walk) world(clusters []*v1beta1.Cluster) *World {
	return NewWorld(clusters, []*v1beta1.PlacementPolicy{w.policy})
}

// step decides, checks the laws, and applies the decision.
func (w *walk) step() {
	w.now = w.now.Add(time.Minute)
	before := w.o.Current
	world := w.world(w.clusters)
	w.steady(world)
	d := Decide(w.o, world, w.now)
	w.say("→ %s home %v cause %q", asText(d.Placement.Clusters), d.Placement.Home, d.Cause)
	if got := sum(d.Placement.Clusters) + d.Placement.Unschedulable; got != w.o.Replicas {
		w.fatal("%d are placed or not placed of %d", got, w.o.Replicas)
	}
	w.order(d)
	w.limits(before, &d)
	w.together(world, &d)
	world.Take(&w.o, &d)
	next := d.Placement
	w.o.Current = &next
	again := Decide(w.o, world, w.now)
	if again.Changed && !w.gaveBack(before, &next) {
		w.fatal("decided again it is another one: %s, then %s (cause %q)", asText(d.Placement), asText(again.Placement), again.Cause)
	}
	if before != nil && !maps.Equal(before.Clusters, next.Clusters) && (d.Cause == "" || d.Moved == "" || next.History[0].Cause != d.Cause) {
		w.fatal("it changed and does not say why: %+v", d)
	}
}

// steady checks that a steady object keeps its numbers, even if others take room or clusters are lost that it is not
// in.
func (w *walk) steady(world *World) {
	if !world.Steady(&w.o) {
		return
	}
	w.steadies++
	then := slices.Clone(w.clusters)
	for i, c := range then {
		if then[i] = c.DeepCopy(); w.o.At(c.Name) == 0 && w.rng.Intn(3) == 0 {
			then[i].Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailedOver}
		}
	}
	world = w.world(then)
	for _, c := range then {
		world.Ledger.Take(c.Name, world.Ledger.Demand(w.o.Requests()), w.rng.Int63n(20))
	}
	if d := Decide(w.o, world, w.now); !maps.Equal(withoutZeros(w.o.Current.Clusters), d.Placement.Clusters) {
		w.fatal("it is steady, has %v, and then %v", w.o.Current.Clusters, d.Placement.Clusters)
	}
}

// gaveBack reports whether a cluster with known room gave some back. How much is unknown until its next report: until
// then its overflow may differ.
func (w *walk) gaveBack(before, after *v1beta1.Placement) bool {
	for _, c := range w.clusters {
		if before != nil && c.Status.Capacity != nil && before.Clusters[c.Name]+before.Overflow[c.Name] > after.Clusters[c.Name]+after.Overflow[c.Name] {
			return true
		}
	}
	return false
}

// order checks that the order of clusters does not matter.
func (w *walk) order(d Decision) {
	other := append([]*v1beta1.Cluster(nil), w.clusters...)
	w.rng.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
	if got := Decide(w.o, w.world(other), w.now); !reflect.DeepEqual(got, d) {
		w.fatal("another order of clusters gives %+v, not %+v", got, d)
	}
}

// limits checks that a cluster that is out has nothing, one that must not grow does not, and one without room gets
// none.
func (w *walk) limits(before *v1beta1.Placement, d *Decision) {
	had, over := map[string]int64{}, map[string]int64{}
	if before != nil {
		had, over = before.Clusters, before.Overflow
	}
	usable := false
	for _, c := range w.clusters {
		if w.policy.Spec.WorkloadAffinity == v1beta1.WorkloadAffinityRequired && !slices.Contains(d.Together, c.Name) {
			continue // it is in no other
		}
		usable = usable || (c.Phase() == v1beta1.PhaseServing || c.Phase() == v1beta1.PhaseFailingBack) && len(c.Spec.Taints) == 0
	}
	ledger := w.world(w.clusters).Ledger
	demand := ledger.Demand(w.o.Requests())
	for _, c := range w.clusters {
		n, was := d.Placement.Clusters[c.Name], had[c.Name]
		gone := c.Phase() == v1beta1.PhaseFailedOver && !w.policy.Spec.Failover.Disabled || evicts(c)
		grows := c.Phase() != v1beta1.PhaseFailedOver && c.Phase() != v1beta1.PhaseGracePeriod && len(c.Spec.Taints) == 0
		switch room, limited := ledger.Room(c.Name, demand); {
		case usable && gone && n > 0:
			w.fatal("%s is out and has %d", c.Name, n)
		case !grows && n > was:
			w.fatal("%s must not grow, and goes from %d to %d", c.Name, was, n)
		case limited && n > was+room+over[c.Name]:
			w.fatal("%s has room for %d, and goes from %d to %d", c.Name, room, was, n)
		}
	}
}

func TestPlacementLaws(t *testing.T) {
	steadies := 0
	for seed := range int64(500) {
		w := newWalk(t, seed)
		w.say("seed %d", seed)
		w.step()
		for range 25 {
			w.change()
			w.step()
		}
		steadies += w.steadies
	}
	if steadies < 500 {
		t.Errorf("it was steady %d times: these walks show too little", steadies)
	}
}
