package clouddns

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/api/dns/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"federation/dnsprovider"
	"federation/dnsprovider/batch"
)

// Options say which project and zone are meant, and how Cloud DNS is reached.
type Options struct {
	// Project is the ID of the project that has the zone.
	Project string
	// ManagedZone is the resource name of the zone. Default: the only one that has the zone's name.
	ManagedZone string
	// Endpoint is the URL of the API. Default: Google's.
	Endpoint string
}

// A Change may have so many additions, so many deletions, and bytes of data.
const maxSets, maxBytes = 1000, 100_000

// api is the zones of one project.
type api struct {
	project string
	service *dns.Service
	zones   *batch.Zones
}

// New makes a provider. It fails without a project, or when there are no credentials; whether these
// are good shows at the first use.
func New(ctx context.Context, o Options) (dnsprovider.Provider, error) {
	return newProvider(ctx, o)
}

func newProvider(ctx context.Context, o Options, more ...option.ClientOption) (dnsprovider.Provider, error) {
	if o.Project == "" {
		return nil, errors.New("Google Cloud project: must be given") //nolint:staticcheck // the name of the service is written so
	}
	if o.Endpoint != "" {
		more = append(more, option.WithEndpoint(o.Endpoint))
	}
	service, err := dns.NewService(ctx, append(more, option.WithScopes(dns.NdevClouddnsReadwriteScope))...)
	if err != nil {
		return nil, fmt.Errorf("client of Google Cloud DNS: %w", err)
	}
	a := &api{project: o.Project, service: service}
	a.zones = &batch.Zones{Kind: "managed zone", Where: fmt.Sprintf("in project %q", o.Project), ID: o.ManagedZone, Named: a.managedZones}
	return &batch.Provider{Name: "Cloud DNS", Service: a, Most: maxBytes, Size: stepSize}, nil
}

// List returns the plain sets of the zone. See batch.Service.
func (a *api) List(ctx context.Context, zone string, _ ...string) (sets []dnsprovider.RRSet, err error) {
	name, err := a.zones.Find(ctx, zone)
	if err != nil {
		return nil, err
	}
	for token := ""; ; {
		page, err := retry(ctx, a.service.ResourceRecordSets.List(a.project, name).PageToken(token).Context(ctx).Do)
		if err != nil {
			return nil, a.zones.Forget(zone, err)
		}
		for _, theirs := range page.Rrsets {
			if set, ok := fromCloudDNS(theirs, zone); ok {
				sets = append(sets, set)
			}
		}
		if token = page.NextPageToken; token == "" {
			return sets, nil
		}
	}
}

// Change sends one transaction. See batch.Service.
func (a *api) Change(ctx context.Context, zone string, changes dnsprovider.ChangeSet) error {
	name, err := a.zones.Find(ctx, zone)
	if err != nil {
		return err
	}
	transaction := &dns.Change{}
	for _, step := range changes {
		transaction.Deletions = append(transaction.Deletions, toCloudDNS(step.Old)...)
		transaction.Additions = append(transaction.Additions, toCloudDNS(step.New)...)
	}
	_, err = retry(ctx, a.service.Changes.Create(a.project, name, transaction).Context(ctx).Do)
	var said *googleapi.Error
	if errors.As(err, &said) {
		switch said.Code {
		case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed:
			err = &dnsprovider.RefusedError{Err: err}
		}
	}
	return a.zones.Forget(zone, err)
}
