package v1beta1

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RefusesNamespace returns why nothing of a namespace may be in the cluster, or "". Objects without a namespace may be
// everywhere.
func (c *Cluster) RefusesNamespace(namespace string) string {
	if namespace == "" || len(c.Spec.AllowedNamespaces) == 0 || slices.Contains(c.Spec.AllowedNamespaces, namespace) {
		return ""
	}
	return fmt.Sprintf("namespace %s may not use cluster %s: its spec.allowedNamespaces does not name it", namespace, c.Name)
}

// Selects reports whether the policy selects an object of its own namespace. The version of the kind does not matter.
func (p *PlacementPolicy) Selects(kind schema.GroupKind, name string, of map[string]string) bool {
	return slices.ContainsFunc(p.Spec.ResourceSelectors, func(s ResourceSelector) bool { return s.Selects(kind, name, of) })
}

// GroupKind returns the kind that is selected, without its version.
func (s *ResourceSelector) GroupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(s.APIVersion, s.Kind).GroupKind()
}

// Selects reports whether the selector selects an object of that kind, name and labels.
func (s *ResourceSelector) Selects(kind schema.GroupKind, name string, of map[string]string) bool {
	if s.Kind != kind.Kind || s.GroupKind() != kind || len(s.Names) > 0 && !slices.Contains(s.Names, name) {
		return false
	}
	if s.LabelSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	return err == nil && selector.Matches(labels.Set(of)) // validation rejects invalid ones
}

// Governing returns, of the policies of one namespace, the one that governs an object: of those that select it, the one
// with the highest priority, then the first by name; or nil.
func Governing(policies []*PlacementPolicy, kind schema.GroupKind, name string, of map[string]string) (governing *PlacementPolicy) {
	for _, p := range policies {
		if !p.Selects(kind, name, of) {
			continue
		}
		if g := governing; g == nil || p.Spec.Priority > g.Spec.Priority || p.Spec.Priority == g.Spec.Priority && p.Name < g.Name {
			governing = p
		}
	}
	return governing
}
