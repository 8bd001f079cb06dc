package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// MaxReadinessWords is the maximum of objects, and of names, in the status of a FailoverReadiness.
const MaxReadinessWords = 20

// ValidateFailoverReadiness checks a new FailoverReadiness.
func ValidateFailoverReadiness(r *v1beta1.FailoverReadiness) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&r.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	path := field.NewPath("spec")
	if (r.Spec.Zone == "") == (r.Spec.Region == "") {
		return append(errs, field.Invalid(path, r.Spec.Domain(), "must name either a zone or a region"))
	}
	if r.Spec.Zone != "" {
		return append(errs, zoneOfRegion(r.Spec.Zone, path.Child("zone"))...)
	}
	return append(errs, topologyName(r.Spec.Region, path.Child("region"))...)
}

// ValidateFailoverReadinessUpdate checks an update of a FailoverReadiness: its spec is immutable.
func ValidateFailoverReadinessUpdate(r, old *v1beta1.FailoverReadiness) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&r.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, apivalidation.ValidateImmutableField(r.Spec, old.Spec, field.NewPath("spec"))...)
}

// ValidateFailoverReadinessStatusUpdate checks a change of the status.
func ValidateFailoverReadinessStatusUpdate(r, old *v1beta1.FailoverReadiness) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&r.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("status")
	errs = append(errs, metav1validation.ValidateConditions(r.Status.Conditions, path.Child("conditions"))...)
	if n := len(r.Status.Worst); n > MaxReadinessWords {
		errs = append(errs, field.TooMany(path.Child("worst"), n, MaxReadinessWords))
	}
	if names := r.Status.Names; names != nil && len(names.Lost) > MaxReadinessWords {
		errs = append(errs, field.TooMany(path.Child("names", "lost"), len(names.Lost), MaxReadinessWords))
	}
	return errs
}
