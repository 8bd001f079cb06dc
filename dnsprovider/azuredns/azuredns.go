package azuredns

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"
	"golang.org/x/sync/errgroup"

	"federation/dnsprovider"
	"federation/dnsprovider/batch"
	"federation/dnsprovider/contain"
)

// Options say which zones are meant.
type Options struct {
	// Subscription is the ID of the subscription that has the zone.
	Subscription string
	// ResourceGroup is the name of the group that the zone is in.
	ResourceGroup string
}

const (
	maxRetries = 5
	// atOnce is how many names are changed at the same time.
	atOnce = 10
	// maxNames is the maximum of names read one by one; beyond that the whole zone is read.
	maxNames = 10
	perPage  = 500
)

// api is the zones of one resource group.
type api struct {
	client *armdns.RecordSetsClient
	group  string

	mu sync.Mutex
	// tags are the ETags of the sets that were listed last before a change, by zone and set.
	tags map[string]map[id]string
}

// id is a set within a zone.
type id struct {
	name string
	typ  dnsprovider.Type
}

// New makes a provider. It fails without a subscription or group, or if the SDK finds no credentials; whether these are
// valid shows at the first use.
func New(o Options) (dnsprovider.Provider, error) {
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, fmt.Errorf("credentials for Azure: %w", err)
	}
	a, err := newAPI(o, credential, arm.ClientOptions{})
	if err != nil {
		return nil, err
	}
	return provider(a), nil
}

func newAPI(o Options, credential azcore.TokenCredential, client arm.ClientOptions) (*api, error) {
	if o.Subscription == "" || o.ResourceGroup == "" {
		return nil, fmt.Errorf("Azure subscription %q and resource group %q: both must be given", o.Subscription, o.ResourceGroup) //nolint:staticcheck // the name of the service is written so
	}
	client.Retry.MaxRetries = maxRetries
	sets, err := armdns.NewRecordSetsClient(o.Subscription, credential, &client)
	if err != nil {
		return nil, fmt.Errorf("client of Azure DNS: %w", err)
	}
	return &api{client: sets, group: o.ResourceGroup, tags: map[string]map[id]string{}}, nil
}

func provider(a *api) dnsprovider.Provider {
	return &batch.Provider{
		Name: "Azure DNS", Service: a, Most: atOnce, Size: func(dnsprovider.Step) int { return 1 }, Blind: true, MinTTL: 1,
		Types: []dnsprovider.Type{dnsprovider.A, dnsprovider.AAAA, dnsprovider.CNAME, "TXT"},
	}
}

// List returns the plain sets of the zone, or at least of the names. See batch.Service.
func (a *api) List(ctx context.Context, zone string, names ...string) ([]dnsprovider.RRSet, error) {
	found := map[id]*armdns.RecordSet{}
	suffixes := names
	if len(names) == 0 || len(names) > maxNames {
		suffixes = []string{""}
	}
	for _, suffix := range suffixes {
		if err := a.pages(ctx, zone, suffix, found); err != nil {
			return nil, err
		}
	}
	var sets []dnsprovider.RRSet
	tags := make(map[id]string, len(found))
	for key, theirs := range found {
		if theirs.Etag != nil {
			tags[key] = *theirs.Etag
		}
		if set, ok := fromAzure(key, theirs); ok {
			sets = append(sets, set)
		}
	}
	if len(names) > 0 {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.tags[zone] = tags
	}
	return sets, nil
}

// pages adds to found what the API lists: everything, or what ends with the name.
func (a *api) pages(ctx context.Context, zone, name string, found map[id]*armdns.RecordSet) error {
	options := &armdns.RecordSetsClientListAllByDNSZoneOptions{Top: new(int32(perPage))}
	if name != "" && name != zone {
		options.RecordSetNameSuffix = new(relativeName(name, zone))
	}
	for pager := a.client.NewListAllByDNSZonePager(a.group, strings.TrimSuffix(zone, "."), options); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return a.explain(err)
		}
		for _, theirs := range page.Value {
			if key, ok := idOf(theirs, zone); ok {
				found[key] = theirs
			}
		}
	}
	return nil
}

// Change changes several names at once, each set by its own request. It is not atomic. See batch.Service.
func (a *api) Change(ctx context.Context, zone string, changes dnsprovider.ChangeSet) error {
	a.mu.Lock()
	tags := a.tags[zone]
	a.mu.Unlock()
	var group errgroup.Group
	for _, step := range changes {
		group.Go(func() error {
			return contain.Call("azuredns", func() error { return a.applyStep(ctx, zone, step, tags) })
		})
	}
	return group.Wait()
}

// explain adds what an API error means here.
func (a *api) explain(err error) error {
	var said *azcore.ResponseError
	if !errors.As(err, &said) {
		return err
	}
	switch said.StatusCode {
	case http.StatusNotFound:
		return fmt.Errorf("there is no such zone in the resource group %q: %w", a.group, err)
	case http.StatusBadRequest, http.StatusConflict, http.StatusPreconditionFailed:
		return &dnsprovider.RefusedError{Err: err}
	}
	return err
}
