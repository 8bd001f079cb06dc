package propagation

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
)

// A report costs the federation more than the write to a member that it is about, and only people and other controllers
// read it. So a report waits until the copies have settled, for longer the more objects are due, and reports of many
// objects take turns: changes in between are reported together. DNS and deletions do not wait.
const (
	settleTime = 250 * time.Millisecond // time without a change until an object is reported, if few are due
	settleLong = 5 * time.Second        // the same if very many are
	settleMost = 4                      // factor: maximum time from the first change to the report
	dueShare   = 4                      // an object settles for this share of the time that all due reports take
	burst      = 2                      // seconds' worth of reports that go out at once after a quiet period
)

// Writes come before reports of them: while members have pending writes, a turn waits for yield, or until there have
// been none for lull.
const (
	yield = 500 * time.Millisecond
	lull  = yield / 5
)

// statusLimiter are the objects whose status is due for a report.
type statusLimiter struct {
	limit   *rate.Limiter
	waiting workqueue.TypedInterface[key] // waiting for their turn, first in first out
	unspent atomic.Int64                  // turns that nobody used

	mu   sync.Mutex
	of   map[key]due  // time of change
	turn map[key]bool // of the objects that wait for a turn: whether it has come
}

// due has the times of the first and the last unreported change of an object.
type due struct{ first, last time.Time }

func newStatusLimiter(aSecond int) *statusLimiter {
	return &statusLimiter{
		limit: rate.NewLimiter(rate.Limit(aSecond), burst*aSecond), waiting: workqueue.NewTyped[key](),
		of: map[key]due{}, turn: map[key]bool{},
	}
}

// recordChange records a change. If it is the first since the last report, it returns when to ask for the report, else 0.
func (d *statusLimiter) recordChange(k key, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, there := d.of[k]
	one.last = now
	if there {
		d.of[k] = one
		return 0
	}
	one.first = now
	d.of[k] = one
	return d.settleDelay()
}

// settleDelay returns how long an object must be unchanged before its report, for now.
func (d *statusLimiter) settleDelay() time.Duration {
	all := float64(len(d.of)+len(d.turn)) / float64(d.limit.Limit()) * float64(time.Second)
	return min(max(time.Duration(all)/dueShare, settleTime), settleLong)
}

// isSettled reports whether the changes of an object have settled; it then forgets them. If not, again is when to ask
// again; 0: when its turn comes. An object without changes has settled.
func (d *statusLimiter) isSettled(k key, now time.Time) (yes bool, again time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if come, asked := d.turn[k]; asked && !come {
		return false, 0
	}
	if one, there := d.of[k]; there {
		quiet := d.settleDelay()
		at := one.last.Add(quiet)
		if latest := one.first.Add(settleMost * quiet); latest.Before(at) {
			at = latest
		}
		if left := at.Sub(now); left > 0 {
			return false, left
		}
	}
	delete(d.of, k)
	return true, 0
}

// acquire reports whether an object has its turn. If not, it joins the queue, see giveTurns.
func (d *statusLimiter) acquire(k key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turn[k] {
		delete(d.turn, k)
		return true
	}
	d.turn[k] = false
	d.waiting.Add(k)
	return false
}

// waitForTurn waits for the next turn: an unused one, or a new one.
func (d *statusLimiter) waitForTurn(ctx context.Context) error {
	if d.unspent.Add(-1) >= 0 {
		return nil
	}
	d.unspent.Add(1)
	return d.limit.Wait(ctx)
}

// grant gives an object its turn, if it still wants it.
func (d *statusLimiter) grant(k key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, asked := d.turn[k]
	if asked {
		d.turn[k] = true
	}
	return asked
}

// forget forgets the changes of an object: it is reported at once, or not at all.
func (d *statusLimiter) forget(k key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, k)
	delete(d.turn, k)
}
