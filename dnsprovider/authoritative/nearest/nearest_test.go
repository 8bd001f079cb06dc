package nearest

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"federation/dnsprovider/filechange"
)

func TestTheSmallestNetworkCounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "networks")
	text := "# ours\n198.51.100.0/24 east west # near the exchange\n\n198.51.0.0/16 west\n2001:db8::/32 north\n0.0.0.0/0 south\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	table, err := Open(file, "")
	if err != nil {
		t.Fatal(err)
	}
	for client, want := range map[string][]string{
		"198.51.100.7": {"east", "west"}, "198.51.99.7": {"west"}, "203.0.113.1": {"south"}, "2001:db8::1": {"north"}, "2001:db9::1": nil,
		"::ffff:198.51.100.7": {"east", "west"},
	} {
		if got := table.Near(netip.MustParseAddr(client)); !slices.Equal(got, want) {
			t.Errorf("near %s: %v, want %v", client, got, want)
		}
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"198.51.100.0/24":                            "line 1: 198.51.100.0/24: must have at least one region",
		"\n198.51.100.7/24 east":                     `line 2: "198.51.100.7/24": must be an address and a length`,
		"east 198.51.100.0/24":                       `line 1: "east"`,
		"::ffff:198.51.100.0/120 east":               "must be an address and a length",
		"198.51.100.0/24 east\n198.51.100.0/24 west": "line 2: network 198.51.100.0/24: must be there once",
		"country:DE a\ncountry:de b":                 "line 2: place country:DE: must be there once",
		"planet:EARTH a":                             `"planet:EARTH": must be an address`,
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
			table.networks.Lookup(netip.MustParseAddr("198.51.100.7"))
		}
	})
}

// database writes one of the shape of GeoIP2-City, with what a test needs.
func database(t testing.TB, file string, records map[string]mmdbtype.Map) {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Test-City", RecordSize: 28, IncludeReservedNetworks: true})
	if err != nil {
		t.Fatal(err)
	}
	for network, record := range records {
		_, parsed, err := net.ParseCIDR(network)
		if err == nil {
			err = tree.Insert(parsed, record)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if _, err := tree.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func record(continent, country, subdivision string) mmdbtype.Map {
	r := mmdbtype.Map{"continent": mmdbtype.Map{"code": mmdbtype.String(continent)}, "country": mmdbtype.Map{"iso_code": mmdbtype.String(country)}}
	if subdivision != "" {
		r["subdivisions"] = mmdbtype.Slice{mmdbtype.Map{"iso_code": mmdbtype.String(subdivision)}}
	}
	return r
}

func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	networks, places := filepath.Join(dir, "networks"), filepath.Join(dir, "places.mmdb")
	text := "10.1.0.0/16 ours\nsubdivision:US-CA west\ncountry:US east west\ncountry:de middle\ncontinent:EU isles middle\n0.0.0.0/0 else\n"
	if err := os.WriteFile(networks, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	database(t, places, map[string]mmdbtype.Map{
		"10.0.0.0/8": record("NA", "US", "CA"), "198.51.100.0/24": record("NA", "US", "NY"), "203.0.113.0/25": record("EU", "DE", ""),
		"203.0.113.128/25": record("EU", "FR", ""), "192.0.2.0/24": record("AS", "JP", ""), "2001:db8::/32": record("EU", "DE", "BE"),
	})
	l, err := Open(networks, places)
	if err != nil {
		t.Fatal(err)
	}
	for client, want := range map[string][]string{
		"10.1.2.3": {"ours"}, "10.2.2.3": {"west"}, "198.51.100.7": {"east", "west"}, "203.0.113.7": {"middle"}, "203.0.113.200": {"isles", "middle"},
		"192.0.2.1": {"else"}, "100.64.0.1": {"else"}, "2001:db8::1": {"middle"}, "2001:db9::1": nil, "::ffff:203.0.113.7": {"middle"},
	} {
		for range 2 { // the second time from memory
			if got := l.Near(netip.MustParseAddr(client)); !slices.Equal(got, want) {
				t.Errorf("near %s: %v, want %v", client, got, want)
			}
		}
	}
	client := netip.MustParseAddr("203.0.113.7")
	if n := testing.AllocsPerRun(100, func() { l.Near(client) }); n > 0 {
		t.Errorf("a look costs %v allocations, want none", n)
	}
}

func TestFilesAreFollowed(t *testing.T) {
	dir := t.TempDir()
	networks, places := filepath.Join(dir, "networks"), filepath.Join(dir, "places.mmdb")
	if err := os.WriteFile(networks, []byte("country:DE middle\ncountry:FR isles\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	database(t, places, map[string]mmdbtype.Map{"192.0.2.0/24": record("EU", "DE", "")})
	l, err := Open(networks, places)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		var failed error
		go l.Follow(ctx, func(err error) { failed = err })
		near := func(want string) {
			t.Helper()
			time.Sleep(3 * filechange.Every)
			synctest.Wait()
			if got := l.Near(netip.MustParseAddr("192.0.2.1")); !slices.Equal(got, []string{want}) {
				t.Errorf("near is %v, want %s", got, want)
			}
		}
		database(t, places, map[string]mmdbtype.Map{"192.0.2.0/24": record("EU", "FR", "XYZ")})
		near("isles")
		if err := os.WriteFile(places, []byte("half of a database"), 0o644); err != nil {
			t.Fatal(err)
		}
		near("isles")
		if failed == nil || !strings.Contains(failed.Error(), "places.mmdb: must be in MaxMind's format") {
			t.Errorf("error %v, want one that names the file", failed)
		}
	})
}

func TestATableWithPlacesNeedsADatabase(t *testing.T) {
	networks := filepath.Join(t.TempDir(), "networks")
	if err := os.WriteFile(networks, []byte("country:DE middle\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(networks, ""); err == nil || !strings.Contains(err.Error(), "has 1 places") {
		t.Errorf("error %v, want one that says that there are places", err)
	}
}

// BenchmarkNear has 100,000 networks.
func BenchmarkNear(b *testing.B) {
	table, lists := &Table{places: map[string][]string{}}, map[string][]string{}
	for i := range 100000 {
		network := netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(i >> 16), byte(i >> 8), byte(i), 0}), 24)
		if err := table.add([]string{network.String(), "east"}, lists); err != nil {
			b.Fatal(err)
		}
	}
	client := netip.MustParseAddr("1.2.3.4")
	b.ReportAllocs()
	for b.Loop() {
		table.networks.Lookup(client)
	}
}
