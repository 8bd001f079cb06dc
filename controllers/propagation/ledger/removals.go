package ledger

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// Removed notes that a copy has been deleted or released: once is enough.
func (l *Ledger) Removed(k plan.Key, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(k).removed = uid
}

// IsRemoved reports whether that has been noted of a copy, and no write came after.
func (l *Ledger) IsRemoved(k plan.Key, uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entry(k).removed == uid
}

// Adopt notes that copies which name a source are taken for copies of the object that has the name now.
func (l *Ledger) Adopt(k plan.Key, source types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(k).adopted = source
}

// Gone notes that a copy is no more.
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
	e.gone, e.reserved, e.ceiling = uid, nil, nil
	if e.written != nil && held.About(e.written).GetUID() == uid {
		e.written = nil
	}
}

// Pause returns for how long a copy is not to be created, since somebody else deletes it again and again, and why.
func (l *Ledger) Pause(k plan.Key, now time.Time) (left time.Duration, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.entry(k).removals
	if left = max(0, r.Left(now)); left > 0 {
		why = r.Reason()
	}
	return left, why
}

// Leaving notes whether a copy is to leave the member, and returns since when it is; zero where it is not.
func (l *Ledger) Leaving(k plan.Key, leaves bool, now time.Time) (since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.copies[k]; e != nil && !leaves {
		e.leavesSince = time.Time{}
	} else if leaves {
		e = l.entry(k)
		if e.leavesSince.IsZero() {
			e.leavesSince = now
		}
		since = e.leavesSince
	}
	return since
}
