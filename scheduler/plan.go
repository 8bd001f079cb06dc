package scheduler

import (
	"fmt"
	"hash/fnv"
	"sort"

	"federation/apiserver/apis/federation/v1beta1"
)

// Request is all that a plan depends on. The order of Clusters does not matter.
type Request struct {
	// Key is NAMESPACE/NAME of the object. It spreads ties, so that the single replicas of many
	// objects do not pile up on one cluster.
	Key string
	// Replicas to place, from 0 to 2³¹-1.
	Replicas int64
	// Preferences of the object; nil: all clusters alike, rebalance off.
	Preferences *v1beta1.ReplicaPreferences
	// Clusters that may be used.
	Clusters []Cluster
	// Terse leaves the reasons out.
	Terse bool
}

// Cluster is what the plan needs to know of one cluster.
type Cluster struct {
	Name string
	// Current replicas of the object there.
	Current int64
	// Capacity is the most replicas of the object that the cluster can hold: those that run there and
	// those that there is known to be room for. Nil: not known to be limited.
	Capacity *int64
	// Because says what limits it where that is not its room, for the reasons: "not ready", say.
	Because string
	// Least replicas that it is to have, as by minReplicas, for a spread constraint.
	Least int64
}

// Result is a plan and why it is so.
type Result struct {
	// Plan has the replicas of each cluster of the request, zeros included.
	Plan map[string]int64
	// Overflow has replicas that a cluster would have had if it had had the capacity: they may be asked
	// of it in addition, so that they are taken up the moment capacity appears. With rebalance off no
	// more than what found no other place.
	Overflow map[string]int64
	// Unplaced replicas fit nowhere.
	Unplaced int64
	// Reasons has, per cluster, what made its number, in the order it was applied.
	Reasons map[string][]string
}

// slot is one cluster while the plan is made.
type slot struct {
	Cluster
	pref    v1beta1.ClusterPreferences
	hash    uint64
	limit   int64 // the most it may hold: the lesser of maximum, capacity and what is asked for
	wanted  int64 // the minimum before capacity cut it
	min     int64
	lo, hi  int64 // bounds of x
	x       int64 // replicas on top of min
	terse   bool
	because []string
}

// Plan divides the replicas of a request over its clusters.
//
// Minimums come first, cut by capacity and by what is left. With rebalance off, what runs already
// stays where it runs as far as it can. The rest goes by weight, within maximum and capacity.
func Plan(r Request) Result {
	prefs := r.Preferences
	if prefs == nil {
		prefs = v1beta1.DefaultReplicaPreferences()
	}
	slots, result := candidates(r, prefs)
	rest := assignMinimums(slots, r.Replicas)
	overflowBase := rest

	bound(slots, prefs.Rebalance, rest)
	result.Unplaced = apportion(slots, rest)

	for _, s := range slots {
		result.Plan[s.Name] = s.min + s.x
	}
	result.overflow(slots, overflowBase, prefs.Rebalance)
	if !r.Terse {
		for _, s := range slots {
			result.Reasons[s.Name] = s.because
		}
	}
	return result
}

// candidates returns the clusters that the preferences cover, in the plan's order: weight
// descending, then a hash of cluster and key. The others are in the result already, with nothing.
func candidates(r Request, prefs *v1beta1.ReplicaPreferences) ([]*slot, Result) {
	result := Result{Plan: map[string]int64{}, Overflow: map[string]int64{}, Reasons: map[string][]string{}}
	var slots []*slot
	for _, c := range r.Clusters {
		pref, ok := prefs.ForCluster(c.Name)
		if !ok {
			result.Plan[c.Name] = 0
			result.Reasons[c.Name] = []string{`neither named in the preferences nor covered by "*"`}
			continue
		}
		slots = append(slots, newSlot(c, pref, r))
	}
	sort.Slice(slots, func(i, j int) bool { return slots[i].before(slots[j]) })
	return slots, result
}

func newSlot(c Cluster, pref v1beta1.ClusterPreferences, r Request) *slot {
	s := &slot{Cluster: c, pref: pref, hash: spread(c.Name, r.Key), limit: r.Replicas, terse: r.Terse}
	if pref.MaxReplicas != nil && *pref.MaxReplicas < s.limit {
		s.limit = *pref.MaxReplicas
		s.reason("at most %d by maxReplicas", s.limit)
	}
	if c.Capacity != nil && *c.Capacity < s.limit {
		s.limit = max(0, *c.Capacity)
		if c.Because != "" {
			s.reason("at most %d: %s", s.limit, c.Because)
		} else {
			s.reason("at most %d by capacity", s.limit)
		}
	}
	if c.Least > s.pref.MinReplicas {
		s.pref.MinReplicas = c.Least
		s.reason("at least %d by the spread constraint", c.Least)
	}
	return s
}

// spread hashes a cluster and an object's key. FNV alone leaves keys that differ in their last
// digits close together, so its sum is mixed once more (the finalizer of MurmurHash3).
func spread(cluster, key string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(cluster))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(key))
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

func (s *slot) reason(format string, args ...any) {
	if s.terse {
		return
	}
	s.because = append(s.because, fmt.Sprintf(format, args...))
}

// before is the order in which clusters are served when nothing else tells them apart.
func (s *slot) before(o *slot) bool {
	if s.pref.Weight != o.pref.Weight {
		return s.pref.Weight > o.pref.Weight
	}
	if s.hash != o.hash {
		return s.hash < o.hash
	}
	return s.Name < o.Name
}

// assignMinimums gives each cluster its minimum while there is something left, and returns what is.
func assignMinimums(slots []*slot, left int64) int64 {
	for _, s := range slots {
		s.wanted = min(s.pref.MinReplicas, left)
		s.min = min(s.wanted, s.limit)
		if s.min > 0 {
			s.reason("%d by minReplicas", s.min)
		}
		left -= s.min
	}
	return left
}

// bound sets the bounds within which the rest is divided: none but the limit when replicas may be
// moved; else what runs is the lower bound while all of it fits, and the upper bound when it does not.
func bound(slots []*slot, rebalance bool, rest int64) {
	var kept int64
	for _, s := range slots {
		s.lo, s.hi = 0, s.limit-s.min
		if !rebalance {
			s.lo = max(0, min(s.Current, s.limit)-s.min)
			kept += s.lo
		}
	}
	for _, s := range slots {
		if kept > rest {
			s.lo, s.hi = 0, s.lo
		}
		if !rebalance && max(s.lo, s.hi) > 0 && s.Current > s.min {
			s.reason("%d run there already, rebalance is off", s.Current)
		}
	}
}

// overflow notes for each cluster that its capacity cut the part that it would have had.
func (r *Result) overflow(slots []*slot, rest int64, rebalance bool) {
	var weights int64
	for _, s := range slots {
		weights += s.pref.Weight
	}
	for _, s := range slots {
		if s.pref.Weight > 0 && s.x > 0 {
			s.reason("%d by weight %d of %d", s.x, s.pref.Weight, weights)
		}
		if s.Capacity == nil {
			continue
		}
		part := s.wanted
		if weights > 0 {
			part += ceilShare(rest, s.pref.Weight, weights)
		}
		if s.pref.MaxReplicas != nil {
			part = min(part, *s.pref.MaxReplicas)
		}
		over := part - max(0, *s.Capacity)
		if !rebalance {
			over = min(over, r.Unplaced)
		}
		if over > 0 {
			r.Overflow[s.Name] = over
			s.reason("%d more if it had capacity", over)
		}
	}
}
