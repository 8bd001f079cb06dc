package validation

import (
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// maxMemberTimeout is how long a member's answer may be awaited.
const maxMemberTimeout = 3 * time.Second

// ValidatePlacementReview checks what a review asks. Its words become parts of paths.
func ValidatePlacementReview(r *v1beta1.PlacementReview) (errs field.ErrorList) {
	of, s := field.NewPath("spec"), r.Spec
	check := func(name, value string, messages []string) {
		for _, m := range messages {
			errs = append(errs, field.Invalid(of.Child(name), value, m))
		}
	}
	if s.Group != "" {
		check("group", s.Group, utilvalidation.IsDNS1123Subdomain(s.Group))
	}
	check("version", s.Version, utilvalidation.IsDNS1035Label(s.Version))
	check("resource", s.Resource, utilvalidation.IsDNS1035Label(s.Resource))
	if s.Namespace != "" {
		check("namespace", s.Namespace, utilvalidation.IsDNS1123Label(s.Namespace))
	}
	if s.Name == "" {
		errs = append(errs, field.Required(of.Child("name"), "name the object that is asked about"))
	}
	check("name", s.Name, content.IsPathSegmentName(s.Name))
	if t := s.MemberTimeout; t != nil && (t.Duration <= 0 || t.Duration > maxMemberTimeout) {
		errs = append(errs, field.Invalid(of.Child("memberTimeout"), t.Duration.String(), "must be more than 0 and at most 3s"))
	}
	return errs
}
