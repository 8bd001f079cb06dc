package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/dnsprovider"
)

// routesLost returns the routes of the federation's load balancers that a cluster serves now and none would then.
func routesLost(in *Input, then []*v1beta1.Cluster, lost []string) (gone []v1beta1.RouteLoss) {
	if in.Info == nil || len(in.Routes.Ingresses) == 0 {
		return nil
	}
	before, after := in.servedPools(in.Clusters, nil), in.servedPools(then, lost)
	table := loadbalancerplan.Routes(in.Routes)
	for _, i := range in.Routes.Ingresses {
		for _, r := range table.RoutesOf(i.Namespace + "/" + i.Name) {
			if service := r.Pool.Key(); before[service] && !after[service] {
				gone = append(gone, v1beta1.RouteLoss{Namespace: i.Namespace, Ingress: i.Name, Service: r.Pool.Service, Host: r.Host, Path: r.Path})
			}
		}
	}
	slices.SortFunc(gone, func(a, b v1beta1.RouteLoss) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Ingress, b.Ingress), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path))
	})
	return gone
}

// servedPools returns the Services of routes, as namespace/name, that some cluster beside the lost ones would answer for, be it a drained one.
func (in *Input) servedPools(clusters []*v1beta1.Cluster, lost []string) map[string]bool {
	zone, err := dnsprovider.CanonicalName(in.Info.DNSZone)
	if err != nil {
		return nil // the controllers do not start with such a zone
	}
	of := servicednsplan.Input{Federation: in.Info.Name, Zone: zone, TTL: uint32(in.Info.DNSTTL / time.Second), Clusters: in.servedClusters(clusters), Offers: true, Refuse: addressFilter(in.Info)}
	for _, o := range in.Named {
		if o.Kind == servicednsplan.KindService && in.Routes.Services[o.Namespace+"/"+o.Name] != nil {
			of.Objects = append(of.Objects, o)
		}
	}
	served := map[string]bool{}
	for _, o := range servicednsplan.Records(of).Offers {
		if o.Rank < servicednsplan.RankUnseen && !slices.Contains(lost, o.Cluster) && (len(o.Addresses) > 0 || o.Unresolved) {
			served[strings.TrimPrefix(o.Object, servicednsplan.KindService+" ")] = true
		}
	}
	return served
}

// balancersLost returns the load balancers in the lost zones and regions, and how many would be left; nil if none is lost.
func balancersLost(all []servicednsplan.LoadBalancer, spec v1beta1.FailoverReviewSpec) (gone []v1beta1.LoadBalancerLoss, left *int64) {
	for _, b := range all {
		zone := b.Zone != "" && (slices.Contains(spec.Zones, b.Zone) || slices.Contains(spec.Zones, b.Region+"/"+b.Zone))
		if !zone && (b.Region == "" || !slices.Contains(spec.Regions, b.Region)) {
			continue
		}
		one := v1beta1.LoadBalancerLoss{Name: b.Name, Region: b.Region, Zone: b.Zone}
		for _, a := range b.Addresses {
			one.Addresses = append(one.Addresses, a.String())
		}
		gone = append(gone, one)
	}
	slices.SortFunc(gone, func(a, b v1beta1.LoadBalancerLoss) int { return cmp.Compare(a.Name, b.Name) })
	if len(gone) > 0 {
		left = new(int64(len(all) - len(gone)))
	}
	return gone, left
}
