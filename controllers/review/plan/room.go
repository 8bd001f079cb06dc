package plan

import (
	"maps"
	"slices"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	placement "federation/controllers/placement/plan"
)

// Room is what a loss would leave: whether more would fit is told without asking for the whole loss again.
type Room struct {
	world *placement.World
	lost  []string
	// taken is what the clusters would get, by resource.
	taken map[string]amounts
}

// amounts are by resource: thousandths of a cpu, whole units of all else.
type amounts map[string]int64

// taken is what the room in two worlds differs by.
func taken(clusters []*v1beta1.Cluster, before, after *placement.World) map[string]amounts {
	out := map[string]amounts{}
	for _, c := range clusters {
		for _, r := range resources {
			was, known := before.Ledger.Free(c.Name, r)
			is, _ := after.Ledger.Free(c.Name, r)
			if known && was > is {
				if out[c.Name] == nil {
					out[c.Name] = amounts{}
				}
				out[c.Name][string(r)] = was - is
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

// Short reports whether a cluster has become so full that what the loss would give it fits no more, with a tenth to spare.
func (r *Room) Short(c *v1beta1.Cluster) bool {
	need := r.taken[c.Name]
	if len(need) == 0 {
		return false
	}
	now := placement.NewWorld([]*v1beta1.Cluster{c}, nil).Ledger
	for _, name := range resources {
		n := need[string(name)]
		if free, known := now.Free(c.Name, name); n > 0 && (!known || free < n+n/10) {
			return true
		}
	}
	return false
}

// Gets are the clusters that would get replicas.
func (r *Room) Gets() []string { return slices.Sorted(maps.Keys(r.taken)) }
