package fleettest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/propagation/plan"
)

// opensDoors are the kinds that go only where something refers to them. It does not ask v1beta1.Confined, which may be wrong.
var opensDoors = map[string]bool{"Secret": true, "ServiceAccount": true}

const (
	secretsWhere = "secrets are where something refers to them, and nowhere else"
	secretsStay  = "no secret goes before what refers to it"
)

// refersTo reports whether an object refers to another, as the texts of scenarios and of the driver do: it looks for words.
func refersTo(u *unstructured.Unstructured, kind, name string) bool {
	text, err := json.Marshal(u.Object)
	if err != nil {
		panic(err) // it came from JSON
	}
	if kind == "ServiceAccount" {
		return strings.Contains(string(text), fmt.Sprintf(`"serviceAccountName":%q`, name))
	}
	for _, words := range []string{`"secretRef":{"name":%q}`, `"imagePullSecrets":[{"name":%q}]`, `"secretName":%q`} {
		if strings.Contains(string(text), fmt.Sprintf(words, name)) {
			return true
		}
	}
	return false
}

// refersThere reports whether anything that runs in a member refers to an object of its namespace, whoever made that.
func refersThere(m *Member, u *unstructured.Unstructured) bool { return referrerThere(m, u, nil) != "" }

// referrerThere names what that is; except is left out.
func referrerThere(m *Member, u *unstructured.Unstructured, except func(resource, name string) bool) string {
	if !opensDoors[u.GetKind()] {
		return ""
	}
	for _, r := range m.API.Resources() {
		for _, there := range m.API.List(r.GroupVersionResource, nil) {
			runs := !divided(r) || replicasOf(there) > 0
			if runs && there.GetNamespace() == u.GetNamespace() && refersTo(there, u.GetKind(), u.GetName()) && (except == nil || !except(r.Resource, there.GetName())) {
				return r.Kind + " " + there.GetName()
			}
		}
	}
	return ""
}

// checkConfined checks where a Secret or ServiceAccount is by where that is which refers to it.
func (f *Fleet) checkConfined(r memapi.Resource, u *unstructured.Unstructured, law lawFunc) {
	p := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
	if _, selects := u.GetAnnotations()[v1beta1.ClusterSelectorAnnotation]; selects || p == nil || p.Policy != "" {
		return
	}
	f.tally.check(secretsWhere)
	must, may := map[string]string{}, map[string]bool{}
	for _, of := range f.Federation.Resources() {
		if v1beta1.FederatedKindOf(of.GroupResource()) == nil {
			continue
		}
		for _, from := range f.Federation.List(of.GroupVersionResource, nil) {
			if from.GetNamespace() != u.GetNamespace() || !refersTo(from, u.GetKind(), u.GetName()) {
				continue
			}
			wanted, _ := f.wanted(of, from)
			for name, n := range wanted {
				if n != 0 {
					must[name], may[name] = of.Kind+" "+from.GetName(), true
				}
			}
			if home := v1beta1.ParsePlacement(from.GetAnnotations()[v1beta1.PlacementAnnotation]); home != nil {
				for name := range home.Home {
					may[name] = true
				}
			}
		}
	}
	for _, m := range f.settled() {
		there := m.API.Get(r.GroupVersionResource, u.GetNamespace(), u.GetName())
		switch {
		case f.excused(m, r, u, there):
		case there == nil && must[m.Name] != "":
			law(secretsWhere, "%s %s is not in %s, and %s is", r.Kind, u.GetName(), m.Name, must[m.Name])
		case f.isCopy(there) && !may[m.Name] && !refersThere(m, u):
			law(secretsWhere, "%s %s is in %s, and nothing there refers to it", r.Kind, u.GetName(), m.Name)
		}
	}
}

// keepsSecrets checks a write to a member that was carried out: it may not delete a copy that something there needs, while its
// object stays. It is called with the fleet locked.
func (f *Fleet) keepsSecrets(member string, r memapi.Request, now time.Time) []error {
	if r.Resource.Resource != "secrets" && r.Resource.Resource != "serviceaccounts" {
		return nil
	}
	m, at := f.members[member], objectIn{member, workloadKey{r.Resource.Resource, r.Namespace, r.Name}}
	was := f.laws.sources[at]
	if there := m.API.Get(r.Resource, r.Namespace, r.Name); there != nil {
		f.laws.sources[at] = plan.SourceUID(there)
		return nil
	}
	delete(f.laws.sources, at)
	u := f.Federation.Get(r.Resource, r.Namespace, r.Name)
	if u == nil || u.GetDeletionTimestamp() != nil || u.GetUID() != was {
		return nil
	}
	f.tally.check(secretsStay)
	justNow := func(resource, name string) bool { // it was written while the delete was under way
		times := f.laws.writes.recent[fmt.Sprintf("%s: %s %s/%s", member, resource, r.Namespace, name)]
		return len(times) > 0 && now.Sub(times[len(times)-1]) <= hearing
	}
	if who := referrerThere(m, u, justNow); who != "" {
		return []error{against(secretsStay, "%s of %s %s in %s, to which %s refers", r.Verb, r.Resource.Resource, r.Name, member, who)}
	}
	return nil
}
