package scheduler

import (
	"hash/fnv"
	"slices"

	"federation/scheduler/apportion"
)

// divide decides the numbers of a divided object.
//
// While clusters are failed over or failing back, the earlier placement is kept as home. Then the decision is a step from base, the
// current state, towards full, the state if all that is not out served: a returning cluster gets its share of what it has in
// full. The others give up only as much as that takes, and nothing else moves.
//
// What a cluster may have can depend on what it has. So, while clusters are failed over or failing back, and where spread constraints
// choose among them, the decision is repeated on its result until it no longer changes.
func (d *division) divide() {
	d.divideOnce()
	settled := len(d.wants.spread) == 0 && len(d.placement.Home) == 0 && (d.o.Current == nil || len(d.o.Current.Home) == 0)
	if settled {
		return
	}
	for again, i := d, 0; i < maxRounds; i++ {
		again = again.nextDecision()
		again.divideOnce()
		d.unmet = again.unmet
		if equalPlacements(&again.placement, &d.placement) {
			return
		}
		d.placement = again.placement
	}
}

// maxRounds bounds the repetitions: hardly any random case takes more than two.
const maxRounds = 4

// nextDecision returns the decision on the result of d, with the same room.
func (d *division) nextDecision() *division {
	o, q, last := *d.o, *d.question, d.placement
	o.Current = &last
	q.o = &o
	out := &division{question: &q, seats: slices.Clone(d.seats), stranded: d.stranded, unmet: d.unmet}
	for i := range out.seats {
		out.seats[i].last = o.At(out.seats[i].cluster.Name)
	}
	return out
}

func (d *division) divideOnce() {
	last := d.o.lastReplicas()
	home := d.rememberHome(last)
	away, returning := d.awayFromHome(home)
	switch {
	case d.stranded && len(d.seats) > 0:
		d.place(d.divideReplicas(last, true), home)
	case len(home) == 0 && !returning:
		d.place(d.divideReplicas(last, false), nil)
	case d.wants.neverFailsBack() && len(home) > 0:
		d.place(d.keepMoved(last, home), home)
	case !away && !returning:
		d.place(d.divideReplicas(home, false), nil)
	default:
		d.stepBack(last, home)
	}
}

// sameRequest reports whether the object and its policy ask for the same as in the last placement.
func (q *question) sameRequest() bool {
	p := q.o.Current
	return p != nil && p.Inputs == q.wants.inputs && sum(p.Clusters)+p.Unschedulable == q.o.Replicas
}

// keepMoved leaves replicas that were moved off clusters where they are though these serve again, unless there is no other
// place.
func (d *division) keepMoved(last, home map[string]int64) apportion.Result {
	all := slices.Clone(d.seats)
	for i := range d.seats {
		if s := &d.seats[i]; s.use == usable && home[s.cluster.Name] > 0 {
			s.restrict(keeps, "the policy has failback Never")
		}
	}
	result := d.divideReplicas(last, true)
	if result.Unschedulable == 0 {
		return result
	}
	more, unmet := d.addTo(result, all)
	if more.Unschedulable < result.Unschedulable {
		d.seats, d.unmet = all, unmet
		return more
	}
	return result
}

// rememberHome returns the placement before clusters went out: the current one, if one has just gone. It leaves out
// clusters that are gone or should not have the object any more. If nothing is to fail back, it has only what was in
// the clusters that went out, until the object or its policy changes.
func (d *division) rememberHome(last map[string]int64) map[string]int64 {
	var home map[string]int64
	if d.o.Current != nil {
		home = d.o.Current.Home
	}
	if len(home) == 0 && !d.wants.neverFailsBack() && slices.ContainsFunc(d.seats, func(s candidate) bool { return s.use == out && s.last > 0 }) {
		home = last
	}
	kept := map[string]int64{}
	for i := range d.seats {
		s := &d.seats[i]
		n := home[s.cluster.Name]
		if d.wants.neverFailsBack() && s.use == out {
			n = max(n, s.last)
		} else if d.wants.neverFailsBack() && !d.sameRequest() {
			n = 0
		}
		if n > 0 {
			kept[s.cluster.Name] = n
		}
	}
	return kept
}

// awayFromHome reports whether a cluster cannot have yet what it has in home, and whether one is returning.
func (d *division) awayFromHome(home map[string]int64) (away, returning bool) {
	for i := range d.seats {
		s := &d.seats[i]
		away = away || s.use != usable && home[s.cluster.Name] > s.last || s.use == out && home[s.cluster.Name] > 0
		returning = returning || s.use == usable && s.percent < 100
	}
	return away, returning
}

// stepBack goes from the current towards the desired state, as far as returning clusters may. It requests no overflow: a
// replica without a place is decided again when there is room.
func (d *division) stepBack(last, home map[string]int64) {
	base := d.basePlan(last)
	from := home
	if len(home) == 0 {
		from = last
	}
	full := d.divideReplicas(from, false)
	goal := map[string]int64{}
	for name, n := range base.Plan {
		goal[name] = n
	}
	for i := range d.seats {
		s := &d.seats[i]
		name := s.cluster.Name
		share := d.shareOf(full.Plan[name], s)
		if s.use == usable && share > base.Plan[name] && (s.percent < 100 || home[name] > base.Plan[name]) {
			goal[name] = share
		}
	}
	result := d.giveUpSurplus(base, full, goal)
	if len(home) == 0 && !d.wants.neverFailsBack() && d.isShort(result.Plan, full.Plan) {
		home = withoutZeros(full.Plan)
	}
	d.place(result, home)
}

// isShort reports whether a returning cluster has less than it should.
func (d *division) isShort(plan, full map[string]int64) bool {
	return slices.ContainsFunc(d.seats, func(s candidate) bool {
		return s.use == usable && s.percent < 100 && plan[s.cluster.Name] < full[s.cluster.Name]
	})
}

// shareOf returns a cluster's share of n. A hash of object and cluster decides the rounding, so that of many objects with
// one or two replicas the same share returns as of one with many.
func (d *division) shareOf(n int64, s *candidate) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.cluster.Name + "/" + d.o.Key()))
	return (n*s.percent + int64(h.Sum32()%100)) / 100
}

// giveUpSurplus lets clusters with more than in full give up what others gain, each in proportion to its surplus. What they
// cannot give, the others do not get.
func (d *division) giveUpSurplus(base, full apportion.Result, goal map[string]int64) apportion.Result {
	low, high, part := map[string]int64{}, map[string]int64{}, map[string]int64{}
	var rises int64
	for name, n := range base.Plan {
		if goal[name] > n {
			rises += goal[name] - n
		} else if spare := n - full.Plan[name]; spare > 0 {
			low[name], high[name], part[name] = full.Plan[name], n, spare
		}
	}
	for name, n := range goal {
		if _, ok := base.Plan[name]; !ok {
			rises += n
		}
	}
	give := min(max(0, rises-base.Unschedulable), sum(part))
	cutGains(goal, base.Plan, max(0, rises-base.Unschedulable)-give)
	r := apportion.Request{Key: d.o.Key(), Group: d.group(), Replicas: sum(high) - give, Preferences: boundedPreferences(low, high, part), Terse: true}
	for name := range high {
		r.Clusters = append(r.Clusters, apportion.Cluster{Name: name, Current: high[name]})
	}
	for name, n := range apportion.Plan(r).Plan {
		goal[name] = n
	}
	result := apportion.Result{Plan: goal, Reasons: full.Reasons, Unschedulable: max(0, d.o.Replicas-sum(goal))}
	for name, n := range goal {
		if was := base.Plan[name]; n < was {
			d.reasons.add(name, "gives replicas back to clusters that fail back")
		} else if n > full.Plan[name] {
			d.reasons.add(name, "keeps more than its share until clusters have failed back")
		}
	}
	return result
}

// cutGains takes n from the gains of goal over base, the last by name first.
func cutGains(goal, base map[string]int64, n int64) {
	for _, name := range slices.Backward(sortedNames(goal)) {
		less := min(n, max(0, goal[name]-base[name]))
		goal[name] -= less
		n -= less
	}
}
