package validation

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// builtInGroups are Kubernetes' own groups: their kinds cannot be spread unless they are in v1beta1.FederatedKinds.
// Other groups under k8s.io belong to custom kinds.
var builtInGroups = map[string]bool{
	"": true, "apps": true, "batch": true, "autoscaling": true, "policy": true, "extensions": true, "networking.k8s.io": true,
	"admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true,
	"authentication.k8s.io": true, "authorization.k8s.io": true, "certificates.k8s.io": true, "coordination.k8s.io": true,
	"discovery.k8s.io": true, "events.k8s.io": true, "flowcontrol.apiserver.k8s.io": true, "internal.apiserver.k8s.io": true,
	"node.k8s.io": true, "rbac.authorization.k8s.io": true, "resource.k8s.io": true, "scheduling.k8s.io": true,
	"storage.k8s.io": true, "storagemigration.k8s.io": true, "metrics.k8s.io": true,
}

// refusedKinds says of likely kinds why they cannot be spread.
var refusedKinds = map[schema.GroupKind]string{
	{Kind: "Namespace"}:             "a namespace is in none, and goes to all clusters by itself",
	{Kind: "Pod"}:                   "pods are made in the clusters: select the workload that makes them",
	{Kind: "Node"}:                  "nodes are the clusters' own",
	{Kind: "Event"}:                 "events are the clusters' own",
	{Kind: "Endpoints"}:             "endpoints are made in the clusters: select the Service",
	{Kind: "PersistentVolume"}:      "volumes are the clusters' own",
	{Kind: "PersistentVolumeClaim"}: "volumes are the clusters' own",
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:  "endpoints are made in the clusters: select the Service",
	{Group: "coordination.k8s.io", Kind: "Lease"}:       "leases are the clusters' own",
	{Group: "apps", Kind: "ControllerRevision"}:         "revisions are made in the clusters: select the workload",
	{Group: "networking.k8s.io", Kind: "IngressClass"}:  "it is in no namespace, and the clusters' own",
	{Group: "apiextensions.k8s.io", Kind: definition}:   "a definition goes where its objects go: select the custom kind itself",
	{Group: v1beta1.GroupName, Kind: "Cluster"}:         "it is the federation's own",
	{Group: v1beta1.GroupName, Kind: "PlacementPolicy"}: "it is the federation's own",
}

const definition = "CustomResourceDefinition"

func validateSelectors(selectors []v1beta1.ResourceSelector, at *field.Path) (errs field.ErrorList) {
	if len(selectors) == 0 {
		return field.ErrorList{field.Required(at, "select at least one kind of objects, such as {apiVersion: apps/v1, kind: Deployment}")}
	}
	if len(selectors) > maxSelectors {
		errs = append(errs, field.TooMany(at, len(selectors), maxSelectors))
	}
	for i, s := range selectors {
		errs = append(errs, validateKind(s, at.Index(i))...)
		errs = append(errs, eachOnce(s.Names, at.Index(i).Child("names"), objectName)...)
		errs = append(errs, validateLabelSelector(s.LabelSelector, at.Index(i).Child("labelSelector"))...)
	}
	return errs
}

func objectName(name string, at *field.Path) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(at, "the name of an object")}
	}
	if len(name) > validation.DNS1123SubdomainMaxLength { // no kind has longer names
		return field.ErrorList{field.TooLong(at, "", validation.DNS1123SubdomainMaxLength)}
	}
	for _, msg := range content.IsPathSegmentName(name) {
		errs = append(errs, field.Invalid(at, name, msg))
	}
	return errs
}

func validateKind(s v1beta1.ResourceSelector, at *field.Path) field.ErrorList {
	gv, errs := parseVersion(s.APIVersion, at.Child("apiVersion"))
	if s.Kind == "" {
		errs = append(errs, field.Required(at.Child("kind"), "such as Deployment"))
	}
	if len(errs) > 0 {
		return errs
	}
	kind := gv.WithKind(s.Kind).GroupKind()
	switch {
	case refusedKinds[kind] != "":
		return field.ErrorList{field.Invalid(at.Child("kind"), s.Kind, "cannot be spread: "+refusedKinds[kind])}
	case gv.Group == v1beta1.GroupName:
		return field.ErrorList{field.Invalid(at.Child("kind"), s.Kind, "cannot be spread: it is the federation's own")}
	case builtInGroups[gv.Group]:
		return validateBuiltIn(gv, s.Kind, at)
	case !kindName.MatchString(s.Kind):
		return field.ErrorList{field.Invalid(at.Child("kind"), s.Kind, "must be the name of a kind, such as CronTab: letters and digits, the first a capital")}
	}
	return nil
}

var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

func parseVersion(apiVersion string, at *field.Path) (schema.GroupVersion, field.ErrorList) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	switch {
	case apiVersion == "":
		return gv, field.ErrorList{field.Required(at, "such as apps/v1")}
	case err != nil || gv.Version == "" || len(validation.IsDNS1035Label(gv.Version)) > 0,
		gv.Group != "" && len(validation.IsDNS1123Subdomain(gv.Group)) > 0:
		return gv, field.ErrorList{field.Invalid(at, apiVersion, "must be GROUP/VERSION, such as apps/v1, or v1")}
	case gv.Group != "" && !builtInGroups[gv.Group] && gv.Group != v1beta1.GroupName && !strings.Contains(gv.Group, "."):
		return gv, field.ErrorList{field.Invalid(at, apiVersion, "no such group: those of custom kinds have a dot, as example.com/v1")}
	}
	return gv, nil
}

// validateBuiltIn refuses a kind of Kubernetes' own that is not federated, or a version that is not served.
func validateBuiltIn(gv schema.GroupVersion, kind string, at *field.Path) field.ErrorList {
	var kinds, versions []string
	for _, k := range v1beta1.FederatedKinds {
		if k.Resource.Group != gv.Group || k.Kind == "Namespace" {
			continue
		}
		kinds = append(kinds, k.Kind)
		if k.Kind == kind {
			versions = append(versions, k.Resource.GroupVersion().String())
		}
	}
	slices.Sort(kinds)
	switch {
	case len(kinds) == 0:
		return field.ErrorList{field.Invalid(at.Child("apiVersion"), gv.String(), "kinds of this group cannot be spread")}
	case len(versions) == 0:
		return field.ErrorList{field.NotSupported(at.Child("kind"), kind, kinds)}
	case !slices.Contains(versions, gv.String()):
		return field.ErrorList{field.NotSupported(at.Child("apiVersion"), gv.String(), versions)}
	}
	return nil
}
