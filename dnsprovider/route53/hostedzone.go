package route53

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"
)

// hostedZone returns the ID of the hosted zone of that name. It fails when there is none or, as the
// same name may be public and private, more than one.
func (a *api) hostedZone(ctx context.Context, zone string) (string, error) {
	if id, ok := a.known.Load(zone); ok {
		return id.(string), nil
	}
	zones, err := a.hostedZones(ctx, zone)
	if err != nil {
		return "", err
	}
	if a.zoneID != "" {
		zones = slices.DeleteFunc(zones, func(z types.HostedZone) bool { return shortID(z) != a.zoneID })
	}
	if len(zones) != 1 {
		return "", a.notOne(zones)
	}
	a.known.Store(zone, shortID(zones[0]))
	return shortID(zones[0]), nil
}

// notOne says what is wrong with none or several hosted zones.
func (a *api) notOne(zones []types.HostedZone) error {
	if len(zones) == 0 && a.zoneID != "" {
		return fmt.Errorf("no hosted zone of that name has the ID %q", a.zoneID)
	}
	if len(zones) == 0 {
		return fmt.Errorf("there is no hosted zone of that name in the account")
	}
	var found []string
	for _, z := range zones {
		kind := "public"
		if z.Config != nil && z.Config.PrivateZone {
			kind = "private"
		}
		found = append(found, shortID(z)+" "+kind)
	}
	return fmt.Errorf("there are %d hosted zones of that name (%s): say which one by its ID", len(zones), strings.Join(found, ", "))
}

// shortID is what the API takes: it gives IDs as "/hostedzone/Z1".
func shortID(z types.HostedZone) string {
	return strings.TrimPrefix(aws.ToString(z.Id), "/hostedzone/")
}

// hostedZones lists those of the name: the API's list begins with them.
func (a *api) hostedZones(ctx context.Context, name string) (zones []types.HostedZone, err error) {
	in := &route53.ListHostedZonesByNameInput{DNSName: aws.String(name)}
	for {
		if err := a.limit.Wait(ctx); err != nil {
			return nil, err
		}
		out, err := a.client.ListHostedZonesByName(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, z := range out.HostedZones {
			if aws.ToString(z.Name) != name {
				return zones, nil
			}
			zones = append(zones, z)
		}
		if !out.IsTruncated {
			return zones, nil
		}
		in.DNSName, in.HostedZoneId = out.NextDNSName, out.NextHostedZoneId
	}
}
