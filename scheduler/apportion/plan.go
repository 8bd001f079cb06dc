package apportion

import (
	"cmp"
	"slices"
	"strconv"

	"federation/apiserver/apis/federation/v1beta1"
)

// Request is all that a plan depends on. The order of Clusters does not matter.
type Request struct {
	// Key is NAMESPACE/NAME of the object. It breaks ties among clusters that have the object's replicas already, differently for
	// each object, so that what is left over of many does not pile up on one cluster.
	Key string
	// Group is what the object is to be together with: its namespace, say. It breaks all other ties, alike for all objects of the
	// group, so that those with few replicas go to the same clusters. "" is the Key.
	Group string
	// Replicas to place, from 0 to 2³¹-1.
	Replicas int64
	// Preferences of the object. Nil means all clusters alike, without rebalance.
	Preferences *v1beta1.ReplicaPreferences
	// Clusters that may be used.
	Clusters []Cluster
	// Terse leaves the reasons out.
	Terse bool
}

// Cluster is one cluster as the plan sees it.
type Cluster struct {
	Name string
	// Current is the number of replicas placed there before, whether or not they run.
	Current int64
	// Capacity is the most replicas of the object that the cluster can hold: those that run there plus those known to
	// fit. Nil means no known limit.
	Capacity *int64
	// Because names the limit in reasons if it is not room: "not ready", say.
	Because string
	// Least is a lower bound beside minReplicas. LeastBecause names its cause in reasons: "the spread constraint", say.
	Least        int64
	LeastBecause string
}

// Result is a plan with its reasons.
type Result struct {
	// Plan has the replicas of each cluster of the request, including zeros.
	Plan map[string]int64
	// Overflow has, by cluster, the replicas beyond its capacity that a plan would give it if there were no capacities
	// and nothing ran. They may be requested in addition, so that they come up as soon as there is capacity. Without
	// rebalance it is at most what found no other place.
	Overflow map[string]int64
	// Unschedulable is the number of replicas that fit nowhere.
	Unschedulable int64
	// Reasons has, by cluster, what made its number, in the order of application.
	Reasons map[string][]string
}

// slot is one cluster while the plan is made.
type slot struct {
	Cluster
	pref    v1beta1.ClusterPreferences
	first   uint64 // breaks ties for the first replica, a hash of cluster and group,
	hash    uint64 // and for further ones: of cluster and key
	most    int64  // min(maximum, replicas)
	limit   int64  // most, cut by capacity
	min     int64
	lo, hi  int64 // bounds of x
	x       int64 // replicas on top of min
	terse   bool
	because []string
	backing [3]string // backs because; three are usually enough
}

// Plan divides the replicas of a request over its clusters.
//
// Minimums come first, cut by capacity and by what is left. Without rebalance, placed replicas stay where they are as
// far as possible. The rest goes by weight, within maximum and capacity.
func Plan(r Request) Result {
	prefs := r.Preferences
	if prefs == nil {
		prefs = v1beta1.DefaultReplicaPreferences()
	}
	slots, result := candidates(r, prefs)
	result.Unschedulable = divideSlots(slots, r.Replicas, prefs.Rebalance)
	for _, s := range slots {
		result.Plan[s.Name] = s.min + s.x
	}
	reasonWeights(slots)
	if prefs.Rebalance || result.Unschedulable > 0 {
		result.addOverflow(slots, r.Replicas, prefs.Rebalance)
	}
	if !r.Terse {
		for _, s := range slots {
			result.Reasons[s.Name] = s.because
		}
	}
	return result
}

// divideSlots sets min and x of each slot and returns the number of replicas that fit nowhere.
func divideSlots(slots []*slot, replicas int64, rebalance bool) (unschedulable int64) {
	rest := assignMinimums(slots, replicas)
	setBounds(slots, rebalance, rest)
	return apportion(slots, rest)
}

// candidates returns the clusters that the preferences cover, in the plan's order: weight descending, then a hash of
// cluster and group. The others are already in the result, with zero.
func candidates(r Request, prefs *v1beta1.ReplicaPreferences) ([]*slot, Result) {
	result := Result{Plan: make(map[string]int64, len(r.Clusters)), Overflow: map[string]int64{}, Reasons: map[string][]string{}}
	all, slots := make([]slot, len(r.Clusters)), make([]*slot, 0, len(r.Clusters))
	if !r.Terse {
		result.Reasons = make(map[string][]string, len(r.Clusters))
	}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		pref, ok := prefs.ForCluster(c.Name)
		if !ok {
			result.Plan[c.Name] = 0
			result.Reasons[c.Name] = []string{`neither named in the preferences nor covered by "*"`}
			continue
		}
		all[i].fill(c, pref, &r)
		slots = append(slots, &all[i])
	}
	slices.SortFunc(slots, func(a, b *slot) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return slots, result
}

// fill fills the slot for a cluster.
func (s *slot) fill(c *Cluster, pref v1beta1.ClusterPreferences, r *Request) {
	*s = slot{Cluster: *c, pref: pref, first: spreadHash(c.Name, r.group()), hash: spreadHash(c.Name, r.Key), limit: r.Replicas, terse: r.Terse}
	if pref.MaxReplicas != nil && *pref.MaxReplicas < s.limit {
		s.limit = *pref.MaxReplicas
		s.addReason("at most ", s.limit, " by maxReplicas")
	}
	s.most = s.limit
	if c.Capacity != nil && *c.Capacity < s.limit {
		s.limit = max(0, *c.Capacity)
		if c.Because != "" {
			s.addReason("at most ", s.limit, ": "+c.Because)
		} else {
			s.addReason("at most ", s.limit, " by capacity")
		}
	}
	if c.Least > s.pref.MinReplicas {
		s.pref.MinReplicas = c.Least
		s.addReason("at least ", c.Least, " by "+c.LeastBecause)
	}
}

// Hash is what breaks ties: the cluster with the least is the first for what has that key.
func Hash(cluster, key string) uint64 { return spreadHash(cluster, key) }

// spreadHash hashes a cluster and an object's key. FNV alone gives close values for keys that differ only in their last
// digits, so its sum is mixed once more (the finalizer of MurmurHash3).
func spreadHash(cluster, key string) uint64 {
	x := uint64(14695981039346656037)
	for i := range len(cluster) {
		x = (x ^ uint64(cluster[i])) * 1099511628211
	}
	x *= 1099511628211 // the byte 0 between them
	for i := range len(key) {
		x = (x ^ uint64(key[i])) * 1099511628211
	}
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// addReason records one reason: a number between two texts.
func (s *slot) addReason(before string, n int64, after string) {
	if s.terse {
		return
	}
	if s.because == nil {
		s.because = s.backing[:0]
	}
	var text [96]byte
	s.because = append(s.because, string(append(strconv.AppendInt(append(text[:0], before...), n, 10), after...)))
}

// before orders clusters if nothing else distinguishes them.
func (s *slot) before(o *slot) bool {
	if s.pref.Weight != o.pref.Weight {
		return s.pref.Weight > o.pref.Weight
	}
	if s.first != o.first {
		return s.first < o.first
	}
	return s.Name < o.Name
}

// beforeAt orders them for replica number x+1 of each. If their weights are equal, it is the same number of both.
func (s *slot) beforeAt(x int64, o *slot) bool {
	if x > 0 && s.pref.Weight == o.pref.Weight && s.hash != o.hash {
		return s.hash < o.hash
	}
	return s.before(o)
}

// group returns the Group, or the Key where there is none.
func (r *Request) group() string { return cmp.Or(r.Group, r.Key) }

// assignMinimums gives each cluster its minimum while replicas are left, and returns the rest.
func assignMinimums(slots []*slot, left int64) int64 {
	for _, s := range slots {
		s.min = min(s.pref.MinReplicas, left, s.limit)
		if s.min > 0 {
			s.addReason("", s.min, " by minReplicas")
		}
		left -= s.min
	}
	return left
}

// setBounds sets the bounds within which the rest is divided. With rebalance it is only the limit. Without, what runs is
// the lower bound if all of it fits, and the upper bound if not.
func setBounds(slots []*slot, rebalance bool, rest int64) {
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
			s.addReason("", s.Current, " placed there before, rebalance is off")
		}
	}
}

// reasonWeights records what each cluster has by its weight.
func reasonWeights(slots []*slot) {
	var weights int64
	for _, s := range slots {
		weights += s.pref.Weight
	}
	of := " of " + strconv.FormatInt(weights, 10)
	for _, s := range slots {
		if s.pref.Weight > 0 && s.x > 0 && !s.terse {
			s.addReason("", s.x, " by weight "+strconv.FormatInt(s.pref.Weight, 10)+of)
		}
	}
}

// addOverflow divides again without capacities and records what each cluster would have beyond its own. It ignores what
// runs, which is there because of the capacities: a plan that was carried out must plan to itself.
func (r *Result) addOverflow(slots []*slot, replicas int64, rebalance bool) {
	if !slices.ContainsFunc(slots, (*slot).isFull) {
		return
	}
	all, free := make([]slot, len(slots)), make([]*slot, len(slots))
	for i, s := range slots {
		all[i] = *s
		free[i] = &all[i]
		free[i].Current, free[i].limit, free[i].terse = 0, s.most, true
	}
	divideSlots(free, replicas, true)
	for i, s := range slots {
		if s.Capacity == nil {
			continue
		}
		over := free[i].min + free[i].x - max(0, *s.Capacity)
		if !rebalance {
			over = min(over, r.Unschedulable)
		}
		if over > 0 {
			r.Overflow[s.Name] = over
			s.addReason("", over, " more if it had capacity")
		}
	}
}

// isFull reports whether the cluster has all that its capacity allows and could have more.
func (s *slot) isFull() bool { return s.limit < s.most && s.min+s.x == s.limit }
