package ledger

import (
	"maps"
	"time"

	"federation/controllers/propagation/plan"
)

// floorStays is how long an autoscaler keeps its floor after the last replica has left: until the load has come.
const floorStays = time.Minute

// Reservation is what a pending write takes from others.
type Reservation struct {
	// Replicas is the number to which it shrinks the copy, or nil.
	Replicas *int64
	// Template is the pod template that it rolls out, as plan.TemplateAnnotation, or "".
	Template string
}

// GivesBack reports whether the next reservation takes less than this one, so that others may go on.
func (r Reservation) GivesBack(next Reservation) bool {
	return r.Template != "" && next.Template == "" || r.Replicas != nil && (next.Replicas == nil || *next.Replicas > *r.Replicas)
}

// Reserve records what a pending write takes from others.
func (l *Ledger) Reserve(k plan.Key, r Reservation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.copies[k]; e != nil || r != (Reservation{}) {
		l.entry(k).reserved = r
	}
}

// Release ends the reservation of a write that did not come about, and returns it.
func (l *Ledger) Release(k plan.Key) (was Reservation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.copies[k]; e != nil {
		was, e.reserved = e.reserved, Reservation{}
	}
	return was
}

// Standing returns the member's state of an object for decisions that depend on it: its copy, the template of a pending
// write, and the number of ready replicas that may count, because our own shrinking is about to take the others; nil:
// as the copy says.
func (l *Ledger) Standing(s plan.Source, k plan.Key) (of plan.Standing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u, e := l.observeLocked(k)
	if e.ceiling != nil && e.written == nil && u != nil && plan.Settled(s, u) {
		e.ceiling = nil
	}
	of.Have, of.Template = u, e.reserved.Template
	for _, limit := range []*int64{e.reserved.Replicas, e.ceiling} {
		if limit != nil && (of.MostReady == nil || *limit < *of.MostReady) {
			of.MostReady = limit
		}
	}
	return of
}

// floor is the minimum that the autoscaler of a workload keeps in the member, until then at least.
type floor struct {
	replicas int64
	until    time.Time
}

// KeepFloor records the minimum that the autoscaler of a workload keeps in the member, 0 for none, and returns it or an
// earlier one that must last a while. All that have lasted their time are forgotten: who owns an autoscaler need not own
// its workload, and does not hear that it goes.
func (l *Ledger) KeepFloor(k plan.Key, replicas int64, now time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.floors, func(_ plan.Key, f floor) bool { return now.After(f.until) })
	if replicas > 0 {
		l.floors[k] = floor{max(replicas, l.floors[k].replicas), now.Add(floorStays)}
	}
	return l.floors[k].replicas
}
