package validation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

func hostPath(i int) *field.Path { return field.NewPath("hosts").Index(i) }

// grant gives a name and all below it to namespaces.
func grant(suffix string, namespaces ...string) *v1beta1.DNSNameGrant {
	return &v1beta1.DNSNameGrant{Spec: v1beta1.DNSNameGrantSpec{Suffix: suffix, Namespaces: namespaces}}
}

// Each host of the zone has a reason of its own to be refused; rules of an Ingress may have hosts outside of it, and names of Services.
func TestHostsAreRefusedForAReason(t *testing.T) {
	n := &DNSNames{Federation: "Fed", Zone: "example.com", NoApex: true,
		Grants: []*v1beta1.DNSNameGrant{grant("login.example.com", "bank"), grant("shop.login.example.com", "shop"), grant("closed.example.com")}}
	for host, want := range map[string]struct{ settings, rules string }{
		"www.example.com":               {"", ""},
		"WWW.Example.com.":              {"", ""},
		"www.example.org":               {"must be a name in the zone example.com, as www.example.com", ""},
		"badexample.com":                {"must be a name in the zone", ""},
		"":                              {"must be a name in the zone", ""},
		"example.com":                   {"must be below the zone example.com", "must be below the zone example.com"},
		"EXAMPLE.com.":                  {"must be below the zone example.com", "must be below the zone example.com"},
		"ns.example.com":                {"must not be ns.example.com, the name of the zone's name server", "must not be ns.example.com"},
		"NS.example.com.":               {"must not be ns.example.com", "must not be ns.example.com"},
		"a.ns.example.com":              {"", ""},
		"login.example.com":             {"must not be at or below login.example.com: a DNSNameGrant gives", "must not be at or below login.example.com"},
		"a.b.login.example.com":         {"must not be at or below login.example.com", "must not be at or below login.example.com"},
		"shop.login.example.com":        {"", ""},
		"a.shop.login.example.com":      {"", ""},
		"x.closed.example.com":          {"must not be at or below closed.example.com", "must not be at or below closed.example.com"},
		"notlogin.example.com":          {"", ""},
		"web.shop.fed.svc.example.com":  {"must not have the form SERVICE.NAMESPACE.Fed.svc[[.ZONE].REGION].example.com", ""},
		"Web.shop.Fed.svc.example.com.": {"must not have the form", ""},
		"a.b.fed.svc.z.r.example.com":   {"must not have the form", ""},
		"a.b.other.svc.example.com":     {"", ""},
	} {
		for kind, c := range map[string]struct {
			validate func(namespace string, hosts, old []string, path func(int) *field.Path) field.ErrorList
			want     string
		}{"settings": {n.ValidateSettings, want.settings}, "rules": {n.ValidateHosts, want.rules}} {
			errs := c.validate("shop", []string{"ok.example.com", host}, nil, hostPath)
			if (len(errs) == 0) != (c.want == "") || len(errs) > 0 && (len(errs) != 1 || errs[0].Field != "hosts[1]" || errs[0].BadValue != host ||
				!strings.Contains(errs[0].Detail, c.want)) {
				t.Errorf("%s: %q: %v, want %q", kind, host, errs, c.want)
			}
			if errs := c.validate("shop", []string{host}, []string{"b", host}, hostPath); len(errs) > 0 {
				t.Errorf("%s: %q, which was there before: %v", kind, host, errs)
			}
		}
	}
	n.NoApex = false
	if errs := n.ValidateSettings("shop", []string{"example.com"}, nil, hostPath); len(errs) > 0 {
		t.Errorf("the zone's own name: %v", errs)
	}
}

// oracleGranted goes from a host up to the root: the first name that is granted at all says who may have the host.
func oracleGranted(grants []*v1beta1.DNSNameGrant, namespace, host string) bool {
	for name := host; name != ""; _, name, _ = strings.Cut(name, ".") {
		known := false
		for _, g := range grants {
			known = known || g.Spec.Suffix == name
			if g.Spec.Suffix == name && slices.Contains(g.Spec.Namespaces, namespace) {
				return true
			}
		}
		if known {
			return false
		}
	}
	return true
}

// Whatever is granted: who may have a host is said by the grants of the longest suffix, in any order of them, and by nothing else.
func TestHostsAreOfWhomTheLongestGrantNames(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	name := func() string {
		host := "example.com"
		for range r.IntN(4) {
			host = string(rune('a'+r.IntN(2))) + "." + host
		}
		return host
	}
	refused := 0
	for range 3000 {
		n := &DNSNames{Federation: "fed", Zone: "example.com"}
		for range r.IntN(5) {
			n.Grants = append(n.Grants, grant(name(), []string{"shop", "bank", "pay"}[:r.IntN(4)]...))
		}
		host := name()
		got, want := len(n.ValidateHosts("bank", []string{host}, nil, hostPath)) == 0, oracleGranted(n.Grants, "bank", host)
		if got != want {
			t.Fatalf("%s: allowed %t, want %t: %v", host, got, want, n.Grants)
		}
		if slices.Reverse(n.Grants); len(n.ValidateHosts("bank", []string{strings.ToUpper(host) + "."}, nil, hostPath)) == 0 != want {
			t.Fatalf("%s: in other letters, and with the grants in another order, not %t", host, want)
		}
		if !want {
			refused++
		}
	}
	if refused < 300 || refused > 2700 {
		t.Errorf("%d of 3000 are refused: this says little", refused)
	}
}

// A Service is refused if one of its names, which the oracle writes all out, is too long, and the error says exactly by how much.
func TestNamesOfServicesAreAsLongAsTheyMayBe(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	word := func(most int) string { return strings.Repeat("x", 1+r.IntN(most)) }
	refused := 0
	for range 3000 {
		n := &DNSNames{Federation: word(40), Zone: word(60) + "." + word(40)}
		namespace, name := word(63), "n"+word(62)
		longest := len(name + namespace + n.Federation + n.Zone + "....svc")
		for range r.IntN(4) {
			zone, region := word(70), word(70)
			n.Places = append(n.Places, zone+"."+region)
			if len(zone) <= 63 && len(region) <= 63 {
				longest = max(longest, len(fmt.Sprintf("%s.%s.%s.svc.%s.%s.%s", name, namespace, n.Federation, zone, region, n.Zone)))
			}
		}
		errs := n.ValidateService(namespace, name)
		if (len(errs) > 0) != (longest > 253) {
			t.Fatalf("%+v, %s/%s: the longest name has %d bytes: %v", n, namespace, name, longest, errs)
		}
		if len(errs) == 0 {
			continue
		}
		refused++
		var shorter int
		_, number, _ := strings.Cut(errs[0].Detail, "shorter by ")
		if fmt.Sscan(number, &shorter); shorter != longest-253 || !strings.Contains(errs[0].Detail, fmt.Sprint("would have ", longest, " bytes")) {
			t.Fatalf("%d bytes: %v", longest, errs)
		}
		if shorter < len(name) && (len(n.ValidateService(namespace, name[shorter:])) > 0 || len(n.ValidateService(namespace, name[shorter-1:])) == 0) {
			t.Fatalf("what it says is not enough, or too much: %v", errs)
		}
	}
	if refused < 300 || refused > 2700 {
		t.Errorf("%d of 3000 are refused: this says little", refused)
	}
}
