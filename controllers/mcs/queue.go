package mcs

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	crossclusterplan "federation/controllers/crosscluster/plan"
)

// settle is how long what comes of one change is waited for, so that it is written at once.
const settle = 50 * time.Millisecond

// queue has keys of Services, namespace/name, for one who is written to. Members may change endpoints without end, so a Service comes out
// once a second in the long run. It is made by several writes, each after the one before has been seen: those come at once.
type queue struct {
	workqueue.TypedRateLimitingInterface[string]
	mu   sync.Mutex
	pace crossclusterplan.Pace
}

func newQueue() *queue {
	return &queue{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, time.Minute)),
		pace:                       crossclusterplan.Pace{Settle: settle, Every: time.Second, Burst: 6},
	}
}

// addInPace enqueues a Service of which something has changed.
func (q *queue) addInPace(key string) {
	q.mu.Lock()
	delay := q.pace.Delay(key, time.Now())
	q.mu.Unlock()
	q.AddAfter(key, delay)
}

// addSoon enqueues a Service that does not wait for others' changes.
func (q *queue) addSoon(key string) { q.AddAfter(key, settle) }
