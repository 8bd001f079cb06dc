// Package ledger remembers, for one member, what the caches do not say of each copy: what our own last write left
// until the watch has brought it, what a write that is about to go out takes away, what is being removed, and how
// the last sync ended.
//
//	l := ledger.New(federationUID, stores)   // stores of the member's informers
//	copy, settled := l.Observe(key)
//	l.Begin(key); got, err := apply(…); again := l.End(key, got, settled)
//	news := l.Record(key, outcome)
//
// One lock guards all of it. Nothing here waits, and nothing is asked of anybody.
package ledger

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// catchUp is how long a write of ours is believed without the cache having seen it.
const catchUp = resourceversion.Believed

// Ledger is what is remembered of the copies in one member. It may be used by several at a time.
type Ledger struct {
	federation string
	stores     func(*plan.Kind) cache.Store

	mu     sync.Mutex
	copies map[plan.Key]*entry
}

// entry is what is remembered of one copy.
type entry struct {
	// written is the copy as our last write left it, until the cache has caught up.
	written any
	until   time.Time
	// applying: a write of ours is under way; met is the version of the copy that came by the watch meanwhile.
	applying bool
	met      string
	// removed is the UID of the copy that we asked to be deleted, or released.
	removed types.UID
	// gone is the UID of the copy that went last; removals are those of which somebody else did that.
	gone     types.UID
	removals plan.Removals
	// adopted is the UID of an object that is not known to have been deleted, though another one has its name: a copy of it is
	// taken for a copy of that one.
	adopted types.UID
	// settled is what the member made of our last application, see plan.Settle.
	settled string
	outcome Outcome
	// reserved is what a write that is about to go out shrinks the copy to; ceiling what the last one did, until
	// the member has carried it out: no more ready replicas than that are counted.
	reserved, ceiling *int64
	// template is the pod template that is about to be written, as plan.TemplateAnnotation.
	template string
	// floor is the least number that a copy of an autoscaler has, until floorUntil at least.
	floor      int64
	floorUntil time.Time
	// leavesSince is since when the copy is to leave the member; zero where it is not.
	leavesSince time.Time
}

// Outcome is how a sync of an object in the member ended.
type Outcome struct {
	// State and Message say how. Without a State it has not been synced yet.
	State   plan.State
	Message string
	// Left is the UID of the federated object whose copy is known to be gone, or not ours any more.
	Left types.UID
	// Generation is that of the federated object.
	Generation int64
	// Outdated: the copy has another pod template than the federated object.
	Outdated bool
}

// New returns an empty ledger of a member. stores returns the member's copies of a kind, as its informer holds them.
func New(federation string, stores func(*plan.Kind) cache.Store) *Ledger {
	return &Ledger{federation: federation, stores: stores, copies: map[plan.Key]*entry{}}
}

func (l *Ledger) entry(k plan.Key) *entry {
	e := l.copies[k]
	if e == nil {
		e = &entry{}
		l.copies[k] = e
	}
	return e
}

// Observe returns our copy in the member: what the cache has or, until it has caught up, what our last write left; nil where
// there is none. settled is what the member made of that write.
func (l *Ledger) Observe(k plan.Key) (copy *unstructured.Unstructured, settled string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u, e := l.current(k)
	return u, e.settled
}

// current is Observe for who holds the lock. The cache is read under it: what is read before may be older than a write
// that has been caught up with, and forgotten, since.
func (l *Ledger) current(k plan.Key) (*unstructured.Unstructured, *entry) {
	var cached *unstructured.Unstructured
	if obj, ok, _ := l.stores(k.Kind).GetByKey(k.StoreKey()); ok {
		cached = held.Object(obj)
	}
	e := l.entry(k)
	if e.written != nil && (cached != nil && resourceversion.Of(cached) >= resourceversion.Of(held.About(e.written)) || time.Now().After(e.until)) {
		e.written = nil
	}
	if e.written != nil {
		u := held.Object(e.written)
		e.written = u // if it is asked for once, it is again
		return u, e
	}
	if cached != nil && !v1beta1.IsCopy(cached, k.Kind.GroupKind(), l.federation) {
		return nil, e // somebody's own, with our labels
	}
	if cached != nil && e.adopted != "" && plan.SourceUID(cached) == e.adopted {
		return plan.Adopted(cached), e
	}
	return cached, e
}

// Begin notes that a write of ours is under way, which has to End.
func (l *Ledger) Begin(k plan.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(k).applying = true
}

// End notes that the write is not under way any more, and what it left, as package held takes it; nil where it failed. settled
// is what the member made of it. End reports whether the watch brought anything else than that meanwhile.
func (l *Ledger) End(k plan.Key, got any, settled string) (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(k)
	if got != nil {
		e.wrote(got, settled)
	}
	again = e.met != "" && !e.caughtUp(e.met)
	e.applying, e.met = false, ""
	return again
}

func (e *entry) wrote(got any, settled string) {
	e.settled, e.removed = settled, ""
	if e.reserved != nil {
		e.ceiling, e.reserved = e.reserved, nil
	}
	if e.gone == held.About(got).GetUID() {
		return // it went while the answer was under way
	}
	e.written, e.until = got, time.Now().Add(catchUp)
}

// caughtUp reports whether the version that the cache has is what our last write left, which is forgotten then.
func (e *entry) caughtUp(version string) bool {
	if e.written == nil || held.About(e.written).GetResourceVersion() != version {
		return false
	}
	e.written = nil
	return true
}

// IsNews reports whether a version of a copy that the watch brought is to be looked at: it is not what our own last write left,
// nor came while one is under way, after which that is seen.
func (l *Ledger) IsNews(k plan.Key, version held.Named) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.copies[k]
	if e == nil {
		return true
	}
	if e.applying {
		e.met = version.GetResourceVersion()
		return false
	}
	return !e.caughtUp(version.GetResourceVersion())
}

// Unconfirmed returns the objects with a write of ours that the cache should have seen by now.
func (l *Ledger) Unconfirmed(now time.Time) (keys []plan.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, e := range l.copies {
		if e.written != nil && now.After(e.until) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Record keeps how a sync ended, and reports whether that is news.
func (l *Ledger) Record(k plan.Key, now Outcome) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(k)
	news = e.outcome != now
	e.outcome, e.template = now, ""
	return news
}

// Read is Observe, with how the last sync ended.
func (l *Ledger) Read(k plan.Key) (copy *unstructured.Unstructured, last Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u, e := l.current(k)
	return u, e.outcome
}

// Synced reports whether the object has been synced in this member since it was engaged.
func (l *Ledger) Synced(k plan.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.copies[k]
	return e != nil && e.outcome.State != ""
}

// MayCome reports whether a copy may come yet, or again: nothing has been found that keeps it away.
func (l *Ledger) MayCome(k plan.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.copies[k]
	return e == nil || e.outcome.State != plan.Rejected && e.outcome.State != plan.Conflict && e.outcome.State != plan.Unreachable
}

// Forget drops what is remembered of an object that is no more anywhere.
func (l *Ledger) Forget(k plan.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.copies, k)
}
