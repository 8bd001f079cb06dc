package propagation

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"

	"federation/controllers/propagation/plan"
)

// lanes is the order in which a member's queue hands out objects. Kinds take turns, and so do, of each kind, what is to go and what is to stay.
// A lane whose writes hang and fail, as they do where an admission webhook does not answer, gets few of the workers until one succeeds: else it
// would have all of them before long, and what is of other kinds, or to go, would wait behind thousands of timeouts.
//
// It implements workqueue.Queue.
type lanes struct {
	workers int
	leaves  func(key) bool // is the object, which may be no more, to go?

	mu    sync.Mutex
	byOf  map[laneOf]*lane
	all   []*lane
	next  int           // whose turn it is
	of    map[key]*lane // where a key waits
	taken map[key]*lane // where a key was that a worker has
}

type laneOf struct {
	kind   *plan.Kind
	leaves bool
}

type lane struct {
	keys    []key // some may have gone to another lane
	waiting int   // keys that have not
	taken   int   // keys that workers have
	hangs   bool
}

// hangsAfter is what a write takes at least that counts as hung if it fails.
const hangsAfter = 2 * time.Second

func newLanes(workers int, leaves func(key) bool) *lanes {
	return &lanes{workers: workers, leaves: leaves, byOf: map[laneOf]*lane{}, of: map[key]*lane{}, taken: map[key]*lane{}}
}

// queue is a queue with these lanes.
func (l *lanes) queue(limiter workqueue.TypedRateLimiter[key]) workqueue.TypedRateLimitingInterface[key] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[key]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[key]{
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[key]{Queue: l}),
		}),
	})
}

// Push adds a key.
func (l *lanes) Push(k key) {
	leaves := l.leaves(k)
	l.mu.Lock()
	defer l.mu.Unlock()
	to := l.lane(laneOf{k.Kind, leaves})
	if from := l.of[k]; from == to {
		return
	} else if from != nil {
		from.waiting--
	}
	l.of[k] = to
	to.keys = append(to.keys, k)
	to.waiting++
}

// Touch moves a key that waits to another lane if it is to go by now, or is not any more.
func (l *lanes) Touch(k key) { l.Push(k) }

func (l *lanes) lane(of laneOf) *lane {
	if l.byOf[of] == nil {
		l.byOf[of] = &lane{}
		l.all = append(l.all, l.byOf[of])
	}
	return l.byOf[of]
}

// Len is how many keys may be taken.
func (l *lanes) Len() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		if l.open(one) {
			n += one.waiting
		}
	}
	return n
}

// open reports whether a worker may take something from a lane: of one that hangs an eighth of them may, of all that hang half.
func (l *lanes) open(one *lane) bool {
	if one.waiting == 0 || !one.hangs {
		return one.waiting > 0
	}
	sum := 0
	for _, other := range l.all {
		if other.hangs {
			sum += other.taken
		}
	}
	return one.taken < max(1, l.workers/8) && sum < max(1, l.workers/2)
}

// Pop takes the next key. It is called only where Len is above 0.
func (l *lanes) Pop() (k key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.open(l.all[l.next]) {
		l.next = (l.next + 1) % len(l.all)
	}
	from := l.all[l.next]
	l.next = (l.next + 1) % len(l.all)
	for from.waiting > 0 {
		k, from.keys[0] = from.keys[0], key{}
		if from.keys = from.keys[1:]; l.of[k] == from {
			break
		}
	}
	from.waiting--
	from.taken++
	delete(l.of, k)
	l.taken[k] = from
	return k
}

// wrote notes how long a write took for a key that a worker has, and what came of it.
func (l *lanes) wrote(k key, took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.taken[k]; of != nil && (err == nil || took >= hangsAfter) {
		of.hangs = err != nil && !refused(err) && !apierrors.IsConflict(err)
	}
}

// done notes that a worker is about to give a key back.
func (l *lanes) done(k key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.taken[k]; of != nil {
		of.taken--
		delete(l.taken, k)
	}
}
