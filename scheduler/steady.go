package scheduler

import (
	"slices"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler/apportion"
)

// Steady reports whether Decide certainly leaves an object's numbers as they are, whatever room the ledger has. Such an object
// takes nothing from the ledger, so a caller that places many may skip it. Steady reads only the clusters that the object is
// in. False means nothing: the object must be decided.
//
// A steady object stays steady if clusters other than its own are lost or drained.
func (w *World) Steady(o *Object) bool {
	if o.Finished || !o.Divided {
		return true
	}
	p := o.Current
	if p == nil || o.Pending || len(p.Home) > 0 || sum(p.Clusters) != o.Replicas || len(o.Made) > 0 {
		return false
	}
	wants := wantsOf(o, w)
	if wants.policy != nil && wants.policy.Spec.WorkloadAffinity == v1beta1.WorkloadAffinityRequired {
		return false // it may have to go where the others go
	}
	return !wants.preferences.Rebalance && minimumsAreMet(wants.preferences, p) && w.mayStay(o, &wants) && w.spreadIsMet(o, &wants)
}

// minimumsAreMet reports whether each cluster with a minimum has it. It returns false for a minimum of "*".
func minimumsAreMet(prefs *v1beta1.ReplicaPreferences, p *v1beta1.Placement) bool {
	for name, c := range prefs.Clusters {
		if c.MinReplicas > p.Clusters[name] {
			return false
		}
	}
	return true
}

// mayStay reports whether each cluster of the object may keep what it has of it.
func (w *World) mayStay(o *Object, wants *wants) bool {
	for name, n := range o.Current.Clusters {
		if n == 0 {
			continue
		}
		i, ok := w.index[name]
		if n < 0 || !ok || w.lost[name] || w.stuckIn(name, o) || wants.refuses(o.Namespace, w.Clusters[i], w) != "" || w.Grace > 0 && w.Clusters[i].Status.Failover == nil {
			return false
		}
		if c, covered := wants.preferences.ForCluster(name); !covered || c.MaxReplicas != nil && *c.MaxReplicas < n {
			return false
		}
	}
	return true
}

func (w *World) stuckIn(cluster string, o *Object) bool {
	_, stuck := w.stuck[stuckKey{cluster, o.Kind, o.Namespace, o.Name}]
	return stuck
}

// spreadIsMet reports whether the object's clusters meet its spread constraints as they are. If some require groups and
// others limit them, that depends on more than these.
func (w *World) spreadIsMet(o *Object, wants *wants) bool {
	limits := slices.ContainsFunc(wants.spread, func(c v1beta1.SpreadConstraint) bool { return c.MaxGroups != nil })
	asks := slices.ContainsFunc(wants.spread, func(c v1beta1.SpreadConstraint) bool { return c.MinGroups > 1 })
	if limits && asks && len(wants.spread) > 1 {
		return false
	}
	for _, c := range wants.spread {
		used := map[string]bool{}
		for name, n := range o.Current.Clusters {
			if n > 0 {
				used[apportion.GroupOf(w.Clusters[w.index[name]], c.SpreadBy)] = true
			}
		}
		if int64(len(used)) < min(int64(c.MinGroups), o.Replicas) || c.MaxGroups != nil && len(used) > int(*c.MaxGroups) {
			return false
		}
	}
	return true
}
