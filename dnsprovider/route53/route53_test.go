package route53

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/time/rate"

	"federation/dnsprovider"
	"federation/dnsprovider/providertest"
)

// connect makes a provider for the server, without our own limit of requests.
func connect(t *testing.T, f *fake, o Options) dnsprovider.Provider {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for _, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "none"))
	}
	for _, name := range []string{"AWS_PROFILE", "AWS_REGION", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, "")
		_ = os.Unsetenv(name)
	}
	o.Endpoint = f.URL
	a, err := newAPI(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	a.limit = rate.NewLimiter(rate.Inf, 1)
	return provider(a)
}

func one() map[string]*hosted { return map[string]*hosted{"Z1": {name: "example.com."}} }

func TestRoute53Conforms(t *testing.T) {
	providertest.Run(t, "example.com.", func(t *testing.T) dnsprovider.Provider {
		return connect(t, startFake(t, one()), Options{})
	})
}

// many returns n names with two addresses each.
func many(t *testing.T, n int) (sets []dnsprovider.RRSet) {
	for i := range n {
		sets = append(sets, providertest.Set(t, fmt.Sprintf("n%05d.example.com", i), dnsprovider.A, "192.0.2.1", "192.0.2.2"))
	}
	return sets
}

func TestRoute53Batches(t *testing.T) {
	f := startFake(t, one())
	p := connect(t, f, Options{})
	if err := p.Apply(t.Context(), "example.com.", dnsprovider.Diff(nil, many(t, 1200))); err != nil {
		t.Fatal(err)
	}
	if want := []int{500, 500, 200}; !slices.Equal(f.batches, want) {
		t.Errorf("batches of %v changes, want %v", f.batches, want)
	}
}

func TestThrottledRequestsAreTriedAgain(t *testing.T) {
	f := startFake(t, one())
	f.throttle = 2
	p := connect(t, f, Options{})
	if _, err := p.Records(t.Context(), "example.com."); err != nil {
		t.Error(err)
	}
}

func TestHostedZoneIsFound(t *testing.T) {
	two := func() map[string]*hosted {
		return map[string]*hosted{"Z0": {name: "a.test."}, "Z1": {name: "example.com."}, "Z2": {name: "example.com.", private: true}, "Z3": {name: "sub.example.com."}}
	}
	for name, c := range map[string]struct {
		zones map[string]*hosted
		id    string
		zone  string
		want  string // in the error
	}{
		"the only one":         {one(), "", "example.com.", ""},
		"by its ID":            {two(), "Z2", "example.com.", ""},
		"none":                 {one(), "", "example.org.", "no hosted zone of that name in the account"},
		"the parent is no one": {one(), "", "sub.example.com.", "no hosted zone"},
		"two":                  {two(), "", "example.com.", "Z1 public, Z2 private"},
		"an ID of another":     {two(), "Z3", "example.com.", `no hosted zone "Z3" of that name`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := connect(t, startFake(t, c.zones), Options{ZoneID: c.id}).Records(t.Context(), c.zone)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestWrongKeyIsSaid(t *testing.T) {
	f := startFake(t, one())
	connect(t, f, Options{}) // for its environment
	t.Setenv("AWS_ACCESS_KEY_ID", "OTHER")
	p, err := New(t.Context(), Options{Endpoint: f.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Records(t.Context(), "example.com."); err == nil || !strings.Contains(err.Error(), "InvalidClientTokenId") {
		t.Errorf("error %v, want the API's words", err)
	}
}

func TestRefusalIsInTheAPIsWords(t *testing.T) {
	f := startFake(t, one())
	f.refuse = 0
	p := connect(t, f, Options{})
	if err := p.Apply(t.Context(), "example.com.", dnsprovider.Diff(nil, many(t, 1))); err == nil || !strings.Contains(err.Error(), "told to refuse") {
		t.Errorf("error %v, want the API's words", err)
	}
}

// TestRoute53KeepsForeignRecords has in the zone what only the API can make: they are neither shown
// nor changed, and a plain set is not put on them.
func TestRoute53KeepsForeignRecords(t *testing.T) {
	ttl := int64(60)
	others := []recordSet{
		{Name: `\052.example.com.`, Type: "A", TTL: &ttl, Records: []record{{"192.0.2.7"}}},
		{Name: "example.com.", Type: "A", AliasTarget: &struct{}{}},
		{Name: "weighted.example.com.", Type: "A", TTL: &ttl, SetIdentifier: "one", Records: []record{{"192.0.2.8"}}},
	}
	zones := one()
	zones["Z1"].sets = map[string]recordSet{}
	for _, o := range others {
		zones["Z1"].sets[o.key()] = o
	}
	f := startFake(t, zones)
	p := connect(t, f, Options{})
	have, err := p.Records(t.Context(), "example.com.")
	if err != nil || len(have) != 0 {
		t.Fatalf("%v, %v, want none", have, err)
	}
	web := []dnsprovider.RRSet{providertest.Set(t, "web.example.com", dnsprovider.A, "192.0.2.1")}
	for _, c := range []dnsprovider.ChangeSet{dnsprovider.Diff(nil, web), dnsprovider.Diff(web, nil)} {
		if err := p.Apply(t.Context(), "example.com.", c); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range others {
		if got, ok := f.zones["Z1"].sets[o.key()]; !ok || !slices.Equal(got.values(), o.values()) {
			t.Errorf("%s %s was %v and is %v", o.Name, o.Type, o, got)
		}
	}
}
