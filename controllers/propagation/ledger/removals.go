package ledger

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// Removed records that a copy has been deleted or released, so that this happens once.
func (l *Ledger) Removed(k plan.Key, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(k).removed = uid
}

// IsRemoved reports whether that has been recorded of a copy, without a later write.
func (l *Ledger) IsRemoved(k plan.Key, uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entry(k).removed == uid
}

// Adopt records that copies which name a source count as copies of the object that has the name now.
func (l *Ledger) Adopt(k plan.Key, source types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(k).adopted = source
}

// Gone records that a copy is gone.
func (l *Ledger) Gone(k plan.Key, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.copies[k]
	if e == nil {
		return
	}
	if e.removed != uid {
		e.removals.Add(time.Now())
	}
	e.gone, e.reserved, e.ceiling = uid, Reservation{}, nil
	if e.written != nil && held.About(e.written).GetUID() == uid {
		e.written = nil
	}
}

// Pause returns how long a copy must not be created because somebody else keeps deleting it, and why.
func (l *Ledger) Pause(k plan.Key, now time.Time) (left time.Duration, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.entry(k).removals
	if left = max(0, r.Left(now)); left > 0 {
		why = r.Reason()
	}
	return left, why
}

// Leaving records whether a copy should leave the member, and returns since when; zero if it should not.
func (l *Ledger) Leaving(k plan.Key, leaves bool, now time.Time) (since time.Time) {
	return l.since(k, leaves, now, func(e *entry) *time.Time { return &e.leavesSince })
}

// Failing records whether the member fails to create pods of the copy, and returns since when, by our clock; zero if it does not.
func (l *Ledger) Failing(k plan.Key, fails bool, now time.Time) (since time.Time) {
	return l.since(k, fails, now, func(e *entry) *time.Time { return &e.failsSince })
}

// since returns the time at which something was first true of a copy that is true, and zero of what is not.
func (l *Ledger) since(k plan.Key, is bool, now time.Time, field func(*entry) *time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.copies[k]
	if e == nil && !is {
		return time.Time{}
	}
	at := field(l.entry(k))
	switch {
	case !is:
		*at = time.Time{}
	case at.IsZero():
		*at = now
	}
	return *at
}
