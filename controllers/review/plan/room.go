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
	// movable are the keys of the objects that would be placed elsewhere completely.
	movable []string
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

// roomTaken returns the difference in room between two worlds.
func roomTaken(clusters []*v1beta1.Cluster, before, after *scheduler.World) map[string]Amounts {
	out := map[string]Amounts{}
	for _, c := range clusters {
		for _, r := range resources {
			was, known := before.Ledger.Free(c.Name, r)
			is, _ := after.Ledger.Free(c.Name, r)
			if known && was > is {
				if out[c.Name] == nil {
					out[c.Name] = Amounts{}
				}
				out[c.Name][r] = was - is
			}
		}
	}
	return out
}

// Holds reports whether an object, as it is now, would fit into the room that the loss left, beside all that was placed
// then. It decides only this object. If it returns false, only a new evaluation of the loss can tell.
func (r *Room) Holds(o *scheduler.Object, now time.Time) bool {
	if o.Current == nil || o.Finished || !isIn(o, r.lost) {
		return true
	}
	d := scheduler.Decide(*o, r.world, now)
	l := objectLoss(o, &d, r.world, r.lost)
	return l.Unschedulable == 0 && !l.Pinned
}

func (r *Room) loses(cluster string) bool {
	_, is := slices.BinarySearch(r.lost, cluster)
	return is
}

// Short reports whether a cluster has become so full that what the loss would give it no longer fits with a tenth to
// spare. free is as of FreeIn.
func (r *Room) Short(cluster string, free Amounts) bool {
	for name, n := range r.taken[cluster] {
		if n > 0 && (free == nil || free[name] < n+n/10) {
			return true
		}
	}
	return false
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
			room[resource] += has[resource]
		}
	}
	need := f.lossDemand(r)
	for _, resource := range resources {
		if need[resource] > room[resource]+room[resource]/10 {
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
			q := requests[resource]
			one := q.Value()
			switch resource {
			case corev1.ResourceCPU:
				one = q.MilliValue()
			case corev1.ResourcePods:
				one = 1
			}
			all[resource] += n * one
		}
	}
	return all
}

// Gets returns the clusters that would get replicas.
func (r *Room) Gets() []string { return slices.Sorted(maps.Keys(r.taken)) }
