package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler/apportion"
)

// together is where a policy with workloadAffinity Required keeps all that it governs.
type together struct {
	policy   string            // its name
	clusters []string          // sorted; none: nothing can be used, and all stays where it is
	home     []string          // sorted: where it was before it was moved off a cluster, and goes back to
	why      map[string]string // why it is not, or no more, in a cluster of its status
	until    time.Duration     // how long that holds; 0 is for ever
}

// Together returns the clusters in which a policy keeps all that it governs, and those that it goes back to, sorted, and how long that
// holds if nothing else changes; 0 means for ever. ok is false if it does not ask for that. The policy's status has the last answer. It stays where that says unless a cluster is lost, and goes back
// when all that it was in serve in full again.
func (w *World) Together(p *v1beta1.PlacementPolicy, now time.Time) (clusters, home []string, holds time.Duration, ok bool) {
	i := slices.IndexFunc(w.byNamespace[p.Namespace], func(known *policy) bool { return known.Name == p.Name })
	if i < 0 || p.Spec.WorkloadAffinity != v1beta1.WorkloadAffinityRequired {
		return nil, nil, 0, false
	}
	t := w.keepTogether(w.byNamespace[p.Namespace][i], now)
	return t.clusters, t.home, t.until, true
}

// keepTogether decides it for a policy, whatever the objects are: for each of them it is the same.
func (w *World) keepTogether(p *policy, now time.Time) together {
	g := &gathering{w: w, p: p, now: now, seats: map[string]*candidate{}, out: together{policy: p.Name, why: map[string]string{}}}
	g.wants = wants{policy: p, tolerations: p.Spec.Tolerations, preferences: p.Spec.ReplicaPreferences}
	if p.Spec.Failover != nil {
		g.wants.failover = *p.Spec.Failover
	}
	if g.wants.preferences == nil {
		g.wants.preferences = v1beta1.DefaultReplicaPreferences()
	}
	never := g.wants.failover.Failback == v1beta1.FailbackNever
	was, home := slices.DeleteFunc(slices.Clone(p.Status.Clusters), g.refuses), slices.DeleteFunc(slices.Clone(p.Status.Home), g.refuses)
	if never {
		home = nil
	}
	if len(home) > 0 && !slices.ContainsFunc(home, func(name string) bool { return !g.serves(name) }) {
		return g.result(home, nil)
	}
	stays := slices.DeleteFunc(slices.Clone(was), func(name string) bool { return g.seat(name).use == out })
	if len(stays) < len(was) && !never && len(home) == 0 {
		home = was
	}
	chosen := g.choose(stays, g.serves)
	if len(chosen) == 0 {
		chosen = g.choose(nil, func(name string) bool { return g.seat(name).use == usable }) // one that is returning
	}
	if len(chosen) == 0 {
		return g.result(was, home)
	}
	return g.result(chosen, home)
}

// gathering is one such decision in the making.
type gathering struct {
	w     *World
	p     *policy
	now   time.Time
	wants wants
	seats map[string]*candidate
	out   together
}

func (g *gathering) result(clusters, home []string) together {
	slices.Sort(clusters)
	if slices.Sort(home); !slices.Equal(home, clusters) && len(home) > 0 {
		g.out.home = home
	}
	g.out.clusters = clusters
	return g.out
}

// refuses reports whether a cluster is not for what the policy governs.
func (g *gathering) refuses(name string) bool {
	i, known := g.w.index[name]
	if !known {
		return true
	}
	if why := g.wants.refuses(g.p.Namespace, g.w.Clusters[i], g.w); why != "" {
		return true
	}
	pref, covered := g.wants.preferences.ForCluster(name)
	return !covered || pref.Weight+pref.MinReplicas == 0 || pref.MaxReplicas != nil && *pref.MaxReplicas == 0
}

// seat returns what a cluster may have of what the policy governs.
func (g *gathering) seat(name string) *candidate {
	if s := g.seats[name]; s != nil {
		return s
	}
	i := g.w.index[name]
	s := &candidate{cluster: g.w.Clusters[i], group: g.w.groups[i]}
	(&useRules{wants: &g.wants, grace: g.w.Grace, now: g.now}).apply(s)
	if s.until > 0 && (g.out.until == 0 || s.until < g.out.until) {
		g.out.until = s.until
	}
	g.seats[name], g.out.why[name] = s, s.because
	return s
}

// serves reports whether a cluster may have new replicas, as many as it likes.
func (g *gathering) serves(name string) bool { return g.seat(name).canUse(100) }

// choose returns as many clusters as the policy asks for: those that stay before others that are allowed, in the order of the policy;
// first what meets the lower bounds of its spread constraints, never more than the upper ones allow.
func (g *gathering) choose(stays []string, allowed func(string) bool) (chosen []string) {
	most, position, ranked := g.most(), g.p.rank(g.w), slices.Clone(stays)
	slices.SortFunc(ranked, func(a, b string) int { return cmp.Compare(position[a], position[b]) })
	for _, name := range g.p.ranked {
		if !slices.Contains(stays, name) {
			ranked = append(ranked, name)
		}
	}
	for _, onlyMissing := range []bool{true, false} {
		for _, name := range ranked {
			if len(chosen) == most {
				return chosen
			}
			if !slices.Contains(chosen, name) && !g.refuses(name) && (slices.Contains(stays, name) || allowed(name)) && g.fits(chosen, name, onlyMissing) {
				chosen = append(chosen, name)
			}
		}
	}
	return chosen
}

// most returns in how many clusters the policy keeps what it governs: the upper bound of clusters or, without one, what its lower bounds
// need.
func (g *gathering) most() int {
	least := int32(1)
	for _, c := range g.p.Spec.SpreadConstraints {
		if c.SpreadBy == v1beta1.SpreadByCluster && c.MaxGroups != nil {
			return int(*c.MaxGroups)
		}
		least = max(least, c.MinGroups)
	}
	return int(least)
}

// fits reports whether the spread constraints let a cluster join others. onlyMissing: it is in a group that one of them lacks.
func (g *gathering) fits(chosen []string, name string, onlyMissing bool) bool {
	missing := len(chosen) == 0
	for _, c := range g.p.Spec.SpreadConstraints {
		used := map[string]bool{}
		for _, other := range chosen {
			used[g.groupOf(other, c.SpreadBy)] = true
		}
		fresh := !used[g.groupOf(name, c.SpreadBy)]
		if fresh && c.MaxGroups != nil && len(used) >= int(*c.MaxGroups) {
			return false
		}
		missing = missing || fresh && len(used) < int(c.MinGroups)
	}
	return missing || !onlyMissing
}

func (g *gathering) groupOf(name string, by v1beta1.SpreadBy) string {
	return apportion.GroupOf(g.w.Clusters[g.w.index[name]], by)
}

// rank returns the position of each cluster in the policy's order: those with a minimum, then by a hash of the namespace, so that it is
// where others of the namespace are; clusters of one region or zone together, if the policy bounds these.
func (p *policy) rank(w *World) map[string]int {
	p.ranking.Do(func() {
		type place struct {
			name   string
			least  bool
			hashes [3]uint64
		}
		places := make([]place, 0, len(w.Clusters))
		for i, c := range w.Clusters {
			one := place{name: c.Name, hashes: [3]uint64{2: apportion.Hash(c.Name, p.Namespace)}}
			if p.Spec.ReplicaPreferences != nil {
				pref, _ := p.Spec.ReplicaPreferences.ForCluster(c.Name)
				one.least = pref.MinReplicas > 0
			}
			for _, s := range p.Spec.SpreadConstraints {
				switch {
				case s.MaxGroups == nil:
				case s.SpreadBy == v1beta1.SpreadByRegion:
					one.hashes[0] = apportion.Hash(w.groups[i].region, p.Namespace)
				case s.SpreadBy == v1beta1.SpreadByZone:
					one.hashes[1] = apportion.Hash(w.groups[i].zone, p.Namespace)
				}
			}
			places = append(places, one)
		}
		slices.SortFunc(places, func(a, b place) int {
			if a.least != b.least {
				return map[bool]int{true: -1, false: 1}[a.least]
			}
			return cmp.Or(slices.Compare(a.hashes[:], b.hashes[:]), cmp.Compare(a.name, b.name))
		})
		p.position = make(map[string]int, len(places))
		for i, one := range places {
			p.ranked, p.position[one.name] = append(p.ranked, one.name), i
		}
	})
	return p.position
}

// reason says where the others of the policy are.
func (t *together) reason() string {
	return fmt.Sprintf("policy %s keeps all that it governs together in %s", t.policy, namesOf(t.clusters))
}

// notTogether returns what keeps an object from being where the others of its policy are.
func (d *deciding) notTogether() (notes []string) {
	with := d.seating.with
	if with == nil {
		return nil
	}
	switch n := d.result.Placement.Unschedulable; {
	case len(d.seating.seats) == 0 || n > 0:
		notes = append(notes, with.reason()+", and this one has no other place")
	case d.o.Divided && d.o.Replicas > 0 && d.o.Replicas < int64(len(with.clusters)):
		notes = append(notes, fmt.Sprintf("%s, and this one has fewer replicas than these are", with.reason()))
	}
	return notes
}

// namesOf returns the first names of a list, and how many more there are.
func namesOf(names []string) string {
	const most = 10
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
