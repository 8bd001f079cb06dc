package apportion

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

// anyRequest returns a request for very many or for few replicas, by weights that are very large or small.
func anyRequest(random *rand.Rand) Request {
	scale := []int64{4, 100, math.MaxInt32}[random.IntN(3)]
	r := Request{Key: fmt.Sprint("ns/", random.IntN(9)), Replicas: random.Int64N([]int64{30, 1000, math.MaxInt32}[random.IntN(3)]),
		Preferences: &v1beta1.ReplicaPreferences{Rebalance: true, Clusters: map[string]v1beta1.ClusterPreferences{}}}
	for i := range 1 + random.IntN(8) {
		name, p := fmt.Sprint("c", i), v1beta1.ClusterPreferences{Weight: 1 + random.Int64N(scale)}
		if random.IntN(3) == 0 {
			p.MinReplicas = random.Int64N(r.Replicas/9 + 1)
		}
		if random.IntN(3) == 0 {
			p.MaxReplicas = new(p.MinReplicas + random.Int64N(r.Replicas/3+1))
		}
		c := Cluster{Name: name}
		if random.IntN(4) == 0 {
			c.Capacity = new(random.Int64N(r.Replicas/3 + 1))
		}
		r.Preferences.Clusters[name] = p
		r.Clusters = append(r.Clusters, c)
	}
	return r
}

// bounds returns what a cluster has by its minimum and what it may have at most.
func bounds(r Request, c Cluster) (least, most int64) {
	p := r.Preferences.Clusters[c.Name]
	most = r.Replicas
	for _, limit := range []*int64{p.MaxReplicas, c.Capacity} {
		if limit != nil {
			most = min(most, *limit)
		}
	}
	return min(p.MinReplicas, most), most
}

// No cluster has a better claim to another's last replica than that has, by Sainte-Laguë's quotients, unless it is full or the other is at its
// minimum. This is compared in numbers of any size.
func TestPlan_NobodyHasABetterClaim(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 4000 {
		r := anyRequest(random)
		got := Plan(r)
		room, placed := int64(0), int64(0)
		for _, a := range r.Clusters {
			least, most := bounds(r, a)
			room, placed = room+most-got.Plan[a.Name], placed+got.Plan[a.Name]
			for _, b := range r.Clusters {
				bLeast, bMost := bounds(r, b)
				has, wants := got.Plan[a.Name]-least, got.Plan[b.Name]-bLeast
				if has <= 0 || got.Plan[b.Name] >= bMost {
					continue
				}
				mine := new(big.Int).Mul(big.NewInt(r.Preferences.Clusters[a.Name].Weight), big.NewInt(2*wants+1))
				theirs := new(big.Int).Mul(big.NewInt(r.Preferences.Clusters[b.Name].Weight), big.NewInt(2*has-1))
				if mine.Cmp(theirs) < 0 {
					t.Fatalf("%s has %d on top of %d, and %s has a better claim with %d on top of %d\n%+v %+v", a.Name, has, least, b.Name, wants, bLeast,
						r, *r.Preferences)
				}
			}
		}
		if placed+got.Unschedulable != r.Replicas || got.Unschedulable > 0 && room > 0 {
			t.Fatalf("%d are placed and %d fit nowhere, and there is room for %d\n%+v %+v", placed, got.Unschedulable, room, r, *r.Preferences)
		}
	}
}

// setNear leaves no more steps than there are clusters to what is asked for, however many replicas there are: the cost does not depend on them.
func TestSetNear_LeavesFewSteps(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	for range 4000 {
		r := anyRequest(random)
		var slots []*slot
		var least, room int64
		for _, c := range r.Clusters {
			lo := random.Int64N(r.Replicas/8 + 1)
			s := &slot{Cluster: c, pref: r.Preferences.Clusters[c.Name], lo: lo, hi: lo + 1 + random.Int64N(r.Replicas+1)}
			slots = append(slots, s)
			least, room = least+lo, room+s.hi-s.lo
		}
		left := random.Int64N(min(room, math.MaxInt32))
		setNear(slots, left)
		steps := left + least
		for _, s := range slots {
			if steps -= s.x; s.x < s.lo || s.x > s.hi {
				t.Fatalf("%s has %d, not from %d to %d", s.Name, s.x, s.lo, s.hi)
			}
		}
		if n := int64(len(slots)); steps < -n || steps > n {
			t.Fatalf("of %d replicas on %d clusters %d are still to be given or taken", left, n, steps)
		}
	}
}

// Ties for what a group's objects have first go to the cluster with the least Hash of the group, and those for further ones of equal clusters to
// that with the least Hash of the key.
func TestHash_BreaksTies(t *testing.T) {
	names := []string{"east-a", "east-b", "north-a", "west-a", "west-b"}
	first := func(key string) string {
		return slices.MinFunc(names, func(a, b string) int {
			return new(big.Int).SetUint64(Hash(a, key)).Cmp(new(big.Int).SetUint64(Hash(b, key)))
		})
	}
	for i := range 200 {
		r := Request{Key: fmt.Sprint("shop/web-", i), Group: fmt.Sprint("shop-", i)}
		for _, name := range names {
			r.Clusters = append(r.Clusters, Cluster{Name: name})
		}
		for replicas, key := range map[int64]string{1: r.Group, 6: r.Key, 11: r.Key} {
			r.Replicas = replicas
			for name, n := range Plan(r).Plan {
				if more := n > replicas/5; more != (name == first(key)) {
					t.Errorf("%d replicas of %s: %s has %d, and the first of %q is %s", replicas, r.Key, name, n, key, first(key))
				}
			}
		}
	}
}

// The reasons of a cluster are what made its number, in the order of application.
func TestPlan_Reasons(t *testing.T) {
	with := func(text string) *v1beta1.ReplicaPreferences {
		p, errs := v1beta1.ParseReplicaPreferences(text, nil)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return p
	}
	for name, c := range map[string]struct {
		prefs    string
		replicas int64
		a, b     Cluster
		want     string // of A
	}{
		"by weight":         {`{"rebalance":true,"clusters":{"A":{"weight":1},"B":{"weight":3}}}`, 8, Cluster{}, Cluster{}, "2 by weight 1 of 4"},
		"nothing by weight": {`{"rebalance":true,"clusters":{"A":{"weight":0},"B":{"weight":3}}}`, 8, Cluster{}, Cluster{}, ""},
		"its maximum": {`{"rebalance":true,"clusters":{"A":{"maxReplicas":2,"weight":1},"*":{"weight":1}}}`, 9, Cluster{}, Cluster{},
			"at most 2 by maxReplicas; 2 by weight 1 of 2"},
		"a maximum of all": {`{"rebalance":true,"clusters":{"A":{"maxReplicas":8,"weight":1},"*":{"weight":1}}}`, 8, Cluster{}, Cluster{},
			"4 by weight 1 of 2"},
		"its minimum": {`{"rebalance":true,"clusters":{"A":{"minReplicas":5},"*":{"weight":1}}}`, 9, Cluster{}, Cluster{}, "5 by minReplicas"},
		"its room": {`{"rebalance":true,"clusters":{"*":{"weight":1}}}`, 10, Cluster{Capacity: new(int64(2))}, Cluster{},
			"at most 2 by capacity; 2 by weight 1 of 2; 3 more if it had capacity"},
		"room for its share": {`{"rebalance":true,"clusters":{"*":{"weight":1}}}`, 10, Cluster{Capacity: new(int64(5))}, Cluster{},
			"at most 5 by capacity; 5 by weight 1 of 2"},
		"room for all": {`{"rebalance":true,"clusters":{"*":{"weight":1}}}`, 10, Cluster{Capacity: new(int64(10))}, Cluster{}, "5 by weight 1 of 2"},
		"another limit": {`{"rebalance":true,"clusters":{"*":{"weight":1}}}`, 10, Cluster{Capacity: new(int64(0)), Because: "not ready"}, Cluster{},
			"at most 0: not ready; 5 more if it had capacity"},
		"less than no room": {`{"clusters":{"*":{"weight":1}}}`, 10, Cluster{Capacity: new(int64(-3))}, Cluster{}, "at most 0 by capacity"},
		"it runs there": {`{"clusters":{"*":{"weight":1}}}`, 10, Cluster{Current: 7}, Cluster{},
			"7 placed there before, rebalance is off; 7 by weight 1 of 2"},
		"as many as least": {`{"clusters":{"A":{"minReplicas":4,"weight":1},"*":{"weight":1}}}`, 4, Cluster{Current: 4}, Cluster{}, "4 by minReplicas"},
		"no more than least": {`{"clusters":{"A":{"minReplicas":3,"maxReplicas":3},"*":{"weight":1}}}`, 9, Cluster{Current: 5}, Cluster{},
			"at most 3 by maxReplicas; 3 by minReplicas"},
		"it has no weight": {`{"clusters":{"A":{"weight":0},"B":{"weight":1}}}`, 9, Cluster{Current: 4}, Cluster{},
			"4 placed there before, rebalance is off"},
		"none runs there": {`{"clusters":{"*":{"weight":1}}}`, 10, Cluster{}, Cluster{Current: 10}, ""},
		"a lower bound": {`{"rebalance":true,"clusters":{"A":{"weight":0},"*":{"weight":1}}}`, 3, Cluster{Least: 1,
			LeastBecause: "the spread constraint"}, Cluster{}, "at least 1 by the spread constraint; 1 by minReplicas"},
		"a lower one than it": {`{"rebalance":true,"clusters":{"A":{"minReplicas":2},"*":{"weight":1}}}`, 3, Cluster{Least: 2,
			LeastBecause: "the spread constraint"}, Cluster{}, "2 by minReplicas"},
		"not covered": {`{"clusters":{"B":{"weight":1}}}`, 3, Cluster{Current: 3}, Cluster{}, `neither named in the preferences nor covered by "*"`},
	} {
		c.a.Name, c.b.Name = "A", "B"
		r := Request{Key: "shop/web", Replicas: c.replicas, Preferences: with(c.prefs), Clusters: []Cluster{c.a, c.b}}
		if got := strings.Join(Plan(r).Reasons["A"], "; "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A lower bound beside the minimum is met like one: while replicas are left, and as far as the cluster may have them. Terse changes no number.
func TestPlan_LowerBoundsAndTerse(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for range 3000 {
		r := anyRequest(random)
		r.Preferences.Rebalance = random.IntN(2) == 0
		same := r
		same.Clusters, same.Preferences = slices.Clone(r.Clusters), r.Preferences.DeepCopy()
		for i := range r.Clusters {
			name := r.Clusters[i].Name
			if r.Clusters[i].Current = random.Int64N(9); random.IntN(2) == 0 {
				r.Clusters[i].Least = random.Int64N(9)
			}
			same.Clusters[i].Current = r.Clusters[i].Current
			p := same.Preferences.Clusters[name]
			p.MinReplicas = max(p.MinReplicas, r.Clusters[i].Least)
			same.Preferences.Clusters[name] = p
		}
		got, want := Plan(r), Plan(same)
		if !maps.Equal(got.Plan, want.Plan) || got.Unschedulable != want.Unschedulable {
			t.Fatalf("with lower bounds %v, with minimums %v\n%+v %+v", got.Plan, want.Plan, r, *r.Preferences)
		}
		r.Terse = true
		if terse := Plan(r); !maps.Equal(terse.Plan, got.Plan) || !maps.Equal(terse.Overflow, got.Overflow) || len(terse.Reasons) > 0 ||
			len(got.Reasons) != len(r.Clusters) {
			t.Fatalf("terse it is %+v, not %+v", terse, got)
		}
	}
}
