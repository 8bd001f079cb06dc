package propagation

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// state is what we remember of one object in one member beside what the caches hold.
type state struct {
	// written is the copy as our last write left it, until the cache has caught up.
	written any
	until   time.Time
	// applying: a write of ours is under way; met is the version of the copy that came by the watch meanwhile.
	applying bool
	met      string
	// parted is the UID of the copy that we asked to be deleted, or released.
	parted types.UID
	// gone is the UID of the copy that went last; removals are those of which somebody else did that.
	gone     types.UID
	removals plan.Removals
	// adopted is the UID of an object that is not known to have been deleted, though another one has its name: a copy of it is
	// taken for a copy of that one.
	adopted types.UID
	// settled is what the member made of our last application, see plan.Settle.
	settled string
	// look is how the last look ended.
	look
	// reserved is what a write that is about to go out shrinks the copy to; ceiling what the last one did, until
	// the member has carried it out: no more ready replicas than that are counted.
	reserved, ceiling *int64
	// floor is the least number that a copy of an autoscaler has, until floorUntil at least.
	floor      int64
	floorUntil time.Time
	// leaves is since when the copy is to leave the member; zero where it is not.
	leaves time.Time
	// rolling is the pod template that is about to be written, as plan.TemplateAnnotation.
	rolling string
}

// catchUp is how long a write of ours is believed without the cache having seen it.
const catchUp = resourceversion.Believed

func (m *member) state(k key) *state {
	s := m.states[k]
	if s == nil {
		s = &state{}
		m.states[k] = s
	}
	return s
}

// observe returns our copy in the member: what the cache has or, until it has caught up, what our
// last write left; and what the member made of that write.
func (m *member) observe(k key) (*unstructured.Unstructured, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u, s := m.current(k)
	return u, s.settled
}

// current is observe for who holds the lock. The cache is read under it: what is read before may be older than a write
// that has been caught up with, and forgotten, since.
func (m *member) current(k key) (*unstructured.Unstructured, *state) {
	var cached *unstructured.Unstructured
	if obj, ok, _ := m.Informers(k.kind.Resource).GetStore().GetByKey(storeKey(k.NamespacedName)); ok {
		cached = held.Object(obj)
	}
	s := m.state(k)
	if s.written != nil && (cached != nil && resourceversion.Of(cached) >= resourceversion.Of(held.About(s.written)) || time.Now().After(s.until)) {
		s.written = nil
	}
	if s.written != nil {
		u := held.Object(s.written)
		s.written = u // if it is asked for once, it is again
		return u, s
	}
	if cached != nil && !v1beta1.IsCopy(cached, k.kind.GroupKind(), m.federation) {
		return nil, s // somebody's own, with our labels
	}
	if cached != nil && s.adopted != "" && plan.SourceUID(cached) == s.adopted {
		return plan.Adopted(cached), s
	}
	return cached, s
}

// applies notes that a write of ours is under way.
func (m *member) applies(k key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state(k).applying = true
}

// applied notes that it is not any more, and reports whether the watch brought anything else than what it left.
func (m *member) applied(k key) (more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state(k)
	more = s.met != "" && !s.caughtUp(s.met)
	s.applying, s.met = false, ""
	return more
}

// caughtUp reports whether the version that the cache has is what our last write left, which is forgotten then.
func (s *state) caughtUp(version string) bool {
	if s.written == nil || held.About(s.written).GetResourceVersion() != version {
		return false
	}
	s.written = nil
	return true
}

// isNews tells of a copy that the watch brought whether it is to be looked at: it is not what our own last write left,
// nor came while one is under way, after which that is seen.
func (m *member) isNews(k key, u held.Named) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.states[k]
	if s == nil {
		return true
	}
	if s.applying {
		s.met = u.GetResourceVersion()
		return false
	}
	return !s.caughtUp(u.GetResourceVersion())
}

// wrote notes the copy as a write of ours left it.
func (m *member) wrote(k key, got any, settled string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state(k)
	s.settled, s.parted = settled, ""
	if s.reserved != nil {
		s.ceiling, s.reserved = s.reserved, nil
	}
	if s.gone == held.About(got).GetUID() {
		return // it went while the answer was under way
	}
	s.written, s.until = got, time.Now().Add(catchUp)
}

// unseen returns the objects with a write of ours that the cache should have seen by now.
func (m *member) unseen(now time.Time) (keys []key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, s := range m.states {
		if s.written != nil && now.After(s.until) {
			keys = append(keys, k)
		}
	}
	return keys
}

// lookAfter has those objects looked at again whose writes the cache has not seen.
func (m *member) lookAfter(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) {
		for _, k := range m.unseen(time.Now()) {
			m.queue.Add(k)
		}
	}, catchUp/10)
}

// parted notes that a copy has been deleted or released: once is enough.
func (m *member) parted(k key, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state(k).parted = uid
}

// adopts notes that copies which name a source are taken for copies of the object that has the name now.
func (m *member) adopts(k key, source types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state(k).adopted = source
}

func (m *member) hasParted(k key, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state(k).parted == uid
}

// gone notes that a copy is no more.
func (m *member) gone(k key, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.states[k]; s != nil {
		if s.parted != uid {
			s.removals.Add(time.Now())
		}
		s.gone, s.reserved, s.ceiling = uid, nil, nil
		if s.written != nil && held.About(s.written).GetUID() == uid {
			s.written = nil
		}
	}
}

// pauses is for how long a copy is not to be created, since somebody else deletes it again and again, and why.
func (m *member) pauses(k key, now time.Time) (left time.Duration, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &m.state(k).removals
	if left = r.Left(now); left > 0 {
		why = r.Reason()
	}
	return left, why
}

// look is how a look at an object in a member ended.
type look struct {
	// outcome and message say how.
	outcome plan.State
	message string
	// left is the UID of the federated object whose copy is known to be gone, or not ours any more.
	left types.UID
	// generation is that of the federated object.
	generation int64
	// outdated: the copy has another pod template than the federated object.
	outdated bool
}

// note keeps how a look ended, and reports whether that is news.
func (m *member) note(k key, now look) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state(k)
	news := s.look != now
	s.look, s.rolling = now, ""
	return news
}

// looked reports whether the object has been looked at in this member since it was taken up.
func (m *member) looked(k key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.states[k]
	return s != nil && s.outcome != ""
}

// comes reports whether a copy may come yet, or again: nothing has been found that keeps it away.
func (m *member) comes(k key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.states[k]
	return s == nil || s.outcome != plan.Rejected && s.outcome != plan.Conflict && s.outcome != plan.Unreachable
}

// reserve notes the number to which a write that is about to go out shrinks a copy; nil: none does.
func (m *member) reserve(k key, number *int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.states[k]; s != nil || number != nil {
		m.state(k).reserved = number
	}
}

// share returns what the member holds of an object. What our own shrinking is about to take counts no more.
func (m *member) share(s plan.Source, t plan.Target, k key) plan.Share {
	m.mu.Lock()
	defer m.mu.Unlock()
	u, st := m.current(k)
	t.Have = u
	share := plan.ShareOf(s, t)
	if st.ceiling != nil && st.written == nil && u != nil && plan.Settled(s, u) {
		st.ceiling = nil
	}
	for _, limit := range []*int64{st.reserved, st.ceiling} {
		if limit != nil {
			share.Ready = min(share.Ready, *limit)
		}
	}
	return share
}

// rolls notes that a new pod template is about to be written; rollsTo reports whether that is so.
func (m *member) rolls(k key, want plan.Desired) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state(k).rolling = want.Object.GetAnnotations()[plan.TemplateAnnotation]
}

func (m *member) rollsTo(k key, want plan.Desired) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.states[k]
	return s != nil && s.rolling != "" && want.Object != nil && s.rolling == want.Object.GetAnnotations()[plan.TemplateAnnotation]
}

// leaves notes whether a copy is to leave the member, and returns it.
func (m *member) leaves(k key, does bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.states[k]; s != nil && !does {
		s.leaves = time.Time{}
	} else if does && m.state(k).leaves.IsZero() {
		m.state(k).leaves = time.Now()
	}
	return does
}

func (m *member) leavesSince(k key) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state(k).leaves
}

// forget drops what is remembered of an object that is no more anywhere.
func (m *member) forget(k key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.states, k)
}

// copyOf returns what is known of the object in this member, for the report.
func (m *member) copyOf(k key) (plan.Copy, types.UID) {
	m.mu.Lock()
	u, now := m.current(k)
	s := *now
	m.mu.Unlock()
	c := plan.Copy{Cluster: m.Name, State: s.outcome, Message: s.message, Object: u, Looked: s.generation, Outdated: s.outdated, Unlisted: m.unknown(k.kind.Resource)}
	if c.State == "" {
		c.State, c.Message = plan.Pending, "has not been looked at yet"
	}
	if k.kind.Endpoints {
		c.ReadyEndpoints = m.readyEndpoints(k.NamespacedName)
		c.EndpointsUnknown = m.unknown(plan.EndpointSlices)
	}
	return c, s.left
}

func (m *member) String() string { return fmt.Sprintf("member %s", m.Name) }
