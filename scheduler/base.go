package scheduler

import "federation/scheduler/apportion"

// basePlan returns the plan without any return: the last placement, if only clusters have changed since, else a plan in
// which a returning cluster gets no more than it has, unless there is no other place.
func (d *division) basePlan(last map[string]int64) apportion.Result {
	if d.stillHolds() {
		return apportion.Result{Plan: last, Reasons: map[string][]string{}}
	}
	result := d.divideReplicas(last, true)
	if result.Unschedulable == 0 {
		return result
	}
	more, unmet := d.addTo(result, d.seats)
	d.unmet = unmet
	if more.Unschedulable < result.Unschedulable {
		return more
	}
	return result
}

// addTo plans more on top of a result, from which nothing moves. Returning clusters get what they can hold.
func (d *division) addTo(result apportion.Result, seats []candidate) (more apportion.Result, unmet []string) {
	with, q, prefs := *d, *d.question, *d.wants.preferences
	prefs.Rebalance = false
	q.wants.preferences, with.question, with.seats = &prefs, &q, seats
	more = with.divideReplicas(result.Plan, false)
	return more, with.unmet
}

// stillHolds reports whether the last placement still holds: all replicas are placed, by the same inputs, where they may
// be.
func (d *division) stillHolds() bool {
	p := d.o.Current
	if p == nil || p.Unschedulable > 0 || p.Inputs != d.wants.inputs || sum(p.Clusters) != d.o.Replicas {
		return false
	}
	var seated int64
	for i := range d.seats {
		s := &d.seats[i]
		if p.Overflow[s.cluster.Name] > 0 && !d.capacityUnproven(s) {
			return false
		}
		if s.use == out || s.room != nil && *s.room < s.last {
			continue
		}
		seated += s.last
	}
	return seated == d.o.Replicas
}
