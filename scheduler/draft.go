package scheduler

import (
	"slices"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler/apportion"
)

// division is the numbers of one object in the making.
type division struct {
	*question
	seats    []candidate
	stranded bool     // no cluster can be used
	unmet    []string // notes on spread constraints
	reasons  reasons

	placement     v1beta1.Placement
	keepsReplicas bool // see Decision
}

// divideReplicas divides the replicas among the seats; from is what counts as running. held limits returning clusters to what
// they have.
func (d *division) divideReplicas(from map[string]int64, held bool) apportion.Result {
	r := apportion.Request{Key: d.o.Key(), Group: d.group(), Replicas: d.o.Replicas, Preferences: d.wants.preferences, Terse: d.reasons == nil}
	var seats []*candidate
	for i := range d.seats {
		s := &d.seats[i]
		if s.use == out || held && s.percent == 0 && s.last == 0 {
			continue
		}
		seats = append(seats, s)
		capacity, because := s.upperLimit(held)
		r.Clusters = append(r.Clusters, apportion.Cluster{Name: s.cluster.Name, Current: from[s.cluster.Name], Capacity: capacity, Because: because,
			Least: d.keptReplicas(s), LeastBecause: "the volumes there"})
	}
	if len(d.wants.spread) == 0 {
		return apportion.Plan(r)
	}
	return d.planSpread(r, seats)
}

// group returns what breaks the ties for an object's first replicas: its namespace, unless its policy asks for the contrary.
func (q *question) group() string {
	if p := q.wants.policy; p != nil && p.Spec.WorkloadAffinity == v1beta1.WorkloadAffinityNone {
		return q.o.Key()
	}
	return q.o.Namespace
}

// keptReplicas returns how many replicas a lost cluster with their volumes keeps, whatever others should have: all, unless the
// object or its policy now asks for something else.
func (d *division) keptReplicas(s *candidate) int64 {
	p := d.o.Current
	if !s.lost || !d.o.Volumes || p.Inputs != d.wants.inputs || sum(p.Clusters)+p.Unschedulable > d.o.Replicas {
		return 0
	}
	return s.last
}

// upperLimit returns the most that a cluster may have, and why, if that is not its room.
func (s *candidate) upperLimit(held bool) (*int64, string) {
	switch {
	case s.use == keeps, held && s.percent < 100:
		most := s.last
		if s.room != nil {
			most = min(most, *s.room)
		}
		return &most, s.because
	}
	return s.room, ""
}

// planSpread plans on the clusters that spread constraints allow, so that they are met. A cluster that can hold nothing
// does not count.
func (d *division) planSpread(r apportion.Request, seats []*candidate) apportion.Result {
	candidates := slices.DeleteFunc(d.candidates(r, seats), func(c apportion.Candidate) bool { return c.Fits == 0 })
	chosen, why := apportion.Select(r.Group, candidates, d.wants.spread)
	r.Clusters = slices.DeleteFunc(r.Clusters, func(c apportion.Cluster) bool { return !chosen[c.Name] })
	candidates = slices.DeleteFunc(candidates, func(c apportion.Candidate) bool { return !chosen[c.Name] })
	result := apportion.Plan(r)
	need, notes := apportion.Spread(r.Group, candidates, d.wants.spread, result.Plan, r.Replicas)
	if len(need) > 0 {
		for i := range r.Clusters {
			if need[r.Clusters[i].Name] && r.Clusters[i].Least < 1 {
				r.Clusters[i].Least, r.Clusters[i].LeastBecause = 1, "the spread constraint"
			}
		}
		result = apportion.Plan(r)
	}
	d.unmet = notes
	for name, because := range why {
		result.Reasons[name] = []string{because}
	}
	return result
}

func (d *division) candidates(r apportion.Request, seats []*candidate) []apportion.Candidate {
	out := make([]apportion.Candidate, 0, len(seats))
	for i, s := range seats {
		c := r.Clusters[i]
		pref, ok := d.wants.preferences.ForCluster(c.Name)
		one := apportion.Candidate{
			Name: c.Name, Zone: s.group.zone, Region: s.group.region, Current: c.Current, Weight: pref.Weight + pref.MinReplicas, Fits: r.Replicas,
		}
		if c.Capacity != nil {
			one.Fits = min(one.Fits, *c.Capacity)
		}
		if pref.MaxReplicas != nil {
			one.Fits = min(one.Fits, *pref.MaxReplicas)
		}
		if !ok {
			one.Fits, one.Weight = 0, 0
		}
		one.Current = min(one.Current, one.Fits)
		out = append(out, one)
	}
	return out
}

// place makes a plan the placement.
func (d *division) place(r apportion.Result, home map[string]int64) {
	p := &d.placement
	p.Clusters, p.Overflow, p.Unschedulable = withoutZeros(r.Plan), withoutZeros(r.Overflow), r.Unschedulable
	if d.o.Divided {
		p.Inputs = d.wants.inputs
	}
	p.Policy = d.wants.policyName()
	if len(home) > 0 {
		p.Home = home
	}
	d.keepsReplicas = d.o.Divided && !d.wants.preferences.Rebalance && slices.ContainsFunc(d.seats, d.keepsSome)
	for i := range d.seats {
		switch s := &d.seats[i]; {
		case !s.canUse(100): // a cluster that is short of something else than room gets no overflow
			delete(p.Overflow, s.cluster.Name)
		case p.Overflow[s.cluster.Name] == 0 && d.capacityUnproven(s):
			p.Overflow[s.cluster.Name] = 1
		}
	}
	if len(p.Overflow) == 0 {
		p.Overflow = nil
	}
	for name, why := range r.Reasons {
		d.reasons.add(name, why...)
	}
}

// keepsSome reports whether a cluster keeps some of what it had beyond its minimum.
func (d *division) keepsSome(s candidate) bool {
	p, _ := d.wants.preferences.ForCluster(s.cluster.Name)
	return min(s.last, d.placement.Clusters[s.cluster.Name]) > p.MinReplicas
}

// capacityUnproven reports whether only pods in a cluster show that there is no room. One of these stays requested: without any,
// there would seem to be room again, and replicas would move back and forth. If no other cluster has room, none is
// kept.
func (d *division) capacityUnproven(s *candidate) bool {
	n := d.placement.Clusters[s.cluster.Name]
	if s.stuck == 0 || !s.capacityStale || n >= d.o.Replicas || d.o.Whole {
		return false
	}
	p, _ := d.wants.preferences.ForCluster(s.cluster.Name)
	return (p.Weight > 0 || p.MinReplicas > n) && (p.MaxReplicas == nil || n < *p.MaxReplicas)
}

// sum returns the sum over all clusters.
func sum(of map[string]int64) (n int64) {
	for _, v := range of {
		n += v
	}
	return n
}

// boundedPreferences returns preferences that keep each cluster between two numbers, divided by share.
func boundedPreferences(low, high, share map[string]int64) *v1beta1.ReplicaPreferences {
	out := &v1beta1.ReplicaPreferences{Rebalance: true, Clusters: map[string]v1beta1.ClusterPreferences{}}
	for name, most := range high {
		out.Clusters[name] = v1beta1.ClusterPreferences{MinReplicas: low[name], MaxReplicas: &most, Weight: share[name]}
	}
	return out
}
