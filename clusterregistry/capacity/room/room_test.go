package room

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"federation/apiserver/apis/federation/v1beta1"
)

var (
	now    = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	minute = Settings{Unschedulable: time.Minute}
)

func node(name string, cpu, pods int64) Node {
	return Node{Name: name, Usable: true, Allocatable: Amounts{corev1.ResourceCPU: cpu, corev1.ResourceMemory: cpu << 20, corev1.ResourcePods: pods}}
}

func on(node string, cpu int64) Pod {
	return Pod{Node: node, Requests: Amounts{corev1.ResourceCPU: cpu}}
}

// show writes classes as "2×(cpu 500m, pods 9)".
func show(classes []v1beta1.NodeClass, names ...corev1.ResourceName) string {
	var out []string
	for _, c := range classes {
		var free []string
		for _, name := range names {
			q := c.Free[name]
			free = append(free, fmt.Sprintf("%s %s", name, q.String()))
		}
		out = append(out, fmt.Sprintf("%d×(%s)", c.Nodes, strings.Join(free, ", ")))
	}
	return strings.Join(out, " ")
}

func TestWhatIsFreeIsByNodes(t *testing.T) {
	cordoned := node("cordoned", 8000, 10)
	cordoned.Usable = false
	nodes := []Node{node("a", 1000, 10), node("b", 1000, 10), node("c", 4000, 10), node("full", 1000, 1), cordoned}
	pods := []Pod{on("a", 600), on("b", 600), on("full", 100), on("cordoned", 100), on("", 100), on("gone", 100)}
	s := Summarize(nodes, pods, minute, now)
	if s.Nodes != 4 || s.Allocatable.Cpu().String() != "7" || s.Allocatable.Pods().Value() != 31 {
		t.Errorf("%d nodes, allocatable %v", s.Nodes, s.Allocatable)
	}
	if s.Requested.Cpu().String() != "1300m" || s.Requested.Pods().Value() != 3 {
		t.Errorf("requested %v", s.Requested)
	}
	if got, want := show(s.Free, corev1.ResourceCPU, corev1.ResourcePods), "1×(cpu 4, pods 10) 2×(cpu 400m, pods 9)"; got != want {
		t.Errorf("free %s, want %s", got, want)
	}
}

func TestANodeWithMoreTakenThanItHasIsNoDebt(t *testing.T) {
	s := Summarize([]Node{node("a", 1000, 10)}, []Pod{on("a", 1500)}, minute, now)
	if got, want := show(s.Free, corev1.ResourceCPU), "1×(cpu 0)"; got != want {
		t.Errorf("free %s, want %s", got, want)
	}
}

func TestNodesWithARareResourceAreAClass(t *testing.T) {
	var nodes []Node
	for i := range 100 {
		nodes = append(nodes, node(fmt.Sprint(i), int64(1000+i%3), 10))
	}
	nodes[7].Allocatable["example.com/gpu"] = 2
	s := Summarize(nodes, nil, minute, now)
	found := false
	for _, c := range s.Free {
		if gpu := c.Free["example.com/gpu"]; gpu.Value() == 2 && c.Nodes == 1 {
			found = true
		}
	}
	if !found || len(s.Free) != 4 {
		t.Errorf("free %s", show(s.Free, corev1.ResourceCPU, "example.com/gpu"))
	}
}

// TestClassesAreBoundedAndNeverSayTooMuch checks the classes against the nodes themselves.
func TestClassesAreBoundedAndNeverSayTooMuch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		var nodes []Node
		for i := range 1 + random.IntN(200) {
			n := node(fmt.Sprint(i), int64(random.IntN(8000)), int64(random.IntN(100)))
			n.Allocatable[corev1.ResourceMemory] = random.Int64N(64 << 30)
			nodes = append(nodes, n)
		}
		s := Summarize(nodes, nil, minute, now)
		if len(s.Free) > MaxClasses {
			t.Fatalf("%d classes", len(s.Free))
		}
		ask := Amounts{corev1.ResourceCPU: int64(1 + random.IntN(2000)), corev1.ResourceMemory: 1 + random.Int64N(4<<30), corev1.ResourcePods: 1}
		said, is := int64(0), int64(0)
		for _, c := range s.Free {
			said += int64(c.Nodes) * fits(AmountsOf(c.Free), ask)
		}
		for _, n := range nodes {
			is += fits(n.Allocatable, ask)
		}
		if said > is {
			t.Fatalf("%d pods of %v are said to fit, %d do", said, ask, is)
		}
		random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		if again := Summarize(nodes, nil, minute, now); !SameCapacity(&again.ClusterCapacity, &s.ClusterCapacity) {
			t.Fatal("another order, another result")
		}
	}
}

func fits(free, ask Amounts) int64 {
	n := int64(1 << 30)
	for name, a := range ask {
		n = min(n, free[name]/a)
	}
	return n
}

func TestPodsCountWhenTheyHaveBeenUnschedulableForLong(t *testing.T) {
	web, db := Workload{"Deployment", "default", "web"}, Workload{"StatefulSet", "default", "db"}
	pods := []Pod{
		{Workload: web, Unschedulable: now.Add(-2 * time.Minute)}, {Workload: web, Unschedulable: now.Add(-time.Minute)},
		{Workload: web, Unschedulable: now.Add(-10 * time.Second)}, {Workload: db, Unschedulable: now.Add(-30 * time.Second)},
		{Unschedulable: now.Add(-time.Hour)}, {Workload: web, Node: "a"},
	}
	s := Summarize(nil, pods, minute, now)
	if got, want := fmt.Sprint(s.Unschedulable), "[{Deployment default web 2 }]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if want := now.Add(30 * time.Second); !s.Next.Equal(want) {
		t.Errorf("next at %s, want %s", s.Next, want)
	}
	later := Summarize(nil, pods, minute, s.Next)
	if got, want := fmt.Sprint(later.Unschedulable), "[{Deployment default web 2 } {StatefulSet default db 1 }]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !HasMoreUnschedulable(&s.ClusterCapacity, &later.ClusterCapacity) || HasMoreUnschedulable(&later.ClusterCapacity, &s.ClusterCapacity) || SameCapacity(&s.ClusterCapacity, &later.ClusterCapacity) {
		t.Error("one workload more is news, one less is not")
	}
	if s = Summarize(nil, manyStuck(1000), minute, now); len(s.Unschedulable) != MaxUnschedulable {
		t.Errorf("%d workloads", len(s.Unschedulable))
	}
}

func manyStuck(n int) (pods []Pod) {
	for i := range n {
		pods = append(pods, Pod{Workload: Workload{"Job", "default", fmt.Sprint(i)}, Unschedulable: now.Add(-time.Hour)})
	}
	return pods
}

func TestUsableNodes(t *testing.T) {
	ready := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	taint := func(e corev1.TaintEffect) corev1.NodeSpec {
		return corev1.NodeSpec{Taints: []corev1.Taint{{Effect: e}}}
	}
	for want, nodes := range map[bool][]corev1.Node{
		true: {{Status: ready}, {Spec: taint(corev1.TaintEffectPreferNoSchedule), Status: ready}},
		false: {{}, {Spec: corev1.NodeSpec{Unschedulable: true}, Status: ready}, {Spec: taint(corev1.TaintEffectNoSchedule), Status: ready},
			{Spec: taint(corev1.TaintEffectNoExecute), Status: ready}, {Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: "Unknown"}}}}},
	} {
		for _, n := range nodes {
			if UsableNode(&n) != want {
				t.Errorf("%+v: want %t", n, want)
			}
		}
	}
}

func BenchmarkSummarize5000Nodes(b *testing.B) {
	var nodes []Node
	var pods []Pod
	for i := range 5000 {
		nodes = append(nodes, node(fmt.Sprint(i), 8000, 110))
		for j := range 20 {
			pods = append(pods, on(fmt.Sprint(i), int64(50+(i+j)%100)))
		}
	}
	for b.Loop() {
		Summarize(nodes, pods, minute, now)
	}
}

// What a member's scheduler says reaches people: of the pods of a workload the most frequent message, bounded and printable.
func TestWhatTheSchedulerSays(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pods := func(name string, n int, says string) (out []Pod) {
		for range n {
			out = append(out, Pod{Workload: Workload{"StatefulSet", "shop", name}, Unschedulable: now.Add(-time.Hour), Message: BoundMessage(says)})
		}
		return out
	}
	const volumes = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims"
	for says, want := range map[string]string{
		volumes + ". preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.": volumes,
		volumes:                   volumes,
		"":                        "",
		"two\nlines\x1b[31m\xff":  "two lines [31m",
		strings.Repeat("ä", 1000): strings.Repeat("ä", 126) + "…",
	} {
		got := Summarize(nil, append(pods("db", 3, says), pods("db", 2, "something else")...), Settings{}, now).Unschedulable
		if len(got) != 1 || got[0].Pods != 5 || got[0].Message != want {
			t.Errorf("%.40q: %+v, want %q", says, got, want)
		}
	}
	var many []Pod
	for i := range MaxUnschedulable {
		many = append(many, pods(fmt.Sprintf("db-%03d", i), 1, strings.Repeat("x", 1000))...)
	}
	size := 0
	for _, u := range Summarize(nil, many, Settings{}, now).Unschedulable {
		size += len(u.Message)
	}
	if size == 0 || size > MaxMessages*(v1beta1.MaxText) {
		t.Errorf("messages of %d bytes", size)
	}
}

// A cluster may call resources and workloads what it likes, and say any number.
func TestWhatAClusterSaysIsBounded(t *testing.T) {
	var nodes []Node
	var pods []Pod
	for i := range 200 {
		list := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("9E"), corev1.ResourceCPU: resource.MustParse("-5"), corev1.ResourceMemory: resource.MustParse("7E"), "bad name \x1b": resource.MustParse("1")}
		for j := range 20 {
			list[corev1.ResourceName(fmt.Sprintf("example.com/r%d-%d", i, j))] = resource.MustParse("1")
		}
		nodes = append(nodes, Node{Name: fmt.Sprint(i), Usable: true, Allocatable: AmountsOf(list)})
		pods = append(pods, Pod{Node: fmt.Sprint(i), Requests: AmountsOf(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("9E")})})
	}
	s := Summarize(nodes, pods, Settings{}, time.Now())
	if len(s.Allocatable) > MaxResources || len(s.Requested) > MaxResources {
		t.Errorf("%d allocatable resources, %d requested", len(s.Allocatable), len(s.Requested))
	}
	for _, list := range []corev1.ResourceList{s.Allocatable, s.Requested, s.Free[0].Free} {
		for name, q := range list {
			if q.Sign() < 0 || strings.Contains(string(name), " ") {
				t.Errorf("%s of %q", q.String(), name)
			}
		}
	}
}
