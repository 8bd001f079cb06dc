package admission

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"federation/apiserver/admission/plan"
	"federation/apiserver/apis/federation/v1beta1"
)

// Placer returns the placement annotation of a new object of a divided kind, or of a confined kind, or "".
type Placer func(object *unstructured.Unstructured) string

// placeNew writes what is known of a new object's placement.
func (p *Plugin) placeNew(a admission.Attributes, object metav1.Object) error {
	n := plan.New{
		Resource: a.GetResource().GroupResource(), Kind: a.GetKind().GroupKind(), Object: object,
		Policies: func() ([]*v1beta1.PlacementPolicy, error) { return p.policiesOf(a) },
	}
	return n.Place(func() error { return p.placeNow(a.GetObject(), object, v1beta1.FederatedKindOf(n.Resource)) })
}

// placeNow places an object that goes nowhere without a placement, if that can be decided now. The name decides where
// single replicas go: an object with a generated name is left to the controller.
func (p *Plugin) placeNow(obj runtime.Object, object metav1.Object, kind *v1beta1.FederatedKind) error {
	if p.place == nil || object.GetName() == "" {
		return nil
	}
	u, err := versioned(obj, kind)
	if err != nil {
		return err
	}
	if placement := p.place(u); placement != "" {
		plan.Annotate(object, v1beta1.PlacementAnnotation, placement)
	}
	return nil
}

// versioned converts an object to the version of its kind.
func versioned(obj runtime.Object, kind *v1beta1.FederatedKind) (*unstructured.Unstructured, error) {
	object, err := legacyscheme.Scheme.ConvertToVersion(obj, kind.Resource.GroupVersion())
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind.Resource.GroupVersion().WithKind(kind.Kind))
	return u, nil
}

// policiesOf returns the policies of a request's namespace. After a start it waits for them.
func (p *Plugin) policiesOf(a admission.Attributes) ([]*v1beta1.PlacementPolicy, error) {
	if a.GetResource().Resource == "namespaces" {
		return nil, nil // no policy governs a namespace
	}
	if !p.policies.Synced() && !p.WaitForReady() {
		return nil, admission.NewForbidden(a, errors.New("the placement policies are not read yet: try again"))
	}
	return p.policies.In(a.GetNamespace()), nil
}
