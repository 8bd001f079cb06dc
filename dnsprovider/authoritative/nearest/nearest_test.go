package nearest

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheSmallestNetworkCounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "networks")
	text := "# ours\n198.51.100.0/24 east west # near the exchange\n\n198.51.0.0/16 west\n2001:db8::/32 north\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	table, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for client, want := range map[string][]string{
		"198.51.100.7": {"east", "west"}, "198.51.99.7": {"west"}, "203.0.113.1": nil, "2001:db8::1": {"north"}, "2001:db9::1": nil,
		"::ffff:198.51.100.7": {"east", "west"},
	} {
		if got := table.Near(netip.MustParseAddr(client)); !slices.Equal(got, want) {
			t.Errorf("near %s: %v, want %v", client, got, want)
		}
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"198.51.100.0/24":                            "line 1: network 198.51.100.0/24: must have at least one region",
		"\n198.51.100.7/24 east":                     `line 2: network "198.51.100.7/24": must be an address and a length`,
		"east 198.51.100.0/24":                       `line 1: network "east"`,
		"::ffff:198.51.100.0/120 east":               "must be an address and a length",
		"198.51.100.0/24 east\n198.51.100.0/24 west": "line 2: network 198.51.100.0/24: must be there once",
		strings.Repeat("x", 100000):                  "token too long",
	} {
		if _, err := Parse(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want one with %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("198.51.100.0/24 east west\n")
	f.Add("::/0 a\n0.0.0.0/0 b # c\n")
	f.Fuzz(func(_ *testing.T, text string) {
		if table, err := Parse(strings.NewReader(text)); err == nil {
			table.Near(netip.MustParseAddr("198.51.100.7"))
		}
	})
}

// BenchmarkNear has 100,000 networks.
func BenchmarkNear(b *testing.B) {
	table, lists := &Table{}, map[string][]string{}
	for i := range 100000 {
		network := netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(i >> 16), byte(i >> 8), byte(i), 0}), 24)
		if err := table.add([]string{network.String(), "east"}, lists); err != nil {
			b.Fatal(err)
		}
	}
	client := netip.MustParseAddr("1.2.3.4")
	b.ReportAllocs()
	for b.Loop() {
		table.Near(client)
	}
}
