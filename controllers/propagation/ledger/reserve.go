package ledger

import (
	"maps"
	"time"

	"federation/controllers/propagation/plan"
)

// floorStays is how long an autoscaler keeps its floor after the last replica has left: until the load has come.
const floorStays = time.Minute

// Reserve records what a pending write takes from others: the number to which it shrinks a copy, or nil, and the pod
// template that it rolls out, as plan.TemplateAnnotation, or "".
func (l *Ledger) Reserve(k plan.Key, replicas *int64, template string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.copies[k]; e != nil || replicas != nil || template != "" {
		e = l.entry(k)
		e.reserved, e.template = replicas, template
	}
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
	of.Have, of.Template = u, e.template
	for _, limit := range []*int64{e.reserved, e.ceiling} {
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
