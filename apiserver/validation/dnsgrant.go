package validation

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// maxGranted is how many namespaces a grant may name.
const maxGranted = 1000

// ValidateDNSNameGrant checks a new grant.
func ValidateDNSNameGrant(g *v1beta1.DNSNameGrant) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&g.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateGrantSpec(&g.Spec, field.NewPath("spec"))...)
}

// ValidateDNSNameGrantUpdate checks a change of a grant.
func ValidateDNSNameGrantUpdate(g, old *v1beta1.DNSNameGrant) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&g.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateGrantSpec(&g.Spec, field.NewPath("spec"))...)
}

func validateGrantSpec(s *v1beta1.DNSNameGrantSpec, path *field.Path) (errs field.ErrorList) {
	if s.Suffix == "" {
		errs = append(errs, field.Required(path.Child("suffix"), "must be a name in the federation's DNS zone, as login.example.com"))
	} else {
		for _, msg := range utilvalidation.IsDNS1123Subdomain(s.Suffix) {
			errs = append(errs, field.Invalid(path.Child("suffix"), s.Suffix, msg))
		}
	}
	if len(s.Namespaces) > maxGranted {
		errs = append(errs, field.TooMany(path.Child("namespaces"), len(s.Namespaces), maxGranted))
	}
	for i, namespace := range s.Namespaces {
		for _, msg := range apivalidation.ValidateNamespaceName(namespace, false) {
			errs = append(errs, field.Invalid(path.Child("namespaces").Index(i), namespace, msg))
		}
		if slices.Contains(s.Namespaces[:i], namespace) {
			errs = append(errs, field.Duplicate(path.Child("namespaces").Index(i), namespace))
		}
	}
	return errs
}
