package room

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Bounds of what is reported, whatever the size of the cluster.
const (
	// MaxClasses of nodes.
	MaxClasses = 16
	// MaxResources that nodes have and pods ask for.
	MaxResources = 32
	// MaxUnschedulable workloads.
	MaxUnschedulable = 256
	// MaxMessages is of how many workloads it is kept what a scheduler says.
	MaxMessages = 64
)

// Summary is a cluster's capacity, and when time alone changes it.
type Summary struct {
	v1beta1.ClusterCapacity
	// Next is when another pod counts as unschedulable, if nothing changes; zero: none.
	Next time.Time
}

// Summarize sums up. The order of nodes and pods does not matter.
func Summarize(nodes []Node, pods []Pod, s Settings, now time.Time) Summary {
	allocatable, requested := Amounts{}, Amounts{}
	free := map[string]Amounts{}
	for _, n := range nodes {
		if n.Usable {
			allocatable.add(n.Allocatable)
			free[n.Name] = Amounts{}
			free[n.Name].add(n.Allocatable)
		}
	}
	for i := range pods {
		left, ok := free[pods[i].Node]
		if !ok {
			continue
		}
		requested[corev1.ResourcePods]++
		left[corev1.ResourcePods]--
		requested.add(pods[i].Requests)
		for name, n := range pods[i].Requests {
			left[name] = max(left[name]-n, -most)
		}
	}
	boundResources(allocatable, requested, free)
	stuck, next := unschedulable(pods, s, now)
	return Summary{Next: next, ClusterCapacity: v1beta1.ClusterCapacity{
		ObservedAt: metav1.NewTime(now.Truncate(time.Second)), Nodes: int32(len(free)),
		Allocatable: allocatable.List(), Requested: requested.List(), Free: classes(free), Unschedulable: stuck,
	}}
}

// boundResources leaves out resources beyond MaxResources.
func boundResources(allocatable, requested Amounts, free map[string]Amounts) {
	all := maps.Clone(allocatable)
	all.add(requested)
	names := all.names()
	allocatable.onlyNamed(names)
	requested.onlyNamed(names)
	for _, a := range free {
		a.onlyNamed(names)
	}
}

// unschedulable counts, by workload, the pods for which there has been no room for long enough, and says when the
// next one will count.
func unschedulable(pods []Pod, s Settings, now time.Time) (out []v1beta1.UnschedulablePods, next time.Time) {
	counts, messages := map[Workload]int32{}, map[Workload]map[string]int{}
	for i := range pods {
		p := &pods[i]
		if p.Unschedulable.IsZero() || p.Workload == (Workload{}) {
			continue
		}
		if due := p.Unschedulable.Add(s.Unschedulable); !now.Before(due) {
			counts[p.Workload]++
			if messages[p.Workload] == nil {
				messages[p.Workload] = map[string]int{}
			}
			messages[p.Workload][p.Message]++
		} else if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	for w, n := range counts {
		out = append(out, v1beta1.UnschedulablePods{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Pods: n})
	}
	slices.SortFunc(out, func(a, b v1beta1.UnschedulablePods) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	out = out[:min(len(out), MaxUnschedulable)]
	for i := range out[:min(len(out), MaxMessages)] {
		out[i].Message = mostFrequent(messages[Workload{out[i].Kind, out[i].Namespace, out[i].Name}])
	}
	return out, next
}

// mostFrequent is one of the messages; of those that are as frequent, the first.
func mostFrequent(messages map[string]int) string {
	return slices.MinFunc(slices.Collect(maps.Keys(messages)), func(a, b string) int {
		return cmp.Or(cmp.Compare(messages[b], messages[a]), cmp.Compare(a, b))
	})
}

// BoundMessage returns what is kept of a message of a member, which may say anything: without what a scheduler adds about preemption.
func BoundMessage(message string) string {
	message, _, _ = strings.Cut(message[:min(len(message), 4*v1beta1.MaxText)], " preemption: ")
	return strings.TrimSuffix(v1beta1.Printable(message), ".")
}

// HasMoreUnschedulable reports whether the capacity b has unschedulable workloads that a has not: news that should not wait.
func HasMoreUnschedulable(a, b *v1beta1.ClusterCapacity) bool {
	return slices.ContainsFunc(b.Unschedulable, func(is v1beta1.UnschedulablePods) bool {
		return !slices.ContainsFunc(a.Unschedulable, func(was v1beta1.UnschedulablePods) bool {
			return was.Kind == is.Kind && was.Namespace == is.Namespace && was.Name == is.Name
		})
	})
}

// SameCapacity reports whether two capacities differ in nothing but the time of the look.
func SameCapacity(a, b *v1beta1.ClusterCapacity) bool {
	return a.Nodes == b.Nodes && equalLists(a.Allocatable, b.Allocatable) && equalLists(a.Requested, b.Requested) &&
		slices.Equal(a.Unschedulable, b.Unschedulable) &&
		slices.EqualFunc(a.Free, b.Free, func(x, y v1beta1.NodeClass) bool { return x.Nodes == y.Nodes && equalLists(x.Free, y.Free) })
}

func equalLists(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, q := range a {
		other, ok := b[name]
		if !ok || q.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
