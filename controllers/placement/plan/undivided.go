package plan

import (
	"cmp"
	"math"
	"slices"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
)

// patience is how long a new Secret or ServiceAccount, or a ConfigMap where a policy of its namespace takes references along, waits
// for something that refers to it, before it is decided where it goes without.
const patience = 3 * time.Second

// ungoverned decides for an object whose replicas are not divided and that no policy governs: it goes where that goes which
// refers to it, or else, unless it is of a kind that then goes nowhere, everywhere, without any annotation.
func (d *deciding) ungoverned() {
	left := d.o.Created.Add(patience).Sub(d.now)
	switch {
	case d.o.Selector != nil:
		d.result.None = true
	case d.o.Follow != nil:
		d.follow()
	case d.o.Pending && left > 0 && d.mayFollow():
		d.result.Wait, d.result.LookAgain = true, left
	case d.o.confined():
		d.confine()
	default:
		d.result.None = true
	}
}

// mayFollow reports whether something may yet come along that takes the object with it.
func (d *deciding) mayFollow() bool {
	return d.o.confined() && !d.w.SecretsEverywhere || referable[d.o.Kind] && d.w.TakesReferences(d.o.Namespace)
}

// follows reports whether an object goes where that goes which refers to it, for nothing else says where, as before.
func (d *deciding) follows() bool {
	return !d.o.Divided && d.wants.policy == nil && d.o.Selector == nil && d.o.Follow != nil && d.o.Current.Policy == ""
}

// referable are the kinds that workloads refer to.
var referable = map[string]bool{"ConfigMap": true, "Secret": true, "ServiceAccount": true}

// runs are the built-in kinds that are not divided and run something by themselves. What is of another built-in kind
// may be of use to what still runs in a cluster, and does no harm: neither taints nor failover remove it.
var runs = map[string]bool{"DaemonSet": true, "CronJob": true}

func builtIn(o *Object) bool {
	return slices.ContainsFunc(v1beta1.FederatedKinds, func(k v1beta1.FederatedKind) bool {
		return k.Kind == o.Kind && k.Resource.GroupVersion().String() == o.APIVersion
	})
}

// settle lets an object that is not divided stay, and come, where nothing would be gained by its absence.
func (d *deciding) settle(s *seat) {
	moves := slices.ContainsFunc(d.wants.spread, func(c v1beta1.SpreadConstraint) bool { return c.MaxGroups != nil })
	s.percent = 100
	lost := s.cluster.Phase() != v1beta1.PhaseServing || !s.cluster.IsReady()
	switch {
	case !lost && s.use == out && builtIn(d.o) && !runs[d.o.Kind]:
		s.use = keeps
	case lost && !moves && len(s.cluster.Spec.Taints) == 0:
		s.use, s.because = usable, ""
	}
}

// everywhere is the plan of an object whose replicas are not divided: 1 for each cluster that may have it.
func (d *deciding) everywhere(from map[string]int64) map[string]int64 {
	r := scheduler.Request{Key: d.o.Key(), Replicas: math.MaxInt32}
	var seats []*seat
	for i := range d.seats {
		s := &d.seats[i]
		if s.use == out || s.use == keeps && s.last == 0 {
			continue
		}
		seats = append(seats, s)
		r.Clusters = append(r.Clusters, scheduler.Cluster{Name: s.cluster.Name, Current: from[s.cluster.Name]})
	}
	candidates := d.candidates(r, seats)
	for i := range candidates {
		candidates[i].Weight = cmp.Or(candidates[i].Weight, 1)
	}
	chosen, why := scheduler.Select(r.Key, candidates, d.wants.spread)
	plan := map[string]int64{}
	for name := range chosen {
		plan[name] = 1
	}
	_, d.unmet = scheduler.Spread(r.Key, candidates, d.wants.spread, plan, r.Replicas)
	for name, because := range why {
		d.explain(name, because)
	}
	return plan
}
