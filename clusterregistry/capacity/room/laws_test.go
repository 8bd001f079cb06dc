package room

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"federation/apiserver/apis/federation/v1beta1"
)

// randomNodes returns nodes that are of so many sorts.
func randomNodes(random *rand.Rand, sorts int) (nodes []Node) {
	var of []Amounts
	for range sorts {
		a := Amounts{corev1.ResourceCPU: random.Int64N(4) * 1000, corev1.ResourceMemory: random.Int64N(3) << 30, corev1.ResourcePods: 1 + random.Int64N(3)}
		if random.IntN(3) == 0 {
			a[corev1.ResourceName("example.com/"+string("abc"[random.IntN(3)]))] = 1 + random.Int64N(2)
		}
		of = append(of, a)
	}
	for i := range 1 + random.IntN(60) {
		nodes = append(nodes, Node{Name: fmt.Sprint("n", i), Usable: random.IntN(9) > 0, Allocatable: maps.Clone(of[random.IntN(sorts)])})
	}
	return nodes
}

// randomPods returns pods on these nodes, on none, and on one that is not there.
func randomPods(random *rand.Rand, nodes []Node) (pods []Pod) {
	for range random.IntN(40) {
		p := on(append(nodes, Node{}, Node{Name: "gone"})[random.IntN(len(nodes)+2)].Name, random.Int64N(3)*500)
		if random.IntN(4) == 0 {
			p.Requests["example.com/a"] = 1
		}
		pods = append(pods, p)
	}
	return pods
}

// left returns what is free on each usable node on which a pod still fits, node by node and pod by pod.
func left(nodes []Node, pods []Pod) (all []Amounts) {
	for _, n := range nodes {
		free := maps.Clone(n.Allocatable)
		for _, p := range pods {
			if p.Node == n.Name {
				free[corev1.ResourcePods]--
				for name, a := range p.Requests {
					free[name] -= a
				}
			}
		}
		maps.DeleteFunc(free, func(_ corev1.ResourceName, a int64) bool { return a <= 0 })
		if n.Usable && free[corev1.ResourcePods] > 0 {
			all = append(all, free)
		}
	}
	return all
}

// Summarize loses nothing of up to MaxClasses sorts of nodes: the classes have each node's room, to the last unit, from the largest to the smallest.
func TestSummarize_FewSortsOfNodesAreToldExactly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		nodes := randomNodes(random, 1+random.IntN(5))
		pods := randomPods(random, nodes)
		pods = pods[:min(len(pods), 8)]
		var told, is []string
		s := Summarize(nodes, pods, minute, now)
		for i, c := range s.Free {
			for range c.Nodes {
				told = append(told, fmt.Sprint(AmountsOf(c.Free)))
			}
			if before := s.Free[max(i-1, 0)].Free; c.Free.Cpu().Cmp(*before.Cpu()) > 0 {
				t.Fatalf("a class of %s cpus comes after one of %s", c.Free.Cpu(), before.Cpu())
			}
			for name, q := range c.Free {
				if q.Sign() <= 0 {
					t.Fatalf("a class says that it has %s of %s", q.String(), name)
				}
			}
		}
		for _, a := range left(nodes, pods) {
			is = append(is, fmt.Sprint(a))
		}
		slices.Sort(told)
		if slices.Sort(is); !slices.Equal(told, is) {
			t.Fatalf("%d classes: told %q, want %q", len(s.Free), told, is)
		}
	}
}

// Summarize never gives a node more room than it has and omits none, however many sorts there are; the order of nodes and pods does not matter.
func TestSummarize_ManySortsOfNodes(t *testing.T) {
	random, full := rand.New(rand.NewPCG(2, 1)), 0
	for range 300 {
		nodes := randomNodes(random, 60)
		pods := randomPods(random, nodes)
		s := Summarize(nodes, pods, minute, now)
		if len(s.Free) == MaxClasses {
			full++
		}
		for range 3 {
			random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
			random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
			if again := Summarize(nodes, pods, minute, now); !reflect.DeepEqual(again, s) {
				t.Fatalf("in another order it is\n%v, not\n%v", again.Free, s.Free)
			}
		}
		is, told := left(nodes, pods), int32(0)
		for _, c := range s.Free {
			told += c.Nodes
		}
		if int(told) != len(is) {
			t.Fatalf("the classes have %d nodes, want %d", told, len(is))
		}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, "example.com/a"} {
			checkTold(t, name, s.Free, is)
		}
	}
	if full < 100 {
		t.Errorf("only %d of 300 have so many sorts that something is lost", full)
	}
}

// checkTold checks that the classes, node by node from the largest, have no more of a resource than the nodes have.
func checkTold(t *testing.T, name corev1.ResourceName, classes []v1beta1.NodeClass, nodes []Amounts) {
	t.Helper()
	var told, is []int64
	for _, c := range classes {
		for range c.Nodes {
			told = append(told, AmountsOf(c.Free)[name])
		}
	}
	for _, a := range nodes {
		is = append(is, a[name])
	}
	slices.Sort(told)
	slices.Sort(is)
	for i := range told {
		if told[i] > is[i] {
			t.Fatalf("of %s the nodes have %v, and the classes %v", name, is, told)
		}
	}
}

// split cuts a group where most is told of the resource of which most was lost: no other cut tells more.
func TestSplit_IsTheBestCut(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	told := func(group [][]int64, column int) int64 {
		least := group[0][column]
		for _, row := range group {
			least = min(least, row[column])
		}
		return least * int64(len(group))
	}
	for range 1000 {
		free := map[string]Amounts{}
		for i := range 2 + random.IntN(8) {
			free[fmt.Sprint(i)] = Amounts{corev1.ResourceCPU: random.Int64N(9), corev1.ResourceMemory: random.Int64N(9),
				corev1.ResourcePods: 1 + random.Int64N(9)}
		}
		tab := newTable(free)
		column, share := tab.loss(tab.rows)
		if share == 0 {
			continue
		}
		a, b := tab.split(tab.rows)
		sorted := slices.SortedFunc(slices.Values(tab.rows), func(x, y []int64) int { return int(y[column] - x[column]) })
		for at := 1; at < len(sorted); at++ {
			if most, got := told(sorted[:at], column)+told(sorted[at:], column), told(a, column)+told(b, column); got < most || len(a)+len(b) != len(sorted) {
				t.Fatalf("%v by column %d into %v and %v tells %d, and %d can be told", sorted, column, a, b, got, most)
			}
		}
	}
}

// A summary holds until Next: before that time alone changes nothing, and then another pod counts.
func TestSummarize_HoldsUntilNext(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	for range 300 {
		var pods []Pod
		for range random.IntN(12) {
			p := Pod{Workload: Workload{Kind: "Job", Namespace: "a", Name: fmt.Sprint(random.IntN(4))}}
			if random.IntN(4) > 0 {
				p.Unschedulable = now.Add(-time.Duration(random.IntN(150)) * time.Second)
			}
			pods = append(pods, p)
		}
		s := Summarize(nil, pods, minute, now)
		for second := range 130 {
			at := now.Add(time.Duration(second) * time.Second)
			same := slices.Equal(Summarize(nil, pods, minute, at).Unschedulable, s.Unschedulable)
			if before := s.Next.IsZero() || at.Before(s.Next); before != same && (before || at.Equal(s.Next)) {
				t.Fatalf("next at %s, and at %s it is the same: %t", s.Next, at, same)
			}
		}
	}
}

// Of too many workloads the first by kind, namespace and name are told, in this order, and messages of the first of these.
func TestSummarize_FirstWorkloads(t *testing.T) {
	var pods []Pod
	var want []string
	for _, kind := range []string{"Job", "StatefulSet"} {
		for _, namespace := range []string{"a", "b"} {
			for i := range 100 {
				w := Workload{kind, namespace, fmt.Sprintf("%03d", i)}
				pods = append(pods, Pod{Workload: w, Unschedulable: now.Add(-time.Hour), Message: "full"})
				want = append(want, fmt.Sprint(w))
			}
		}
	}
	rand.New(rand.NewPCG(5, 1)).Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	got := Summarize(nil, pods, minute, now).Unschedulable
	if len(got) != MaxUnschedulable {
		t.Fatalf("%d workloads, want %d", len(got), MaxUnschedulable)
	}
	for i, u := range got {
		if is := fmt.Sprint(Workload{u.Kind, u.Namespace, u.Name}); is != want[i] || (u.Message == "full") != (i < MaxMessages) || u.Pods != 1 {
			t.Errorf("workload %d is %s with %q, want %s", i, is, u.Message, want[i])
		}
	}
}

// Amounts survive being written as quantities, cpus in thousandths and bytes as people write them, and what is no amount is left out.
func TestAmounts(t *testing.T) {
	list := corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("8Gi"), "ephemeral-storage": resource.MustParse("1Ki"),
		"pods":          resource.MustParse("110"),
		"hugepages-2Mi": resource.MustParse("0"), "example.com/gpu": resource.MustParse("-1"), "no name": resource.MustParse("1")}
	want := Amounts{"cpu": 1500, "memory": 8 << 30, "ephemeral-storage": 1 << 10, "pods": 110}
	a := AmountsOf(list)
	if !maps.Equal(a, want) {
		t.Errorf("%v, want %v", a, want)
	}
	for name, q := range a.List() {
		if was := list[name]; q.String() != was.String() {
			t.Errorf("%s is written as %s, want %s", name, q.String(), was.String())
		}
	}
	if !maps.Equal(AmountsOf(a.List()), a) {
		t.Errorf("%v becomes %v", a, AmountsOf(a.List()))
	}
}

// Of more than MaxResources the first by name are kept after cpu, memory and pods, on each node and in the sums; as many as that are all kept.
func TestAmounts_OfManyResources(t *testing.T) {
	list := corev1.ResourceList{}
	for i := range MaxResources {
		list[corev1.ResourceName(fmt.Sprintf("a.com/%02d", i))] = resource.MustParse("1")
	}
	if a := AmountsOf(list); len(a) != MaxResources {
		t.Errorf("of %d resources %d are kept", MaxResources, len(a))
	}
	list["cpu"], list["pods"], list["memory"] = resource.MustParse("1"), resource.MustParse("1"), resource.MustParse("1")
	a := AmountsOf(list)
	if got := a.names(); got != nil || len(a) != MaxResources || a["cpu"] != 1000 || a["pods"] != 1 || a["memory"] != 1 || a["a.com/28"] != 1 ||
		a["a.com/29"] != 0 {
		t.Errorf("of 35 resources %v are kept", a)
	}
	nodes := []Node{node("a", 1000, 10), node("b", 1000, 10)}
	for i := range 20 {
		nodes[0].Allocatable[corev1.ResourceName(fmt.Sprintf("a.com/%02d", i))] = 1
		nodes[1].Allocatable[corev1.ResourceName(fmt.Sprintf("b.com/%02d", i))] = 1
	}
	pod := Pod{Node: "a", Requests: Amounts{"c.com/x": 1}}
	s := Summarize(nodes, []Pod{pod}, minute, now)
	if _, ok := s.Requested["c.com/x"]; ok || len(s.Allocatable) != MaxResources || len(s.Free[0].Free)+len(s.Free[1].Free) != MaxResources+3 {
		t.Errorf("of 43 resources %d are allocatable, requested %v, free %v", len(s.Allocatable), s.Requested, s.Free)
	}
	for i := range nodes {
		maps.DeleteFunc(nodes[i].Allocatable, func(name corev1.ResourceName, _ int64) bool { return name >= "b.com/09" && name < "c" })
	}
	if s = Summarize(nodes, []Pod{pod}, minute, now); len(s.Allocatable) != MaxResources || len(s.Requested) != 1 {
		t.Errorf("of 32 that nodes have and one that a pod asks for, nodes have %d, and pods ask for %v", len(s.Allocatable), s.Requested)
	}
}

// Two capacities are the same unless a number or a text in them differs; when they were looked at does not count, nor how a quantity is written.
func TestSameCapacity(t *testing.T) {
	capacity := func(change func(s *v1beta1.ClusterCapacity)) *v1beta1.ClusterCapacity {
		s := Summarize([]Node{node("a", 1000, 10), node("b", 2000, 10)}, append(manyStuck(2), on("a", 500)), minute, now).ClusterCapacity
		change(&s)
		return &s
	}
	is := capacity(func(*v1beta1.ClusterCapacity) {})
	for name, c := range map[string]struct {
		change func(s *v1beta1.ClusterCapacity)
		same   bool
	}{
		"nothing":                   {func(*v1beta1.ClusterCapacity) {}, true},
		"the time":                  {func(s *v1beta1.ClusterCapacity) { s.ObservedAt.Time = now.Add(time.Hour) }, true},
		"how a quantity is written": {func(s *v1beta1.ClusterCapacity) { s.Allocatable["cpu"] = resource.MustParse("3000m") }, true},
		"a node":                    {func(s *v1beta1.ClusterCapacity) { s.Nodes++ }, false},
		"a cpu":                     {func(s *v1beta1.ClusterCapacity) { s.Allocatable["cpu"] = resource.MustParse("4") }, false},
		"a resource more":           {func(s *v1beta1.ClusterCapacity) { s.Allocatable["x"] = resource.MustParse("1") }, false},
		"another resource": {func(s *v1beta1.ClusterCapacity) {
			delete(s.Requested, "cpu")
			s.Requested["x"] = resource.MustParse("500m")
		}, false},
		"a request":                  {func(s *v1beta1.ClusterCapacity) { s.Requested["cpu"] = resource.MustParse("501m") }, false},
		"a class more":               {func(s *v1beta1.ClusterCapacity) { s.Free = append(s.Free, s.Free[0]) }, false},
		"a class has one node more":  {func(s *v1beta1.ClusterCapacity) { s.Free[0].Nodes++ }, false},
		"a class has less":           {func(s *v1beta1.ClusterCapacity) { delete(s.Free[1].Free, "memory") }, false},
		"a pod finds no room":        {func(s *v1beta1.ClusterCapacity) { s.Unschedulable[1].Pods++ }, false},
		"the scheduler says another": {func(s *v1beta1.ClusterCapacity) { s.Unschedulable[0].Message = "other" }, false},
	} {
		then := capacity(c.change)
		if SameCapacity(is, then) != c.same || SameCapacity(then, is) != c.same {
			t.Errorf("%s changes: want the same: %t", name, c.same)
		}
		if HasMoreUnschedulable(is, then) {
			t.Errorf("%s changes: no other workload has no room", name)
		}
	}
}
