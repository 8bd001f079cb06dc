package apportion

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Free is a cluster's sum over its nodes, in thousandths of a cpu; nothing is known of a cluster that does not say, or of a resource that no
// cluster has. A ledger of such clusters limits nothing.
func TestFree(t *testing.T) {
	l := NewLedger([]*v1beta1.Cluster{
		withRoom("a", v1beta1.NodeClass{Nodes: 3, Free: resources("cpu", "1500m", "pods", "20")}, v1beta1.NodeClass{Nodes: 2, Free: resources("cpu", "-1",
			"memory", "1Gi", "pods", "3")}),
		withRoom("full"), withRoom("gpu", v1beta1.NodeClass{Nodes: 1, Free: resources("example.com/gpu", "4")}), {Status: v1beta1.ClusterStatus{}},
	})
	for _, c := range []struct {
		cluster  string
		resource corev1.ResourceName
		sum      int64
		ok       bool
	}{
		{"a", "cpu", 4500, true}, {"a", "memory", 2 << 30, true}, {"a", "pods", 66, true}, {"a", "example.com/gpu", 0, true}, {"full", "cpu", 0, true},
		{"gpu", "example.com/gpu", 4, true}, {"a", "example.com/tpu", 0, false}, {"silent", "cpu", 0, false},
	} {
		if sum, ok := l.Free(c.cluster, c.resource); sum != c.sum || ok != c.ok {
			t.Errorf("%s in %s: %d %t, want %d %t", c.resource, c.cluster, sum, ok, c.sum, c.ok)
		}
	}
	if free, ok := l.Room("gpu", l.Demand(resources("example.com/gpu", "2"))); free != 2 || !ok {
		t.Errorf("a report without pods has room for %d, want 2", free)
	}
	if !l.Limits() || NewLedger(nil).Limits() || NewLedger([]*v1beta1.Cluster{{}}).Limits() || !NewLedger([]*v1beta1.Cluster{withRoom("full")}).Limits() {
		t.Error("a ledger limits what a cluster has said, if only that it is full")
	}
}

// Take puts pods on the emptiest nodes, evenly, as a scheduler does; what it puts there is what remains for others.
func TestTake_EmptiestNodesFirst(t *testing.T) {
	of := func() *Ledger {
		return NewLedger([]*v1beta1.Cluster{withRoom("a", v1beta1.NodeClass{Nodes: 2, Free: resources("cpu", "1", "pods", "9")},
			v1beta1.NodeClass{Nodes: 2, Free: resources("cpu", "4", "pods", "9")})})
	}
	for _, c := range []struct {
		name     string
		requests corev1.ResourceList
		pods     int64
		room     map[string]int64 // by the cpus of a pod
	}{
		{"none", resources("cpu", "1"), 0, map[string]int64{"1": 10, "3": 2, "4": 2}},
		{"less than none", resources("cpu", "1"), -1, map[string]int64{"1": 10, "3": 2, "4": 2}},
		{"one", resources("cpu", "1"), 1, map[string]int64{"1": 9, "3": 2, "4": 1}},
		{"one on each of the large", resources("cpu", "1"), 2, map[string]int64{"1": 8, "3": 2, "4": 0}},
		{"one more on one of these", resources("cpu", "1"), 3, map[string]int64{"1": 7, "2": 2, "3": 1}},
		{"more than the large hold", resources("cpu", "1"), 9, map[string]int64{"1": 1, "2": 0}},
		{"more than there is room for", resources("cpu", "1"), 99, map[string]int64{"1": 0, "500m": 0}},
		{"what fits on the large only", resources("cpu", "3"), 5, map[string]int64{"1": 4, "2": 0}},
		{"what no node has", resources("example.com/gpu", "1"), 5, map[string]int64{"1": 10}},
		{"no cpu", nil, 20, map[string]int64{"1": 8, "4": 2}},
		{"a pod is one pod, whatever it says", resources("pods", "5"), 35, map[string]int64{"1": 1, "4": 1}},
		{"zero of a resource", resources("cpu", "0"), 36, map[string]int64{"1": 0}},
	} {
		l := of()
		l.Take("a", l.Demand(c.requests), c.pods)
		l.Take("nowhere", l.Demand(c.requests), c.pods)
		got := map[string]int64{}
		for cpu := range c.room {
			got[cpu], _ = l.Room("a", l.Demand(resources("cpu", cpu)))
		}
		if !maps.Equal(got, c.room) {
			t.Errorf("%s: room for pods of so many cpus %v, want %v", c.name, got, c.room)
		}
	}
}

// Of a cluster with very many sorts of nodes the emptiest are known exactly once pods are placed. Of the others it is never said that they have
// more than they have, none is lost, and a clone knows them as before.
func TestTake_MergesTheFullest(t *testing.T) {
	for sorts, merged := range map[int]int{maxClasses - 1: 0, maxClasses: 1, maxClasses + 12: 12} { // of so many cpus is what is not known exactly
		var nodes []v1beta1.NodeClass
		var free []int64 // of each node, once pods are placed
		for i := range sorts {
			nodes = append(nodes, v1beta1.NodeClass{Nodes: int32(1 + i%3), Free: resources("cpu", fmt.Sprint(i+1), "pods", fmt.Sprint(200+i))})
			for range (1 + i%3) * min(1, sorts-1-i) {
				free = append(free, int64(i+1))
			}
		}
		l := NewLedger([]*v1beta1.Cluster{withRoom("a", nodes...)})
		clone, emptiest := l.Clone(), int64(nodes[sorts-1].Nodes)
		l.Take("a", l.Demand(resources("cpu", "1")), emptiest*int64(sorts)-1)
		free = append(free, 1) // the emptiest are the fullest then
		if n := len(l.rooms["a"]); n != min(sorts+1, maxClasses) {
			t.Errorf("%d sorts: %d classes", sorts, n)
		}
		for cpus := int64(1); cpus <= int64(sorts); cpus++ {
			want, d := int64(0), l.Demand(resources("cpu", fmt.Sprint(cpus)))
			for _, left := range free {
				want += left / cpus
			}
			if got, _ := l.Room("a", d); got > want || got < want && cpus > int64(merged) {
				t.Errorf("%d sorts: room for %d pods of %d cpus, want %d", sorts, got, cpus, want)
			}
			if was, _ := clone.Room("a", d); was != want+emptiest*(int64(sorts)/cpus)-1/cpus {
				t.Errorf("%d sorts: a clone has room for %d pods of %d cpus", sorts, was, cpus)
			}
		}
		count := int64(0)
		for _, c := range l.rooms["a"] {
			count += c.nodes
		}
		if want := int64(len(free)) + emptiest - 1; count != want {
			t.Errorf("%d sorts: of %d nodes %d are known", sorts, want, count)
		}
	}
}
