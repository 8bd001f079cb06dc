package fleettest

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/propagation/plan"
)

// unknownLaws remember the deletes of copies of unknown objects, and when somebody approved them, by member.
type unknownLaws struct {
	deletes  map[string][]time.Time
	approved map[string]time.Time
}

func newUnknownLaws() unknownLaws {
	return unknownLaws{deletes: map[string][]time.Time{}, approved: map[string]time.Time{}}
}

const notAtOnce = "very many copies of unknown objects are not deleted at once"

// check checks a delete in a member that was carried out: of copies whose objects the federation does not know, and of whose deletion
// it has no record, no more go within ten minutes than 10, or a fifth of those there, unless somebody approved it. It is called with
// the fleet locked.
func (l *unknownLaws) check(f *Fleet, member string, r memapi.Request, now time.Time) []error {
	if r.Verb != "delete" || r.Resource == endpointSlices || f.Federation.Get(r.Resource, r.Namespace, r.Name) != nil || hasRecordOfDeletion(f, r) {
		return nil
	}
	if at := l.approved[member]; !at.IsZero() && now.Sub(at) < time.Minute {
		return nil
	}
	f.tally.check(notAtOnce)
	times := l.deletes[member]
	for len(times) > 0 && now.Sub(times[0]) > 10*time.Minute {
		times = times[1:]
	}
	times = append(times, now)
	l.deletes[member] = times
	copies, m := len(times), f.members[member]
	mark := labels.SelectorFromSet(labels.Set{v1beta1.ManagedByLabel: f.uid})
	for _, kind := range m.API.Resources() {
		for _, u := range m.API.List(kind.GroupVersionResource, mark) {
			if f.isCopy(u) {
				copies++
			}
		}
	}
	if len(times) <= max(10, copies/5) {
		return nil
	}
	l.deletes[member] = nil
	return []error{against(notAtOnce, "%s: %d of %d copies within ten minutes", member, len(times), copies)}
}

// hasRecordOfDeletion reports whether the deletion of an object of the name is recorded.
func hasRecordOfDeletion(f *Fleet, r memapi.Request) bool {
	name := " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
	for _, u := range f.Federation.List(configMaps, nil) {
		if u.GetNamespace() != v1beta1.FederationNamespace {
			continue
		}
		records, _ := u.Object["data"].(map[string]any)
		for _, value := range records {
			text, _ := value.(string)
			if d, ok := plan.ParseDeletion(text); ok && strings.HasSuffix(d.Object, name) {
				return true
			}
		}
	}
	return false
}
