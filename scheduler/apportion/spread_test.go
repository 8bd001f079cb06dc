package apportion

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// A zone has its region in its name, as zones of two regions may be called alike; a cluster in several zones is in one of its own, and one that
// does not say is alone.
func TestGroupOf(t *testing.T) {
	of := func(region string, zones ...string) *v1beta1.Cluster {
		return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Status: v1beta1.ClusterStatus{Region: region, Zones: zones}}
	}
	for _, c := range []struct {
		cluster                    *v1beta1.Cluster
		zone, byZone, byRegion, by string
	}{
		{of("east", "a"), "east/a", "east/a", "east", "c1"},
		{of("west", "a"), "west/a", "west/a", "west", "c1"},
		{of("east", "a", "b"), "east/a+b", "east/a+b", "east", "c1"},
		{of("", "a"), "/a", "/a", "the region of c1", "c1"},
		{of("east"), "", "the zone of c1", "east", "c1"},
		{of(""), "", "the zone of c1", "the region of c1", "c1"},
	} {
		got := []string{ZoneOf(c.cluster), GroupOf(c.cluster, v1beta1.SpreadByZone), GroupOf(c.cluster, v1beta1.SpreadByRegion), GroupOf(c.cluster,
			v1beta1.SpreadByCluster)}
		if want := []string{c.zone, c.byZone, c.byRegion, c.by}; !slices.Equal(got, want) {
			t.Errorf("region %q, zones %v: %q, want %q", c.cluster.Status.Region, c.cluster.Status.Zones, got, want)
		}
	}
}

// randomCandidates returns clusters in two or three regions of two or three zones each; some have no zone.
func randomCandidates(random *rand.Rand) (all []Candidate) {
	for i := range 1 + random.IntN(8) {
		c := Candidate{Name: fmt.Sprint("c", i), Region: fmt.Sprint("r", random.IntN(3)), Fits: random.Int64N(4), Weight: random.Int64N(3)}
		if c.Zone = fmt.Sprintf("%s/z%d", c.Region, random.IntN(3)); random.IntN(5) == 0 {
			c.Zone = ""
		}
		c.Current = min(c.Fits, random.Int64N(3))
		all = append(all, c)
	}
	return all
}

// randomConstraints returns constraints that the API accepts.
func randomConstraints(random *rand.Rand) (all []v1beta1.SpreadConstraint) {
	for _, by := range []v1beta1.SpreadBy{v1beta1.SpreadByCluster, v1beta1.SpreadByRegion, v1beta1.SpreadByZone} {
		c := v1beta1.SpreadConstraint{SpreadBy: by}
		switch random.IntN(4) {
		case 0:
			c.MinGroups = int32(1 + random.IntN(3))
		case 1:
			c.MaxGroups = new(int32(1 + random.IntN(3)))
		case 2:
			c.MinGroups = int32(1 + random.IntN(3))
			c.MaxGroups = new(c.MinGroups + int32(random.IntN(2)))
		default:
			continue
		}
		all = append(all, c)
	}
	return all
}

// groupsOf returns in how many groups these candidates are.
func groupsOf(all []Candidate, by v1beta1.SpreadBy, in func(i int) bool) int {
	seen := map[string]bool{}
	for i := range all {
		if in(i) {
			seen[all[i].groupOf(by)] = true
		}
	}
	return len(seen)
}

// allows reports whether candidates are in no more groups than constraints allow and, if asked, in as many as they require.
func allows(all []Candidate, constraints []v1beta1.SpreadConstraint, lower bool, in func(i int) bool) bool {
	return !slices.ContainsFunc(constraints, func(c v1beta1.SpreadConstraint) bool {
		n := groupsOf(all, c.SpreadBy, in)
		return c.MaxGroups != nil && n > int(*c.MaxGroups) || lower && n < int(c.MinGroups)
	})
}

// Select never chooses more groups than constraints allow and leaves none out that they allow. If any choice meets the lower bounds too, its
// choice does; this compares it with all choices that there are, but where regions and zones are bounded above and clusters below. Why a candidate
// is left out names the bound.
func TestSelect_MeetsWhatCanBeMet(t *testing.T) {
	random, met := rand.New(rand.NewPCG(1, 1)), 0
	for range 4000 {
		all, constraints := randomCandidates(random), randomConstraints(random)
		chosen, why := Select("shop", all, constraints)
		is := func(i int) bool { return chosen[all[i].Name] }
		if !allows(all, constraints, false, is) {
			t.Fatalf("%v of %+v are in more groups than %+v", chosen, all, constraints)
		}
		can := false
		for set := range uint(1) << len(all) {
			can = can || allows(all, constraints, true, func(i int) bool { return set>>i&1 == 1 })
		}
		if can {
			met++
		}
		if can && !ofThree(constraints) && !allows(all, constraints, true, is) {
			t.Fatalf("%v of %+v do not meet %s, and others would", chosen, all, shown(constraints))
		}
		for i, c := range all {
			without := allows(all, constraints, false, func(j int) bool { return j == i || is(j) })
			if chosen[c.Name] == (why[c.Name] != "") || !chosen[c.Name] && (without || !strings.HasPrefix(why[c.Name], "not among the ")) {
				t.Fatalf("%s: chosen %t, because %q; all would fit %t: %v of %+v, %s", c.Name, chosen[c.Name], why[c.Name], without, chosen, all,
					shown(constraints))
			}
		}
	}
	if met < 1000 {
		t.Errorf("only %d of these can be met", met)
	}
}

// ofThree reports whether regions and zones are bounded above and clusters below: then zones may be left out that the choice of regions counts on.
func ofThree(constraints []v1beta1.SpreadConstraint) bool {
	return constraint(constraints, v1beta1.SpreadByRegion).MaxGroups != nil && constraint(constraints, v1beta1.SpreadByZone).MaxGroups != nil &&
		constraint(constraints, v1beta1.SpreadByCluster).MinGroups > 1
}

// lowerBounds yields the constraints that require more than one group.
func lowerBounds(constraints []v1beta1.SpreadConstraint) func(func(v1beta1.SpreadConstraint) bool) {
	return func(yield func(v1beta1.SpreadConstraint) bool) {
		for _, c := range constraints {
			if c.MinGroups > 1 && !yield(c) {
				return
			}
		}
	}
}

func shown(constraints []v1beta1.SpreadConstraint) (out string) {
	for _, c := range constraints {
		out += fmt.Sprintf(" %s from %d", c.SpreadBy, c.MinGroups)
		if c.MaxGroups != nil {
			out += fmt.Sprint(" to ", *c.MaxGroups)
		}
	}
	return out
}

// Spread requires nothing of a plan that meets the lower bounds. Else it requires replicas where they meet each bound as far as any candidates
// can, in clusters that can have them, and of no more clusters than necessary; a bound that cannot be met is noted.
func TestSpread_RequiresWhatIsMissing(t *testing.T) {
	random, short := rand.New(rand.NewPCG(2, 1)), 0
	for range 4000 {
		all, constraints, plan, replicas := randomCandidates(random), randomConstraints(random), map[string]int64{}, random.Int64N(5)
		for left, i := replicas, 0; i < len(all) && left > 0; i++ {
			plan[all[i].Name] = min(left, random.Int64N(all[i].Fits+1))
			left -= plan[all[i].Name]
		}
		able := func(i int) bool { return all[i].Fits > 0 && (all[i].Weight > 0 || plan[all[i].Name] > 0) }
		need, notes := Spread("shop", all, constraints, plan, replicas)
		var missing, most, unmet int
		for c := range lowerBounds(constraints) {
			asked := int(min(int64(c.MinGroups), replicas))
			if asked < 2 {
				continue
			}
			can := min(asked, groupsOf(all, c.SpreadBy, able))
			if can < asked {
				unmet++
			}
			if groupsOf(all, c.SpreadBy, func(i int) bool { return plan[all[i].Name] > 0 }) < can {
				missing++
			}
			most = max(most, can)
			if got := groupsOf(all, c.SpreadBy, func(i int) bool { return need[all[i].Name] }); need != nil && got < can {
				t.Fatalf("%v are %d of %d groups by %s\n%+v, plan %v", need, got, can, c.SpreadBy, all, plan)
			}
		}
		if (need != nil) != (missing > 0) || len(notes) != unmet {
			t.Fatalf("%d bounds are missed and %d cannot be met: need %v, notes %q\n%+v, plan %v of %d, %s", missing, unmet, need, notes, all, plan,
				replicas, shown(constraints))
		}
		for i := range all {
			if need[all[i].Name] && !able(i) || len(need) > most {
				t.Fatalf("%s cannot have replicas, or %d are more than %d clusters: %v\n%+v", all[i].Name, len(need), most, need, all)
			}
		}
		short += bits.Len(uint(missing))
	}
	if short < 500 {
		t.Errorf("only %d of these plans miss a bound", short)
	}
}

// Within a group that needs a replica it goes where some run, then to the heavier cluster, then to the first by name.
func TestSpread_ChoosesInAGroup(t *testing.T) {
	two := []v1beta1.SpreadConstraint{{SpreadBy: v1beta1.SpreadByRegion, MinGroups: 2}}
	in := func(name, region string, weight int64) Candidate {
		return Candidate{Name: name, Region: region, Fits: 9, Weight: weight}
	}
	for name, c := range map[string]struct {
		candidates []Candidate
		plan       map[string]int64
		want       string
	}{
		"the first by name": {[]Candidate{in("b", "west", 1), in("a", "west", 1), in("z", "east", 1)}, map[string]int64{"z": 3}, "a z"},
		"the heavier":       {[]Candidate{in("a", "west", 1), in("b", "west", 2), in("z", "east", 1)}, map[string]int64{"z": 3}, "b z"},
		"where it runs":     {[]Candidate{in("a", "east", 9), in("b", "east", 1), in("z", "west", 1)}, map[string]int64{"b": 3}, "b z"},
		"not where nothing fits": {[]Candidate{{Name: "a", Region: "west", Weight: 9}, in("b", "west", 1), in("z", "east", 1)}, map[string]int64{"z": 3},
			"b z"},
		"not where it weighs 0": {[]Candidate{in("a", "west", 0), in("b", "west", 1), in("z", "east", 1)}, map[string]int64{"z": 3}, "b z"},
	} {
		need, notes := Spread("shop", c.candidates, two, c.plan, 3)
		var names []string
		for _, one := range c.candidates {
			if need[one.Name] {
				names = append(names, one.Name)
			}
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != c.want || notes != nil {
			t.Errorf("%s: %q, want %q, notes %q", name, got, c.want, notes)
		}
	}
}

// Select takes one cluster in as many regions as are required, the best of each, and then the best that are left, wherever they are.
func TestSelect_RequiredRegionsThenTheBest(t *testing.T) {
	all := []Candidate{
		{Name: "east-a", Region: "east", Current: 4, Fits: 9}, {Name: "east-b", Region: "east", Current: 3, Fits: 9}, {Name: "east-c", Region: "east", Fits: 9},
		{Name: "north", Region: "north", Current: 1, Fits: 9}, {Name: "west-a", Region: "west", Fits: 9, Weight: 1}, {Name: "west-b", Region: "west",
			Current: 2, Fits: 9},
	}
	for regions, want := range []string{"east-a east-b west-b", "east-a east-b west-b", "east-a east-b west-b", "east-a north west-b"} {
		chosen, why := Select("shop", all, []v1beta1.SpreadConstraint{{SpreadBy: v1beta1.SpreadByRegion, MinGroups: int32(regions)},
			{SpreadBy: v1beta1.SpreadByCluster, MaxGroups: new(int32(3))}})
		if got := strings.Join(slices.Sorted(maps.Keys(chosen)), " "); got != want ||
			why["east-c"] != "not among the 3 clusters that the spread constraint allows" {
			t.Errorf("of %d regions %s, want %s, the others because of %q", regions, got, want, why)
		}
	}
}
