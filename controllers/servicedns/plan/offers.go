package plan

import (
	"net/netip"
	"slices"
)

// RankUnseen is the Rank of an unreachable cluster that served when last seen.
const RankUnseen = int(unseen)

// Offer is what one cluster offers of a Service to clients in other clusters.
type Offer struct {
	// Object is the Service's Key.
	Object  string
	Cluster string
	Region  string
	// Zone is the cluster's; "" if it has none or several.
	Zone string
	// Addresses of its load balancers, including those of host names; sorted, without duplicates.
	Addresses []netip.Addr
	// Weight is its share of the traffic; 0 means drained.
	Weight uint32
	// Rank is 0 for a serving cluster, and higher for one that is drained, fails its check, or is unseen: RankUnseen.
	Rank int
	// Unresolved: a host name of its load balancers is not resolved yet. More addresses may follow.
	Unresolved bool
}

// recordOffers records what the clusters have of a Service, without those that have nothing.
func (p *planner) recordOffers(parts []*part) {
	if !p.in.Offers || p.object.Kind != KindService {
		return
	}
	for _, t := range parts {
		if t.rank == nothing {
			continue
		}
		o := Offer{Object: p.object.Key(), Cluster: t.Name, Region: t.Region, Weight: t.weight, Rank: int(t.rank), Addresses: slices.Clone(t.addresses)}
		if len(t.Zones) == 1 {
			o.Zone = t.Zones[0]
		}
		for _, host := range t.hosts {
			p.plan.Resolve = append(p.plan.Resolve, host)
			_, known := p.in.Resolved[host]
			o.Unresolved = o.Unresolved || !known
			o.Addresses = append(o.Addresses, p.hostAddresses(t.Name, host)...)
		}
		slices.SortFunc(o.Addresses, netip.Addr.Compare)
		o.Addresses = slices.Compact(o.Addresses)
		p.plan.Offers = append(p.plan.Offers, o)
	}
}
