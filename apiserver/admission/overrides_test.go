package admission

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"federation/apiserver/apis/federation/v1beta1"
)

// The author of overrides is warned of what does not work for the existing objects, and may write them all the same.
func TestPoliciesAreTriedOnWhatTheySelect(t *testing.T) {
	deployment := func(name string) *appsv1.Deployment {
		return &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	}
	policy := func(weight int32, overrides ...v1beta1.Override) *v1beta1.PlacementPolicy {
		return &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: v1beta1.PlacementPolicySpec{
			Priority: weight, Overrides: overrides, ResourceSelectors: []v1beta1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Names: []string{"bad", "fits"}}}}}
	}
	for name, c := range map[string]struct {
		is, was *v1beta1.PlacementPolicy
		want    string
	}{
		"new":                 {policy(1, v1beta1.Override{}), nil, "PlacementPolicy p: Deployment bad: does not fit"},
		"changed":             {policy(1, v1beta1.Override{}), policy(1), "PlacementPolicy p: Deployment bad: does not fit"},
		"nothing has changed": {policy(1, v1beta1.Override{}), policy(1, v1beta1.Override{}), ""},
		"no overrides":        {policy(1), nil, ""},
	} {
		p := New(policies{}, nil, nil)
		p.SetDynamicClient(fake.NewSimpleDynamicClient(scheme.Scheme, deployment("another"), deployment("bad"), deployment("fits")))
		p.TryOverrides = func(_ *v1beta1.PlacementPolicy, u *unstructured.Unstructured) error {
			if u.GetName() == "fits" {
				return nil
			}
			return errors.New("does not fit")
		}
		operation, old := admission.Create, runtime.Object(nil)
		if c.was != nil {
			operation, old = admission.Update, c.was
		}
		var got warned
		a := admission.NewAttributesRecord(c.is, old, v1beta1.SchemeGroupVersion.WithKind("PlacementPolicy"), "shop", "p", v1beta1.PoliciesResource, "", operation, nil, false, &user.DefaultInfo{Name: "alice"})
		if err := p.Validate(warning.WithWarningRecorder(t.Context(), &got), a, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s: warnings %q, want %q", name, text, c.want)
		}
	}
}
