package propagation

import (
	"sync"
	"time"
)

// A status is for people and for other controllers, and a report costs the federation more than the write
// to a member that it tells about. So a report waits until the copies have settled, but not for ever: for each
// object that waits to be written to the members, or to be reported, a little longer. DNS and deletions don't wait.
const (
	settleTime   = 250 * time.Millisecond // without a change, until an object is reported
	settleMost   = time.Second            // from its first change until it is reported in any case
	perWaiting   = 10 * time.Millisecond  // is added to settleMost for each object that waits, a quarter to settleTime
	settleAtMost = 30 * time.Second
)

// dues are the objects whose status is to be reported when they have settled.
type dues struct {
	mu sync.Mutex
	of map[key]due
}

// due is when an object that is not reported yet changed.
type due struct{ first, last time.Time }

// note notes a change.
func (d *dues) note(k key, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, there := d.of[k]
	if !there {
		one.first = now
	}
	one.last = now
	if d.of == nil {
		d.of = map[key]due{}
	}
	d.of[k] = one
}

// wait returns how long the report of an object is to wait still, where so many writes do; 0: it is due, and
// what was noted is forgotten. An object without changes is due.
func (d *dues) wait(k key, now time.Time, writes int) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, there := d.of[k]
	if !there {
		return 0
	}
	more := min(time.Duration(writes+len(d.of)-1)*perWaiting, settleAtMost-settleMost)
	at := one.last.Add(settleTime + more/4)
	if latest := one.first.Add(settleMost + more); latest.Before(at) {
		at = latest
	}
	if left := at.Sub(now); left > 0 {
		return left
	}
	delete(d.of, k)
	return 0
}

// drop forgets what was noted of an object: it is reported at once.
func (d *dues) drop(k key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, k)
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

// waiting is the number of objects that wait in the member that has the fewest: reports make room for writes
// that go on, and do not wait for a member that is slow.
func (c *Controller) waiting() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	fewest := -1
	for _, m := range c.members {
		if n := m.queue.Len(); fewest < 0 || n < fewest {
			fewest = n
		}
	}
	return max(fewest, 0)
}
