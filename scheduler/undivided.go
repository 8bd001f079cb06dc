package scheduler

import (
	"cmp"
	"math"
	"slices"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler/apportion"
)

// patience is how long a new Secret or ServiceAccount, or a ConfigMap where a policy of its namespace takes references
// along, waits for a referrer before it is decided without.
const patience = 3 * time.Second

// decideUngoverned decides about an undivided object without a policy: it goes where its referrers go; without any it goes
// nowhere if its kind is confined, else everywhere, without an annotation.
func (d *deciding) decideUngoverned() {
	left := d.o.Created.Add(patience).Sub(d.now)
	switch {
	case d.o.Selector != nil:
		d.result.None = true
	case d.o.Follow != nil:
		d.followReferrers()
	case d.o.Pending && left > 0 && d.mayFollow():
		d.result.Wait, d.result.LookAgain = true, left
	case d.o.needsReferrer():
		d.confine()
	default:
		d.result.None = true
	}
}

// mayFollow reports whether a referrer that takes the object along may still come.
func (q *question) mayFollow() bool {
	return q.o.needsReferrer() && !q.w.SecretsEverywhere || isReferable(q.o.Kind) && q.w.TakesReferences(q.o.Namespace)
}

// follows reports whether an object goes where its referrers go because nothing else decides, as in its last placement.
func (q *question) follows() bool {
	return !q.o.Divided && q.wants.policy == nil && q.o.Selector == nil && q.o.Follow != nil && q.o.Current.Policy == ""
}

// isReferable reports whether workloads refer to objects of a kind.
func isReferable(kind string) bool {
	return slices.ContainsFunc(v1beta1.FederatedKinds, func(k v1beta1.FederatedKind) bool { return k.Kind == kind && k.Referable })
}

func builtIn(o *Object) bool { return rowOf(o) != nil }

// rowOf returns the row of an object's built-in kind, or nil.
func rowOf(o *Object) *v1beta1.FederatedKind {
	i := slices.IndexFunc(v1beta1.FederatedKinds, func(k v1beta1.FederatedKind) bool {
		return k.Kind == o.Kind && k.Resource.GroupVersion().String() == o.APIVersion
	})
	if i < 0 {
		return nil
	}
	return &v1beta1.FederatedKinds[i]
}

// MostClusters returns in how many clusters an undivided object may be at once, if all are well: by their namespaces, its annotations and its
// policy.
func (w *World) MostClusters(o *Object) int {
	d := &division{question: &question{o: o, w: w, wants: wantsOf(o, w)}}
	for i, c := range w.Clusters {
		if d.wants.refuses(o.Namespace, c, w) == "" {
			d.seats = append(d.seats, candidate{cluster: c, group: w.groups[i]})
		}
	}
	if d.scalesAtFederation() {
		return 0
	}
	if p := d.wants.policy; p != nil && p.Spec.WorkloadAffinity == v1beta1.WorkloadAffinityRequired {
		return min(len(d.allClusters(nil)), (&gathering{p: p}).most())
	}
	return len(d.allClusters(nil))
}

// allClusters returns the plan of an undivided object: 1 for each cluster that may have it.
func (d *division) allClusters(from map[string]int64) map[string]int64 {
	r := apportion.Request{Key: d.o.Key(), Group: d.group(), Replicas: math.MaxInt32}
	var seats []*candidate
	for i := range d.seats {
		s := &d.seats[i]
		if s.use == out || s.use == keeps && s.last == 0 {
			continue
		}
		seats = append(seats, s)
		r.Clusters = append(r.Clusters, apportion.Cluster{Name: s.cluster.Name, Current: from[s.cluster.Name]})
	}
	candidates := d.candidates(r, seats)
	for i := range candidates {
		candidates[i].Weight = cmp.Or(candidates[i].Weight, 1)
	}
	chosen, why := apportion.Select(r.Group, candidates, d.wants.spread)
	plan := map[string]int64{}
	for name := range chosen {
		plan[name] = 1
	}
	_, d.unmet = apportion.Spread(r.Group, candidates, d.wants.spread, plan, r.Replicas)
	for name, because := range why {
		d.reasons.add(name, because)
	}
	return plan
}
