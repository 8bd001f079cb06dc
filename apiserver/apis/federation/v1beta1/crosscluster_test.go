package v1beta1

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestAnnotationsOfCrossClusterTraffic(t *testing.T) {
	addresses := func(value string, path *field.Path) field.ErrorList {
		_, errs := ParseClusterSetIPs(value, path)
		return errs
	}
	for _, c := range []struct {
		name      string
		check     func(string, *field.Path) field.ErrorList
		good, bad []string
	}{
		{"fallback", ValidateFallback, []string{"true", "false"}, []string{"", "yes", "True"}},
		{"fallback-below", ValidateFallbackBelow, []string{"1%", "50%", "100%"}, []string{"", "0%", "101%", "50", "50.5%", "-1%", "%"}},
		{"clusterset-ip", addresses, []string{"auto", "10.0.0.1", "fd00::1", "10.0.0.1,fd00::1", "fd00::1,10.0.0.1"},
			[]string{"", "Auto", "10.0.0.1, fd00::1", "10.0.0.1,10.0.0.2", "fd00::1,fd00::2", "10.0.0.1,fd00::1,10.0.0.2", "::ffff:10.0.0.1", "FD00::1", "10.0.0.0/24", "fe80::1%eth0", "10.0.0.1,"}},
	} {
		for _, value := range c.good {
			if errs := c.check(value, field.NewPath("x")); len(errs) > 0 {
				t.Errorf("%s %q: %v", c.name, value, errs)
			}
		}
		for _, value := range c.bad {
			if errs := c.check(value, field.NewPath("x")); len(errs) != 1 || errs[0].BadValue != value {
				t.Errorf("%s %q: %v, want it refused", c.name, value, errs)
			}
		}
	}
}
