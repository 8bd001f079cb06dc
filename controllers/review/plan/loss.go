package plan

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
	failoverplan "federation/controllers/failover/plan"
	"federation/scheduler"
	"federation/scheduler/apportion"
)

// Loss is what a long loss of some clusters would do.
type Loss struct {
	// Clusters that would be lost.
	Clusters []string
	// Held says why nothing, or not all, would be moved; "" if everything would.
	Held string
	// Objects are those with replicas there, in the order of placement.
	Objects []ObjectLoss
	// Names counts the names that are served from there now; NamesLost lists those that nobody would serve.
	Names     int
	NamesLost []string
	// Headroom is what would be left; nil if the room of no other cluster is known.
	Headroom *v1beta1.ReadinessHeadroom
	// Unknown are the clusters that would get replicas but report no capacity.
	Unknown []string
	// LookAgain is how long this holds if nothing else changes; 0 means for ever.
	LookAgain time.Duration
	// Decided is how many objects were decided for this.
	Decided int
	// Room is what would be left, for TakeIfFits, Short and Refit.
	Room *Room
}

// ObjectLoss is what would become of one object's replicas.
type ObjectLoss struct {
	Kind, Namespace, Name string
	// Replicas that would be lost: the sum of Placed elsewhere, Kept because failover is off for the object, and
	// Unschedulable.
	Replicas, Placed, Kept, Unschedulable int64
	// Pinned: all its replicas are there, and may be nowhere else.
	Pinned bool
}

// Lose returns what the loss of clusters, sorted by name, would do, in numbers. It agrees with Review.
func (f *Fleet) Lose(lost []string, now time.Time) Loss {
	in := f.inputAt(now)
	then := withLost(f.clusters, lost, now)
	w := scheduler.NewWorld(then, f.policies)
	w.Terse = true
	objects := f.affectedBy(lost)
	decisions := scheduler.DecideAndTake(objects, w, now)
	l := Loss{Clusters: lost, Held: failoverplan.WhySuspended(f.clusters, lost, f.settings, now), Decided: len(objects), LookAgain: f.sameEventFor(now)}
	gains, movable, gets := map[string]bool{}, []string(nil), map[string][]share{}
	for _, i := range scheduler.Order(objects, w) {
		o, d := &objects[i], &decisions[i]
		if d.LookAgain > 0 && (l.LookAgain == 0 || d.LookAgain < l.LookAgain) {
			l.LookAgain = d.LookAgain
		}
		key := keyOf(o.Kind, o.Namespace, o.Name)
		addShares(gets, key, o, d)
		if !isIn(o, lost) || o.Finished {
			continue
		}
		one := objectLoss(o, d, w, lost)
		l.Objects = append(l.Objects, one)
		if one.Kept == 0 && !one.Pinned && askedReplicas(d) == o.Replicas {
			movable = append(movable, key)
		}
		for name, n := range d.Placement.Clusters {
			gains[name] = gains[name] || n > o.At(name)
		}
	}
	for _, c := range then {
		if gains[c.Name] && c.Status.Capacity == nil {
			l.Unknown = append(l.Unknown, c.Name)
		}
	}
	l.Names, l.NamesLost = f.namesLost(&in, then, lost)
	l.Headroom = headroom(then, w, lost)
	l.Room = &Room{world: w, lost: lost, taken: map[string]Amounts{}, movable: movable, gets: gets, rules: f.rules}
	for name := range gets {
		l.Room.countTaken(name)
	}
	return l
}

// askedReplicas returns how many replicas a decision has placed or failed to place. An object may ask for more than its policy
// allows.
func askedReplicas(d *scheduler.Decision) (n int64) {
	for _, placed := range d.Placement.Clusters {
		n += placed
	}
	return n + d.Placement.Unschedulable
}

// sameEventFor returns how long a loss would still count as one event with those of lost clusters; 0 if there are none.
func (f *Fleet) sameEventFor(now time.Time) (left time.Duration) {
	for _, c := range f.clusters {
		if c.Status.Failover == nil || c.Status.Failover.LostAt == nil {
			continue
		}
		if d := c.Status.Failover.LostAt.Add(f.settings.Window).Sub(now) + time.Second; d > 0 && (left == 0 || d < left) {
			left = d
		}
	}
	return left
}

// objectLoss returns what a decision means for an object.
func objectLoss(o *scheduler.Object, d *scheduler.Decision, w *scheduler.World, lost []string) ObjectLoss {
	l := ObjectLoss{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
	var stays, elsewhere int64
	for name, n := range o.Current.Clusters {
		if slices.Contains(lost, name) {
			l.Replicas += n
			stays += min(n, d.Placement.Clusters[name])
		}
	}
	for name, n := range d.Placement.Clusters {
		if !slices.Contains(lost, name) {
			elsewhere += n
		}
	}
	unschedulable := max(0, d.Placement.Unschedulable-o.Current.Unschedulable)
	l.Unschedulable = min(l.Replicas, unschedulable+d.Stranded)
	l.Kept = min(l.Replicas-l.Unschedulable, max(0, stays-d.Stranded))
	l.Placed = l.Replicas - l.Unschedulable - l.Kept
	if elsewhere == 0 && l.Placed == 0 {
		l.Pinned = l.Kept == l.Replicas || d.Stranded > 0 && !selectedOutside(o, w, lost)
	}
	return l
}

func selectedOutside(o *scheduler.Object, w *scheduler.World, lost []string) bool {
	return slices.ContainsFunc(w.Clusters, func(c *v1beta1.Cluster) bool { return !slices.Contains(lost, c.Name) && w.Selects(o, c) })
}

// resources are those that a headroom covers.
var resources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

// headroom returns the free share of the remaining clusters, of the scarcest resource.
func headroom(then []*v1beta1.Cluster, w *scheduler.World, lost []string) (least *v1beta1.ReadinessHeadroom) {
	for _, r := range resources {
		var free, all float64
		one := v1beta1.ReadinessHeadroom{Resource: string(r)}
		lowest := 2.0
		for _, c := range then {
			has, left, ok := roomOf(c, w, r)
			if !ok || slices.Contains(lost, c.Name) || !c.IsReady() {
				continue
			}
			free, all = free+float64(left), all+float64(has)
			if share := float64(left) / float64(has); share < lowest {
				lowest, one.Cluster = share, c.Name
			}
		}
		if all == 0 {
			continue
		}
		if one.Percent = int32(free / all * 100); least == nil || one.Percent < least.Percent {
			least = &one
		}
	}
	return least
}

// roomOf returns what a cluster has of a resource, and what would be left of it.
func roomOf(c *v1beta1.Cluster, w *scheduler.World, r corev1.ResourceName) (has, left int64, ok bool) {
	if c.Status.Capacity == nil {
		return 0, 0, false
	}
	q, told := c.Status.Capacity.Allocatable[r]
	has = apportion.Units(r, q)
	left, ok = w.Ledger.Free(c.Name, r)
	return has, min(left, has), ok && told && has > 0
}
