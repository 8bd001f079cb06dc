package authoritative

import (
	"fmt"
	"strings"
	"testing"

	"federation/dnsprovider"
)

// TestANodeKeepsWhatItWasGiven packs sets of all kinds and reads them again.
func TestANodeKeepsWhatItWasGiven(t *testing.T) {
	p := packer{zone: testZone, wire: wireName(testZone)}
	name := "web." + testZone
	choice := func(t *testing.T, of dnsprovider.Type, variants ...dnsprovider.Variant) dnsprovider.RRSet {
		set, err := dnsprovider.NewChoice(name, of, 15, variants...)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	for kind, sets := range map[string][]dnsprovider.RRSet{
		"nothing":            nil,
		"addresses":          zoneLines(t, "web A 192.0.2.1 192.0.2.200\nweb AAAA 2001:db8::1 2001:db8::"),
		"an alias":           zoneLines(t, "web CNAME other."+testZone),
		"an alias elsewhere": zoneLines(t, "web CNAME other.test."),
		"data with escapes":  {{Name: name, Type: "MX", TTL: 1<<31 - 1, Rdata: []string{"10 a.", "20 b."}}, {Name: name, Type: "TXT", Rdata: []string{`"a\;b" "c\"d"`, "plain"}}},
		"weights and regions": {
			choice(t, "A", dnsprovider.Variant{Rdata: []string{"192.0.2.1"}, Weight: 1}, dnsprovider.Variant{Rdata: []string{"192.0.2.1", "192.0.2.2"}, Weight: 1<<32 - 1}),
			choice(t, "AAAA", dnsprovider.Variant{Rdata: []string{"2001:db8::1"}, Region: strings.Repeat("r", 255)}, dnsprovider.Variant{Rdata: []string{"2001:db8::2"}}),
		},
	} {
		answers, err := p.packSets(sets)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		n := newNode(wireName(name), 7, answers)
		if again := n.sets(name); fmt.Sprint(again) != fmt.Sprint(sets) || n.name() != wireName(name) || n.children() != 7 {
			t.Errorf("%s: %q with %d below has\n%v, want\n%v", kind, n.name(), n.children(), again, sets)
		}
		if moved := n.withChildren(n.name(), 8); moved.children() != 8 || moved.packed() != n.packed() || moved.name() != n.name() {
			t.Errorf("%s: with another number of names below it is another node", kind)
		}
	}
}
