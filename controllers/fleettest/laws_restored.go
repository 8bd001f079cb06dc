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

// toAdopt notes the copies that are to be adopted, when the federation was restored and when processes are about to start. It is called with the
// fleet locked.
func (f *Fleet) toAdopt() {
	clear(f.laws.adoptions)
	deleted := f.knownDeleted()
	for name, m := range f.members {
		for _, r := range m.API.Resources() {
			for _, there := range m.API.List(r.GroupVersionResource, nil) {
				at := objectIn{name, workloadKey{r.Resource, there.GetNamespace(), there.GetName()}}
				u := f.Federation.Get(r.GroupVersionResource, there.GetNamespace(), there.GetName())
				if source := plan.SourceUID(there); u != nil && !at.withItsNamespace() && f.isCopy(there) && source != u.GetUID() && !deleted[source] {
					f.laws.adoptions[at] = adoption{there.GetUID(), u.GetUID()}
				}
			}
		}
	}
}

// adoptable reports whether a copy of an object that the federation has forgotten becomes that of another one of its name. Its pods run on until
// then, and are ready as any others are.
func (f *Fleet) adoptable(there *unstructured.Unstructured) bool {
	return f.isCopy(there) && !f.knownDeleted()[plan.SourceUID(there)]
}

// knownDeleted are the UIDs of the objects that the federation knows to have been deleted.
func (f *Fleet) knownDeleted() map[types.UID]bool {
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

// adopts checks a write to a member that was carried out: it may not delete a copy that is to be adopted while it is to be there. It is
// called with the fleet locked.
func (f *Fleet) adopts(member string, r memapi.Request) []error {
	at := objectIn{member, workloadKey{r.Resource.Resource, r.Namespace, r.Name}}
	a, is := f.laws.adoptions[at]
	if !is {
		return nil
	}
	f.tally.check(adopted)
	delete(f.laws.adoptions, at) // with any other write it has been adopted, or made again after somebody else took it away
	there := f.members[member].API.Get(r.Resource, r.Namespace, r.Name)
	if r.Verb != "delete" || there != nil && there.GetUID() == a.copied && there.GetDeletionTimestamp() == nil {
		return nil
	}
	u := f.Federation.Get(r.Resource, r.Namespace, r.Name)
	if u == nil || u.GetUID() != a.federated || u.GetDeletionTimestamp() != nil || !f.goesTo(u, member) {
		return nil
	}
	return []error{against(adopted, "%s of %s %s in %s", r.Verb, r.Resource.Resource, r.Name, member)}
}

// goesTo reports whether an object is to be in a member, as its selector and its placement say.
func (f *Fleet) goesTo(u *unstructured.Unstructured, member string) bool {
	c, text := f.cluster(member), u.GetAnnotations()[v1beta1.PlacementAnnotation]
	if c == nil || !selected(u, c.Labels) {
		return false
	}
	p := v1beta1.ParsePlacement(text)
	return p == nil && text == "" || p != nil && p.Clusters[member]+p.Overflow[member] > 0
}
