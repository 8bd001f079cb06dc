package plan

import (
	"container/heap"
	"maps"
	"slices"
)

// Replicas are those of an object in one cluster.
type Replicas struct {
	Cluster string
	// Placed is the placement's number.
	Placed int64
	// Ready is how many the cluster reports as ready, bounded as the object's status is. Known: it has reported.
	Ready int64
	Known bool
}

// ReplicasOf returns the replicas of an object in each cluster that is to have some or still has a copy.
func ReplicasOf(s Source, copies []Copy) []Replicas {
	replicas := make([]Replicas, 0, len(copies))
	for _, c := range boundCopies(s.Kind, s.Object, copies) {
		one := Replicas{Cluster: c.Cluster, Placed: s.Share(c.Cluster), Known: c.State != Unreachable && !c.Unlisted}
		if c.Object != nil {
			one.Ready = statusOf(c.Object, "readyReplicas")
		}
		if one.Placed > 0 || c.Object != nil {
			replicas = append(replicas, one)
		}
	}
	return replicas
}

// queue is what one of several that share a limit has left, and what it has taken.
type queue[T any] struct {
	name  string
	left  []T
	taken int
}

// queues are a heap: first is who has taken the least.
type queues[T any] []*queue[T]

func (q queues[T]) Len() int { return len(q) }
func (q queues[T]) Less(i, j int) bool {
	return q[i].taken < q[j].taken || q[i].taken == q[j].taken && q[i].name < q[j].name
}
func (q queues[T]) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queues[T]) Push(x any)   { *q = append(*q, x.(*queue[T])) }
func (q *queues[T]) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// ShareLimit takes items of several owners, each in its order, while what they cost together is within a limit. Next is always one of
// whoever has taken the least, so that nobody who asks for much leaves less to others than an equal part. It returns how many items it
// left. take returns the cost of an item, and takes it if that is at most room.
func ShareLimit[T any](limit int, byOwner map[string][]T, take func(item T, room int) (cost int)) (left int) {
	var waiting queues[T]
	for _, owner := range slices.Sorted(maps.Keys(byOwner)) {
		if len(byOwner[owner]) > 0 {
			waiting = append(waiting, &queue[T]{name: owner, left: byOwner[owner]})
		}
	}
	heap.Init(&waiting)
	for room := limit; len(waiting) > 0; {
		next := waiting[0]
		cost := 0
		if room > 0 {
			cost = take(next.left[0], room)
		}
		if room == 0 || cost > room { // what follows is not smaller: objects of a namespace go to much the same clusters
			left += len(next.left)
			heap.Pop(&waiting)
			continue
		}
		room -= cost
		next.taken += cost
		if next.left = next.left[1:]; len(next.left) == 0 {
			heap.Pop(&waiting)
		} else {
			heap.Fix(&waiting, 0)
		}
	}
	return left
}
