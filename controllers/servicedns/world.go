package servicedns

import (
	"maps"
	"slices"
	"sync"
	"time"

	"federation/dnsprovider"
)

// records are those of objects, by the object's key.
type records map[string][]dnsprovider.RRSet

// all returns the records of all objects, in no order.
func (r records) all() (sets []dnsprovider.RRSet) {
	for _, some := range r {
		sets = append(sets, some...)
	}
	return sets
}

// world is what shall be in DNS: what the planning goroutine writes and those of the providers read.
type world struct {
	mu sync.Mutex
	// records are what shall be there. The slices are not changed.
	records records
	// planned tells that records are of all objects.
	planned bool
	inboxes map[*inbox]bool
}

// inbox tells one provider's goroutine which keys have other records than it has last taken.
type inbox struct {
	// keys have when the first of these changes came.
	keys map[string]time.Time
	// since is when the first change that led to that was seen; zero: nobody knows.
	since time.Time
	wake  chan struct{}
}

func newWorld() *world {
	return &world{records: records{}, inboxes: map[*inbox]bool{}}
}

// set changes the records of some objects; nil takes them out.
func (w *world) set(next records, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := !w.planned
	w.planned = true
	var changed []string
	for key, sets := range next {
		if slices.EqualFunc(sets, w.records[key], dnsprovider.RRSet.Equal) {
			continue
		}
		changed = append(changed, key)
		if w.records[key] = sets; len(sets) == 0 {
			delete(w.records, key)
		}
	}
	if first {
		changed = nil // whoever has an inbox takes all, and what changed since the start is nothing yet
	}
	for in := range w.inboxes {
		if len(changed) > 0 || first {
			in.note(changed, since)
		}
	}
}

func (in *inbox) note(keys []string, since time.Time) {
	now := time.Now()
	for _, key := range keys {
		if _, noted := in.keys[key]; !noted {
			in.keys[key] = now
		}
	}
	if in.since.IsZero() {
		in.since = since
	}
	in.again()
}

// again wakes the provider's goroutine.
func (in *inbox) again() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// join returns an inbox that has something to take as soon as the world is planned.
func (w *world) join() *inbox {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := &inbox{keys: map[string]time.Time{}, wake: make(chan struct{}, 1)}
	w.inboxes[in] = true
	if w.planned {
		in.note(nil, time.Time{})
	}
	return in
}

func (w *world) leave(in *inbox) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inboxes, in)
}

// changes returns the keys that an inbox has, with when the first of their changes came.
func (w *world) changes(in *inbox) map[string]time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(in.keys)
}

// take empties an inbox. It returns the records by key: of all objects, or of those with changes, where nil says
// that there are none any more.
func (w *world) take(in *inbox, all bool) (some records, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if all {
		some = maps.Clone(w.records)
	} else {
		some = make(records, len(in.keys))
		for key := range in.keys {
			some[key] = w.records[key]
		}
	}
	since = in.since
	in.keys, in.since = map[string]time.Time{}, time.Time{}
	return some, since
}
