// Package admission holds what the federation does to objects on their way in, beside Kubernetes' own
// admission: one plugin for all federated kinds.
//
// It puts the federation's finalizers on a new object, so that they are there before anything exists
// in a member, and it refuses annotations that cannot be understood, so that a typing error is seen by
// the person who makes it instead of silently becoming a default.
package admission

import (
	"context"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/validation"
)

// PluginName is the name of the plugin.
const PluginName = "FederatedObject"

// Register makes the plugin known under its name.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin admits objects of federated kinds.
type Plugin struct {
	*admission.Handler
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Admit puts the finalizers on a new federated object, and keeps our own annotations on one that is
// replaced by a version of its user's that does not know of them.
func (*Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	object := federatedObject(a)
	if object == nil {
		return nil
	}
	if a.GetOperation() != admission.Create {
		if a.GetSubresource() == "" {
			keepAnnotations(object, annotationsOf(a.GetOldObject()))
		}
		return nil
	}
	finalizers := object.GetFinalizers()
	for _, f := range []string{v1beta1.DeleteFromClustersFinalizer, v1beta1.OrphanFinalizer} {
		if !slices.Contains(finalizers, f) {
			finalizers = append(finalizers, f)
		}
	}
	object.SetFinalizers(finalizers)
	return nil
}

// keepAnnotations puts back what the federation decided and saw. Without its placement an object would be
// placed anew, and what runs would move. Values can be changed, and are emptied by writing "".
func keepAnnotations(object metav1.Object, old map[string]string) {
	for _, key := range []string{v1beta1.PlacementAnnotation, v1beta1.ServiceIngressesAnnotation} {
		annotations := object.GetAnnotations()
		if _, there := annotations[key]; there || old[key] == "" {
			continue
		}
		annotations = maps.Clone(annotations)
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = old[key]
		object.SetAnnotations(annotations)
	}
}

// Validate refuses federated objects with annotations that cannot be understood.
func (*Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	object := federatedObject(a)
	if object == nil {
		return nil
	}
	errs := validation.ValidateChangedAnnotations(object.GetAnnotations(), annotationsOf(a.GetOldObject()))
	if len(errs) == 0 {
		return nil
	}
	return errors.NewInvalid(a.GetKind().GroupKind(), object.GetName(), errs)
}

// federatedObject returns the object of a request, or nil where it is not one of which the members
// have copies.
func federatedObject(a admission.Attributes) metav1.Object {
	if sub := a.GetSubresource(); sub != "" && sub != "status" {
		return nil // scale and the like carry other objects
	}
	object, err := meta.Accessor(a.GetObject())
	if err != nil {
		return nil
	}
	namespace := a.GetNamespace()
	if a.GetResource().Resource == "namespaces" {
		namespace = "" // requests for a namespace carry its own name there
	}
	if !v1beta1.Federated(a.GetResource().GroupResource(), namespace, object.GetName(), secretType(a.GetObject())) {
		return nil
	}
	return object
}

func secretType(object runtime.Object) corev1.SecretType {
	if s, ok := object.(*core.Secret); ok {
		return corev1.SecretType(s.Type)
	}
	return ""
}

func annotationsOf(object runtime.Object) map[string]string {
	if object == nil {
		return nil
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil
	}
	return accessor.GetAnnotations()
}
