package ledger

import (
	"time"

	"federation/controllers/propagation/plan"
)

// floorStays is how long an autoscaler keeps its floor after the last replica has left: until the load has come.
const floorStays = time.Minute

// Reserve notes what a write that is about to go out takes from others that wait: the number to which it shrinks a copy, nil
// for none, and the pod template that it rolls out, as plan.TemplateAnnotation, "" for none.
func (l *Ledger) Reserve(k plan.Key, replicas *int64, template string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.copies[k]; e != nil || replicas != nil || template != "" {
		e = l.entry(k)
		e.reserved, e.template = replicas, template
	}
}

// Standing returns how the member stands with an object, for those that depend on it: its copy, the template that is about to be
// written, and the number of ready replicas that can be counted on at most, since our own shrinking is about to take the others; nil:
// no less than the copy says.
func (l *Ledger) Standing(s plan.Source, k plan.Key) (of plan.Standing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u, e := l.current(k)
	if e.ceiling != nil && e.written == nil && u != nil && plan.Settled(s, u) {
		e.ceiling = nil
	}
	of.Have, of.Template = u, e.template
	for _, limit := range []*int64{e.reserved, e.ceiling} {
		if limit != nil && (of.MostReady == nil || *limit < *of.MostReady) {
			of.MostReady = limit
		}
	}
	return of
}

// KeepFloor notes the least number that a copy of an autoscaler is to have, 0 for none, and returns it or the one that
// is to stay for a while.
func (l *Ledger) KeepFloor(k plan.Key, floor int64, now time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(k)
	if floor > 0 {
		e.floor, e.floorUntil = max(floor, e.floor), now.Add(floorStays)
	} else if now.After(e.floorUntil) {
		e.floor = 0
	}
	return e.floor
}
