package room

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Amounts are numbers of resources: cpu in thousandths, everything else in its whole units.
type Amounts map[corev1.ResourceName]int64

// most is the largest amount that is taken from a cluster, and made of several: what there can be of nothing, and two can be added.
const most = 1 << 60

// AmountsOf reads a list of quantities, as much of it as can be. Zero is left out.
func AmountsOf(list corev1.ResourceList) Amounts {
	a := make(Amounts, min(len(list), MaxResources))
	for name, q := range list {
		n := q.Value()
		if name == corev1.ResourceCPU {
			n = q.MilliValue()
		}
		core := name == corev1.ResourceCPU || name == corev1.ResourceMemory
		if n > 0 && (core || len(validation.IsQualifiedName(string(name))) == 0) {
			a[name] = min(n, most)
		}
	}
	a.onlyNamed(a.names())
	return a
}

// names are at most MaxResources, the first by name after cpu, memory and pods; nil: there are no more.
func (a Amounts) names() []corev1.ResourceName {
	if len(a) <= MaxResources {
		return nil
	}
	names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if len(names) < MaxResources && !slices.Contains(names[:3], name) {
			names = append(names, name)
		}
	}
	return names
}

// onlyNamed leaves out what has none of the names, if there are any.
func (a Amounts) onlyNamed(names []corev1.ResourceName) {
	if names != nil {
		maps.DeleteFunc(a, func(name corev1.ResourceName, _ int64) bool { return !slices.Contains(names, name) })
	}
}

// List is the same as quantities.
func (a Amounts) List() corev1.ResourceList {
	list := make(corev1.ResourceList, len(a))
	for name, n := range a {
		switch name {
		case corev1.ResourceCPU:
			list[name] = *resource.NewMilliQuantity(n, resource.DecimalSI)
		case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			list[name] = *resource.NewQuantity(n, resource.BinarySI)
		default:
			list[name] = *resource.NewQuantity(n, resource.DecimalSI)
		}
	}
	return list
}

func (a Amounts) add(more Amounts) {
	for name, n := range more {
		a[name] = min(a[name]+n, most)
	}
}

// Node is what matters of a node.
type Node struct {
	Name        string
	Allocatable Amounts
	// Usable: it is ready, not cordoned, and has no taint that keeps ordinary pods away.
	Usable bool
}

// Pod is what matters of a pod that has not ended.
type Pod struct {
	// Node is empty for one that is on none yet.
	Node string
	// Requests without the pod itself, which takes one of the node's pods.
	Requests Amounts
	// Workload that made it; zero where it is none that counts.
	Workload Workload
	// Unschedulable is since when there has been no room for it; zero where there is.
	Unschedulable time.Time
	// Message is what the scheduler says about that, see BoundMessage.
	Message string
}

// Workload made a pod.
type Workload struct{ Kind, Namespace, Name string }

// Settings say when a pod counts.
type Settings struct {
	// Unschedulable is how long a pod must have been unschedulable to count.
	Unschedulable time.Duration
}

// UsableNode reports whether ordinary pods can be put on a node.
func UsableNode(n *corev1.Node) bool {
	if n.Spec.Unschedulable {
		return false
	}
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			return false
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
