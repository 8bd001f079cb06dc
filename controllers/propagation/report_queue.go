package propagation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"federation/controllers/held"
)

// enqueueReport enqueues a report of an object once its copies have settled.
func (r *reporter) enqueueReport(k key) {
	if k.Kind.Endpoints {
		r.reportNow(k)
		return
	}
	if wait := r.dues.recordChange(k, time.Now()); wait > 0 {
		r.reports.AddAfter(k, wait)
	}
}

// reportNow enqueues a report at once.
func (r *reporter) reportNow(k key) {
	r.dues.forget(k)
	r.reports.Add(k)
}

// reportOrFinish is enqueueReport, except that an object that is being deleted does not wait.
func (r *reporter) reportOrFinish(k key) {
	if federated := r.packedObject(k); federated == nil || held.About(federated).GetDeletionTimestamp() != nil {
		r.reportNow(k)
		return
	}
	r.enqueueReport(k)
}

func (r *reporter) reportAll() {
	for _, k := range r.objects() {
		r.enqueueReport(k)
	}
}

// giveTurns gives turns until ctx is done.
func (r *reporter) giveTurns(ctx context.Context) {
	for busy := false; ; {
		k, quit := r.dues.waiting.Get()
		if quit || r.dues.waitForTurn(ctx) != nil {
			return
		}
		if busy || r.isBusy() {
			busy = !r.calmsDown(ctx)
		}
		r.dues.waiting.Done(k)
		if r.dues.grant(k) {
			r.reports.Add(k)
		} else {
			r.dues.unspent.Add(1)
		}
	}
}

// calmsDown waits until members have had no pending writes for a while, and reports whether that came before the time
// limit.
func (r *reporter) calmsDown(ctx context.Context) bool {
	const step = lull / 5
	var quiet time.Duration
	return wait.PollUntilContextTimeout(ctx, step, yield, false, func(context.Context) (bool, error) {
		if quiet += step; r.isBusy() {
			quiet = 0
		}
		return quiet >= lull, nil
	}) == nil
}

// isBusy reports whether most members have more pending writes than a fraction of the writes that can be in flight. A
// single slow member does not count.
func (r *reporter) isBusy() bool {
	members, behind := r.all(), 0
	for _, m := range members {
		if m.queue.Len()+int(m.writing.Load()) > r.Workers/8 {
			behind++
		}
	}
	return 2*behind > len(members)
}
