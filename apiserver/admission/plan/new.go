package plan

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// Finalize puts the federation's finalizers on a new federated object, so that they are there before anything exists in a member.
func Finalize(object metav1.Object) {
	finalizers := object.GetFinalizers()
	for _, f := range []string{v1beta1.DeleteFromClustersFinalizer, v1beta1.OrphanFinalizer} {
		if !slices.Contains(finalizers, f) {
			finalizers = append(finalizers, f)
		}
	}
	object.SetFinalizers(finalizers)
}

// New is a new federated object.
type New struct {
	Resource schema.GroupResource
	Kind     schema.GroupKind
	Object   metav1.Object
	// Policies returns those of its namespace. It is asked only where they count. An error is Place's.
	Policies func() ([]*v1beta1.PlacementPolicy, error)
}

// Place writes what is known of the object's placement. now places it at once, if that can be decided now. A user who restores objects brings theirs
// along, which is kept.
func (n New) Place(now func() error) error {
	if n.placed() {
		return nil
	}
	kind := v1beta1.FederatedKindOf(n.Resource)
	if kind != nil && kind.Preferences != "" {
		return now()
	}
	policies, err := n.Policies()
	if err != nil {
		return err
	}
	_, selects := n.Object.GetAnnotations()[v1beta1.ClusterSelectorAnnotation]
	confined := kind != nil && !selects && v1beta1.Confined(n.Resource)
	waits := IsSelected(policies, n.Kind, n.Object) || mayFollow(policies, n.Resource)
	if confined && !waits {
		if err := now(); err != nil || n.placed() {
			return err
		}
	}
	if confined || waits {
		Annotate(n.Object, v1beta1.PlacementAnnotation, v1beta1.PlacementPending)
	}
	return nil
}

func (n New) placed() bool { return n.Object.GetAnnotations()[v1beta1.PlacementAnnotation] != "" }

// IsSelected reports whether a policy selects an object. Of a custom kind only such objects are federated.
func IsSelected(policies []*v1beta1.PlacementPolicy, kind schema.GroupKind, object metav1.Object) bool {
	return slices.ContainsFunc(policies, func(p *v1beta1.PlacementPolicy) bool {
		return p.Selects(kind, object.GetName(), object.GetLabels())
	})
}

// mayFollow reports whether an object may be one that a workload refers to and takes along.
func mayFollow(policies []*v1beta1.PlacementPolicy, resource schema.GroupResource) bool {
	if resource.Group != "" || resource.Resource != "configmaps" && resource.Resource != "secrets" && resource.Resource != "serviceaccounts" {
		return false
	}
	return slices.ContainsFunc(policies, func(p *v1beta1.PlacementPolicy) bool { return p.Spec.PropagateReferences })
}

// Annotate writes an annotation, and changes no map that others have.
func Annotate(object metav1.Object, key, value string) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}
