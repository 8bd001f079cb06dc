package plan

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
	"federation/scheduler/apportion"
)

// Room is what a loss would leave. It answers whether more would fit without a new evaluation of the loss.
type Room struct {
	world *scheduler.World
	lost  []string // sorted
	// taken is what the clusters would get, by resource.
	taken map[string]Amounts
	// movable are the keys of the objects of which all that is lost would have to be placed elsewhere.
	movable []string
	// gets is what each cluster would get, in the order of placement.
	gets map[string][]share
	// rules are those of the fleet at the evaluation.
	rules int
}

// share is a number of an object's replicas, by its key.
type share struct {
	key      string
	replicas int64
}

// addShares adds what a decision adds of an object to clusters.
func addShares(gets map[string][]share, key string, o *scheduler.Object, d *scheduler.Decision) {
	for name, n := range d.Placement.Clusters {
		if more := n - o.At(name); more > 0 {
			gets[name] = append(gets[name], share{key, more})
		}
	}
}

// Amounts are by resource: thousandths of a cpu, whole units of all else.
type Amounts map[corev1.ResourceName]int64

// FreeIn returns what a cluster has room for; nil if it reports no capacity: then it is unlimited.
func FreeIn(c *v1beta1.Cluster) Amounts {
	if c.Status.Capacity == nil {
		return nil
	}
	ledger, free := apportion.NewLedger([]*v1beta1.Cluster{c}), Amounts{}
	for _, r := range resources {
		free[r], _ = ledger.Free(c.Name, r) // it has none of a resource that it does not list
	}
	return free
}

// TakeIfFits reports whether an object, as it is now, fits into the room that a loss left, beside all that was placed then, and takes that room. It decides
// only this object. If it returns false, only a new evaluation of the loss can tell.
func (f *Fleet) TakeIfFits(r *Room, o *scheduler.Object, now time.Time) bool {
	if o.Current == nil || !isIn(o, r.lost) {
		return true
	}
	return f.place(r, keyOf(o.Kind, o.Namespace, o.Name), o, now)
}

// place decides an object against what is left, and takes that. It returns false if not all of it has a place, even after what it was to get before is given
// back. That comes second because it is dear.
func (f *Fleet) place(r *Room, key string, o *scheduler.Object, now time.Time) bool {
	return o.Finished || r.tryPlace(key, o, now) || f.giveBack(r, key) && r.tryPlace(key, o, now)
}

// giveBack gives back what an object was to get. It returns false if that is nothing, or if others have no place after it.
func (f *Fleet) giveBack(r *Room, key string) (gave bool) {
	for name, shares := range r.gets {
		left := slices.DeleteFunc(shares, func(s share) bool { return s.key == key })
		if len(left) == len(shares) {
			continue
		}
		r.gets[name] = left
		if c := r.world.Cluster(name); c != nil {
			if r.world.Ledger.Reset(c); len(f.takeAgain(r, name)) > 0 {
				return false
			}
			r.countTaken(name)
			gave = true
		}
	}
	return gave
}

// tryPlace decides an object against what is left, and takes that if all of it has a place.
func (r *Room) tryPlace(key string, o *scheduler.Object, now time.Time) bool {
	d := scheduler.Decide(*o, r.world, now)
	if isIn(o, r.lost) {
		if l := objectLoss(o, &d, r.world, r.lost); l.Unschedulable > 0 || l.Pinned {
			return false
		}
	}
	r.world.Take(o, &d)
	addShares(r.gets, key, o, &d)
	for name := range d.Placement.Clusters {
		r.countTaken(name)
	}
	return true
}

// countTaken counts what a cluster would get.
func (r *Room) countTaken(cluster string) {
	delete(r.taken, cluster)
	c := r.world.Cluster(cluster)
	if c == nil {
		return // it has left
	}
	for resource, n := range FreeIn(c) {
		left, _ := r.world.Ledger.Free(cluster, resource)
		if n > left {
			if r.taken[cluster] == nil {
				r.taken[cluster] = Amounts{}
			}
			r.taken[cluster][resource] = n - left
		}
	}
}

func (r *Room) loses(cluster string) bool {
	_, is := slices.BinarySearch(r.lost, cluster)
	return is
}

// Short reports whether a cluster has become so full that what the loss would give it no longer fits with a tenth to
// spare. free is as of FreeIn.
func (r *Room) Short(cluster string, free Amounts) bool {
	for name, n := range r.taken[cluster] {
		if n > 0 && (free == nil || free[name]-n < n/10) {
			return true
		}
	}
	return false
}

// refitShare is the inverse share of the objects that a loss moves of which Refit decides at most so many: with more, an evaluation is worth its cost.
const refitShare = 10

// Refit counts room again, as the clusters report it now, and finds other places for what no longer fits where the loss would have put it. It reports whether all
// have a place. If not, or if more than room has changed since, only a new evaluation can tell, and the Room is of no use any more. The cost is that of
// deciding the objects that no longer fit.
func (f *Fleet) Refit(r *Room, now time.Time) bool {
	if r.rules < f.clusterRules || r.rules < f.rules && f.ruledAnew(r) {
		return false
	}
	homeless := map[string]bool{}
	for _, c := range f.clusters {
		was := r.world.Cluster(c.Name)
		stuck := slices.DeleteFunc(newlyStuck(was, c), func(key string) bool { return !f.concerns(r, c.Name, key) })
		if r.loses(c.Name) {
			if len(stuck) > 0 {
				return false // the evaluation counted what was stuck there then
			}
			continue
		}
		if !r.world.Recount(c) {
			continue
		}
		for _, key := range slices.Concat(f.takeAgain(r, c.Name), stuck) {
			homeless[key] = true
		}
		r.countTaken(c.Name)
		if len(homeless) > 1+len(r.movable)/refitShare {
			return false
		}
	}
	for _, key := range slices.Sorted(maps.Keys(homeless)) {
		if !f.place(r, key, f.objects[key], now) {
			return false
		}
	}
	return !slices.ContainsFunc(f.clusters, func(c *v1beta1.Cluster) bool { return c.Status.Capacity == nil && len(r.gets[c.Name]) > 0 })
}

// ruledAnew reports whether a policy may have changed of what would be placed.
func (f *Fleet) ruledAnew(r *Room) bool {
	for _, shares := range r.gets {
		if slices.ContainsFunc(shares, func(s share) bool { o := f.objects[s.key]; return o != nil && r.rules < f.policyRules[o.Namespace] }) {
			return true
		}
	}
	return false
}

// concerns reports whether a cluster has replicas of an object, or would get some.
func (f *Fleet) concerns(r *Room, cluster, key string) bool {
	o := f.objects[key]
	return o != nil && (o.At(cluster) > 0 || slices.ContainsFunc(r.gets[cluster], func(s share) bool { return s.key == key }))
}

// newlyStuck returns the keys of objects of which a cluster reports more unschedulable pods than before.
func newlyStuck(was, is *v1beta1.Cluster) (keys []string) {
	if is.Status.Capacity == nil || was == is {
		return nil
	}
	before := map[string]int32{}
	if was.Status.Capacity != nil {
		for _, u := range was.Status.Capacity.Unschedulable {
			before[keyOf(u.Kind, u.Namespace, u.Name)] = u.Pods
		}
	}
	for _, u := range is.Status.Capacity.Unschedulable {
		if key := keyOf(u.Kind, u.Namespace, u.Name); u.Pods > before[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// takeAgain takes from the ledger what a cluster would get, and returns the objects of which some no longer fits.
func (f *Fleet) takeAgain(r *Room, cluster string) (homeless []string) {
	fit := r.gets[cluster][:0]
	for _, s := range r.gets[cluster] {
		o := f.objects[s.key]
		if o == nil || o.Finished || !isIn(o, r.lost) && !f.unsteady[s.key] {
			continue // nothing of it is lost any more
		}
		demand := r.world.Ledger.Demand(o.Requests())
		if room, limited := r.world.Ledger.Room(cluster, demand); limited && room < s.replicas {
			homeless = append(homeless, s.key)
			continue
		}
		r.world.Ledger.Take(cluster, demand, s.replicas)
		fit = append(fit, s)
	}
	r.gets[cluster] = fit
	return homeless
}

// Lacks returns a resource of which the other clusters together have too little whatever is decided: what a loss would
// have to place elsewhere asks for at least a tenth more. free is their room as of FreeIn, by name. "" proves nothing.
// The cost is a sum over the objects of the lost clusters.
func (f *Fleet) Lacks(r *Room, free map[string]Amounts) corev1.ResourceName {
	room := Amounts{}
	for name, has := range free {
		if r.loses(name) {
			continue
		}
		if has == nil {
			return ""
		}
		for _, resource := range resources {
			room[resource] = apportion.Sum(room[resource], has[resource])
		}
	}
	need := f.lossDemand(r)
	for _, resource := range resources {
		if need[resource]-room[resource] > room[resource]/10 {
			return resource
		}
	}
	return ""
}

// lossDemand returns what the replicas ask for that a loss would have to place elsewhere now.
func (f *Fleet) lossDemand(r *Room) Amounts {
	all := Amounts{}
	for _, key := range r.movable {
		o := f.objects[key]
		if o == nil || o.Current == nil || o.Finished {
			continue
		}
		var n, elsewhere int64
		for cluster, replicas := range o.Current.Clusters {
			if r.loses(cluster) {
				n += replicas
			} else {
				elsewhere += replicas
			}
		}
		if n = min(n, o.Replicas-elsewhere); n <= 0 {
			continue
		}
		requests := o.Requests()
		for _, resource := range resources {
			one := apportion.Units(resource, requests[resource])
			if resource == corev1.ResourcePods {
				one = 1
			}
			all[resource] = apportion.Sum(all[resource], apportion.Product(n, max(0, one)))
		}
	}
	return all
}

// Gets returns the clusters that would get replicas.
func (r *Room) Gets() []string { return slices.Sorted(maps.Keys(r.taken)) }
