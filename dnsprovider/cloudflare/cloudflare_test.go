package cloudflare

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"federation/dnsprovider"
	"federation/dnsprovider/providertest"
)

const zone = "example.com."

func connect(t *testing.T, f *fake, o Options) dnsprovider.Provider {
	t.Helper()
	if o.Token == nil {
		o.Token = func() (string, error) { return "good", nil }
	}
	o.Endpoint = f.URL
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func one() map[string]string { return map[string]string{"1": "example.com"} }

func TestCloudflareConforms(t *testing.T) {
	providertest.Run(t, zone, func(t *testing.T) dnsprovider.Provider { return connect(t, startFake(t, one()), Options{}) })
}

func set(t *testing.T, name string, ttl uint32, rdata ...string) dnsprovider.RRSet {
	t.Helper()
	s, err := dnsprovider.New(name, dnsprovider.A, ttl, rdata...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWhatStaysIsNotTouched: the name servers get each record for itself, so one that stays must not
// go and come again.
func TestWhatStaysIsNotTouched(t *testing.T) {
	f := startFake(t, one())
	p := connect(t, f, Options{})
	providertest.Become(t, p, zone, set(t, "a.example.com", 60, "192.0.2.1", "192.0.2.2"))
	providertest.Become(t, p, zone, set(t, "a.example.com", 60, "192.0.2.2", "192.0.2.3"))
	providertest.Become(t, p, zone, set(t, "a.example.com", 120, "192.0.2.2", "192.0.2.3"))
	if want := [][3]int{{0, 0, 2}, {1, 0, 1}, {0, 2, 0}}; !slices.Equal(f.batches, want) {
		t.Errorf("deletes, patches, posts: %v, want %v", f.batches, want)
	}
}

func many(t *testing.T, n int) (sets []dnsprovider.RRSet) {
	for i := range n {
		sets = append(sets, set(t, fmt.Sprintf("n%05d.example.com", i), 60, "192.0.2.1", "192.0.2.2"))
	}
	return sets
}

func TestCloudflareBatches(t *testing.T) {
	f := startFake(t, one())
	providertest.Become(t, connect(t, f, Options{}), zone, many(t, 250)...)
	if want := [][3]int{{0, 0, 200}, {0, 0, 200}, {0, 0, 100}}; !slices.Equal(f.batches, want) {
		t.Errorf("deletes, patches, posts: %v, want %v", f.batches, want)
	}
}

func TestCloudflareReadsChangedNamesOnly(t *testing.T) {
	f := startFake(t, one())
	p := connect(t, f, Options{})
	sets := many(t, 100)
	providertest.Become(t, p, zone, sets...)
	f.lists = 0
	if err := p.Apply(t.Context(), zone, dnsprovider.Diff(sets[:2], nil)); err != nil || f.lists != 2 {
		t.Errorf("%d pages were read for two names, want 2; error %v", f.lists, err)
	}
}

func TestCloudflareRetriesWhenBusy(t *testing.T) {
	f := startFake(t, one())
	f.busy = 2
	if _, err := connect(t, f, Options{}).Records(t.Context(), zone); err != nil {
		t.Error(err)
	}
}

func TestWrongTokenIsSaid(t *testing.T) {
	if _, err := connect(t, startFake(t, one()), Options{Token: func() (string, error) { return "bad", nil }}).Records(t.Context(), zone); err == nil || !strings.Contains(err.Error(), "Invalid access token") {
		t.Errorf("error %v, want the API's words", err)
	}
	lost := Options{Token: func() (string, error) { return "", os.ErrNotExist }}
	if _, err := connect(t, startFake(t, one()), lost).Records(t.Context(), zone); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that the token cannot be read", err)
	}
	t.Setenv("CLOUDFLARE_API_TOKEN", "")
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "CLOUDFLARE_API_TOKEN") {
		t.Errorf("error %v, want one that says where the token may be", err)
	}
}

func TestZoneIsFound(t *testing.T) {
	two := map[string]string{"1": "example.com", "2": "example.com", "3": "sub.example.com"}
	for name, c := range map[string]struct {
		zones          map[string]string
		id, zone, want string
	}{
		"the only one":   {one(), "", zone, ""},
		"by its ID":      {two, "2", zone, ""},
		"none":           {one(), "", "example.org.", "no zone of that name"},
		"two":            {two, "", zone, "2 zones of that name"},
		"an ID of other": {two, "3", zone, `no zone "3" of that name`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := connect(t, startFake(t, c.zones), Options{ZoneID: c.id}).Records(t.Context(), c.zone)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestCloudflareKeepsForeignRecords checks that foreign records are not changed, and that an error names them if they are
// in the way.
func TestCloudflareKeepsForeignRecords(t *testing.T) {
	f := startFake(t, one())
	f.sets["1"] = []item{
		{"o1", "*.example.com", "A", "192.0.2.7", 60, false}, {"o2", "www.example.com", "A", "192.0.2.8", automatic, true},
		{"o3", "example.com", "NS", "ns.cloudflare.test", 86400, false}, {"o4", "example.com", "MX", "mail.example.com", automatic, false},
	}
	p := connect(t, f, Options{})
	web := []dnsprovider.RRSet{set(t, "web.example.com", 60, "192.0.2.1")}
	for _, c := range []dnsprovider.ChangeSet{dnsprovider.Diff(nil, web), dnsprovider.Diff(web, nil)} {
		if err := p.Apply(t.Context(), zone, c); err != nil {
			t.Fatal(err)
		}
	}
	beside := []dnsprovider.RRSet{set(t, "www.example.com", 60, "192.0.2.1")}
	if err := p.Apply(t.Context(), zone, dnsprovider.Diff(nil, beside)); err == nil || !strings.Contains(err.Error(), `found 300 ["192.0.2.8"]`) {
		t.Errorf("error %v, want one that shows the proxied record", err)
	}
	for i, id := range []string{"o1", "o2", "o3", "o4"} {
		if len(f.sets["1"]) != 4 || f.sets["1"][i].ID != id {
			t.Fatalf("the zone is now %v", f.sets["1"])
		}
	}
}
