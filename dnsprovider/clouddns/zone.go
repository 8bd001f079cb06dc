package clouddns

import (
	"context"

	"google.golang.org/api/dns/v1"

	"federation/dnsprovider"
	"federation/dnsprovider/batch"
)

// managedZones returns the visibility of those of the name, by their resource names.
func (a *api) managedZones(ctx context.Context, name string) (map[string]string, error) {
	zones := map[string]string{}
	for token := ""; ; {
		page, err := retry(ctx, a.service.ManagedZones.List(a.project).DnsName(name).PageToken(token).Context(ctx).Do)
		if err != nil {
			return nil, err
		}
		for _, z := range page.ManagedZones {
			zones[z.Name] = z.Visibility
		}
		if token = page.NextPageToken; token == "" {
			return zones, nil
		}
	}
}

// fromCloudDNS returns a record set in our form; false for those that are no plain sets, have names that we never
// write, such as wildcards, or are the zone's own.
func fromCloudDNS(r *dns.ResourceRecordSet, zone string) (dnsprovider.RRSet, bool) {
	if r.Name == zone && (r.Type == "SOA" || r.Type == "NS") || r.RoutingPolicy != nil || r.Ttl < 0 {
		return dnsprovider.RRSet{}, false
	}
	set, err := dnsprovider.New(r.Name, dnsprovider.Type(r.Type), uint32(r.Ttl), r.Rrdatas...)
	return set, err == nil
}

func toCloudDNS(sets []dnsprovider.RRSet) (list []*dns.ResourceRecordSet) {
	for _, set := range sets {
		list = append(list, &dns.ResourceRecordSet{Name: set.Name, Type: string(set.Type), Ttl: int64(set.TTL), Rrdatas: set.Rdata,
			ForceSendFields: []string{"Ttl"}}) // 0 too
	}
	return list
}

// stepSize returns how much of a Change a step fills, in bytes; a set counts as so many that both limits are
// kept.
func stepSize(step dnsprovider.Step) int {
	return max(max(len(step.Old), len(step.New))*(maxBytes/maxSets), batch.Characters(step))
}
