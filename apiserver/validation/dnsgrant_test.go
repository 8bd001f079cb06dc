package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

func text(errs field.ErrorList) string {
	if len(errs) == 0 {
		return ""
	}
	return errs.ToAggregate().Error()
}

func TestValidateDNSNameGrant(t *testing.T) {
	for name, c := range map[string]struct {
		spec v1beta1.DNSNameGrantSpec
		want string
	}{
		"a name and namespaces": {v1beta1.DNSNameGrantSpec{Suffix: "login.example.com", Namespaces: []string{"shop", "pay"}}, ""},
		"nobody":                {v1beta1.DNSNameGrantSpec{Suffix: "example.com"}, ""},
		"no suffix":             {v1beta1.DNSNameGrantSpec{}, "spec.suffix: Required value"},
		"a wildcard":            {v1beta1.DNSNameGrantSpec{Suffix: "*.example.com"}, "spec.suffix: Invalid value"},
		"upper case":            {v1beta1.DNSNameGrantSpec{Suffix: "Example.com"}, "spec.suffix: Invalid value"},
		"the last dot":          {v1beta1.DNSNameGrantSpec{Suffix: "example.com."}, "spec.suffix: Invalid value"},
		"no namespace's name":   {v1beta1.DNSNameGrantSpec{Suffix: "example.com", Namespaces: []string{"shop", "*"}}, "spec.namespaces[1]: Invalid value"},
		"one twice":             {v1beta1.DNSNameGrantSpec{Suffix: "example.com", Namespaces: []string{"shop", "shop"}}, "spec.namespaces[1]: Duplicate value"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1beta1.DNSNameGrant{ObjectMeta: metav1.ObjectMeta{Name: "login", ResourceVersion: "1"}, Spec: c.spec}
			for _, errs := range []string{text(ValidateDNSNameGrant(g)), text(ValidateDNSNameGrantUpdate(g, g))} {
				if (errs == "") != (c.want == "") || !strings.Contains(errs, c.want) {
					t.Errorf("%q, want %q", errs, c.want)
				}
			}
		})
	}
}
