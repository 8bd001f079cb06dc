package route53

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"
)

// hostedZones returns the visibility of the hosted zones of a name, by ID: the API's list begins with them.
func (a *api) hostedZones(ctx context.Context, name string) (map[string]string, error) {
	zones, in := map[string]string{}, &route53.ListHostedZonesByNameInput{DNSName: aws.String(name)}
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
			zones[strings.TrimPrefix(aws.ToString(z.Id), "/hostedzone/")] = zoneVisibility(z)
		}
		if !out.IsTruncated {
			return zones, nil
		}
		in.DNSName, in.HostedZoneId = out.NextDNSName, out.NextHostedZoneId
	}
}

func zoneVisibility(z types.HostedZone) string {
	if z.Config != nil && z.Config.PrivateZone {
		return "private"
	}
	return "public"
}
