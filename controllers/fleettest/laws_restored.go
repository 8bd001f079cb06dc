package fleettest

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/propagation/plan"
)

const adopted = "a copy of an object that is not known to have been deleted is adopted"

// adoption is a copy of an object that the federation has forgotten, as it was restored: another one has the name, of the backup or applied since.
type adoption struct {
	copied, federated types.UID
}

// adoptionLaws remember the copies that are to be adopted after the federation was restored.
type adoptionLaws struct {
	expected map[objectIn]adoption
}

func newAdoptionLaws() adoptionLaws { return adoptionLaws{expected: map[objectIn]adoption{}} }

// note notes the copies that are to be adopted, when the federation was restored and when processes are about to start. It is called with the
// fleet locked.
func (l *adoptionLaws) note(f *Fleet) {
	clear(l.expected)
	deleted := knownDeleted(f)
	for name, m := range f.members {
		for _, r := range m.API.Resources() {
			for _, there := range m.API.List(r.GroupVersionResource, nil) {
				at := objectIn{name, workloadKey{r.Resource, there.GetNamespace(), there.GetName()}}
				u := f.Federation.Get(r.GroupVersionResource, there.GetNamespace(), there.GetName())
				if source := plan.SourceUID(there); u != nil && !at.withItsNamespace() && f.isCopy(there) && source != u.GetUID() && !deleted[source] {
					l.expected[at] = adoption{there.GetUID(), u.GetUID()}
				}
			}
		}
	}
}

// isAdoptable reports whether a copy of an object that the federation has forgotten becomes that of another one of its name. Its pods run on until
// then, and are ready as any others are.
func isAdoptable(f *Fleet, there *unstructured.Unstructured) bool {
	return f.isCopy(there) && !knownDeleted(f)[plan.SourceUID(there)]
}

// knownDeleted are the UIDs of the objects that the federation knows to have been deleted.
func knownDeleted(f *Fleet) map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, records := range f.Federation.List(configMaps, nil) {
		if records.GetNamespace() == v1beta1.FederationNamespace && strings.HasPrefix(records.GetName(), "deleted-objects-") {
			data, _, _ := unstructured.NestedStringMap(records.Object, "data")
			for uid := range data {
				out[types.UID(uid)] = true
			}
		}
	}
	return out
}

// check checks a write to a member that was carried out: it may not delete a copy that is to be adopted while it is to be there. It is
// called with the fleet locked.
func (l *adoptionLaws) check(f *Fleet, member string, r memapi.Request) []error {
	at := objectIn{member, workloadKey{r.Resource.Resource, r.Namespace, r.Name}}
	a, is := l.expected[at]
	if !is {
		return nil
	}
	f.tally.check(adopted)
	delete(l.expected, at) // with any other write it has been adopted, or made again after somebody else took it away
	there := f.members[member].API.Get(r.Resource, r.Namespace, r.Name)
	if r.Verb != "delete" || there != nil && there.GetUID() == a.copied && there.GetDeletionTimestamp() == nil {
		return nil
	}
	u := f.Federation.Get(r.Resource, r.Namespace, r.Name)
	if u == nil || u.GetUID() != a.federated || u.GetDeletionTimestamp() != nil || !goesTo(f, u, member) {
		return nil
	}
	return []error{against(adopted, "%s of %s %s in %s", r.Verb, r.Resource.Resource, r.Name, member)}
}

// goesTo reports whether an object is to be in a member, as its selector and its placement say.
func goesTo(f *Fleet, u *unstructured.Unstructured, member string) bool {
	c, text := f.clusters.named(member), u.GetAnnotations()[v1beta1.PlacementAnnotation]
	if c == nil || !selected(u, c.Labels) {
		return false
	}
	p := v1beta1.ParsePlacement(text)
	return p == nil && text == "" || p != nil && p.Clusters[member]+p.Overflow[member] > 0
}
