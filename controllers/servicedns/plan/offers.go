package plan

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
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
	// ByPods: the Service has no load balancers, so the cluster offers pods. Whoever has seen its endpoints adds the Addresses.
	ByPods bool
	// Network, PodCIDRs and LoadBalancerCIDRs are the Cluster's, of an offer of pods.
	Network                     string
	PodCIDRs, LoadBalancerCIDRs []string
	// CutOff: the cluster cannot be reached, and counts as before, because most vanished together.
	CutOff bool
}

// IsServedByPods reports whether clusters offer each other pods of an object: it is a Service that has no load balancers.
func (o *Object) IsServedByPods() bool {
	return o.Kind == KindService && (o.Type == "" || o.Type == corev1.ServiceTypeClusterIP || o.Type == corev1.ServiceTypeNodePort)
}

// OffersOfPods returns what clusters offer of a Service that IsServedByPods, sorted by cluster. settings are the Service's, or nil.
func OffersOfPods(clusters []Cluster, settings *v1beta1.DNSSettings) []Offer {
	offers := make([]Offer, 0, len(clusters))
	for i := range clusters {
		c := &clusters[i]
		weight := weightOf(c, settings)
		offers = append(offers, Offer{
			Cluster: c.Name, Region: c.Region, Zone: c.onlyZone(), Weight: weight, Rank: int(standingOf(c, weight)), CutOff: c.CutOff,
			ByPods: true, Network: c.Network, PodCIDRs: c.PodCIDRs, LoadBalancerCIDRs: c.LoadBalancerCIDRs,
		})
	}
	slices.SortFunc(offers, func(a, b Offer) int { return strings.Compare(a.Cluster, b.Cluster) })
	return offers
}

// standingOf ranks a cluster by itself, whatever it has of an object.
func standingOf(c *Cluster, weight uint32) rank {
	switch {
	case (!c.Ready || c.HeartbeatsStale) && !c.CutOff:
		return unseen
	case weight == 0 || c.FailedOver && !c.CutOff:
		return drained
	}
	return serving
}

// weightOf returns a cluster's weight for an object with these settings, or nil. One that is drained stays so.
func weightOf(c *Cluster, settings *v1beta1.DNSSettings) uint32 {
	if settings == nil || c.Weight == 0 {
		return c.Weight
	}
	if of := settings.ForCluster(c.Name); of.Weight != nil {
		return uint32(*of.Weight)
	}
	return c.Weight
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
		o := p.newOffer(&part{Cluster: c, rank: standingOf(c, c.Weight), weight: c.Weight})
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
	return Offer{Object: p.key, Cluster: t.Name, Region: t.Region, Zone: t.onlyZone(), Weight: t.weight, Rank: int(t.rank), Addresses: slices.Clone(t.addresses)}
}
