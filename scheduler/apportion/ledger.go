package apportion

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"federation/apiserver/apis/federation/v1beta1"
)

// maxClasses bounds how finely a Ledger knows a cluster. It merges further classes, each taken as the smallest of those
// merged.
const maxClasses = 48

// Ledger tracks the room left in clusters while objects are placed one after another. A cluster without a capacity
// report has unlimited room.
type Ledger struct {
	index map[corev1.ResourceName]int // index of a resource in class.free
	rooms map[string][]class          // never changed in place: clones share them
}

// class is a number of nodes with the same room on each: thousandths of a cpu, whole units of all else.
type class struct {
	nodes int64
	free  []int64
}

// Demand is what one pod requests, as its Ledger counts it.
type Demand struct {
	amounts  []amount
	nowhere  bool // requests a resource that no cluster has
	nonempty bool
}

type amount struct {
	at int
	n  int64
}

// NewLedger returns a ledger with the room that clusters report.
func NewLedger(clusters []*v1beta1.Cluster) *Ledger {
	l := &Ledger{index: map[corev1.ResourceName]int{corev1.ResourcePods: 0}, rooms: map[string][]class{}}
	for _, c := range clusters {
		if c.Status.Capacity == nil {
			continue
		}
		for _, n := range c.Status.Capacity.Free {
			for name := range n.Free {
				if _, ok := l.index[name]; !ok {
					l.index[name] = len(l.index)
				}
			}
		}
	}
	for _, c := range clusters {
		if c.Status.Capacity != nil {
			l.rooms[c.Name] = l.classes(c.Status.Capacity.Free)
		}
	}
	return l
}

func (l *Ledger) classes(nodes []v1beta1.NodeClass) []class {
	out := make([]class, 0, len(nodes))
	for _, n := range nodes {
		free := make([]int64, len(l.index))
		free[0] = math.MaxInt32 // a report without pods does not limit them
		for name, q := range n.Free {
			if at, known := l.index[name]; known {
				free[at] = max(0, Units(name, q))
			}
		}
		out = append(out, class{nodes: int64(max(0, n.Nodes)), free: free})
	}
	return out
}

// Units returns an amount of a resource as a Ledger counts it: thousandths of a cpu, whole units of all else.
func Units(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// Limits reports whether the ledger limits anything.
func (l *Ledger) Limits() bool { return len(l.rooms) > 0 }

// Demand translates a pod's requests. A pod without requests still takes one of a node's pods.
func (l *Ledger) Demand(requests corev1.ResourceList) Demand {
	d := Demand{amounts: []amount{{at: 0, n: 1}}, nonempty: true}
	for name, q := range requests {
		n := Units(name, q)
		at, ok := l.index[name]
		if n <= 0 || name == corev1.ResourcePods {
			continue
		}
		if !ok {
			d.nowhere = true
			continue
		}
		d.amounts = append(d.amounts, amount{at, n})
	}
	return d
}

// Room returns how many such pods still fit into a cluster. ok is false if nothing is known to limit it.
func (l *Ledger) Room(cluster string, d Demand) (pods int64, ok bool) {
	classes, ok := l.rooms[cluster]
	if !ok || !d.nonempty {
		return 0, false
	}
	for _, c := range classes {
		pods = min(pods+c.nodes*c.podsPerNode(d), math.MaxInt32) // of each class: the sum of what a member reports may be more than there are numbers
	}
	return pods, true
}

// Free returns how much of a resource is left in a cluster, summed over its nodes: thousandths of a cpu, whole units of
// all else. ok is false if nothing is known of it.
func (l *Ledger) Free(cluster string, resource corev1.ResourceName) (sum int64, ok bool) {
	classes, known := l.rooms[cluster]
	at, listed := l.index[resource]
	if !known || !listed {
		return 0, false
	}
	for _, c := range classes {
		sum = Sum(sum, Product(c.nodes, c.free[at]))
	}
	return sum, true
}

// Sum returns the sum of two amounts, or the largest number if it is larger: members may report more than there are numbers.
func Sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Product returns the product of two amounts, or the largest number if it is larger.
func Product(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// podsPerNode returns how many such pods fit on one node of the class.
func (c class) podsPerNode(d Demand) int64 {
	if d.nowhere {
		return 0
	}
	least := int64(math.MaxInt32)
	for _, a := range d.amounts {
		least = min(least, c.free[a.at]/a.n)
	}
	return least
}

// Take reserves room for so many more pods in a cluster. It spreads them over the emptiest nodes, as the cluster's own
// scheduler would. Pods that do not fit reserve nothing.
func (l *Ledger) Take(cluster string, d Demand, pods int64) {
	classes, ok := l.rooms[cluster]
	if !ok || pods <= 0 || d.nowhere || !d.nonempty {
		return
	}
	byRoom := slices.Clone(classes)
	slices.SortStableFunc(byRoom, func(a, b class) int { return cmp.Compare(b.podsPerNode(d), a.podsPerNode(d)) })
	var out []class
	for _, c := range byRoom {
		n := min(pods, c.nodes*c.podsPerNode(d))
		pods -= n
		out = append(out, c.afterPods(d, n)...)
	}
	l.rooms[cluster] = mergeClasses(out, d)
}

// afterPods returns what is left of a class whose nodes take n pods together: some take one more than others.
func (c class) afterPods(d Demand, n int64) []class {
	if n == 0 {
		return []class{c}
	}
	each, more := n/c.nodes, n%c.nodes
	out := []class{{c.nodes - more, c.less(d, each)}}
	if more > 0 {
		out = append(out, class{more, c.less(d, each+1)})
	}
	return out
}

func (c class) less(d Demand, pods int64) []int64 {
	free := slices.Clone(c.free)
	for _, a := range d.amounts {
		free[a.at] -= pods * a.n
	}
	return free
}

// mergeClasses merges the fullest classes until at most maxClasses are left. A merged class has the room of the poorer one.
func mergeClasses(classes []class, d Demand) []class {
	if len(classes) <= maxClasses {
		return classes
	}
	slices.SortStableFunc(classes, func(a, b class) int { return cmp.Compare(b.podsPerNode(d), a.podsPerNode(d)) })
	last := classes[maxClasses-1]
	last.free = slices.Clone(last.free)
	for _, c := range classes[maxClasses:] {
		last.nodes += c.nodes
		for i := range last.free {
			last.free[i] = min(last.free[i], c.free[i])
		}
	}
	return append(classes[:maxClasses-1], last)
}

// Reset sets the room in a cluster to what it reports. A resource that no cluster had before stays unknown: what asks for it fits nowhere.
func (l *Ledger) Reset(c *v1beta1.Cluster) {
	if c.Status.Capacity == nil {
		delete(l.rooms, c.Name)
		return
	}
	l.rooms[c.Name] = l.classes(c.Status.Capacity.Free)
}

// Clone returns an independent ledger with the same room.
func (l *Ledger) Clone() *Ledger { return &Ledger{index: l.index, rooms: maps.Clone(l.rooms)} }
