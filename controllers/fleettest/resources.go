package fleettest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"

	admissionplan "federation/apiserver/admission/plan"
	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/placement"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// memberResources are what a member serves; federationResources what the federation does.
var (
	memberResources     = append(builtinResources(), memapi.Resource{GroupVersionResource: endpointSlices, Kind: "EndpointSlice", Namespaced: true})
	federationResources = append(builtinResources(),
		memapi.Resource{GroupVersionResource: v1beta1.ClustersResource, Kind: "Cluster", Status: true, Generation: true},
		memapi.Resource{GroupVersionResource: v1beta1.ReadinessResource, Kind: "FailoverReadiness", Status: true},
		memapi.Resource{GroupVersionResource: v1beta1.DNSNameGrantsResource, Kind: "DNSNameGrant"},
		memapi.Resource{GroupVersionResource: v1beta1.FailoverDrillsResource, Kind: "FailoverDrill", Status: true, Generation: true},
		memapi.Resource{GroupVersionResource: v1beta1.DrillSchedulesResource, Kind: "FailoverDrillSchedule", Status: true, Generation: true},
		leasesResource,
		memapi.Resource{GroupVersionResource: v1beta1.PoliciesResource, Kind: "PlacementPolicy", Namespaced: true, Status: true, Generation: true},
	)
)

func builtinResources() []memapi.Resource {
	plain := []string{"configmaps", "secrets", "serviceaccounts"}
	out := []memapi.Resource{{GroupVersionResource: definitions, Kind: "CustomResourceDefinition", Status: true, Generation: true}}
	for _, k := range v1beta1.FederatedKinds {
		out = append(out, memapi.Resource{
			GroupVersionResource: k.Resource, Kind: k.Kind, Namespaced: k.Kind != "Namespace",
			Status: !slices.Contains(plain, k.Resource.Resource), Generation: k.Resource.Group != "",
		})
	}
	return out
}

// establish serves the kinds that are defined, and says so, as every API server does.
func establish(api *memapi.API, client dynamic.Interface) {
	for _, u := range api.List(definitions, nil) {
		api.Serve(defined(u))
		patchStatus(client, definitions, u, map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}})
	}
}

// bootstrap makes the namespaces that every API has.
func bootstrap(api *memapi.API) {
	client := api.Client("bootstrap", nil)
	for _, name := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault, v1beta1.FederationNamespace} {
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		if _, err := client.Resource(namespaces).Create(context.Background(), ns, metav1.CreateOptions{}); err != nil {
			panic(err) // the API is empty
		}
	}
}

// admitInMember refuses, as every cluster does, that a workload selects other pods than before.
func admitInMember(r memapi.Resource, before, after *unstructured.Unstructured) error {
	if before == nil || r.Group != "apps" {
		return nil
	}
	was, _, _ := unstructured.NestedMap(before.Object, "spec", "selector")
	is, _, _ := unstructured.NestedMap(after.Object, "spec", "selector")
	if reflect.DeepEqual(was, is) {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: r.Group, Kind: r.Kind}, after.GetName(), field.ErrorList{
		field.Invalid(field.NewPath("spec", "selector"), fmt.Sprint(is), "field is immutable")})
}

// front is what the federation's API server does to federated objects that come in, by what apiserver/admission decides. It is called with the API locked, and so
// remembers the policies that have passed through it.
type front struct {
	policies map[string]*v1beta1.PlacementPolicy
	placer   *placement.Admitter
}

// policiesOf returns the policies of a namespace.
func (f front) policiesOf(namespace string) (some []*v1beta1.PlacementPolicy) {
	for _, p := range f.policies {
		if p.Namespace == namespace {
			some = append(some, p)
		}
	}
	return some
}

func (f front) remember(u *unstructured.Unstructured) {
	p := &v1beta1.PlacementPolicy{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p) == nil {
		f.policies[u.GetNamespace()+"/"+u.GetName()] = p
	}
}

// federated reports whether members get copies of a new object.
func (f front) federated(r memapi.Resource, u *unstructured.Unstructured) bool {
	if v1beta1.FederatedKindOf(r.GroupResource()) == nil {
		gvk := u.GroupVersionKind()
		return !v1beta1.OwnNamespace(u.GetNamespace()) && admissionplan.IsSelected(f.policiesOf(u.GetNamespace()), gvk.GroupKind(), u)
	}
	return u.GetLabels()[v1beta1.RevisionOfLabel] == "" && federated(r, u)
}

// federated reports whether members get copies of an object of a kind of Kubernetes' own.
func federated(r memapi.Resource, u *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(u.Object, "type")
	return v1beta1.Federated(r.GroupResource(), u.GetNamespace(), u.GetName(), corev1.SecretType(kind))
}

func (f front) admit(r memapi.Resource, before, after *unstructured.Unstructured) error {
	if r.Kind == "ConfigMap" {
		if err := validKeys(after); err != nil {
			return err
		}
	}
	switch {
	case r.GroupVersionResource == v1beta1.PoliciesResource:
		f.remember(after)
	case r.GroupVersionResource == v1beta1.ClustersResource:
		dateTaints(after)
	case before != nil:
	case r.GroupVersionResource == v1beta1.FailoverDrillsResource && !slices.Contains(after.GetFinalizers(), v1beta1.DrillFinalizer):
		after.SetFinalizers(append(after.GetFinalizers(), v1beta1.DrillFinalizer))
	case f.federated(r, after):
		return f.admitNew(r, after)
	}
	return nil
}

// admitNew finalizes a new object, and places it if that can be decided now.
func (f front) admitNew(r memapi.Resource, u *unstructured.Unstructured) error {
	admissionplan.Finalize(u)
	n := admissionplan.New{
		Resource: r.GroupResource(), Kind: u.GroupVersionKind().GroupKind(), Object: u,
		Policies: func() ([]*v1beta1.PlacementPolicy, error) { return f.policiesOf(u.GetNamespace()), nil },
	}
	return n.Place(func() error {
		if placement := f.placer.Place(u); placement != "" {
			admissionplan.Annotate(u, v1beta1.PlacementAnnotation, placement)
		}
		return nil
	})
}

// dateTaints sets since when objects have had to leave a cluster, where its taints do not say so.
func dateTaints(cluster *unstructured.Unstructured) {
	taints, _, _ := unstructured.NestedSlice(cluster.Object, "spec", "taints")
	for _, t := range taints {
		if t := t.(map[string]any); t["effect"] == string(corev1.TaintEffectNoExecute) && t["timeAdded"] == nil {
			t["timeAdded"] = time.Now().UTC().Format(time.RFC3339)
		}
	}
	if len(taints) > 0 {
		_ = unstructured.SetNestedSlice(cluster.Object, taints, "spec", "taints") // spec is a map
	}
}

// validKeys refuses a ConfigMap with keys that none may have.
func validKeys(u *unstructured.Unstructured) error {
	data, _, _ := unstructured.NestedMap(u.Object, "data")
	for key := range data {
		if errs := validation.IsConfigMapKey(key); len(errs) > 0 {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, u.GetName(), field.ErrorList{field.Invalid(field.NewPath("data").Key(key), key, errs[0])})
		}
	}
	return nil
}

// deleting marks an object whose copies are to stay, in the very write that deletes it.
func (f front) deleting(r memapi.Resource, u *unstructured.Unstructured, o metav1.DeleteOptions) {
	if r.GroupVersionResource == v1beta1.PoliciesResource {
		delete(f.policies, u.GetNamespace()+"/"+u.GetName())
	}
	if admissionplan.LeavesCopies(u.GetFinalizers(), &o, false) {
		admissionplan.MarkForOrphaning(u)
	}
}
