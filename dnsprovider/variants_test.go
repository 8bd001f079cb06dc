package dnsprovider

import (
	"strings"
	"testing"
)

func mustChoose(t *testing.T, variants ...Variant) RRSet {
	t.Helper()
	set, err := NewChoice("web.example", A, 15, variants...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestAChoiceIsCanonical(t *testing.T) {
	east, west := Variant{Rdata: []string{"192.0.2.2", "192.0.2.1"}, Region: "east"}, Variant{Rdata: []string{"192.0.2.3", "192.0.2.3"}, Region: "west"}
	all := Variant{Rdata: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}}
	set, again := mustChoose(t, west, all, east), mustChoose(t, east, west, all)
	if !set.Equal(again) || set.String() != again.String() {
		t.Errorf("\n%s\n%s\nare not the same", set, again)
	}
	want := `web.example. 15 IN A 192.0.2.1
web.example. 15 IN A 192.0.2.2
web.example. 15 IN A 192.0.2.3
; elsewhere: 192.0.2.1 192.0.2.2 192.0.2.3
; region east: 192.0.2.1 192.0.2.2
; region west: 192.0.2.3`
	if set.String() != want {
		t.Errorf("got\n%s\nwant\n%s", set, want)
	}
}

func TestASetWithOtherVariantsDiffers(t *testing.T) {
	weights := func(a, b uint32) RRSet {
		return mustChoose(t, Variant{Rdata: []string{"192.0.2.1"}, Weight: a}, Variant{Rdata: []string{"192.0.2.2"}, Weight: b})
	}
	set, plain := weights(50, 100), mustNew(t, "web.example", A, 15, "192.0.2.1", "192.0.2.2")
	if set.Equal(weights(50, 101)) || set.Equal(plain) || len(Diff([]RRSet{set}, []RRSet{weights(100, 50)})) != 1 {
		t.Error("sets whose variants differ count as equal")
	}
	if !set.Plain().Equal(plain) || len(set.Variants) != 2 {
		t.Errorf("Plain gives %s, and leaves %s", set.Plain(), set)
	}
}

func TestNothingToChoose(t *testing.T) {
	if set := mustChoose(t, Variant{Rdata: []string{"192.0.2.1"}, Weight: 50}); set.Variants != nil {
		t.Errorf("a single variant stays one: %s", set)
	}
}

func TestNewChoiceRefuses(t *testing.T) {
	one, two := []string{"192.0.2.1"}, []string{"192.0.2.2"}
	for name, c := range map[string]struct {
		typ      Type
		variants []Variant
		want     string
	}{
		"no variant":                    {A, nil, "at least one"},
		"a variant without data":        {A, []Variant{{Rdata: one, Weight: 1}, {Weight: 1}}, "at least one"},
		"no address":                    {A, []Variant{{Rdata: one, Weight: 1}, {Rdata: []string{"x"}, Weight: 1}}, "IPv4"},
		"a type with one target":        {CNAME, []Variant{{Rdata: []string{"a.example"}, Weight: 1}, {Rdata: []string{"a.example"}, Weight: 1}}, "only A and AAAA"},
		"a weight and none":             {A, []Variant{{Rdata: one, Weight: 1}, {Rdata: two, Region: "east"}}, "all must have"},
		"a weight and a region":         {A, []Variant{{Rdata: one, Weight: 1, Region: "east"}, {Rdata: two, Weight: 1, Region: "west"}}, "all must have"},
		"two of a region":               {A, []Variant{{Rdata: one, Region: "east"}, {Rdata: two, Region: "east"}}, "only one"},
		"two for who is near no region": {A, []Variant{{Rdata: one}, {Rdata: two}}, "only one"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewChoice("web.example", c.typ, 15, c.variants...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
