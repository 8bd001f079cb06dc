package clouddns

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/api/dns/v1"

	"federation/dnsprovider"
	"federation/dnsprovider/batch"
)

// managedZone returns the resource name of the zone of that name. It fails when there is none or, as
// the same name may be public and private, more than one.
func (a *api) managedZone(ctx context.Context, zone string) (string, error) {
	if name, ok := a.known.Load(zone); ok {
		return name.(string), nil
	}
	zones, err := a.managedZones(ctx, zone)
	if err != nil {
		return "", err
	}
	if a.ManagedZone != "" {
		zones = slices.DeleteFunc(zones, func(z *dns.ManagedZone) bool { return z.Name != a.ManagedZone })
	}
	if len(zones) != 1 {
		return "", a.notOne(zones)
	}
	a.known.Store(zone, zones[0].Name)
	return zones[0].Name, nil
}

// notOne says what is wrong with none or several zones.
func (a *api) notOne(zones []*dns.ManagedZone) error {
	if len(zones) == 0 && a.ManagedZone != "" {
		return fmt.Errorf("project %q: no managed zone %q has that DNS name", a.Project, a.ManagedZone)
	}
	if len(zones) == 0 {
		return fmt.Errorf("project %q: no managed zone has that DNS name", a.Project)
	}
	var found []string
	for _, z := range zones {
		found = append(found, z.Name+" "+z.Visibility)
	}
	return fmt.Errorf("project %q: %d managed zones have that DNS name (%s): say which one", a.Project, len(zones), strings.Join(found, ", "))
}

// managedZones lists those of the name.
func (a *api) managedZones(ctx context.Context, zone string) (zones []*dns.ManagedZone, err error) {
	for token := ""; ; {
		page, err := again(ctx, a.service.ManagedZones.List(a.Project).DnsName(zone).PageToken(token).Context(ctx).Do)
		if err != nil {
			return nil, err
		}
		zones = append(zones, page.ManagedZones...)
		if token = page.NextPageToken; token == "" {
			return zones, nil
		}
	}
}

// ours is a record set in our form; false for those that are no plain sets, have names that we never
// write, such as wildcards, or are the zone's own.
func ours(r *dns.ResourceRecordSet, zone string) (dnsprovider.RRSet, bool) {
	if r.Name == zone && (r.Type == "SOA" || r.Type == "NS") || r.RoutingPolicy != nil || r.Ttl < 0 {
		return dnsprovider.RRSet{}, false
	}
	set, err := dnsprovider.New(r.Name, dnsprovider.Type(r.Type), uint32(r.Ttl), r.Rrdatas...)
	return set, err == nil
}

func theirs(sets []dnsprovider.RRSet) (list []*dns.ResourceRecordSet) {
	for _, set := range sets {
		list = append(list, &dns.ResourceRecordSet{Name: set.Name, Type: string(set.Type), Ttl: int64(set.TTL), Rrdatas: set.Rdata,
			ForceSendFields: []string{"Ttl"}}) // 0 too
	}
	return list
}

// size is how much of a Change a step fills, in bytes; a set counts as so many that both limits are
// kept.
func size(step dnsprovider.Step) int {
	return max(max(len(step.Old), len(step.New))*(maxBytes/maxSets), batch.Characters(step))
}
