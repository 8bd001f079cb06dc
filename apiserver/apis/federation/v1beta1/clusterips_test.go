package v1beta1

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestClusterIPsOfAFederatedService(t *testing.T) {
	const four, six = "240.0.0.0/5", "100::/64"
	both := "10.200.0.7,fd00:200::7"
	for _, c := range []struct {
		name, asks string // "": it does not
		families   string
		policy     corev1.IPFamilyPolicy
		want       string // networks of placeholders, or addresses
	}{
		{name: "a plain one", want: four},
		{name: "single stack", policy: corev1.IPFamilyPolicySingleStack, want: four},
		{name: "IPv6", families: "IPv6", want: six},
		{name: "both, if there are both", policy: corev1.IPFamilyPolicyPreferDualStack, want: four + " " + six},
		{name: "both, IPv6 first", families: "IPv6", policy: corev1.IPFamilyPolicyRequireDualStack, want: six + " " + four},
		{name: "two families that are written out", families: "IPv6 IPv4", policy: corev1.IPFamilyPolicyRequireDualStack, want: six + " " + four},
		{name: "it waits for its clusterset IP", asks: ClusterSetIPAuto},
		{name: "it has it", asks: "10.200.0.7", want: "10.200.0.7"},
		{name: "it has one of IPv6, and did not say what it wants", asks: "fd00:200::7", want: "fd00:200::7"},
		{name: "it has both, and takes one", asks: both, want: "10.200.0.7"},
		{name: "it has both", asks: both, policy: corev1.IPFamilyPolicyRequireDualStack, want: "10.200.0.7 fd00:200::7"},
		{name: "it has both, IPv6 first", asks: both, families: "IPv6 IPv4", policy: corev1.IPFamilyPolicyRequireDualStack, want: "fd00:200::7 10.200.0.7"},
		{name: "it has one of two", asks: "10.200.0.7", policy: corev1.IPFamilyPolicyPreferDualStack, want: "10.200.0.7"},
		{name: "it has the wrong one", asks: "10.200.0.7", families: "IPv6"},
		{name: "nonsense", asks: "10.200.0"},
	} {
		s := ServiceIPs{Namespace: "shop", Name: "web", Annotations: map[string]string{}}
		for _, f := range strings.Fields(c.families) {
			s.Families = append(s.Families, corev1.IPFamily(f))
		}
		if c.policy != "" {
			s.Policy = &c.policy
		}
		if c.asks != "" {
			s.Annotations[ClusterSetIPAnnotation] = c.asks
		}
		got := s.ClusterIPs()
		agrees := slices.EqualFunc(got, strings.Fields(c.want), func(ip, want string) bool {
			network, err := netip.ParsePrefix(want)
			return ip == want || err == nil && network.Contains(netip.MustParseAddr(ip))
		})
		if !agrees || slices.ContainsFunc(got, func(ip string) bool { return !s.Given(ip) }) {
			t.Errorf("%s: %q, want %q, all of them given", c.name, got, c.want)
		}
	}
	for _, own := range []string{"", "None", "10.96.0.1", "fd00::1", "239.1.1.1", "248.0.0.1", "100:0:0:1::1"} {
		if (ServiceIPs{}).Given(own) {
			t.Errorf("%q is taken for the federation's", own)
		}
	}
}

// A placeholder never changes, and of ten thousand Services hardly any two share one.
func TestPlaceholdersDiffer(t *testing.T) {
	seen := map[string]bool{}
	for i := range 10_000 {
		seen[(ServiceIPs{Namespace: "shop", Name: fmt.Sprint("web-", i)}).ClusterIPs()[0]] = true
	}
	if len(seen) < 9_990 {
		t.Errorf("10000 Services have %d addresses", len(seen))
	}
	if got := (ServiceIPs{Namespace: "shop", Name: "web"}).ClusterIPs(); got[0] != "245.42.120.196" {
		t.Errorf("shop/web has %s, and had another before", got)
	}
}
