package propagation

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
)

// A status is for people and for other controllers, and a report costs the federation more than the write
// to a member that it tells about. So a report waits until the copies have settled, and reports of many objects take
// turns: what changes again meanwhile is told together. DNS and deletions don't wait.
const (
	settleTime = 250 * time.Millisecond // without a change, until an object is reported
	settleMost = time.Second            // from its first change until it is reported in any case
	burst      = 2                      // seconds of reports that go out at once after a time without
)

// yield is how much longer a turn takes while members wait for writes: what was asked for comes before what is told of it.
const yield = 200 * time.Millisecond

// dues are the objects whose status is to be reported.
type dues struct {
	limit   *rate.Limiter
	waiting workqueue.TypedInterface[key] // for their turn, first come first served

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

// settled tells whether the report of an object may be written as far as its changes go; what was noted is forgotten
// then. If not, it is to be asked again after a while; 0: when its turn has come. An object without changes has settled.
func (d *dues) settled(k key, now time.Time) (yes bool, again time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if come, asked := d.turn[k]; asked && !come {
		return false, 0
	}
	if one, there := d.of[k]; there {
		at := one.last.Add(settleTime)
		if latest := one.first.Add(settleMost); latest.Before(at) {
			at = latest
		}
		if left := at.Sub(now); left > 0 {
			return false, left
		}
	}
	delete(d.of, k)
	return true, 0
}

// takeTurn tells whether it is the turn of an object that has something to report. If not it comes, see giveTurns.
func (d *dues) takeTurn(k key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turn[k] || len(d.turn) == 0 && d.limit.Allow() {
		delete(d.turn, k)
		return true
	}
	d.turn[k] = false
	d.waiting.Add(k)
	return false
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

// giveTurns gives turns until ctx is done.
func (c *Controller) giveTurns(ctx context.Context) {
	for {
		k, quit := c.dues.waiting.Get()
		if quit || c.dues.limit.Wait(ctx) != nil {
			return
		}
		if c.busy() {
			_ = wait.PollUntilContextTimeout(ctx, yield/10, yield, false, func(context.Context) (bool, error) { return !c.busy(), nil })
		}
		c.dues.waiting.Done(k)
		if c.dues.give(k) {
			c.reports.Add(k)
		}
	}
}

// busy tells whether most members have more to write than can be under way. One that is slow is not most.
func (c *Controller) busy() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	behind := 0
	for _, m := range c.members {
		if m.queue.Len() > c.Workers {
			behind++
		}
	}
	return 2*behind > len(c.members)
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
	if k.kind.Endpoints {
		c.reportNow(k)
		return
	}
	c.dues.note(k, time.Now())
	c.reports.AddAfter(k, settleTime)
}

// reportNow is for what does not wait.
func (c *Controller) reportNow(k key) {
	c.dues.drop(k)
	c.reports.Add(k)
}

// reportOrFinish is report, but an object that is being deleted does not wait.
func (c *Controller) reportOrFinish(k key) {
	if federated := c.lookup(k); federated == nil || federated.GetDeletionTimestamp() != nil {
		c.reportNow(k)
		return
	}
	c.report(k)
}

func (c *Controller) reportAll() {
	for _, k := range c.federated() {
		c.report(k)
	}
}

// isOurPatch tells of a version of a federated object whether our last patch made it: that is no news.
func (c *Controller) isOurPatch(k key, u named) bool {
	v, ok := c.patched.Load(k)
	return ok && v.(uint64) == version(u)
}
