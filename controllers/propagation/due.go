package propagation

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
)

// A status is for people and for other controllers, and a report costs the federation more than the write
// to a member that it tells about. So a report waits until the copies have settled, the longer the more objects are due,
// and reports of many objects take turns: what changes again meanwhile is told together. DNS and deletions don't wait.
const (
	settleTime = 250 * time.Millisecond // without a change, until an object is reported, where few are due
	settleLong = 5 * time.Second        // the same where very many are
	settleMost = 4                      // times as long: from its first change until it is reported in any case
	dueShare   = 4                      // an object settles for this part of the time that the reports of all that are due take
	burst      = 2                      // seconds of reports that go out at once after a time without
)

// What was asked for comes before what is told of it: while members wait for writes, a turn takes yield longer, or until they have
// not waited for as long as lull.
const (
	yield = 500 * time.Millisecond
	lull  = yield / 5
)

// dues are the objects whose status is to be reported.
type dues struct {
	limit   *rate.Limiter
	waiting workqueue.TypedInterface[key] // for their turn, first come first served
	unspent atomic.Int64                  // turns that came and were for nothing

	mu   sync.Mutex
	of   map[key]due  // when they changed
	turn map[key]bool // of those that have asked for their turn, whether it has come
}

// due is when an object that is not reported yet changed.
type due struct{ first, last time.Time }

func newDues(aSecond int) *dues {
	return &dues{
		limit: rate.NewLimiter(rate.Limit(aSecond), burst*aSecond), waiting: workqueue.NewTyped[key](),
		of: map[key]due{}, turn: map[key]bool{},
	}
}

// note notes a change. If it is the first one since the last report, it returns when that is to be asked for; 0: it has been.
func (d *dues) note(k key, now time.Time) time.Duration {
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
	return d.settling()
}

// settling is how long an object is to be without a change for now, until it is reported.
func (d *dues) settling() time.Duration {
	all := float64(len(d.of)+len(d.turn)) / float64(d.limit.Limit()) * float64(time.Second)
	return min(max(time.Duration(all)/dueShare, settleTime), settleLong)
}

// settled reports whether the report of an object may be written as far as its changes go; what was noted is forgotten
// then. If not, it is to be asked again after a while; 0: when its turn has come. An object without changes has settled.
func (d *dues) settled(k key, now time.Time) (yes bool, again time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if come, asked := d.turn[k]; asked && !come {
		return false, 0
	}
	if one, there := d.of[k]; there {
		quiet := d.settling()
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

// takeTurn reports whether it is the turn of an object to be looked at, and reported. If not it comes, see giveTurns.
func (d *dues) takeTurn(k key) bool {
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

// wait waits for the next turn that there is to give: one that came and was for nothing, or a new one.
func (d *dues) wait(ctx context.Context) error {
	if d.unspent.Add(-1) >= 0 {
		return nil
	}
	d.unspent.Add(1)
	return d.limit.Wait(ctx)
}

// give gives an object its turn, if it still wants it.
func (d *dues) give(k key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, asked := d.turn[k]
	if asked {
		d.turn[k] = true
	}
	return asked
}

// drop forgets what was noted of an object: it is reported at once, or not at all.
func (d *dues) drop(k key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, k)
	delete(d.turn, k)
}
