package propagation

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"

	"federation/controllers/propagation/plan"
)

// lanes is the order in which a member's queue hands out objects. Kinds take turns, and within a kind deletions and others do.
// A lane whose writes hang and fail, as with an admission webhook that does not answer, gets few of the workers until one
// succeeds. Otherwise it would soon have all of them, and other kinds and deletions would wait behind thousands of timeouts.
//
// It implements workqueue.Queue.
type lanes struct {
	workers int
	leaves  func(key) bool // reports whether the object, which may be gone, must go

	mu    sync.Mutex
	byOf  map[laneOf]*lane
	all   []*lane
	next  int           // whose turn it is
	of    map[key]*lane // where a key waits
	taken map[key]*lane // the lane of a key that a worker has
}

type laneOf struct {
	kind   *plan.Kind
	leaves bool
}

type lane struct {
	keys    []key // some may have moved to another lane
	waiting int   // keys that have not
	taken   int   // keys that workers have
	hangs   bool
}

// hangsAfter is the minimum duration of a failed write that counts as hung.
const hangsAfter = 2 * time.Second

func newLanes(workers int, leaves func(key) bool) *lanes {
	return &lanes{workers: workers, leaves: leaves, byOf: map[laneOf]*lane{}, of: map[key]*lane{}, taken: map[key]*lane{}}
}

// queue returns a queue with these lanes.
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

// Touch moves a waiting key to another lane if it must go now, or no longer must.
func (l *lanes) Touch(k key) { l.Push(k) }

func (l *lanes) lane(of laneOf) *lane {
	if l.byOf[of] == nil {
		l.byOf[of] = &lane{}
		l.all = append(l.all, l.byOf[of])
	}
	return l.byOf[of]
}

// Len returns how many keys may be taken.
func (l *lanes) Len() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		if l.mayTake(one) {
			n += one.waiting
		}
	}
	return n
}

// mayTake reports whether a worker may take a key from a lane: a hanging lane gets an eighth of the workers, all hanging
// lanes together half.
func (l *lanes) mayTake(one *lane) bool {
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

// Pop takes the next key. It must be called only if Len is above 0.
func (l *lanes) Pop() (k key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.mayTake(l.all[l.next]) {
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

// recordWrite records the duration and result of a write for a key that a worker has.
func (l *lanes) recordWrite(k key, took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.taken[k]; of != nil && (err == nil || took >= hangsAfter) {
		of.hangs = err != nil && !isRejected(err) && !apierrors.IsConflict(err)
	}
}

// recordDone records that a worker is about to return a key.
func (l *lanes) recordDone(k key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.taken[k]; of != nil {
		of.taken--
		delete(l.taken, k)
	}
}
