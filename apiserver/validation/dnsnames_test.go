package validation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestNamesOfServicesFitInDNS(t *testing.T) {
	long := strings.Repeat("x", 63)
	n := &DNSNames{Federation: "fed", Zone: strings.Repeat("z.", 45) + "example.com"} // 101 bytes
	for _, c := range []struct {
		name   string
		places []string
		want   string
	}{
		{strings.Repeat("n", 63), nil, ""},
		{strings.Repeat("n", 63), []string{"a.east"}, ""}, // 242 bytes
		{strings.Repeat("n", 63), []string{"a.east", "a-long-zone.eu-central"}, "must be at most 253; take a name or a namespace that is shorter by 7"},
		{"web", []string{"a-long-zone.eu-central"}, ""},
		{strings.Repeat("n", 63), []string{"a." + long + "x", "us.east.a", "a.east"}, ""}, // places that have no names
	} {
		n.Places = c.places
		errs := n.ValidateService(long, c.name)
		if (len(errs) == 0) != (c.want == "") {
			t.Errorf("%s in %q: %v, want %q", c.name, c.places, errs, c.want)
		}
		for _, err := range errs {
			if err.Field != "metadata.name" || err.BadValue != c.name || !strings.Contains(err.Detail, c.want) || !strings.Contains(err.Detail, "a-long-zone.eu-central") {
				t.Errorf("%v, want %q", err, c.want)
			}
		}
	}
	if errs := (&DNSNames{Federation: long, Zone: n.Zone}).ValidateService(long, "web"); len(errs) != 0 {
		t.Errorf("238 bytes: %v", errs)
	}
	if errs := (&DNSNames{Federation: long, Zone: n.Zone}).ValidateService(long, strings.Repeat("n", 20)); len(errs) != 1 || !strings.Contains(errs[0].Detail, "its name in DNS, ") {
		t.Errorf("255 bytes: %v", errs)
	}
}

func TestHostsFitInDNS(t *testing.T) {
	n := &DNSNames{Federation: "fed", Zone: "example.com"}
	label := strings.Repeat("x", 64)
	deep := strings.Repeat("abcdefg.", 29) + "example.com" // 243 bytes
	for host, want := range map[string]string{
		"shop.example.com":                   "",
		"*.example.com":                      "",
		label + ".example.com":               "has 64 bytes: must be at most 63",
		label + ".example.org":               "", // none of ours
		deep:                                 "has 243 bytes: must be at most 241",
		strings.TrimPrefix(deep, "abcdefg."): "",
	} {
		path := func(i int) *field.Path { return field.NewPath("spec", "rules").Index(i).Child("host") }
		errs := n.ValidateHosts("shop", []string{"a.example.com", host}, nil, path)
		if (len(errs) == 0) != (want == "") || len(errs) > 0 && (errs[0].Field != "spec.rules[1].host" || !strings.Contains(errs[0].Detail, want)) {
			t.Errorf("%s: %v, want %q", host, errs, want)
		}
		if errs := n.ValidateHosts("shop", []string{host}, []string{host}, path); len(errs) > 0 {
			t.Errorf("%s, which was there before: %v", host, errs)
		}
	}
}
