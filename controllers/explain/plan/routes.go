package plan

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// explainRoutes decides by the functions that the load balancers run. It is pure.
func explainRoutes(r *RoutesEvidence, clusters []*v1beta1.Cluster) *v1beta1.RoutesExplanation {
	x := &v1beta1.RoutesExplanation{Unknown: r.Unknown}
	if !r.IsBalanced() {
		x.NotServed = fmt.Sprintf("its class is %q: each cluster's own controller of that class serves it, and the federation's load balancers only those of class %q", className(r), v1beta1.IngressClassName)
		if r.Ingress.DeletionTimestamp != nil {
			x.NotServed = "it is being deleted"
		}
		return x
	}
	x.LoadBalancers = LoadBalancersOf(r.Balancers)
	if !slices.ContainsFunc(x.LoadBalancers, func(b v1beta1.RegisteredLoadBalancer) bool { return b.Alive }) && len(r.Unknown) == 0 {
		x.Problems = append(x.Problems, "no load balancer of the federation is alive: nobody serves it")
	}
	if r.World.Services == nil {
		return x
	}
	table, key := loadbalancerplan.Routes(r.World), r.Ingress.Namespace+"/"+r.Ingress.Name
	for _, reason := range table.ReasonsOf(key) {
		x.Problems = append(x.Problems, reason.Message+phrase.Prefixed(": Ingress ", reason.Holder))
	}
	for _, name := range r.Missing {
		x.Problems = append(x.Problems, fmt.Sprintf("Secret %s: does not exist, so that hosts with it have no certificate", name))
	}
	pools := map[loadbalancerplan.PoolID]bool{}
	for _, route := range table.RoutesOf(key) {
		v := v1beta1.RouteExplanation{Host: route.Host, OwnHostsOnly: route.OwnHostsOnly, Passthrough: route.Passthrough, Path: route.Path, PathType: string(route.Type), Secret: route.Secret}
		if !route.Pool.IsZero() {
			v.Pool, pools[route.Pool] = route.Pool.String(), true
		}
		x.Routes = append(x.Routes, v)
	}
	for _, id := range slices.SortedFunc(maps.Keys(pools), func(a, b loadbalancerplan.PoolID) int { return strings.Compare(a.String(), b.String()) }) {
		x.Pools = append(x.Pools, explainPool(r, id, clusters))
	}
	return x
}

func className(r *RoutesEvidence) string {
	if r.Ingress.Spec.IngressClassName == nil {
		return ""
	}
	return *r.Ingress.Spec.IngressClassName
}

// explainPool decides a pool as each of the load balancers that are alive does; as one that is nowhere in particular if there is none.
func explainPool(r *RoutesEvidence, id loadbalancerplan.PoolID, clusters []*v1beta1.Cluster) v1beta1.PoolExplanation {
	in := loadbalancerplan.PoolInput{ID: id, Service: r.World.Services[id.Key()]}
	names := r.Names
	i := slices.IndexFunc(names.Objects, func(o servicednsplan.Object) bool { return o.Namespace == id.Namespace && o.Name == id.Service })
	if i < 0 {
		return v1beta1.PoolExplanation{Name: id.String()} // it could not be read, which is said
	}
	names.Objects = names.Objects[i : i+1]
	in.Settings = names.Objects[0].Settings
	decided := servicednsplan.Records(names)
	in.Offers = decided.Offers
	standings, whole := clusterStandings(decided)
	v := v1beta1.PoolExplanation{Name: id.String()}
	alike := map[string]int{}
	in.Balancers = balancerNames(r.Balancers)
	alive := slices.DeleteFunc(slices.Clone(r.Balancers), func(b loadbalancerplan.Registration) bool { return b.Problem != "" })
	if len(alive) == 0 {
		alive = []loadbalancerplan.Registration{{}}
	}
	for i := range alive {
		b := &alive[i]
		in.Site, in.Health, in.Own = loadbalancerplan.Site{Region: b.Region, Zone: b.Zone}, b.Health(), b.Own()
		pool := loadbalancerplan.DecidePool(in)
		shares := viewShares(pool, standings, clusters)
		v.Protocol = string(pool.Protocol)
		if whole != "" {
			shares.Notes = append(shares.Notes, whole)
		}
		text := fmt.Sprint(shares)
		at, known := alike[text]
		if !known {
			at, alike[text] = len(v.From), len(v.From)
			v.From = append(v.From, shares)
		}
		if b.Name != "" {
			v.From[at].LoadBalancers = append(v.From[at].LoadBalancers, b.Name)
		}
	}
	return v
}

// balancerNames returns the names of all load balancers that have registered, by their addresses.
func balancerNames(all []loadbalancerplan.Registration) map[netip.Addr]string {
	var registered []servicednsplan.LoadBalancer
	for i := range all {
		registered = append(registered, all[i].LoadBalancer)
	}
	return loadbalancerplan.NamesByAddress(registered)
}

// viewShares adds to the parts of a pool the clusters that have none, and why each counts as it does. standings are by cluster.
func viewShares(pool loadbalancerplan.Pool, standings map[string]string, clusters []*v1beta1.Cluster) (v v1beta1.SharesExplanation) {
	phases := map[string]string{}
	for _, c := range clusters {
		if c.Phase() != v1beta1.PhaseServing {
			phases[c.Name] = c.PhaseWithShare() + "; "
		}
	}
	v.Targets = []v1beta1.TargetExplanation{}
	parts := map[string]bool{}
	for _, part := range pool.Parts {
		parts[part.Cluster] = true
		t := v1beta1.TargetExplanation{Cluster: part.Cluster, Address: part.Address.String(), Percent: math.Round(1000*part.Share) / 10, Rank: part.Rank, Tier: part.Tier, Why: phases[part.Cluster] + part.Why}
		if why := standings[part.Cluster]; why != "serves" {
			t.Why += phrase.Prefixed("; ", why)
		}
		v.Targets = append(v.Targets, t)
	}
	for _, name := range slices.Sorted(maps.Keys(standings)) {
		if !parts[name] {
			v.Targets = append(v.Targets, v1beta1.TargetExplanation{Cluster: name, Why: phases[name] + standings[name]})
		}
	}
	for _, reason := range pool.Reasons {
		note := reason.Message
		if reason.Cluster != "" {
			note = reason.Cluster + ": " + note
		}
		v.Notes = append(v.Notes, note)
	}
	return v
}
