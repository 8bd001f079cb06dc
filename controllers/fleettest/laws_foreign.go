package fleettest

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/controllers/fleettest/memapi"
	"federation/controllers/propagation/plan"
)

// objectIn names an object in a member.
type objectIn struct {
	member string
	workloadKey
}

// foreignLaws remember the objects in members that the federation is to leave alone.
type foreignLaws struct {
	theirs  map[objectIn]types.UID // what people made there
	orphans map[objectIn]orphan    // copies that are to stay
}

type orphan struct {
	uid   types.UID
	since time.Time
}

func newForeignLaws() foreignLaws {
	return foreignLaws{theirs: map[objectIn]types.UID{}, orphans: map[objectIn]orphan{}}
}

const (
	untouched   = "foreign objects are untouched"
	orphansStay = "orphans stay"
)

// checkWrite checks a write to a member that was carried out. It is called with the fleet locked.
func (l *foreignLaws) checkWrite(f *Fleet, member string, r memapi.Request, now time.Time) []error {
	at := objectIn{member, workloadKey{r.Resource.Resource, r.Namespace, r.Name}}
	if _, is := l.theirs[at]; is {
		return []error{against(untouched, "%s of %s %s in %s, which somebody made there", r.Verb, r.Resource.Resource, r.Name, member)}
	}
	left, is := l.orphans[at]
	there := f.members[member].API.Get(r.Resource, r.Namespace, r.Name)
	if !is || there != nil && there.GetUID() == left.uid {
		return nil
	}
	delete(l.orphans, at)
	if there != nil || now.Sub(left.since) <= hearing { // made again after its namespace went; or a delete of before was under way
		return nil
	}
	return []error{against(orphansStay, "%s of %s %s in %s, %s after it was orphaned", r.Verb, r.Resource.Resource, r.Name, member, now.Sub(left.since))}
}

// made notes what somebody made in a member, unless it is one of our copies.
func (l *foreignLaws) made(f *Fleet, m *Member, t target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if there := m.API.Get(t.GroupVersionResource, t.namespace, t.name); there != nil && !f.isCopy(there) {
		at := objectIn{m.Name, t.workload()}
		if _, orphaned := l.orphans[at]; !orphaned {
			l.theirs[at] = there.GetUID()
		}
	}
}

// unmade notes that somebody deleted an object in a member.
func (l *foreignLaws) unmade(f *Fleet, m *Member, t target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(l.theirs, objectIn{m.Name, t.workload()})
	delete(l.orphans, objectIn{m.Name, t.workload()})
}

// lost forgets what is not in a member any more, as that was installed again or restored.
func (l *foreignLaws) lost(member string, there func(objectIn) *unstructured.Unstructured) {
	gone := func(at objectIn, uid types.UID) bool {
		u := there(at)
		return at.member == member && (u == nil || u.GetUID() != uid)
	}
	maps.DeleteFunc(l.theirs, gone)
	maps.DeleteFunc(l.orphans, func(at objectIn, left orphan) bool { return gone(at, left.uid) })
}

// orphaned notes the copies of an object that is deleted without them.
func (l *foreignLaws) orphaned(f *Fleet, t target, source types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, m := range f.members {
		if there := m.API.Get(t.GroupVersionResource, t.namespace, t.name); !m.alias && f.isCopy(there) && there.GetDeletionTimestamp() == nil && plan.SourceUID(there) == source {
			l.orphans[objectIn{name, t.workload()}] = orphan{there.GetUID(), time.Now()}
		}
	}
}

// checkSettled checks that what the federation is to leave alone is there.
func (l *foreignLaws) checkSettled(f *Fleet, law lawFunc) {
	seen := map[string]bool{}
	for _, m := range settledMembers(f) {
		seen[m.Name] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, uid := range l.theirs {
		f.tally.check(untouched)
		if there := objectInMember(f, at); (there == nil || there.GetUID() != uid) && !at.withItsNamespace() {
			law(untouched, "%s %s in %s is gone", at.resource, at.name, at.member)
		}
	}
	for at, left := range l.orphans {
		f.tally.check(orphansStay)
		switch there := objectInMember(f, at); {
		case at.withItsNamespace():
		case there == nil || there.GetUID() != left.uid:
			law(orphansStay, "%s %s in %s is gone", at.resource, at.name, at.member)
		case f.isCopy(there) && seen[at.member]:
			law(orphansStay, "%s %s in %s bears our marks", at.resource, at.name, at.member)
		}
	}
}

// withItsNamespace reports whether an object may have been deleted with its namespace.
func (at objectIn) withItsNamespace() bool {
	return at.namespace != "" && at.namespace != metav1.NamespaceDefault
}

func objectInMember(f *Fleet, at objectIn) *unstructured.Unstructured {
	m := f.members[at.member]
	for _, r := range m.API.Resources() {
		if r.Resource == at.resource {
			return m.API.Get(r.GroupVersionResource, at.namespace, at.name)
		}
	}
	return nil
}
