package plan

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
	// Unknown: nobody has seen yet what the cluster has of the object. There are no Addresses then.
	Unknown bool
}

// recordOffers records what the clusters have of a Service, without those that are known to have nothing.
func (p *planner) recordOffers(parts []*part) {
	if !p.in.Offers || p.object.Kind != KindService || p.object.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	for _, t := range parts {
		if t.rank == nothing {
			continue
		}
		o := p.newOffer(t)
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
	neverSeen := p.object.neverSeen()
	for i := range p.in.Clusters {
		c := &p.in.Clusters[i]
		if p.object.Reported && !neverSeen[c.Name] {
			continue
		}
		t := &part{Cluster: c, rank: unseen, weight: c.Weight}
		switch {
		case !c.Ready && !c.CutOff:
		case c.Weight == 0 || c.FailedOver && !c.CutOff:
			t.rank = drained
		default:
			t.rank = serving
		}
		o := p.newOffer(t)
		o.Unknown = true
		p.plan.Offers = append(p.plan.Offers, o)
	}
	slices.SortFunc(p.plan.Offers, func(a, b Offer) int { return strings.Compare(a.Cluster, b.Cluster) })
}

// neverSeen returns the clusters that have not been seen since the object was made, as after a restore.
func (o *Object) neverSeen() map[string]bool {
	clusters := map[string]bool{}
	if o.Ingresses != nil {
		for _, item := range o.Ingresses.Items {
			if !item.IsKnown() {
				clusters[item.Cluster] = true
			}
		}
	}
	return clusters
}

func (p *planner) newOffer(t *part) Offer {
	o := Offer{Object: p.object.Key(), Cluster: t.Name, Region: t.Region, Weight: t.weight, Rank: int(t.rank), Addresses: slices.Clone(t.addresses)}
	if len(t.Zones) == 1 {
		o.Zone = t.Zones[0]
	}
	return o
}
