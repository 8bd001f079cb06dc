package apportion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
)

// Candidate is a cluster that Select may choose.
type Candidate struct {
	Name string
	// Zone and Region of the cluster. A cluster with an unknown one counts as its own.
	Zone, Region string
	// Current replicas of the object there.
	Current int64
	// Fits is how many of the object's replicas the cluster could hold, including those that run there.
	Fits int64
	// Weight by the object's preferences.
	Weight int64
}

// ZoneOf returns the name of a cluster's zone, with its region. A cluster with nodes in several zones is a zone of its
// own, named for all of them. "" if there is none.
func ZoneOf(c *v1beta1.Cluster) string {
	if len(c.Status.Zones) == 0 {
		return ""
	}
	return c.Status.Region + "/" + strings.Join(c.Status.Zones, "+")
}

// GroupOf returns the name of a cluster's group.
func GroupOf(c *v1beta1.Cluster, by v1beta1.SpreadBy) string {
	one := Candidate{Name: c.Name, Zone: ZoneOf(c), Region: c.Status.Region}
	return one.groupOf(by)
}

// groupOf returns the name of a candidate's group.
func (c *Candidate) groupOf(by v1beta1.SpreadBy) string {
	name := c.Name
	switch by {
	case v1beta1.SpreadByZone:
		name = c.Zone
	case v1beta1.SpreadByRegion:
		name = c.Region
	}
	if name == "" {
		return "the " + strings.ToLower(string(by)) + " of " + c.Name
	}
	return name
}

// coarseFirst lists the ways to group, in the order in which constraints apply.
var coarseFirst = []v1beta1.SpreadBy{v1beta1.SpreadByRegion, v1beta1.SpreadByZone, v1beta1.SpreadByCluster}

func constraint(all []v1beta1.SpreadConstraint, by v1beta1.SpreadBy) v1beta1.SpreadConstraint {
	for _, c := range all {
		if c.SpreadBy == by {
			return c
		}
	}
	return v1beta1.SpreadConstraint{SpreadBy: by}
}

// pool sums up the candidates of one group.
type pool struct {
	name                        string
	able, current, fits, weight int64
	hash                        uint64
	members                     []*Candidate
}

// Select chooses the candidates that the upper bounds of spread constraints allow: first groups that can meet the lower
// bounds, then those where most replicas run, then by room, weight, and a hash of the group (Request.Group). For each candidate left out
// it returns the reason. The order of candidates does not matter.
func Select(group string, candidates []Candidate, constraints []v1beta1.SpreadConstraint) (chosen map[string]bool, why map[string]string) {
	chosen, why = map[string]bool{}, map[string]string{}
	left := make([]*Candidate, 0, len(candidates))
	for i := range candidates {
		left = append(left, &candidates[i])
	}
	for i, by := range coarseFirst {
		c := constraint(constraints, by)
		if c.MaxGroups == nil {
			continue
		}
		pools := poolCandidates(group, left, by, finerConstraints(constraints, i))
		take := coverConstraints(pools, constraints, i, int(*c.MaxGroups))
		left = nil
		for _, p := range pools {
			for _, m := range p.members {
				if take[p.name] {
					left = append(left, m)
				} else {
					why[m.Name] = fmt.Sprintf("not among the %d %ss that the spread constraint allows", *c.MaxGroups, strings.ToLower(string(by)))
				}
			}
		}
	}
	for _, c := range left {
		chosen[c.Name] = true
	}
	return chosen, why
}

// finerConstraints returns the constraints with a lower bound on groups inside those of coarseFirst[i].
func finerConstraints(all []v1beta1.SpreadConstraint, i int) (out []v1beta1.SpreadConstraint) {
	for _, by := range coarseFirst[i+1:] {
		if c := constraint(all, by); c.MinGroups > 1 {
			out = append(out, c)
		}
	}
	return out
}

// poolCandidates groups candidates, the best group first.
func poolCandidates(group string, candidates []*Candidate, by v1beta1.SpreadBy, finer []v1beta1.SpreadConstraint) []*pool {
	byName := map[string]*pool{}
	var pools []*pool
	for _, c := range candidates {
		name := c.groupOf(by)
		p := byName[name]
		if p == nil {
			p = &pool{name: name, hash: spreadHash(name, group)}
			byName[name] = p
			pools = append(pools, p)
		}
		p.current, p.fits, p.weight = p.current+c.Current, p.fits+c.Fits, p.weight+c.Weight
		p.members = append(p.members, c)
	}
	for _, p := range pools {
		for _, f := range finer {
			inside := map[string]bool{}
			for _, m := range p.members {
				inside[m.groupOf(f.SpreadBy)] = true
			}
			p.able += min(int64(len(inside)), int64(f.MinGroups))
		}
	}
	slices.SortFunc(pools, (*pool).compare)
	return pools
}

func (p *pool) compare(o *pool) int {
	return cmp.Or(cmp.Compare(o.able, p.able), cmp.Compare(o.current, p.current), cmp.Compare(o.fits, p.fits),
		cmp.Compare(o.weight, p.weight), cmp.Compare(p.hash, o.hash), cmp.Compare(p.name, o.name))
}

// coverConstraints takes at most `most` pools: first one in each of the required coarser groups, then the best.
func coverConstraints(pools []*pool, constraints []v1beta1.SpreadConstraint, i, most int) map[string]bool {
	take := map[string]bool{}
	for _, by := range coarseFirst[:i] {
		need, seen := int(constraint(constraints, by).MinGroups), map[string]bool{}
		for _, p := range pools {
			if g := p.members[0].groupOf(by); len(seen) < need && len(take) < most && !seen[g] {
				seen[g], take[p.name] = true, true
			}
		}
	}
	for _, p := range pools {
		if len(take) < most {
			take[p.name] = true
		}
	}
	return take
}

// Spread returns the candidates that must have at least one replica for a plan to meet the lower bounds of spread
// constraints, and the bounds that cannot be met. It returns none if the plan already meets them.
func Spread(group string, candidates []Candidate, constraints []v1beta1.SpreadConstraint, plan map[string]int64, replicas int64) (need map[string]bool, notes []string) {
	able := make([]*Candidate, 0, len(candidates))
	for i := range candidates {
		if c := candidates[i]; c.Fits > 0 && (c.Weight > 0 || plan[c.Name] > 0) {
			c.Current = plan[c.Name]
			able = append(able, &c)
		}
	}
	need, short := map[string]bool{}, false
	for i, by := range coarseFirst {
		c := constraint(constraints, by)
		least := min(int64(c.MinGroups), replicas)
		if least < 2 {
			continue
		}
		pools := poolCandidates(group, able, by, finerConstraints(constraints, i))
		if int64(len(pools)) < least {
			notes = append(notes, fmt.Sprintf("only %d of %d %ss that the spread constraint asks for can be used", len(pools), c.MinGroups, strings.ToLower(string(by))))
		}
		short = requireGroups(pools, by, least, need) || short
	}
	if !short {
		return nil, notes
	}
	return need, notes
}

// requireGroups adds one candidate in each of `least` pools to need, and reports whether the plan has fewer.
func requireGroups(pools []*pool, by v1beta1.SpreadBy, least int64, need map[string]bool) (short bool) {
	var used, have int64
	covered := map[string]bool{}
	for _, p := range pools {
		if p.current > 0 {
			used++
		}
		for _, m := range p.members {
			covered[p.name] = covered[p.name] || need[m.Name]
		}
		if covered[p.name] {
			have++
		}
	}
	for _, p := range pools {
		if have < least && !covered[p.name] {
			best := slices.MinFunc(p.members, func(a, b *Candidate) int {
				return cmp.Or(cmp.Compare(b.Current, a.Current), cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Name, b.Name))
			})
			need[best.Name] = true
			have++
		}
	}
	return used < min(least, int64(len(pools)))
}
