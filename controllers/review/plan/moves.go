package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
)

// replicaMoves returns the objects with replicas in a lost cluster, in the order in which they would be placed.
func replicaMoves(in Input, then []*v1beta1.Cluster, lost []string) (all []v1beta1.ReplicaMove) {
	w := scheduler.NewWorld(then, in.Policies)
	objects := affectedObjects(in.Objects, w, lost)
	decisions := scheduler.DecideAll(objects, w, in.Now)
	for _, i := range scheduler.Order(objects, w) {
		if m, ok := replicaMove(&objects[i], &decisions[i], lost); ok {
			all = append(all, m)
		}
	}
	return all
}

// affectedObjects returns the objects that must be decided to know what becomes of those in lost clusters: these, and all that
// may take room before them. A steady object takes none, so each decision is the same as if all were decided.
func affectedObjects(objects []scheduler.Object, w *scheduler.World, lost []string) (some []scheduler.Object) {
	for i := range objects {
		if o := &objects[i]; isIn(o, lost) || !w.Steady(o) {
			some = append(some, *o)
		}
	}
	return some
}

func isIn(o *scheduler.Object, clusters []string) bool {
	return slices.ContainsFunc(clusters, func(name string) bool { return o.At(name) > 0 })
}

// replicaMove returns how the replicas of one object would move; false if it has none in a lost cluster. A finished Job has
// none.
func replicaMove(o *scheduler.Object, d *scheduler.Decision, lost []string) (m v1beta1.ReplicaMove, ok bool) {
	m = v1beta1.ReplicaMove{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Clusters: []v1beta1.ReplicaChange{}}
	if o.Current == nil || !o.Divided || o.Finished {
		return m, false
	}
	before, after := o.Current.Clusters, d.Placement.Clusters
	var stay []string
	for _, name := range lost {
		if before[name] > 0 {
			ok = true
		}
		if n := min(before[name], after[name]); n > 0 {
			stay = append(stay, fmt.Sprintf("%d stay in %s%s", n, name, moveReason(d, name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(union(before, after))) {
		if before[name] != after[name] {
			m.Clusters = append(m.Clusters, v1beta1.ReplicaChange{
				Cluster: name, Before: before[name], After: after[name], Reason: strings.Join(d.Reasons[name], "; "),
			})
		}
	}
	m.Unschedulable, m.Reason = max(0, d.Placement.Unschedulable-o.Current.Unschedulable)+d.Stranded, strings.Join(stay, "; ")
	return m, ok
}

func moveReason(d *scheduler.Decision, cluster string) string {
	why := d.Reasons[cluster]
	if len(why) == 0 {
		return ""
	}
	return " (" + strings.Join(why, ", ") + ")"
}

func union(a, b map[string]int64) map[string]int64 {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]int64{}
	}
	maps.Copy(out, b)
	return out
}
