package v1beta1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Selects tells whether the policy selects an object of its own namespace. All versions of a kind are alike.
func (p *PlacementPolicy) Selects(kind schema.GroupKind, name string, of map[string]string) bool {
	return slices.ContainsFunc(p.Spec.ResourceSelectors, func(s ResourceSelector) bool { return s.Selects(kind, name, of) })
}

// GroupKind returns the kind that is selected, without its version.
func (s *ResourceSelector) GroupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(s.APIVersion, s.Kind).GroupKind()
}

// Selects tells whether the selector selects an object of that kind, name and labels.
func (s *ResourceSelector) Selects(kind schema.GroupKind, name string, of map[string]string) bool {
	if s.Kind != kind.Kind || s.GroupKind() != kind || len(s.Names) > 0 && !slices.Contains(s.Names, name) {
		return false
	}
	if s.LabelSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	return err == nil && selector.Matches(labels.Set(of)) // validation refuses what cannot be read
}
