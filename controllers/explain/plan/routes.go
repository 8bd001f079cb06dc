package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// RoutesExplanation says how the federation's load balancers serve an Ingress.
type RoutesExplanation struct {
	// NotServed is why they do not serve it.
	NotServed     string         `json:"notServed,omitempty"`
	LoadBalancers []LoadBalancer `json:"loadBalancers,omitempty"`
	Routes        []RouteView    `json:"routes,omitempty"`
	Pools         []PoolView     `json:"pools,omitempty"`
	// Problems say what of the Ingress is not as it asks for.
	Problems []string `json:"problems,omitempty"`
	// Unknown says what the user may not read, and so is not said here.
	Unknown []string `json:"unknown,omitempty"`
}

// RouteView is a host and path that requests are matched by.
type RouteView struct {
	// Host is empty for rules without one: any host that no Ingress names or, with ownHostsOnly, those of the namespace alone.
	Host         string `json:"host,omitempty"`
	OwnHostsOnly bool   `json:"ownHostsOnly,omitempty"`
	// Path and Type are empty for the default backend.
	Path string `json:"path,omitempty"`
	Type string `json:"pathType,omitempty"`
	// Secret has the certificate, if there is one.
	Secret string `json:"secret,omitempty"`
	// Pool names one of the pools; empty for a backend that does not exist, which is answered with 503.
	Pool string `json:"pool,omitempty"`
}

// PoolView says where requests to a port of a Service go.
type PoolView struct {
	// Name is NAMESPACE/SERVICE:PORT.
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	// From are load balancers that divide requests alike.
	From []SharesView `json:"from"`
}

// SharesView says how some load balancers divide requests.
type SharesView struct {
	LoadBalancers []string     `json:"loadBalancers,omitempty"`
	Targets       []TargetView `json:"targets"`
	Notes         []string     `json:"notes,omitempty"`
}

// TargetView is a load balancer of a cluster, or a cluster that has none to use.
type TargetView struct {
	Cluster string `json:"cluster"`
	Address string `json:"address,omitempty"`
	// Percent of new requests.
	Percent float64 `json:"percent"`
	Rank    string  `json:"rank,omitempty"`
	Tier    int     `json:"tier"`
	Why     string  `json:"why"`
}

// explainRoutes decides by the functions that the load balancers run. It is pure.
func explainRoutes(r *RoutesEvidence, clusters []*v1beta1.Cluster) *RoutesExplanation {
	x := &RoutesExplanation{Unknown: r.Unknown}
	if !r.IsBalanced() {
		x.NotServed = fmt.Sprintf("its class is %q: each cluster's own controller of that class serves it, and the federation's load balancers only those of class %q", className(r), v1beta1.IngressClassName)
		if r.Ingress.DeletionTimestamp != nil {
			x.NotServed = "it is being deleted"
		}
		return x
	}
	x.LoadBalancers = LoadBalancersOf(r.Balancers)
	if !slices.ContainsFunc(x.LoadBalancers, func(b LoadBalancer) bool { return b.Alive }) && len(r.Unknown) == 0 {
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
		v := RouteView{Host: route.Host, OwnHostsOnly: route.OwnHostsOnly, Path: route.Path, Type: string(route.Type), Secret: route.Secret}
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
func explainPool(r *RoutesEvidence, id loadbalancerplan.PoolID, clusters []*v1beta1.Cluster) PoolView {
	in := loadbalancerplan.PoolInput{ID: id, Service: r.World.Services[id.Key()]}
	names := r.Names
	i := slices.IndexFunc(names.Objects, func(o servicednsplan.Object) bool { return o.Namespace == id.Namespace && o.Name == id.Service })
	if i < 0 {
		return PoolView{Name: id.String()} // it could not be read, which is said
	}
	names.Objects = names.Objects[i : i+1]
	in.Settings = names.Objects[0].Settings
	decided := servicednsplan.Records(names)
	in.Offers = decided.Offers
	standings, whole := clusterStandings(decided)
	v := PoolView{Name: id.String()}
	alike := map[string]int{}
	alive := slices.DeleteFunc(slices.Clone(r.Balancers), func(b loadbalancerplan.Registration) bool { return b.Problem != "" })
	if len(alive) == 0 {
		alive = []loadbalancerplan.Registration{{}}
	}
	for i := range alive {
		b := &alive[i]
		in.Site, in.Health = loadbalancerplan.Site{Region: b.Region, Zone: b.Zone}, b.Health()
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

// viewShares adds to the parts of a pool the clusters that have none, and why each counts as it does. standings are by cluster.
func viewShares(pool loadbalancerplan.Pool, standings map[string]string, clusters []*v1beta1.Cluster) (v SharesView) {
	phases := map[string]string{}
	for _, c := range clusters {
		if c.Phase() != v1beta1.PhaseServing {
			phases[c.Name] = c.PhaseWithShare() + "; "
		}
	}
	v.Targets = []TargetView{}
	parts := map[string]bool{}
	for _, part := range pool.Parts {
		parts[part.Cluster] = true
		t := TargetView{Cluster: part.Cluster, Address: part.Address.String(), Percent: math.Round(1000*part.Share) / 10, Rank: part.Rank, Tier: part.Tier, Why: phases[part.Cluster] + part.Why}
		if why := standings[part.Cluster]; why != "serves" {
			t.Why += phrase.Prefixed("; ", why)
		}
		v.Targets = append(v.Targets, t)
	}
	for _, name := range slices.Sorted(maps.Keys(standings)) {
		if !parts[name] {
			v.Targets = append(v.Targets, TargetView{Cluster: name, Why: phases[name] + standings[name]})
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
