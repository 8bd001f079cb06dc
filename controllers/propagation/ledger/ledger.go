// Package ledger remembers, for one member, what the caches do not have of each copy: our last write until the watch has
// brought it, what a write that is about to go out takes away, what is being removed, and how the last sync ended.
//
//	l := ledger.New(federationUID, stores)   // stores of the member's informers
//	copy, settled := l.Observe(key)
//	l.Begin(key); got, err := apply(…); again := l.End(key, ledger.Write{Copy: got})
//	news := l.Record(key, outcome)
//
// One lock guards it. Nothing here blocks or makes requests.
package ledger

import (
	"cmp"
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

// Ledger is what is remembered of the copies in one member. It is safe for concurrent use.
type Ledger struct {
	federation string
	stores     func(*plan.Kind) cache.Store

	mu     sync.Mutex
	copies map[plan.Key]*entry
	floors map[plan.Key]floor // by workload
}

// entry is what is remembered of one copy.
type entry struct {
	// written is the copy as our last write left it, until the cache has caught up.
	written any
	left    resourceversion.Left
	// applying: a write of ours is in flight; met is the version of the copy that the watch brought meanwhile.
	applying bool
	met      string
	// removed is the UID of the copy that we deleted or released.
	removed types.UID
	// gone is the UID of the last copy that went; removals are those that somebody else deleted.
	gone     types.UID
	removals plan.Removals
	// adopted is the UID of an object without a recorded deletion, whose name another object has now: its copies are
	// adopted as copies of that one.
	adopted types.UID
	// settled is what the member changed of our last apply, see plan.Settle.
	settled string
	// missedBefore is that of the last write that had one.
	missedBefore string
	outcome      Outcome
	// reserved is what a pending write takes from others; ceiling is the number of the last one until the member has
	// carried it out. At most that many ready replicas count.
	reserved Reservation
	ceiling  *int64
	// leavesSince is since when the copy should leave the member; zero if it should not.
	leavesSince time.Time
	// failsSince is since when the member is seen to fail to create pods of the copy; zero if it does not.
	failsSince time.Time
}

// Outcome is how a sync of an object in the member ended.
type Outcome struct {
	// State and Message describe it. Without a State it has not been synced yet.
	State   plan.State
	Message string
	// Left is the UID of the federated object whose copy is known to be gone, or no longer ours.
	Left types.UID
	// Generation is that of the federated object.
	Generation int64
	// Outdated: the copy's pod template differs from the federated object's.
	Outdated bool
}

// New returns an empty ledger of a member. stores returns the member's copies of a kind, as its informer holds them.
func New(federation string, stores func(*plan.Kind) cache.Store) *Ledger {
	return &Ledger{federation: federation, stores: stores, copies: map[plan.Key]*entry{}, floors: map[plan.Key]floor{}}
}

func (l *Ledger) entry(k plan.Key) *entry {
	e := l.copies[k]
	if e == nil {
		e = &entry{}
		l.copies[k] = e
	}
	return e
}

// Observe returns our copy in the member: the cached one or, until the cache has caught up, what our last write left;
// nil if there is none. settled is what the member changed of that write.
func (l *Ledger) Observe(k plan.Key) (copy *unstructured.Unstructured, settled string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u, e := l.observeLocked(k)
	return u, e.settled
}

// observeLocked is Observe with the lock held. It must read the cache under the lock: an earlier read may be older than a
// write that has been seen, and forgotten, since.
func (l *Ledger) observeLocked(k plan.Key) (*unstructured.Unstructured, *entry) {
	var cached *unstructured.Unstructured
	if obj, ok, _ := l.stores(k.Kind).GetByKey(k.StoreKey()); ok {
		cached = held.Object(obj)
	}
	e := l.entry(k)
	if e.written != nil && (!e.left.Awaited() || cached != nil && !e.left.Unseen(cached)) {
		e.written = nil
	}
	if e.written != nil {
		u := held.Object(e.written)
		e.written = u // requested again after one request
		return u, e
	}
	if cached != nil && !v1beta1.IsCopy(cached, k.Kind.GroupKind(), l.federation) {
		return nil, e // somebody's own object with our labels
	}
	if cached != nil && e.adopted != "" && plan.SourceUID(cached) == e.adopted {
		return plan.Adopted(cached), e
	}
	return cached, e
}

// Begin records that a write of ours is in flight, until End.
func (l *Ledger) Begin(k plan.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(k).applying = true
}

// Write is what came of a write.
type Write struct {
	// Copy is as the member has it now, in a form that package held accepts; nil if the write failed.
	Copy any
	// Settled is what the member changed of the write, see plan.Settle.
	Settled string
	// MissedBefore is as in plan.Copy.
	MissedBefore string
}

// End records that the write in flight is done. It reports whether the watch brought anything else meanwhile.
func (l *Ledger) End(k plan.Key, w Write) (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(k)
	if w.Copy != nil {
		e.recordWrite(w)
	}
	again = e.met != "" && !e.caughtUp(e.met)
	e.applying, e.met = false, ""
	return again
}

func (e *entry) recordWrite(w Write) {
	e.settled, e.removed = w.Settled, ""
	e.missedBefore = cmp.Or(w.MissedBefore, e.missedBefore)
	if e.reserved.Replicas != nil {
		e.ceiling = e.reserved.Replicas
	}
	e.reserved = Reservation{}
	if e.gone == held.About(w.Copy).GetUID() {
		return // it went before the response arrived
	}
	e.written, e.left = w.Copy, resourceversion.LeftAt(resourceversion.Of(held.About(w.Copy)))
}

// caughtUp reports whether the cached version is the result of our last write, which is then forgotten.
func (e *entry) caughtUp(version string) bool {
	if e.written == nil || held.About(e.written).GetResourceVersion() != version {
		return false
	}
	e.written = nil
	return true
}

// IsNews reports whether a version of a copy from the watch needs a sync: our last write did not make it, and none is
// in flight, whose End handles it.
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
func (l *Ledger) Unconfirmed() (keys []plan.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, e := range l.copies {
		if e.written != nil && !e.left.Awaited() {
			keys = append(keys, k)
		}
	}
	return keys
}

// Record stores how a sync ended, and reports whether that changed.
func (l *Ledger) Record(k plan.Key, now Outcome) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(k)
	news = e.outcome != now
	e.outcome = now
	return news
}

// Read is Observe with the outcome of the last sync.
func (l *Ledger) Read(k plan.Key) (copy *unstructured.Unstructured, last Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u, e := l.observeLocked(k)
	return u, e.outcome
}

// MissedBefore is as in plan.Copy.
func (l *Ledger) MissedBefore(k plan.Key) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.copies[k]; e != nil {
		return e.missedBefore
	}
	return ""
}

// Synced reports whether the object has been synced in this member since it was engaged.
func (l *Ledger) Synced(k plan.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.copies[k]
	return e != nil && e.outcome.State != ""
}

// MayCome reports whether a copy may still come, or come again: nothing has been found that prevents it.
func (l *Ledger) MayCome(k plan.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.copies[k]
	return e == nil || e.outcome.State != plan.Rejected && e.outcome.State != plan.Conflict && e.outcome.State != plan.Unreachable
}

// Forget drops an object that exists nowhere any more.
func (l *Ledger) Forget(k plan.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.copies, k)
}
