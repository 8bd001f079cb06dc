package plan

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
)

// Unreferred is how long a new ConfigMap, Secret or ServiceAccount waits for a workload that refers to it, where a
// policy of its namespace takes references along, before it goes everywhere.
const Unreferred = 3 * time.Second

// ungoverned decides for an object whose replicas are not divided and that no policy governs: it goes where the
// workloads go that refer to it, or else everywhere, without any annotation.
func (d *deciding) ungoverned() {
	left := d.o.Created.Add(Unreferred).Sub(d.now)
	switch {
	case d.o.Selector != nil:
		d.result.None = true
	case d.o.Follow != nil:
		plan := map[string]int64{}
		for _, name := range d.o.Follow {
			plan[name] = 1
			d.explain(name, "goes where goes what refers to it: "+strings.Join(d.o.Followed, ", "))
		}
		d.take(scheduler.Result{Plan: plan}, nil)
	case d.o.Pending && left > 0 && referable[d.o.Kind] && d.w.TakesReferences(d.o.Namespace):
		d.result.Wait, d.result.LookAgain = true, left
	default:
		d.result.None = true
	}
}

// follows tells whether an object goes where the workloads go that refer to it, for nothing else says where, as before.
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
	lost := s.cluster.Phase() != v1beta1.FailoverServing || !s.cluster.IsReady()
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
