package plan

import (
	"net/netip"
	"slices"
)

// RankUnseen is the Rank of a cluster that cannot be reached, and served when it was last seen.
const RankUnseen = int(unseen)

// Offer is what one cluster has of a Service for clients in other clusters.
type Offer struct {
	// Object is the Service's Key.
	Object  string
	Cluster string
	Region  string
	// Zone is the cluster's; "" where it has none or several.
	Zone string
	// Addresses of its load balancers, those of their host names too; sorted, without duplicates.
	Addresses []netip.Addr
	// Weight is its share of what is divided over clusters; 0: drained.
	Weight uint32
	// Rank is 0 for a cluster that serves, and higher for one that is drained, fails its check, or is not seen: RankUnseen.
	Rank int
	// Unresolved: a host name of its load balancers has not been looked up yet. More addresses may come.
	Unresolved bool
}

// offer notes what the clusters have of a Service, those that have nothing left out.
func (p *planner) offer(parts []*part) {
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
			o.Addresses = append(o.Addresses, p.resolved(t.Name, host)...)
		}
		slices.SortFunc(o.Addresses, netip.Addr.Compare)
		o.Addresses = slices.Compact(o.Addresses)
		p.plan.Offers = append(p.plan.Offers, o)
	}
}
