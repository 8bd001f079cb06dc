package plan

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// Lost returns the names of the clusters that a spec takes as lost, sorted.
func Lost(clusters []*v1beta1.Cluster, spec v1beta1.FailoverReviewSpec) ([]string, field.ErrorList) {
	lost, path := map[string]bool{}, field.NewPath("spec")
	var errs field.ErrorList
	find := func(at *field.Path, value, there string, is func(*v1beta1.Cluster) bool) {
		found := false
		for _, c := range clusters {
			if is(c) {
				lost[c.Name], found = true, true
			}
		}
		if !found {
			errs = append(errs, field.Invalid(at, value, there))
		}
	}
	for i, name := range spec.Clusters {
		find(path.Child("clusters").Index(i), name, "must be the name of a cluster of this federation",
			func(c *v1beta1.Cluster) bool { return c.Name == name })
	}
	for i, zone := range spec.Zones {
		find(path.Child("zones").Index(i), zone, "must be REGION/ZONE or ZONE, and hold all nodes of at least one cluster, together with the other zones",
			func(c *v1beta1.Cluster) bool { return hasNodesIn(c, zone) && isWithin(c, spec.Zones) })
	}
	for i, region := range spec.Regions {
		find(path.Child("regions").Index(i), region, "must be the region of a cluster of this federation",
			func(c *v1beta1.Cluster) bool { return c.Status.Region == region })
	}
	return slices.Sorted(maps.Keys(lost)), errs
}

// hasNodesIn reports whether a cluster has nodes in a zone, which is REGION/ZONE or ZONE.
func hasNodesIn(c *v1beta1.Cluster, zone string) bool {
	return slices.ContainsFunc(c.Status.Zones, func(z string) bool { return zone == z || zone == c.Status.Region+"/"+z })
}

// isWithin reports whether all zones of a cluster are among zones.
func isWithin(c *v1beta1.Cluster, zones []string) bool {
	return !slices.ContainsFunc(c.Status.Zones, func(z string) bool {
		return !slices.Contains(zones, z) && !slices.Contains(zones, c.Status.Region+"/"+z)
	})
}
