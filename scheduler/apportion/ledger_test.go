package apportion

import (
	"math"
	"math/rand"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

func resources(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func withRoom(name string, classes ...v1beta1.NodeClass) *v1beta1.Cluster {
	return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: v1beta1.ClusterStatus{Capacity: &v1beta1.ClusterCapacity{Free: classes}}}
}

func TestRoom(t *testing.T) {
	boundless := v1beta1.NodeClass{Nodes: math.MaxInt32, Free: resources("cpu", "9223372036854775", "pods", "9223372036854775807")}
	l := NewLedger([]*v1beta1.Cluster{
		withRoom("a", v1beta1.NodeClass{Nodes: 3, Free: resources("cpu", "2500m", "memory", "8Gi", "pods", "20")},
			v1beta1.NodeClass{Nodes: 2, Free: resources("cpu", "900m", "memory", "1Gi", "pods", "3", "example.com/gpu", "1")}),
		withRoom("full"), {ObjectMeta: metav1.ObjectMeta{Name: "silent"}}, withRoom("lying", boundless, boundless, boundless),
	})
	for _, c := range []struct {
		name, cluster string
		requests      corev1.ResourceList
		room          int64
		known         bool
	}{
		{"cpu counts on each node, not in sum", "a", resources("cpu", "1"), 6, true},
		{"the scarcest resource counts", "a", resources("cpu", "100m", "memory", "1Gi"), 3*8 + 2*1, true},
		{"nothing asked for: the number of pods", "a", nil, 3*20 + 2*3, true},
		{"what few nodes have", "a", resources("example.com/gpu", "1"), 2, true},
		{"what nobody has", "a", resources("example.com/tpu", "1"), 0, true},
		{"more than there are numbers", "lying", resources("cpu", "1m"), math.MaxInt32, true},
		{"nothing free", "full", resources("cpu", "1m"), 0, true},
		{"a cluster that does not say", "silent", resources("cpu", "1"), 0, false},
	} {
		if room, known := l.Room(c.cluster, l.Demand(c.requests)); room != c.room || known != c.known {
			t.Errorf("%s: %d %t, want %d %t", c.name, room, known, c.room, c.known)
		}
	}
}

// Take reserves exactly what it is asked for, and room never becomes negative.
func TestTakeLeavesTheRest(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 500 {
		var classes []v1beta1.NodeClass
		for range 1 + rng.Intn(5) {
			classes = append(classes, v1beta1.NodeClass{Nodes: int32(1 + rng.Intn(9)), Free: corev1.ResourceList{
				"cpu": *resource.NewMilliQuantity(rng.Int63n(8000), resource.DecimalSI), "pods": *resource.NewQuantity(rng.Int63n(30), resource.DecimalSI)}})
		}
		l := NewLedger([]*v1beta1.Cluster{withRoom("a", classes...)})
		untouched := l.Clone()
		d := l.Demand(resources("cpu", "300m"))
		whole, _ := l.Room("a", d)
		n := rng.Int63n(whole + 3)
		l.Take("a", d, n)
		if left, _ := l.Room("a", d); left != max(0, whole-n) {
			t.Fatalf("room for %d, %d taken, %d left: %v", whole, n, left, classes)
		}
		if same, _ := untouched.Room("a", d); same != whole {
			t.Fatalf("a clone went from %d to %d", whole, same)
		}
		for range 200 {
			other := l.Demand(resources("cpu", []string{"100m", "700m", "1"}[rng.Intn(3)]))
			before, _ := l.Room("a", other)
			n := rng.Int63n(4)
			l.Take("a", other, n)
			if after, _ := l.Room("a", other); after > max(0, before-n) || len(l.rooms["a"]) > maxClasses {
				t.Fatalf("room for %d, %d taken, %d left in %d classes", before, n, after, len(l.rooms["a"]))
			}
		}
	}
}

func TestSelect(t *testing.T) {
	most := func(by v1beta1.SpreadBy, least, most int32) v1beta1.SpreadConstraint {
		return v1beta1.SpreadConstraint{SpreadBy: by, MinGroups: least, MaxGroups: &most}
	}
	all := func() []Candidate {
		return []Candidate{
			{Name: "east-a1", Zone: "east/a", Region: "east", Fits: 10, Weight: 1}, {Name: "east-a2", Zone: "east/a", Region: "east", Fits: 10, Weight: 1},
			{Name: "east-b", Zone: "east/b", Region: "east", Fits: 10, Weight: 1}, {Name: "west-a", Zone: "west/a", Region: "west", Fits: 10, Weight: 9},
		}
	}
	for _, c := range []struct {
		name        string
		current     string
		constraints []v1beta1.SpreadConstraint
		want        []string
	}{
		{"no bound", "", nil, []string{"east-a1", "east-a2", "east-b", "west-a"}},
		{"one region: that with most room", "", []v1beta1.SpreadConstraint{most(v1beta1.SpreadByRegion, 0, 1)}, []string{"east-a1", "east-a2", "east-b"}},
		{"one region: that where it runs", "west-a", []v1beta1.SpreadConstraint{most(v1beta1.SpreadByRegion, 0, 1)}, []string{"west-a"}},
		{"one region with two zones, wherever it runs", "west-a",
			[]v1beta1.SpreadConstraint{most(v1beta1.SpreadByRegion, 0, 1), {SpreadBy: v1beta1.SpreadByZone, MinGroups: 2}}, []string{"east-a1", "east-a2", "east-b"}},
		{"two clusters of one region in two zones", "",
			[]v1beta1.SpreadConstraint{most(v1beta1.SpreadByRegion, 0, 1), {SpreadBy: v1beta1.SpreadByZone, MinGroups: 2}, most(v1beta1.SpreadByCluster, 0, 2)}, []string{"east-a?", "east-b"}},
		{"one cluster: the heaviest of those that can hold all", "", []v1beta1.SpreadConstraint{most(v1beta1.SpreadByCluster, 0, 1)}, []string{"west-a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			candidates := all()
			for i := range candidates {
				if candidates[i].Name == c.current {
					candidates[i].Current = 3
				}
			}
			chosen, why := Select("shop/web", candidates, c.constraints)
			for _, want := range c.want {
				if want == "east-a?" && chosen["east-a1"] != chosen["east-a2"] || chosen[want] {
					continue
				}
				t.Errorf("%s is not chosen: %v", want, chosen)
			}
			if len(chosen) != len(c.want) || len(chosen)+len(why) != len(candidates) {
				t.Errorf("chosen %v, not %v, because %v", chosen, c.want, why)
			}
		})
	}
}

func TestSpreadAsksForOneInEachGroup(t *testing.T) {
	candidates := []Candidate{{Name: "a", Zone: "z1", Fits: 9, Weight: 9}, {Name: "b", Zone: "z2", Fits: 9, Weight: 1}, {Name: "c", Zone: "z3", Fits: 9, Weight: 1}}
	zones := func(n int32) []v1beta1.SpreadConstraint {
		return []v1beta1.SpreadConstraint{{SpreadBy: v1beta1.SpreadByZone, MinGroups: n}}
	}
	if need, notes := Spread("k", candidates, zones(3), map[string]int64{"a": 3}, 3); len(need) != 3 || notes != nil {
		t.Errorf("need %v, notes %v", need, notes)
	}
	if need, notes := Spread("k", candidates, zones(2), map[string]int64{"a": 2, "c": 1}, 3); need != nil || notes != nil {
		t.Errorf("met already: need %v, notes %v", need, notes)
	}
	if need, notes := Spread("k", candidates, zones(3), map[string]int64{"a": 2}, 2); len(need) != 2 || notes != nil {
		t.Errorf("each of two in a group of its own: need %v, notes %v", need, notes)
	}
	if _, notes := Spread("k", candidates[:2], zones(3), map[string]int64{"a": 5}, 5); len(notes) != 1 || notes[0] != "only 2 of 3 zones that the spread constraint asks for can be used" {
		t.Errorf("notes %q", notes)
	}
}
