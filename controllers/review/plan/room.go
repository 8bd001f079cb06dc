package plan

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
	placement "federation/controllers/placement/plan"
	"federation/scheduler"
)

// Room is what a loss would leave: whether more would fit is told without asking for the whole loss again.
type Room struct {
	world *placement.World
	lost  []string
	// taken is what the clusters would get, by resource.
	taken map[string]Amounts
	// movable are the keys of the objects that would be placed elsewhere with all that they lose.
	movable []string
}

// Amounts are by resource: thousandths of a cpu, whole units of all else.
type Amounts map[corev1.ResourceName]int64

// FreeIn is what a cluster has room for; nil where nobody counts it: then it is without limit.
func FreeIn(c *v1beta1.Cluster) Amounts {
	if c.Status.Capacity == nil {
		return nil
	}
	ledger, free := scheduler.NewLedger([]*v1beta1.Cluster{c}), Amounts{}
	for _, r := range resources {
		free[r], _ = ledger.Free(c.Name, r) // what it does not list it does not have
	}
	return free
}

// taken is what the room in two worlds differs by.
func taken(clusters []*v1beta1.Cluster, before, after *placement.World) map[string]Amounts {
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

// Holds reports whether an object, as it is now, would be placed in the room that the loss left, beside all that was placed there then: it alone
// is decided. Where not, the loss has to be asked for again to know.
func (r *Room) Holds(o *placement.Object, now time.Time) bool {
	if o.Current == nil || o.Finished || !isIn(o, r.lost) {
		return true
	}
	d := placement.Decide(*o, r.world, now)
	l := objectLoss(o, &d, r.world, r.lost)
	return l.Unschedulable == 0 && !l.Pinned
}

// Short reports whether a cluster has become so full that what the loss would give it fits no more, with a tenth to spare. free is as of FreeIn.
func (r *Room) Short(cluster string, free Amounts) bool {
	for name, n := range r.taken[cluster] {
		if n > 0 && (free == nil || free[name] < n+n/10) {
			return true
		}
	}
	return false
}

// Lacks names the resource of which the other clusters have too little together, whatever is decided: what a loss would have to place elsewhere asks for more, by
// a tenth at least. free is their room as of FreeIn, by name. "" proves nothing. It costs a sum over the objects of the lost clusters.
func (f *Fleet) Lacks(r *Room, free map[string]Amounts) corev1.ResourceName {
	room := Amounts{}
	for name, has := range free {
		if slices.Contains(r.lost, name) {
			continue
		}
		if has == nil {
			return ""
		}
		for _, resource := range resources {
			room[resource] += has[resource]
		}
	}
	need := f.demand(r)
	for _, resource := range resources {
		if need[resource] > room[resource]+room[resource]/10 {
			return resource
		}
	}
	return ""
}

// demand is what the replicas ask for that a loss would have to place elsewhere, as they are now.
func (f *Fleet) demand(r *Room) Amounts {
	all := Amounts{}
	for _, key := range r.movable {
		o := f.objects[key]
		if o == nil || o.Current == nil || o.Finished {
			continue
		}
		var n, elsewhere int64
		for cluster, replicas := range o.Current.Clusters {
			if slices.Contains(r.lost, cluster) {
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

// Gets are the clusters that would get replicas.
func (r *Room) Gets() []string { return slices.Sorted(maps.Keys(r.taken)) }
