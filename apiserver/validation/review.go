package validation

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// ValidateFailoverReview checks what a review asks.
func ValidateFailoverReview(r *v1beta1.FailoverReview) field.ErrorList {
	path := field.NewPath("spec")
	s := r.Spec
	if len(s.Clusters)+len(s.Zones)+len(s.Regions) == 0 {
		return field.ErrorList{field.Required(path, "name at least one of clusters, zones or regions")}
	}
	errs := eachOnce(s.Clusters, path.Child("clusters"), clusterName)
	errs = append(errs, eachOnce(s.Zones, path.Child("zones"), zoneOfRegion)...)
	return append(errs, eachOnce(s.Regions, path.Child("regions"), topologyName)...)
}

// eachOnce rejects duplicates, and what check rejects.
func eachOnce(names []string, path *field.Path, check func(string, *field.Path) field.ErrorList) (errs field.ErrorList) {
	seen := map[string]bool{}
	for i, name := range names {
		if seen[name] {
			errs = append(errs, field.Duplicate(path.Index(i), name))
			continue
		}
		seen[name] = true
		errs = append(errs, check(name, path.Index(i))...)
	}
	return errs
}

func clusterName(name string, path *field.Path) (errs field.ErrorList) {
	for _, msg := range apivalidation.NameIsDNSLabel(name, false) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}

// topologyName checks the name of a zone or region: the value of a label of nodes.
func topologyName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "name a zone or region as the labels of nodes do")}
	}
	return labelValue(name, path)
}

// zoneOfRegion returns ZONE or REGION/ZONE.
func zoneOfRegion(name string, path *field.Path) field.ErrorList {
	region, zone, ok := strings.Cut(name, "/")
	if !ok {
		return topologyName(name, path)
	}
	if len(topologyName(region, path)) > 0 || len(topologyName(zone, path)) > 0 {
		return field.ErrorList{field.Invalid(path, name, "must be ZONE or REGION/ZONE, each as the labels of nodes have it")}
	}
	return nil
}
