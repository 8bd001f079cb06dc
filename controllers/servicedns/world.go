package servicedns

import (
	"maps"
	"slices"
	"sync"
	"time"

	"federation/controllers/supervisor"
	"federation/dnsprovider"
)

// records has the record sets of objects, by key.
type records map[string][]dnsprovider.RRSet

// all returns the records of all objects, in no order.
func (r records) all() (sets []dnsprovider.RRSet) {
	for _, some := range r {
		sets = append(sets, some...)
	}
	return sets
}

// desiredRecords is what should be in DNS. The planning goroutine writes it, those of the providers read it.
type desiredRecords struct {
	mu sync.Mutex
	// records is the wanted content. The slices are never changed in place.
	records records
	// planned: records covers all objects.
	planned bool
	inboxes map[*subscription]bool
}

// subscription holds the keys whose records have changed since one provider's goroutine last took them.
type subscription struct {
	// keys has the time of the first change of each.
	keys map[string]time.Time
	// since is when the first cause of a change was seen; zero if unknown.
	since time.Time
	wake  supervisor.Wake
}

func newWorld() *desiredRecords {
	return &desiredRecords{records: records{}, inboxes: map[*subscription]bool{}}
}

// set sets the records of some objects; nil removes them.
func (w *desiredRecords) set(next records, since time.Time) {
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
		changed = nil // an inbox takes everything first, so changes since the start do not matter
	}
	for in := range w.inboxes {
		if len(changed) > 0 || first {
			in.addKeys(changed, since)
		}
	}
}

func (in *subscription) addKeys(keys []string, since time.Time) {
	now := time.Now()
	for _, key := range keys {
		if _, noted := in.keys[key]; !noted {
			in.keys[key] = now
		}
	}
	if in.since.IsZero() {
		in.since = since
	}
	in.wake.Signal()
}

// subscribe returns an inbox that is filled once the world is planned.
func (w *desiredRecords) subscribe() *subscription {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := &subscription{keys: map[string]time.Time{}, wake: supervisor.NewWake()}
	w.inboxes[in] = true
	if w.planned {
		in.addKeys(nil, time.Time{})
	}
	return in
}

func (w *desiredRecords) unsubscribe(in *subscription) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inboxes, in)
}

// pendingKeys returns the keys in an inbox, with the time of each first change.
func (w *desiredRecords) pendingKeys(in *subscription) map[string]time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(in.keys)
}

// takeChanges empties an inbox. It returns the records by key: of all objects, or of those with changes; nil means that an
// object has none any more.
func (w *desiredRecords) takeChanges(in *subscription, all bool) (some records, since time.Time) {
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
