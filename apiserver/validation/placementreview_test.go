package validation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestWordsOfAPlacementReviewAreNoPaths: each field is refused by itself where it could lead elsewhere.
func TestWordsOfAPlacementReviewAreNoPaths(t *testing.T) {
	web := v1beta1.PlacementReviewSpec{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web"}
	for name, test := range map[string]struct {
		change func(*v1beta1.PlacementReviewSpec)
		wants  string
	}{
		"a Deployment":   {func(*v1beta1.PlacementReviewSpec) {}, ""},
		"a namespace":    {func(s *v1beta1.PlacementReviewSpec) { s.Group, s.Resource, s.Namespace = "", "namespaces", "" }, ""},
		"a colon in it":  {func(s *v1beta1.PlacementReviewSpec) { s.Name = "system:web" }, ""},
		"no name":        {func(s *v1beta1.PlacementReviewSpec) { s.Name = "" }, "spec.name"},
		"up":             {func(s *v1beta1.PlacementReviewSpec) { s.Name = ".." }, "spec.name"},
		"down":           {func(s *v1beta1.PlacementReviewSpec) { s.Name = "web/scale" }, "spec.name"},
		"a subresource":  {func(s *v1beta1.PlacementReviewSpec) { s.Resource = "deployments/scale" }, "spec.resource"},
		"no resource":    {func(s *v1beta1.PlacementReviewSpec) { s.Resource = "" }, "spec.resource"},
		"no version":     {func(s *v1beta1.PlacementReviewSpec) { s.Version = "" }, "spec.version"},
		"a group's path": {func(s *v1beta1.PlacementReviewSpec) { s.Group = "apps/v1/x" }, "spec.group"},
		"two namespaces": {func(s *v1beta1.PlacementReviewSpec) { s.Namespace = "shop/../bank" }, "spec.namespace"},
		"for too long":   {func(s *v1beta1.PlacementReviewSpec) { s.MemberTimeout = &metav1.Duration{Duration: time.Minute} }, "spec.memberTimeout"},
		"for no time":    {func(s *v1beta1.PlacementReviewSpec) { s.MemberTimeout = &metav1.Duration{} }, "spec.memberTimeout"},
	} {
		r := &v1beta1.PlacementReview{Spec: web}
		test.change(&r.Spec)
		errs := ValidatePlacementReview(r)
		if (len(errs) > 0) != (test.wants != "") {
			t.Errorf("%s: %v", name, errs)
		}
		for _, e := range errs {
			if e.Field != test.wants {
				t.Errorf("%s: %v, want one of %s", name, e, test.wants)
			}
		}
	}
}
