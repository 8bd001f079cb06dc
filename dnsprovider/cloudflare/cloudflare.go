package cloudflare

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/cloudflare/cloudflare-go/v7/dns"
	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/zones"

	"federation/dnsprovider"
	"federation/dnsprovider/batch"
)

// Options say which zone is meant, and how Cloudflare is reached. All may be empty.
type Options struct {
	// Token returns the API token. It is called for each use, so that a replaced token takes effect. Default:
	// CLOUDFLARE_API_TOKEN in the environment.
	Token func() (string, error)
	// ZoneID is the zone. Default: the only one that has the zone's name.
	ZoneID string
	// BatchSize is how many records the zone's plan takes in a batch. Default: 200, the free plan's.
	BatchSize int
	// MinTTL is the least TTL in seconds that the zone's plan takes. Default: 60.
	MinTTL uint32
	// Endpoint is the URL of the API. Default: Cloudflare's.
	Endpoint string
}

const maxRetries = 5

// api is the zones that a token may see.
type api struct {
	service *zones.ZoneService
	records *dns.RecordService
	token   func() (string, error)
	zones   *batch.Zones

	mu sync.Mutex
	// seen are the records that were listed last before a change, by zone and name.
	seen map[string]map[string][]record
}

// New makes a provider. It fails without a token; whether that is good shows at the first use.
func New(o Options) (dnsprovider.Provider, error) {
	if o.Token == nil {
		token := os.Getenv("CLOUDFLARE_API_TOKEN")
		if token == "" {
			return nil, errors.New("Cloudflare API token: must be given, or be in the environment's CLOUDFLARE_API_TOKEN") //nolint:staticcheck // the name of the service is written so
		}
		o.Token = func() (string, error) { return token, nil }
	}
	options := []option.RequestOption{option.WithEnvironmentProduction(), option.WithMaxRetries(maxRetries)}
	if o.Endpoint != "" {
		options = append(options, option.WithBaseURL(o.Endpoint))
	}
	if o.BatchSize == 0 {
		o.BatchSize = 200
	}
	if o.MinTTL == 0 {
		o.MinTTL = 60
	}
	a := &api{
		service: zones.NewZoneService(options...), records: dns.NewRecordService(options...), token: o.Token,
		seen: map[string]map[string][]record{},
	}
	a.zones = &batch.Zones{Kind: "zone", Where: "that the token sees", ID: o.ZoneID, Named: a.zonesNamed}
	return &batch.Provider{
		Name: "Cloudflare", Service: a, Most: o.BatchSize, Size: batch.Records, Blind: true, MinTTL: o.MinTTL,
		Types: []dnsprovider.Type{dnsprovider.A, dnsprovider.AAAA, dnsprovider.CNAME, "TXT"},
	}, nil
}

// authorized returns the option with the current token.
func (a *api) authorized() (option.RequestOption, error) {
	token, err := a.token()
	if err != nil {
		return nil, fmt.Errorf("API token: %w", err)
	}
	return option.WithAPIToken(token), nil
}

// List returns the sets of the zone, or at least of the names. See batch.Service.
func (a *api) List(ctx context.Context, zone string, names ...string) ([]dnsprovider.RRSet, error) {
	id, err := a.zones.Find(ctx, zone)
	if err != nil {
		return nil, err
	}
	records, err := a.fetch(ctx, id, names)
	if err != nil {
		return nil, a.zones.Forget(zone, err)
	}
	if len(names) > 0 {
		a.mu.Lock()
		a.seen[zone] = records
		a.mu.Unlock()
	}
	var sets []dnsprovider.RRSet
	for name, list := range records {
		sets = append(sets, setsOf(name, list, zone)...)
	}
	return sets, nil
}

// Change sends one transaction. It uses the IDs of the last List. See batch.Service.
func (a *api) Change(ctx context.Context, zone string, changes dnsprovider.ChangeSet) error {
	id, err := a.zones.Find(ctx, zone)
	if err != nil {
		return err
	}
	token, err := a.authorized()
	if err != nil {
		return err
	}
	a.mu.Lock()
	params := transaction(changes, a.seen[zone])
	a.mu.Unlock()
	params.ZoneID.Value, params.ZoneID.Present = id, true
	_, err = a.records.Batch(ctx, params, token)
	var said *dns.Error
	if errors.As(err, &said) && (said.StatusCode == http.StatusBadRequest || said.StatusCode == http.StatusNotFound) {
		err = &dnsprovider.RefusedError{Err: err}
	}
	return a.zones.Forget(zone, err)
}
