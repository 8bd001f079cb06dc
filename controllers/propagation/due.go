package propagation

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A status is for people and for other controllers, and a report costs the federation more than the write
// to a member that it tells about. So a report waits until the copies have settled, and reports of many objects take
// turns: what changes again meanwhile is told together. DNS and deletions don't wait.
const (
	settleTime = 250 * time.Millisecond // without a change, until an object is reported
	settleMost = time.Second            // from its first change until it is reported in any case
	burst      = 2                      // seconds of reports that go out at once after a time without
)

// dues are the objects whose status is to be reported.
type dues struct {
	turns *rate.Limiter

	mu   sync.Mutex
	of   map[key]due       // when they changed
	turn map[key]time.Time // when they may be written, of those that have settled
}

// due is when an object that is not reported yet changed.
type due struct{ first, last time.Time }

func newDues(aSecond int) *dues {
	return &dues{turns: rate.NewLimiter(rate.Limit(aSecond), burst*aSecond), of: map[key]due{}, turn: map[key]time.Time{}}
}

// note notes a change.
func (d *dues) note(k key, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, there := d.of[k]
	if !there {
		one.first = now
	}
	one.last = now
	d.of[k] = one
}

// wait returns how long the report of an object is to wait until it has settled and its turn, if it has one, has come;
// 0: what was noted is forgotten. An object without changes has settled.
func (d *dues) wait(k key, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.turn[k]
	if one, there := d.of[k]; there {
		settled := one.last.Add(settleTime)
		if latest := one.first.Add(settleMost); latest.Before(settled) {
			settled = latest
		}
		if settled.After(at) {
			at = settled
		}
	}
	if left := at.Sub(now); left > 0 {
		return left
	}
	delete(d.of, k)
	return 0
}

// takeTurn returns how long it is until the turn of an object that has something to report; 0: it is now, and is taken.
func (d *dues) takeTurn(k key, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, has := d.turn[k]
	if !has {
		at = now.Add(d.turns.ReserveN(now, 1).DelayFrom(now))
	}
	if left := at.Sub(now); left > 0 {
		d.turn[k] = at
		return left
	}
	delete(d.turn, k)
	return 0
}

// drop forgets what was noted of an object: it is reported at once, or not at all.
func (d *dues) drop(k key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, k)
	delete(d.turn, k)
}

// report has the status of an object reported once its copies have settled.
func (c *Controller) report(k key) {
	federated := c.lookup(k)
	if k.kind.Endpoints || federated == nil || federated.GetDeletionTimestamp() != nil {
		c.dues.drop(k)
		c.reports.Add(k)
		return
	}
	c.dues.note(k, time.Now())
	c.reports.AddAfter(k, settleTime)
}

func (c *Controller) reportAll() {
	for _, k := range c.federated() {
		c.report(k)
	}
}
