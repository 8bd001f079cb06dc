package fleettest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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
func checkConfined(f *Fleet, r memapi.Resource, u *unstructured.Unstructured, law lawFunc) {
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
			wanted, _ := wantedIn(f, of, from)
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
	for _, m := range settledMembers(f) {
		there := m.API.Get(r.GroupVersionResource, u.GetNamespace(), u.GetName())
		switch {
		case isExcused(f, m, r, u, there):
		case there == nil && must[m.Name] != "":
			law(secretsWhere, "%s %s is not in %s, and %s is", r.Kind, u.GetName(), m.Name, must[m.Name])
		case f.isCopy(there) && !may[m.Name] && !refersThere(m, u):
			law(secretsWhere, "%s %s is in %s, and nothing there refers to it", r.Kind, u.GetName(), m.Name)
		}
	}
}

// podNeedLaws remember the sources of the copies of what pods need.
type podNeedLaws struct {
	sources map[objectIn]types.UID
}

func newPodNeedLaws() podNeedLaws { return podNeedLaws{sources: map[objectIn]types.UID{}} }

// check checks a write to a member that was carried out: it may not delete a copy that pods there need, while its object stays. It is called
// with the fleet locked.
func (l *podNeedLaws) check(f *Fleet, member string, r memapi.Request, now time.Time) []error {
	if !needs[r.Resource.Resource] {
		return nil
	}
	m, at := f.members[member], objectIn{member, workloadKey{r.Resource.Resource, r.Namespace, r.Name}}
	was := l.sources[at]
	if there := m.API.Get(r.Resource, r.Namespace, r.Name); there != nil {
		l.sources[at] = plan.SourceUID(there)
		return nil
	}
	delete(l.sources, at)
	u := f.Federation.Get(r.Resource, r.Namespace, r.Name)
	if u == nil || u.GetDeletionTimestamp() != nil || u.GetUID() != was {
		return nil
	}
	justNow := func(resource, name string) bool { // it was written while the delete was under way
		times := f.laws.writes.recent[fmt.Sprintf("%s: %s %s/%s", member, resource, r.Namespace, name)]
		return len(times) > 0 && now.Sub(times[len(times)-1]) <= hearing
	}
	law, who := podsFirst, leavesWith(f, m, u, justNow)
	if who == "" && opensDoors[u.GetKind()] {
		f.tally.check(secretsStay)
		law, who = secretsStay, referrerThere(m, u, justNow)
	}
	if who != "" {
		return []error{against(law, "%s of %s %s in %s, where %s is", r.Verb, r.Resource.Resource, r.Name, member, who)}
	}
	return nil
}

// needs are the kinds that pods need.
var needs = map[string]bool{"services": true, "ingresses": true, "configmaps": true, "secrets": true, "serviceaccounts": true, "networkpolicies": true}

const podsFirst = "what pods need leaves a cluster after them"

// leavesWith names a workload that leaves a member, by the policy by which an object does, and still has replicas there; except is left out.
func leavesWith(f *Fleet, m *Member, u *unstructured.Unstructured, except func(resource, name string) bool) string {
	p := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
	if p == nil || p.Policy == "" || u.GetAnnotations()[v1beta1.ClusterSelectorAnnotation] != "" || f.uplinks.anySick() || time.Since(f.disturbed) < upset {
		return ""
	}
	f.tally.check(podsFirst)
	for _, k := range plan.Kinds {
		if !k.Paced {
			continue
		}
		for _, w := range f.Federation.List(k.Resource, nil) {
			of := v1beta1.ParsePlacement(w.GetAnnotations()[v1beta1.PlacementAnnotation])
			there := m.API.Get(k.Resource, w.GetNamespace(), w.GetName())
			if of == nil || of.Policy != p.Policy || of.Clusters[m.Name]+of.Overflow[m.Name] > 0 || w.GetNamespace() != u.GetNamespace() || w.GetDeletionTimestamp() != nil {
				continue
			}
			if f.copyOf(w, there) && replicasOf(there) > 0 && !except(k.Resource.Resource, w.GetName()) {
				return k.Kind + " " + w.GetName()
			}
		}
	}
	return ""
}
