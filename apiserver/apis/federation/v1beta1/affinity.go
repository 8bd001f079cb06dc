package v1beta1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Matches reports whether a cluster is selected by everything given. A nil affinity selects every cluster; an invalid
// label selector selects none (admission rejects it).
func (a *ClusterAffinity) Matches(c *Cluster) bool { return a.Refuses(c) == "" }

// Refuses returns why a cluster is not selected, or "".
func (a *ClusterAffinity) Refuses(c *Cluster) string {
	switch {
	case a == nil:
		return ""
	case len(a.Names) > 0 && !slices.Contains(a.Names, c.Name):
		return "not named"
	case len(a.Zones) > 0 && !slices.ContainsFunc(c.Status.Zones, func(z string) bool { return slices.Contains(a.Zones, z) }):
		return "in none of the zones"
	case len(a.Regions) > 0 && !slices.Contains(a.Regions, c.Status.Region):
		return "in none of the regions"
	case a.LabelSelector == nil:
		return ""
	}
	selector, err := metav1.LabelSelectorAsSelector(a.LabelSelector)
	if err != nil || !selector.Matches(labels.Set(c.Labels)) {
		return "its labels do not match"
	}
	return ""
}
