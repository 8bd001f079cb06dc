package route53

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"
	"golang.org/x/time/rate"

	"federation/dnsprovider"
	"federation/dnsprovider/batch"
)

// Options say which hosted zone is meant, and how Route 53 is reached. All may be empty.
type Options struct {
	// ZoneID is the hosted zone. Default: the only one that has the zone's name.
	ZoneID string
	// Region is that of the credentials. Default: what the SDK finds. Route 53 itself has none.
	Region string
	// Profile is the one of the shared files. Default: what the SDK finds.
	Profile string
	// Endpoint is the URL of the API. Default: the SDK's.
	Endpoint string
}

const (
	requestsPerSecond = 5
	maxAttempts       = 8
	// A change batch may have so many records, and characters in their values.
	maxRecords, maxCharacters = 1000, 32000
)

// api is the hosted zones of one account.
type api struct {
	client *route53.Client
	limit  *rate.Limiter
	zones  *batch.Zones
}

// New makes a provider. It fails when the SDK's configuration cannot be read; whether the credentials
// are good shows at the first use.
func New(ctx context.Context, o Options) (dnsprovider.Provider, error) {
	a, err := newAPI(ctx, o)
	if err != nil {
		return nil, err
	}
	return provider(a), nil
}

func provider(a *api) dnsprovider.Provider {
	return &batch.Provider{Name: "Route 53", Service: a, Most: maxCharacters, Size: stepSize}
}

func newAPI(ctx context.Context, o Options) (*api, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(o.Region), config.WithSharedConfigProfile(o.Profile),
		config.WithRetryMode(aws.RetryModeAdaptive), config.WithRetryMaxAttempts(maxAttempts))
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1" // where the API of the global service is
	}
	client := route53.NewFromConfig(cfg, func(r *route53.Options) {
		if o.Endpoint != "" {
			r.BaseEndpoint = aws.String(o.Endpoint)
		}
	})
	a := &api{client: client, limit: rate.NewLimiter(requestsPerSecond, requestsPerSecond)}
	a.zones = &batch.Zones{Kind: "hosted zone", Where: "in the account", ID: o.ZoneID, Named: a.hostedZones}
	return a, nil
}

// List returns the plain sets of the hosted zone. See batch.Service.
func (a *api) List(ctx context.Context, zone string, _ ...string) (sets []dnsprovider.RRSet, err error) {
	id, err := a.zones.Find(ctx, zone)
	if err != nil {
		return nil, err
	}
	in := &route53.ListResourceRecordSetsInput{HostedZoneId: aws.String(id)}
	for {
		if err := a.limit.Wait(ctx); err != nil {
			return nil, err
		}
		out, err := a.client.ListResourceRecordSets(ctx, in)
		if err != nil {
			return nil, a.zones.Forget(zone, err)
		}
		for _, theirs := range out.ResourceRecordSets {
			if set, ok := fromRoute53(theirs, zone); ok {
				sets = append(sets, set)
			}
		}
		if !out.IsTruncated {
			return sets, nil
		}
		in.StartRecordName, in.StartRecordType, in.StartRecordIdentifier = out.NextRecordName, out.NextRecordType, out.NextRecordIdentifier
	}
}

// Change sends one transaction. See batch.Service.
func (a *api) Change(ctx context.Context, zone string, changes dnsprovider.ChangeSet) error {
	id, err := a.zones.Find(ctx, zone)
	if err != nil {
		return err
	}
	transaction := &types.ChangeBatch{}
	for _, step := range changes {
		transaction.Changes = append(transaction.Changes, actions(types.ChangeActionDelete, step.Old)...)
		transaction.Changes = append(transaction.Changes, actions(types.ChangeActionCreate, step.New)...)
	}
	if err := a.limit.Wait(ctx); err != nil {
		return err
	}
	_, err = a.client.ChangeResourceRecordSets(ctx, &route53.ChangeResourceRecordSetsInput{HostedZoneId: aws.String(id), ChangeBatch: transaction})
	var refused *types.InvalidChangeBatch
	if errors.As(err, &refused) { // the error's own text leaves out what is wrong
		return &dnsprovider.RefusedError{Err: fmt.Errorf("%w: %s", err, strings.Join(refused.Messages, "; "))}
	}
	return a.zones.Forget(zone, err)
}
