package apportion

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	all     = `{"rebalance":%t,"clusters":{"*":{"weight":1}}}`
	mission = `{"rebalance":true,"clusters":{"A":{"minReplicas":10,"maxReplicas":20,"weight":2},"*":{"weight":1}}}`
)

func TestPlan(t *testing.T) {
	move, stay := fmt.Sprintf(all, true), fmt.Sprintf(all, false)
	for _, c := range []struct {
		name              string
		prefs             string
		replicas          int64
		clusters          string
		current, capacity map[string]int64
		plan, overflow    map[string]int64
		unschedulable     int64
	}{
		{name: "by weight", prefs: `{"clusters":{"A":{"weight":1},"B":{"weight":2}}}`, replicas: 60, clusters: "AB",
			plan: map[string]int64{"A": 20, "B": 40}},
		{name: "what runs stays when rebalance is off", prefs: stay, replicas: 50, clusters: "AB", current: map[string]int64{"A": 30},
			plan: map[string]int64{"A": 30, "B": 20}},
		{name: "a full cluster's part goes to the others and is its overflow", prefs: move, replicas: 50, clusters: "ABC",
			capacity: map[string]int64{"C": 10}, plan: map[string]int64{"A": 20, "B": 20, "C": 10}, overflow: map[string]int64{"C": 7}},
		{name: "who is heavier and at its maximum does not hide an overflow", replicas: 71, clusters: "ABCD", capacity: map[string]int64{"C": 10},
			prefs: `{"rebalance":true,"clusters":{"A":{"weight":10000,"maxReplicas":10},"*":{"weight":1}}}`,
			plan:  map[string]int64{"A": 10, "B": 25, "C": 10, "D": 26}, overflow: map[string]int64{"C": 10}},
		{name: "an overflow of what is on top of minimums counts only that", replicas: 60, clusters: "AB", capacity: map[string]int64{"B": 10},
			prefs: `{"rebalance":true,"clusters":{"*":{"minReplicas":20,"weight":1}}}`,
			plan:  map[string]int64{"A": 50, "B": 10}, overflow: map[string]int64{"B": 20}},
		{name: "scaling down takes from the fuller cluster only", prefs: stay, replicas: 50, clusters: "AB",
			current: map[string]int64{"A": 10, "B": 70}, plan: map[string]int64{"A": 10, "B": 40}},
		{name: "minimum, maximum and weight of the mission's example", prefs: mission, replicas: 30, clusters: "ABC",
			plan: map[string]int64{"A": 20, "B": 5, "C": 5}},
		{name: "the maximum sends the rest to the others", prefs: mission, replicas: 60, clusters: "ABC",
			plan: map[string]int64{"A": 20, "B": 20, "C": 20}},
		{name: "minimums are cut by what is left", prefs: `{"clusters":{"A":{"minReplicas":8,"weight":2},"B":{"minReplicas":8,"weight":1}}}`,
			replicas: 10, clusters: "AB", plan: map[string]int64{"A": 8, "B": 2}},
		{name: "a minimum is cut by capacity", prefs: `{"rebalance":true,"clusters":{"A":{"minReplicas":8,"weight":1},"B":{"weight":1}}}`,
			replicas: 10, clusters: "AB", capacity: map[string]int64{"A": 3}, plan: map[string]int64{"A": 3, "B": 7}, overflow: map[string]int64{"A": 6}},
		{name: "a cluster that is not covered gets nothing, whatever runs there", prefs: `{"clusters":{"A":{"weight":1}}}`, replicas: 5, clusters: "AB",
			current: map[string]int64{"B": 5}, plan: map[string]int64{"A": 5, "B": 0}},
		{name: "nothing fits", prefs: stay, replicas: 9, clusters: "AB", capacity: map[string]int64{"A": 2, "B": 3},
			plan: map[string]int64{"A": 2, "B": 3}, overflow: map[string]int64{"A": 3, "B": 1}, unschedulable: 4},
		{name: "weight 0 keeps what it has and gets nothing new", prefs: `{"clusters":{"A":{"weight":0},"B":{"weight":1}}}`, replicas: 10, clusters: "AB",
			current: map[string]int64{"A": 4}, plan: map[string]int64{"A": 4, "B": 6}},
		{name: "weight 0 shrinks first", prefs: `{"clusters":{"A":{"weight":0},"B":{"weight":1}}}`, replicas: 7, clusters: "AB",
			current: map[string]int64{"A": 4, "B": 6}, plan: map[string]int64{"A": 1, "B": 6}},
		{name: "nobody weighs anything", prefs: `{"rebalance":true,"clusters":{"*":{"minReplicas":2}}}`, replicas: 10, clusters: "AB",
			plan: map[string]int64{"A": 2, "B": 2}, unschedulable: 6},
		{name: "a great weight takes all", prefs: `{"rebalance":true,"clusters":{"A":{"weight":10000},"B":{"weight":1}}}`, replicas: 50, clusters: "AB",
			plan: map[string]int64{"A": 50, "B": 0}},
		{name: "a maximum below what runs", prefs: `{"clusters":{"A":{"maxReplicas":3,"weight":1},"*":{"weight":1}}}`, replicas: 10, clusters: "AB",
			current: map[string]int64{"A": 9}, plan: map[string]int64{"A": 3, "B": 7}},
		{name: "among equals it stays where it runs", prefs: move, replicas: 1, clusters: "ABC", current: map[string]int64{"C": 1},
			plan: map[string]int64{"A": 0, "B": 0, "C": 1}},
		{name: "no clusters", prefs: stay, replicas: 3, unschedulable: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			prefs, errs := v1beta1.ParseReplicaPreferences(c.prefs, field.NewPath("preferences"))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			r := Request{Key: "default/web", Replicas: c.replicas, Preferences: prefs}
			for _, name := range c.clusters {
				one := Cluster{Name: string(name), Current: c.current[string(name)]}
				if room, ok := c.capacity[one.Name]; ok {
					one.Capacity = &room
				}
				r.Clusters = append(r.Clusters, one)
			}
			got := Plan(r)
			if !maps.Equal(got.Plan, c.plan) || !maps.Equal(got.Overflow, c.overflow) || got.Unschedulable != c.unschedulable {
				t.Errorf("got plan %v overflow %v unschedulable %d\nwant %v %v %d", got.Plan, got.Overflow, got.Unschedulable, c.plan, c.overflow, c.unschedulable)
			}
			for name, n := range got.Plan {
				if n > 0 && len(got.Reasons[name]) == 0 {
					t.Errorf("no reason for %s", name)
				}
			}
		})
	}
}

// Of many groups, and of many objects without one, single replicas are even; so are what is left over of larger objects of one.
func TestTiesAreEven(t *testing.T) {
	for name, of := range map[string]func(i int) Request{
		"single replicas of many objects": func(i int) Request { return Request{Key: fmt.Sprintf("default/web-%d", i), Replicas: 1} },
		"single replicas of many groups":  func(i int) Request { return Request{Key: "web", Group: fmt.Sprintf("team-%d", i), Replicas: 1} },
		"larger objects of one group": func(i int) Request {
			return Request{Key: fmt.Sprintf("default/web-%d", i), Group: "default", Replicas: 4}
		},
	} {
		count := map[string]int64{}
		for i := range 3000 {
			r := of(i)
			r.Clusters = []Cluster{{Name: "east-a"}, {Name: "east-b"}, {Name: "west-a"}}
			for name, n := range Plan(r).Plan {
				count[name] += n - r.Replicas/3
			}
		}
		for cluster, n := range count {
			if n < 800 || n > 1200 {
				t.Errorf("%s: %s has %d of 3000, want about 1000", name, cluster, n)
			}
		}
	}
}

// Objects of a group with fewer replicas than there are clusters are together: the clusters of the smaller are among those of the
// larger.
func TestSmallObjectsOfAGroupAreTogether(t *testing.T) {
	for group := range 50 {
		var smaller map[string]int64
		for replicas := range int64(6) {
			var first map[string]int64
			for i := range 20 {
				r := Request{Key: fmt.Sprint("ns/", i), Group: fmt.Sprint("team-", group), Replicas: replicas}
				for c := range 5 {
					r.Clusters = append(r.Clusters, Cluster{Name: fmt.Sprint("c", c)})
				}
				plan := Plan(r).Plan
				if first == nil {
					first = plan
				}
				if !maps.Equal(plan, first) {
					t.Fatalf("%d replicas of a group: %v and %v", replicas, first, plan)
				}
			}
			for name, n := range smaller {
				if first[name] < n {
					t.Fatalf("%d replicas go to %v, one less to %v", replicas, first, smaller)
				}
			}
			smaller = first
		}
	}
}

// It compares each overflow with a plan without capacities and without running replicas, made one replica at a time.
func TestOverflowIsThatOfAPlanWithoutCapacities(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for range 20000 {
		r := randomRequest(rng)
		got := Plan(r)
		free := slow(r)
		for _, c := range r.Clusters {
			var want int64
			if c.Capacity != nil {
				want = max(0, free[c.Name]-*c.Capacity)
			}
			if !r.Preferences.Rebalance {
				want = min(want, got.Unschedulable)
			}
			if got.Overflow[c.Name] != want {
				t.Fatalf("overflow of %s is %d, want %d: without capacities it would have %d\n%+v %+v", c.Name, got.Overflow[c.Name], want, free[c.Name], r, *r.Preferences)
			}
		}
	}
}

// slow plans without capacities and running replicas, one replica at a time.
func slow(r Request) map[string]int64 {
	r.Clusters = slices.Clone(r.Clusters)
	for i := range r.Clusters {
		r.Clusters[i].Capacity, r.Clusters[i].Current = nil, 0
	}
	slots, _ := candidates(r, r.Preferences)
	have, left := map[string]int64{}, r.Replicas
	for _, s := range slots {
		for ; left > 0 && have[s.Name] < min(s.pref.MinReplicas, s.limit); left-- {
			have[s.Name]++
		}
		s.min = have[s.Name]
	}
	for ; left > 0; left-- {
		var best *slot
		for _, s := range slots {
			if s.pref.Weight > 0 && have[s.Name] < s.limit && (best == nil || hasBetterClaim(s, best, 0)) {
				best = s
			}
		}
		if best == nil {
			break
		}
		have[best.Name]++
		best.x++
	}
	return have
}

// dumb divides one replica at a time, in the most obvious way.
func dumb(slots []*slot, total int64) (unschedulable int64) {
	for _, s := range slots {
		s.x = s.lo
		total -= s.lo
	}
	for ; total > 0; total-- {
		var best *slot
		for _, s := range slots {
			if s.x < s.hi && s.pref.Weight > 0 && (best == nil || hasBetterClaim(s, best, 0)) {
				best = s
			}
		}
		if best == nil {
			return fillUnweighted(slots, total)
		}
		best.x++
	}
	return 0
}

func TestApportionIsTheDumbVersion(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 20000 {
		r := randomRequest(rng)
		prefs := r.Preferences
		fast, _ := candidates(r, prefs)
		slow, _ := candidates(r, prefs)
		rest := assignMinimums(fast, r.Replicas)
		assignMinimums(slow, r.Replicas)
		setBounds(fast, prefs.Rebalance, rest)
		setBounds(slow, prefs.Rebalance, rest)
		a, b := apportion(fast, rest), dumb(slow, rest)
		for i := range fast {
			if fast[i].x != slow[i].x || a != b {
				t.Fatalf("%s: %d, dumb version %d (unschedulable %d, %d)\nrequest %+v %+v", fast[i].Name, fast[i].x, slow[i].x, a, b, r, *prefs)
			}
		}
	}
}

func TestSchedulerLaws(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	for range 20000 {
		r := randomRequest(rng)
		got := Plan(r)
		var sum int64
		for _, c := range r.Clusters {
			n := got.Plan[c.Name]
			sum += n
			if n < 0 || c.Capacity != nil && n > *c.Capacity {
				t.Fatalf("%s gets %d of capacity %v: %+v", c.Name, n, c.Capacity, r)
			}
			if p, _ := r.Preferences.ForCluster(c.Name); p.MaxReplicas != nil && n > *p.MaxReplicas {
				t.Fatalf("%s gets %d, more than its maximum: %+v", c.Name, n, r)
			}
		}
		if sum+got.Unschedulable != r.Replicas {
			t.Fatalf("%d placed and %d unschedulable of %d", sum, got.Unschedulable, r.Replicas)
		}
		checkOrderAndStability(t, rng, r, got)
		checkMonotone(t, r, got)
		checkNothingMoves(t, r, got)
	}
}

// checkOrderAndStability checks that the order of the input does not matter and that a plan that was carried out plans
// to itself.
func checkOrderAndStability(t *testing.T, rng *rand.Rand, r Request, got Result) {
	t.Helper()
	again := r
	again.Clusters = slices.Clone(r.Clusters)
	rng.Shuffle(len(again.Clusters), func(i, j int) {
		again.Clusters[i], again.Clusters[j] = again.Clusters[j], again.Clusters[i]
	})
	if other := Plan(again); !maps.Equal(other.Plan, got.Plan) || !maps.Equal(other.Overflow, got.Overflow) {
		t.Fatalf("another order of clusters gives %v, not %v", other.Plan, got.Plan)
	}
	for i := range again.Clusters {
		again.Clusters[i].Current = got.Plan[again.Clusters[i].Name]
	}
	if second := Plan(again); !maps.Equal(second.Plan, got.Plan) || !maps.Equal(second.Overflow, got.Overflow) {
		t.Fatalf("a plan that was carried out plans to another: %v, then %v\n%+v %+v", got, second, r, *r.Preferences)
	}
}

// checkMonotone checks that one more replica takes none from any cluster.
func checkMonotone(t *testing.T, r Request, got Result) {
	t.Helper()
	more := r
	more.Clusters = slices.Clone(r.Clusters)
	for i := range more.Clusters {
		more.Clusters[i].Current = got.Plan[more.Clusters[i].Name]
	}
	more.Replicas++
	for name, n := range Plan(more).Plan {
		if n < got.Plan[name] && got.Plan[name]-n > belowMinimum(r.Preferences, more) {
			t.Fatalf("one replica more takes %d from %s: %+v %+v", got.Plan[name]-n, name, r, *r.Preferences)
		}
	}
}

// belowMinimum returns how much of the minimums does not fit: other clusters fill those first.
func belowMinimum(p *v1beta1.ReplicaPreferences, r Request) (missing int64) {
	missing = -r.Replicas
	for _, c := range r.Clusters {
		pref, _ := p.ForCluster(c.Name)
		missing += pref.MinReplicas
	}
	return max(0, missing)
}

// checkNothingMoves checks that without rebalance nothing that may stay is removed while all of it fits.
func checkNothingMoves(t *testing.T, r Request, got Result) {
	t.Helper()
	if r.Preferences.Rebalance {
		return
	}
	needed := int64(0)
	stays := map[string]int64{}
	for _, c := range r.Clusters {
		pref, ok := r.Preferences.ForCluster(c.Name)
		if !ok {
			continue
		}
		limit := r.Replicas
		if pref.MaxReplicas != nil {
			limit = min(limit, *pref.MaxReplicas)
		}
		if c.Capacity != nil {
			limit = min(limit, *c.Capacity)
		}
		stays[c.Name] = min(c.Current, limit)
		needed += max(stays[c.Name], min(pref.MinReplicas, limit))
	}
	for name, n := range stays {
		if needed <= r.Replicas && got.Plan[name] < n {
			t.Fatalf("%s shrinks from %d to %d though all fits: %+v %+v", name, n, got.Plan[name], r, *r.Preferences)
		}
	}
}

func randomRequest(rng *rand.Rand) Request {
	prefs := &v1beta1.ReplicaPreferences{Rebalance: rng.Intn(2) == 0, Clusters: map[string]v1beta1.ClusterPreferences{}}
	if rng.Intn(3) > 0 {
		prefs.Clusters[v1beta1.AnyCluster] = v1beta1.ClusterPreferences{Weight: rng.Int63n(3)}
	}
	r := Request{Key: fmt.Sprint("ns/", rng.Intn(9)), Group: []string{"", "ns"}[rng.Intn(2)], Replicas: rng.Int63n(60), Preferences: prefs}
	for i := range rng.Intn(7) {
		c := Cluster{Name: fmt.Sprint("c", i)}
		if rng.Intn(2) == 0 {
			c.Current = rng.Int63n(30)
		}
		if rng.Intn(3) == 0 {
			room := rng.Int63n(25)
			c.Capacity = &room
		}
		if rng.Intn(2) == 0 {
			p := v1beta1.ClusterPreferences{Weight: rng.Int63n(5), MinReplicas: rng.Int63n(2) * rng.Int63n(12)}
			if rng.Intn(2) == 0 {
				most := p.MinReplicas + rng.Int63n(20)
				p.MaxReplicas = &most
			}
			prefs.Clusters[c.Name] = p
		}
		r.Clusters = append(r.Clusters, c)
	}
	return r
}

func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		r := Request{Key: "default/web", Replicas: int64(7 * n)}
		for i := range n {
			r.Clusters = append(r.Clusters, Cluster{Name: fmt.Sprint("cluster-", i), Current: int64(i % 5)})
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Plan(r)
			}
		})
	}
}
