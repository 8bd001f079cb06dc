package azuredns

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"

	"federation/dnsprovider"
	"federation/dnsprovider/providertest"
)

const zone = "example.com."

// token is a credential that needs nobody.
type token string

func (t token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(t), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func connect(t *testing.T, f *fake, o Options, with token) *api {
	t.Helper()
	services := map[cloud.ServiceName]cloud.ServiceConfiguration{cloud.ResourceManager: {Endpoint: f.URL, Audience: f.URL}}
	a, err := newAPI(o, with, arm.ClientOptions{ClientOptions: policy.ClientOptions{Transport: f.Client(), Cloud: cloud.Configuration{Services: services}}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var inGroup = Options{Subscription: "s", ResourceGroup: "g"}

func TestAzureDNSConforms(t *testing.T) {
	providertest.Run(t, zone, func(t *testing.T) dnsprovider.Provider { return provider(connect(t, startFake(t), inGroup, "good")) },
		providertest.Except{Clause: "Apply/shows no reader half of a step", Why: "Azure has no transactions: doc.go says what that means"})
}

func apply(t *testing.T, p dnsprovider.Provider, from, to []dnsprovider.RRSet) {
	t.Helper()
	if err := p.Apply(t.Context(), zone, dnsprovider.Diff(from, to)); err != nil {
		t.Fatal(err)
	}
}

// TestFailedSwitchPutsBack: after a CNAME is refused the addresses that went before it are there again.
func TestFailedSwitchPutsBack(t *testing.T) {
	f := startFake(t)
	p := provider(connect(t, f, inGroup, "good"))
	addresses := []dnsprovider.RRSet{providertest.Set(t, "a.example.com", dnsprovider.A, "192.0.2.1"), providertest.Set(t, "a.example.com", dnsprovider.AAAA, "2001:db8::1")}
	apply(t, p, nil, addresses)
	f.refuse = "CNAME"
	err := p.Apply(t.Context(), zone, dnsprovider.Diff(addresses, []dnsprovider.RRSet{providertest.Set(t, "a.example.com", dnsprovider.CNAME, "b.example.com")}))
	if err == nil || !strings.Contains(err.Error(), "told to refuse") {
		t.Errorf("error %v, want the API's words", err)
	}
	have, err := p.Records(t.Context(), zone)
	if rest := dnsprovider.Diff(have, addresses); err != nil || len(rest) > 0 {
		t.Errorf("error %v; the zone differs from what it was:\n%s", err, rest)
	}
}

// TestChangeBetweenReadingAndWritingIsSeen has somebody change a set after it was read.
func TestChangeBetweenReadingAndWritingIsSeen(t *testing.T) {
	a := connect(t, startFake(t), inGroup, "good")
	old, other := providertest.Set(t, "a.example.com", dnsprovider.A, "192.0.2.1"), providertest.Set(t, "a.example.com", dnsprovider.A, "192.0.2.2")
	apply(t, provider(a), nil, []dnsprovider.RRSet{old})
	for _, to := range [][]dnsprovider.RRSet{nil, {other}} {
		a.tags[zone] = map[id]string{{old.Name, old.Type}: "before"}
		if err := a.Change(t.Context(), zone, dnsprovider.Diff([]dnsprovider.RRSet{old}, to)); err == nil || !strings.Contains(err.Error(), "PreconditionFailed") {
			t.Errorf("error %v, want that the set is another by now", err)
		}
	}
}

func TestAzureDNSReadsChangedNamesOnly(t *testing.T) {
	f := startFake(t)
	p := provider(connect(t, f, inGroup, "good"))
	sets := []dnsprovider.RRSet{providertest.Set(t, "a.example.com", dnsprovider.A, "192.0.2.1"), providertest.Set(t, "b.example.com", dnsprovider.A, "192.0.2.1")}
	apply(t, p, nil, sets)
	f.read = 0
	if apply(t, p, sets[:1], nil); f.read != 1 {
		t.Errorf("%d sets were read for one name, want 1", f.read)
	}
}

func TestAzureDNSRetriesWhenBusy(t *testing.T) {
	f := startFake(t)
	f.busy = 2
	if _, err := provider(connect(t, f, inGroup, "good")).Records(t.Context(), zone); err != nil {
		t.Error(err)
	}
}

func TestAzureDNSErrors(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		with    token
		zone    string
		want    string
	}{
		"token": {inGroup, "bad", zone, "InvalidAuthenticationToken"},
		"zone":  {inGroup, "good", "example.org.", `no such zone in the resource group "g"`},
		"group": {Options{Subscription: "s", ResourceGroup: "h"}, "good", zone, `no such zone in the resource group "h"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := provider(connect(t, startFake(t), c.options, c.with)).Records(t.Context(), c.zone)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if _, err := newAPI(Options{Subscription: "s"}, token(""), arm.ClientOptions{}); err == nil || !strings.Contains(err.Error(), `resource group ""`) {
		t.Errorf("error %v, want one about the group", err)
	}
}

// TestAzureDNSKeepsForeignRecords has in the zone what others made: it is neither shown nor changed.
func TestAzureDNSKeepsForeignRecords(t *testing.T) {
	f := startFake(t)
	f.store("A", "*", &armdns.RecordSet{Properties: &armdns.RecordSetProperties{TTL: new(int64(60)), ARecords: []*armdns.ARecord{{IPv4Address: new("192.0.2.7")}}}})
	f.store("A", "@", &armdns.RecordSet{Properties: &armdns.RecordSetProperties{TTL: new(int64(60)), TargetResource: &armdns.SubResource{ID: new("/an/address")}}})
	p := provider(connect(t, f, inGroup, "good"))
	if have, err := p.Records(t.Context(), zone); err != nil || len(have) != 0 {
		t.Fatalf("%v, %v, want none", have, err)
	}
	web := []dnsprovider.RRSet{providertest.Set(t, "web.example.com", dnsprovider.A, "192.0.2.1")}
	apply(t, p, nil, web)
	apply(t, p, web, nil)
	if *f.sets["A/*"].Etag != "3" || *f.sets["A/@"].Etag != "4" || len(f.sets) != 4 {
		t.Errorf("others' sets were changed: %v", f.sets)
	}
}

func TestTextStaysAsItIs(t *testing.T) {
	for _, data := range []string{`"plain"`, `"two" "strings"`, `"a \"quoted\" word"`, `"back\\slash"`, `""`} {
		strs, err := unquoteStrings(data)
		if again := quoteStrings(strs); err != nil || again != data {
			t.Errorf("%s became %s, %v", data, again, err)
		}
	}
	if _, err := unquoteStrings(`a" b`); err == nil {
		t.Error("text with half a quote is taken")
	}
}
