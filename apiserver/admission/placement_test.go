package admission

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	"k8s.io/kubernetes/pkg/apis/core"

	"federation/apiserver/apis/federation/v1beta1"
)

// policies are those of the namespace shop.
type policies []*v1beta1.PlacementPolicy

func (policies) Synced() bool { return true }

func (p policies) In(namespace string) []*v1beta1.PlacementPolicy {
	if namespace != "shop" {
		return nil
	}
	return p
}

func selecting(apiVersion, kind string, labels map[string]string) *v1beta1.PlacementPolicy {
	s := v1beta1.ResourceSelector{APIVersion: apiVersion, Kind: kind}
	if labels != nil {
		s.LabelSelector = &metav1.LabelSelector{MatchLabels: labels}
	}
	return &v1beta1.PlacementPolicy{Spec: v1beta1.PlacementPolicySpec{ResourceSelectors: []v1beta1.ResourceSelector{s}}}
}

func create(t *testing.T, p *Plugin, object metav1.Object, kind schema.GroupVersionKind, resource string) {
	t.Helper()
	a := admission.NewAttributesRecord(object.(runtime.Object), nil, kind, object.GetNamespace(), object.GetName(),
		kind.GroupVersion().WithResource(resource), "", admission.Create, &metav1.CreateOptions{}, false, nil)
	if err := p.Admit(t.Context(), a, nil); err != nil {
		t.Fatal(err)
	}
}

func TestWhatAPolicyGovernsWaitsForItsDecision(t *testing.T) {
	gold := map[string]string{"tier": "gold"}
	references := selecting("apps/v1", "Deployment", nil)
	references.Spec.PropagateReferences = true
	for name, c := range map[string]struct {
		policies  policies
		namespace string
		want      string
	}{
		"no policy":                         {nil, "shop", ""},
		"a policy of its kind":              {policies{selecting("v1", "ConfigMap", nil)}, "shop", "pending"},
		"a policy of its labels":            {policies{selecting("v1", "ConfigMap", gold)}, "shop", "pending"},
		"a policy of other labels":          {policies{selecting("v1", "ConfigMap", map[string]string{"tier": "iron"})}, "shop", ""},
		"a policy of another kind":          {policies{selecting("v1", "Secret", nil)}, "shop", ""},
		"a policy of another namespace":     {policies{selecting("v1", "ConfigMap", nil)}, "office", ""},
		"a policy that takes references":    {policies{references}, "shop", "pending"},
		"one of two policies selects it":    {policies{selecting("v1", "Secret", nil), selecting("v1", "ConfigMap", gold)}, "shop", "pending"},
		"a kind of that name, other groups": {policies{selecting("example.com/v1", "ConfigMap", nil)}, "shop", ""},
	} {
		object := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: c.namespace, Labels: gold}}
		create(t, New(c.policies, nil, nil), object, core.SchemeGroupVersion.WithKind("ConfigMap"), "configmaps")
		if got := object.Annotations[v1beta1.PlacementAnnotation]; got != c.want {
			t.Errorf("%s: placement %q, want %q", name, got, c.want)
		}
	}
}

// TestASecretGoesNowhereBeforeItsPlacement checks that a new Secret waits for its placement, unless it selects clusters
// itself or its placement is known already.
func TestASecretGoesNowhereBeforeItsPlacement(t *testing.T) {
	everywhere := func(*unstructured.Unstructured) string { return `{"clusters":{},"everywhere":true}` }
	for name, c := range map[string]struct {
		policies policies
		place    Placer
		selector string
		want     string
	}{
		"as it is":                  {nil, nil, "", "pending"},
		"not known yet":             {nil, func(*unstructured.Unstructured) string { return "" }, "", "pending"},
		"with a selector":           {nil, everywhere, `[{"key":"a","operator":"Exists"}]`, ""},
		"all go everywhere":         {nil, everywhere, "", `{"clusters":{},"everywhere":true}`},
		"a policy selects it":       {policies{selecting("v1", "Secret", nil)}, everywhere, "", "pending"},
		"a policy selects accounts": {policies{selecting("v1", "ServiceAccount", nil)}, everywhere, "", `{"clusters":{},"everywhere":true}`},
	} {
		object := &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pass", Namespace: "shop"}}
		if c.selector != "" {
			object.Annotations = map[string]string{v1beta1.ClusterSelectorAnnotation: c.selector}
		}
		create(t, New(c.policies, c.place, nil), object, core.SchemeGroupVersion.WithKind("Secret"), "secrets")
		if got := object.Annotations[v1beta1.PlacementAnnotation]; got != c.want {
			t.Errorf("%s: placement %q, want %q", name, got, c.want)
		}
	}
}

func TestDividedObjectsArePlacedInTheirCreate(t *testing.T) {
	var asked *unstructured.Unstructured
	place := func(u *unstructured.Unstructured) string { asked = u; return "decided" }
	for _, name := range []string{"web", ""} {
		asked = nil
		object := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Spec: apps.ReplicaSetSpec{Replicas: 7}}
		create(t, New(policies{selecting("apps/v1", "ReplicaSet", nil)}, place, nil), object, apps.SchemeGroupVersion.WithKind("ReplicaSet"), "replicasets")
		got := object.Annotations[v1beta1.PlacementAnnotation]
		if name == "" {
			if asked != nil || got != "" {
				t.Errorf("without a name: placed as %q", got)
			}
			continue
		}
		replicas, _, _ := unstructured.NestedInt64(asked.Object, "spec", "replicas")
		if got != "decided" || replicas != 7 || asked.GroupVersionKind().String() != "apps/v1, Kind=ReplicaSet" {
			t.Errorf("placement %q, asked for %v", got, asked)
		}
	}
}

func TestAdmissionOfCustomObjects(t *testing.T) {
	for namespace, want := range map[string]string{"shop": "pending", "office": "", v1beta1.FederationNamespace: ""} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1beta1", "kind": "CronTab",
			"metadata": map[string]any{"name": "nightly", "namespace": namespace}}}
		create(t, New(policies{selecting("example.com/v1", "CronTab", nil)}, nil, nil), object, object.GroupVersionKind(), "crontabs")
		finalized := slices.Contains(object.GetFinalizers(), v1beta1.DeleteFromClustersFinalizer)
		if got := object.GetAnnotations()[v1beta1.PlacementAnnotation]; got != want || finalized != (want != "") {
			t.Errorf("in %s: placement %q, finalizers %s", namespace, got, strings.Join(object.GetFinalizers(), ", "))
		}
	}
}
