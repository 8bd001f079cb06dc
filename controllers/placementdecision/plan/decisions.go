// Package plan makes the PlacementDecisions of a federated object: what SIG Multicluster's PlacementDecision API (KEP-5313) has
// of a placement, for tools that ask there where something goes.
//
//	want, decided := plan.Decisions(object, clusters) // as they should be
//	apply, remove := plan.Changes(want, have)         // nothing, where nothing changed
package plan

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"federation/apiserver/apis/federation/v1beta1"
)

// MaxClusters is the most clusters that one PlacementDecision has, by the API's schema.
const MaxClusters = 100

// Decisions returns the PlacementDecisions of an object of a built-in kind, as they should be: its clusters by name, MaxClusters
// in each, and one without any if it goes nowhere. They refer to the clusters' ClusterProfiles. An object that is being deleted,
// or does not ask, has none. decided is false while it is not decided where the object goes: then they stay as they are.
func Decisions(object *unstructured.Unstructured, clusters []*v1beta1.Cluster) (all []*unstructured.Unstructured, decided bool) {
	key, asks := object.GetLabels()[v1beta1.PlacementKeyLabel]
	if !asks || object.GetDeletionTimestamp() != nil {
		return nil, true
	}
	names, decided := goesTo(object, clusters)
	if !decided {
		return nil, false
	}
	reason := ""
	if p := placementOf(object); p != nil && p.Policy != "" {
		reason = "by PlacementPolicy " + p.Policy
	}
	for len(names) > MaxClusters {
		all = append(all, decision(object, key, reason, len(all), names[:MaxClusters]))
		names = names[MaxClusters:]
	}
	return append(all, decision(object, key, reason, len(all), names)), true
}

// goesTo returns the names of the clusters that have, or are to have, a copy of an object: by its placement or, where it has
// none and needs none, by its cluster selector.
func goesTo(object *unstructured.Unstructured, clusters []*v1beta1.Cluster) (names []string, decided bool) {
	value, selects := object.GetAnnotations()[v1beta1.ClusterSelectorAnnotation]
	placement, selector := placementOf(object), labels.Everything()
	if placement == nil && (object.GetAnnotations()[v1beta1.PlacementAnnotation] != "" || needsPlacement(object, selects)) {
		return nil, false
	}
	if selects {
		s, errs := v1beta1.ParseClusterSelector(value, nil)
		if len(errs) > 0 {
			return nil, false // admission refuses it
		}
		selector = s
	}
	for _, c := range clusters {
		goes := placement == nil || placement.Everywhere || placement.Clusters[c.Name]+placement.Overflow[c.Name] > 0
		if goes && selector.Matches(labels.Set(c.Labels)) && c.RefusesNamespace(object.GetNamespace()) == "" {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names, true
}

func placementOf(object *unstructured.Unstructured) *v1beta1.Placement {
	return v1beta1.ParsePlacement(object.GetAnnotations()[v1beta1.PlacementAnnotation])
}

// needsPlacement reports whether an object goes nowhere without a placement.
func needsPlacement(object *unstructured.Unstructured, selects bool) bool {
	i := slices.IndexFunc(v1beta1.FederatedKinds, func(k v1beta1.FederatedKind) bool { return k.Kind == object.GetKind() })
	if i < 0 {
		return true
	}
	k := v1beta1.FederatedKinds[i]
	return k.Preferences != "" || !selects && v1beta1.Confined(k.Resource.GroupResource())
}

// decision returns the PlacementDecision at a position.
func decision(object *unstructured.Unstructured, key, reason string, index int, names []string) *unstructured.Unstructured {
	decisions := make([]any, 0, len(names))
	for _, name := range names {
		d := map[string]any{"clusterProfileRef": map[string]any{"namespace": v1beta1.FederationNamespace, "name": name}}
		if reason != "" {
			d["reason"] = reason
		}
		decisions = append(decisions, d)
	}
	base := decisionKey(object)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.PlacementDecisionsResource.GroupVersion().String(), "kind": "PlacementDecision",
		"metadata": map[string]any{
			"namespace": object.GetNamespace(), "name": base + "-" + strconv.Itoa(index),
			"labels": map[string]any{v1beta1.PlacementKeyLabel: key, v1beta1.DecisionKeyLabel: base, v1beta1.DecisionIndexLabel: strconv.Itoa(index)},
			"ownerReferences": []any{map[string]any{
				"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "name": object.GetName(), "uid": string(object.GetUID()), "controller": true,
			}},
		},
		"schedulerName": v1beta1.SchedulerName, "decisions": decisions,
	}}
}

// decisionKey returns KIND-NAME of an object or, where that is no label value, its beginning and a hash.
func decisionKey(object *unstructured.Unstructured) string {
	key := strings.ToLower(object.GetKind()) + "-" + object.GetName()
	if len(validation.IsDNS1123Subdomain(key)) == 0 && len(key) <= validation.LabelValueMaxLength {
		return key
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	short := strings.Trim(key[:min(len(key), 40)], ".-")
	if len(validation.IsDNS1123Subdomain(short)) > 0 {
		short = strings.ToLower(object.GetKind())
	}
	return fmt.Sprintf("%s-%016x", short, h.Sum64())
}

// Changes returns which of the wanted PlacementDecisions differ from those that are there, and which of these are not wanted.
// What others have added to them stays.
func Changes(want, have []*unstructured.Unstructured) (apply, remove []*unstructured.Unstructured) {
	left := map[string]*unstructured.Unstructured{}
	for _, h := range have {
		left[h.GetName()] = h
	}
	for _, w := range want {
		h := left[w.GetName()]
		delete(left, w.GetName())
		if h == nil || !equal(w, h) {
			apply = append(apply, w)
		}
	}
	for _, h := range have {
		if left[h.GetName()] != nil {
			remove = append(remove, h)
		}
	}
	return apply, remove
}

func equal(want, have *unstructured.Unstructured) bool {
	for key, value := range want.GetLabels() {
		if have.GetLabels()[key] != value {
			return false
		}
	}
	return Owner(have) == Owner(want) && have.Object["schedulerName"] == want.Object["schedulerName"] && equality.Semantic.DeepEqual(have.Object["decisions"], want.Object["decisions"])
}

// OwnerReference is what a PlacementDecision says of the object that it is about.
type OwnerReference struct{ APIVersion, Kind, Name, UID string }

// Owner returns the object that a PlacementDecision is about; none: without a Kind.
func Owner(u *unstructured.Unstructured) OwnerReference {
	o := metav1.GetControllerOf(u)
	if o == nil {
		return OwnerReference{}
	}
	return OwnerReference{o.APIVersion, o.Kind, o.Name, string(o.UID)}
}

// IsOurs reports whether a PlacementDecision is the federation's, and not another scheduler's.
func IsOurs(u *unstructured.Unstructured) bool {
	return u.Object["schedulerName"] == v1beta1.SchedulerName
}
