package scheduler

import (
	"cmp"
	"slices"
	"time"
)

// DecideAll places many objects from one ledger of room, higher priority first, so that they do not all count on the
// same room. The decisions are in the order of the objects. The world's ledger does not change.
func DecideAll(objects []Object, w *World, now time.Time) []Decision {
	with := *w
	with.Ledger = w.Ledger.Clone()
	return DecideAndTake(objects, &with, now)
}

// DecideAndTake is DecideAll, but takes the room from the world's ledger.
func DecideAndTake(objects []Object, w *World, now time.Time) []Decision {
	out := make([]Decision, len(objects))
	for _, i := range Order(objects, w) {
		out[i] = Decide(objects[i], w, now)
		w.Take(&objects[i], &out[i])
	}
	return out
}

// Order returns the order of placement: by the priority of their policies, then those with replicas in lost clusters,
// then by namespace, name and kind.
func Order(objects []Object, w *World) []int {
	type rank struct {
		priority int32
		safe     int
	}
	ranks, out := make([]rank, len(objects)), make([]int, len(objects))
	for i := range objects {
		out[i] = i
		if p := w.policyOf(&objects[i]); p != nil {
			ranks[i].priority = p.Spec.Priority
		}
		if !w.losesReplicas(&objects[i]) {
			ranks[i].safe = 1
		}
	}
	slices.SortStableFunc(out, func(i, j int) int {
		a, b := &objects[i], &objects[j]
		return cmp.Or(cmp.Compare(ranks[j].priority, ranks[i].priority), cmp.Compare(ranks[i].safe, ranks[j].safe),
			compareStrings(a.Namespace, b.Namespace, a.Name, b.Name, a.Kind, b.Kind, a.APIVersion, b.APIVersion))
	})
	return out
}

// losesReplicas reports whether an object has replicas in a lost cluster.
func (w *World) losesReplicas(o *Object) bool {
	if o.Current == nil {
		return false
	}
	for name, n := range o.Current.Clusters {
		if n > 0 && w.lost[name] {
			return true
		}
	}
	return false
}
