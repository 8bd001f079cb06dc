package clouddns

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/api/dns/v1"
	"google.golang.org/api/option"

	"federation/dnsprovider"
	"federation/dnsprovider/providertest"
)

func connect(t *testing.T, f *fake, managedZone string) dnsprovider.Provider {
	t.Helper()
	p, err := newProvider(t.Context(), Options{Project: "p", ManagedZone: managedZone, Endpoint: f.URL}, option.WithHTTPClient(f.Client()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func one() map[string]*managed {
	return map[string]*managed{"example": {dnsName: "example.com.", visibility: "public"}}
}

func TestCloudDNSConforms(t *testing.T) {
	providertest.Run(t, "example.com.", func(t *testing.T) dnsprovider.Provider { return connect(t, startFake(t, one()), "") })
}

func many(t *testing.T, n int) (sets []dnsprovider.RRSet) {
	for i := range n {
		set, err := dnsprovider.New(fmt.Sprintf("n%05d.example.com", i), dnsprovider.A, 0, "192.0.2.1", "192.0.2.2")
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	return sets
}

func TestCloudDNSBatches(t *testing.T) {
	f := startFake(t, one())
	p := connect(t, f, "")
	if err := p.Apply(t.Context(), "example.com.", dnsprovider.Diff(nil, many(t, 2300))); err != nil {
		t.Fatal(err)
	}
	if want := []int{1000, 1000, 300}; !slices.Equal(f.changes, want) {
		t.Errorf("Changes with %v additions, want %v", f.changes, want)
	}
	have, err := p.Records(t.Context(), "example.com.")
	if rest := dnsprovider.Diff(have, many(t, 2300)); err != nil || len(rest) > 0 {
		t.Errorf("the zone differs: %v\n%s", err, rest)
	}
}

func TestWhatPassesIsTriedAgain(t *testing.T) {
	f := startFake(t, one())
	f.deny = []denial{{429, "rateLimitExceeded"}, {403, "rateLimitExceeded"}, {503, "backendError"}}
	if _, err := connect(t, f, "").Records(t.Context(), "example.com."); err != nil {
		t.Error(err)
	}
}

func TestMissingRightIsSaidAtOnce(t *testing.T) {
	f := startFake(t, one())
	f.deny = []denial{{403, "forbidden"}}
	if _, err := connect(t, f, "").Records(t.Context(), "example.com."); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("error %v, want the API's words", err)
	}
}

func TestManagedZoneIsFound(t *testing.T) {
	many := func() map[string]*managed {
		zones := map[string]*managed{"other": {dnsName: "sub.example.com.", visibility: "public"}}
		for _, name := range []string{"a", "b", "c", "d"} {
			zones[name] = &managed{dnsName: "example.com.", visibility: "private"}
		}
		return zones
	}
	for name, c := range map[string]struct {
		zones       map[string]*managed
		managedZone string
		zone, want  string // in the error
	}{
		"the only one":     {one(), "", "example.com.", ""},
		"by its name":      {many(), "d", "example.com.", ""},
		"none":             {one(), "", "example.org.", `no managed zone of that name in project "p"`},
		"several":          {many(), "", "example.com.", "a private, b private, c private, d private"},
		"a name of others": {many(), "other", "example.com.", `no managed zone "other"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := connect(t, startFake(t, c.zones), c.managedZone).Records(t.Context(), c.zone)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestProjectMustBeGiven(t *testing.T) {
	if _, err := New(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "project") {
		t.Errorf("error %v, want one about the project", err)
	}
}

// TestCloudDNSKeepsForeignRecords has in the zone what only others make: it is neither shown nor changed.
func TestCloudDNSKeepsForeignRecords(t *testing.T) {
	zones := one()
	others := map[string]*dns.ResourceRecordSet{
		"*.example.com. A":      {Name: "*.example.com.", Type: "A", Ttl: 60, Rrdatas: []string{"192.0.2.7"}},
		"routed.example.com. A": {Name: "routed.example.com.", Type: "A", Ttl: 60, RoutingPolicy: &dns.RRSetRoutingPolicy{Kind: "wrr"}},
	}
	zones["example"].sets = map[string]*dns.ResourceRecordSet{}
	for key, o := range others {
		zones["example"].sets[key] = o
	}
	f := startFake(t, zones)
	p := connect(t, f, "")
	if have, err := p.Records(t.Context(), "example.com."); err != nil || len(have) != 0 {
		t.Fatalf("%v, %v, want none", have, err)
	}
	for _, c := range []dnsprovider.ChangeSet{dnsprovider.Diff(nil, many(t, 5)), dnsprovider.Diff(many(t, 5), nil)} {
		if err := p.Apply(t.Context(), "example.com.", c); err != nil {
			t.Fatal(err)
		}
	}
	for key, o := range others {
		if !reflect.DeepEqual(f.zones["example"].sets[key], o) {
			t.Errorf("%s was changed", key)
		}
	}
}
