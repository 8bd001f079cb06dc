package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// routesExplanation says how the federation's load balancers serve an Ingress.
type routesExplanation struct {
	// NotServed is why they do not serve it.
	NotServed     string         `json:"notServed,omitempty"`
	LoadBalancers []balancerView `json:"loadBalancers,omitempty"`
	Routes        []routeView    `json:"routes,omitempty"`
	Pools         []poolView     `json:"pools,omitempty"`
	// Problems say what of the Ingress is not as it asks for.
	Problems []string `json:"problems,omitempty"`
	// Unknown says what the user may not read, and so is not said here.
	Unknown []string `json:"unknown,omitempty"`
}

// routeView is a host and path that requests are matched by.
type routeView struct {
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

// poolView says where requests to a port of a Service go.
type poolView struct {
	// Name is NAMESPACE/SERVICE:PORT.
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	// From are load balancers that divide requests alike.
	From []sharesView `json:"from"`
}

// sharesView says how some load balancers divide requests.
type sharesView struct {
	LoadBalancers []string     `json:"loadBalancers,omitempty"`
	Targets       []targetView `json:"targets"`
	Notes         []string     `json:"notes,omitempty"`
}

// targetView is a load balancer of a cluster, or a cluster that has none to use.
type targetView struct {
	Cluster string `json:"cluster"`
	Address string `json:"address,omitempty"`
	// Percent of new requests.
	Percent float64 `json:"percent"`
	Rank    string  `json:"rank,omitempty"`
	Tier    int     `json:"tier"`
	Why     string  `json:"why"`
}

// explainRoutes decides by the functions that the load balancers run. It is pure.
func explainRoutes(r *routesEvidence, clusters []*v1beta1.Cluster) *routesExplanation {
	x := &routesExplanation{Unknown: r.unknown}
	if !r.isBalanced() {
		x.NotServed = fmt.Sprintf("its class is %q: each cluster's own controller of that class serves it, and the federation's load balancers only those of class %q", className(r), v1beta1.IngressClassName)
		if r.ingress.DeletionTimestamp != nil {
			x.NotServed = "it is being deleted"
		}
		return x
	}
	x.LoadBalancers = viewBalancers(r.balancers)
	if !slices.ContainsFunc(x.LoadBalancers, func(b balancerView) bool { return b.Alive }) && len(r.unknown) == 0 {
		x.Problems = append(x.Problems, "no load balancer of the federation is alive: nobody serves it")
	}
	if r.world.Services == nil {
		return x
	}
	table, key := loadbalancerplan.Routes(r.world), r.ingress.Namespace+"/"+r.ingress.Name
	for _, reason := range table.ReasonsOf(key) {
		x.Problems = append(x.Problems, reason.Message+phrase.Prefixed(": Ingress ", reason.Holder))
	}
	for _, name := range r.missing {
		x.Problems = append(x.Problems, fmt.Sprintf("Secret %s: does not exist, so that hosts with it have no certificate", name))
	}
	pools := map[loadbalancerplan.PoolID]bool{}
	for _, route := range table.RoutesOf(key) {
		v := routeView{Host: route.Host, OwnHostsOnly: route.OwnHostsOnly, Path: route.Path, Type: string(route.Type), Secret: route.Secret}
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

func className(r *routesEvidence) string {
	if r.ingress.Spec.IngressClassName == nil {
		return ""
	}
	return *r.ingress.Spec.IngressClassName
}

// explainPool decides a pool as each of the load balancers that are alive does; as one that is nowhere in particular if there is none.
func explainPool(r *routesEvidence, id loadbalancerplan.PoolID, clusters []*v1beta1.Cluster) poolView {
	in := loadbalancerplan.PoolInput{ID: id, Service: r.world.Services[id.Key()]}
	names := r.names
	i := slices.IndexFunc(names.Objects, func(o servicednsplan.Object) bool { return o.Namespace == id.Namespace && o.Name == id.Service })
	if i < 0 {
		return poolView{Name: id.String()} // it could not be read, which is said
	}
	names.Objects = names.Objects[i : i+1]
	in.Settings = names.Objects[0].Settings
	decided := servicednsplan.Records(names)
	in.Offers = decided.Offers
	standings, whole := clusterStandings(decided)
	v := poolView{Name: id.String()}
	alike := map[string]int{}
	alive := slices.DeleteFunc(slices.Clone(r.balancers), func(b loadbalancerplan.Registration) bool { return b.Problem != "" })
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
func viewShares(pool loadbalancerplan.Pool, standings map[string]string, clusters []*v1beta1.Cluster) (v sharesView) {
	phases := map[string]string{}
	for _, c := range clusters {
		if c.Phase() != v1beta1.PhaseServing {
			phases[c.Name] = c.PhaseWithShare() + "; "
		}
	}
	v.Targets = []targetView{}
	parts := map[string]bool{}
	for _, part := range pool.Parts {
		parts[part.Cluster] = true
		t := targetView{Cluster: part.Cluster, Address: part.Address.String(), Percent: math.Round(1000*part.Share) / 10, Rank: part.Rank, Tier: part.Tier, Why: phases[part.Cluster] + part.Why}
		if why := standings[part.Cluster]; why != "serves" {
			t.Why += phrase.Prefixed("; ", why)
		}
		v.Targets = append(v.Targets, t)
	}
	for _, name := range slices.Sorted(maps.Keys(standings)) {
		if !parts[name] {
			v.Targets = append(v.Targets, targetView{Cluster: name, Why: phases[name] + standings[name]})
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

// printRoutes prints tables of at most `rows` rows.
func printRoutes(out io.Writer, x *routesExplanation, rows int, now time.Time) {
	if x == nil {
		return
	}
	if x.NotServed != "" {
		tell(out, "\nNot served by the federation's load balancers: %s\n", x.NotServed)
		return
	}
	printBalancers(out, x.LoadBalancers, rows, now)
	if len(x.Routes) > 0 {
		w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
		tell(w, "\nHOST\tPATH\tCERTIFICATE\tGOES TO\n")
		for _, r := range x.Routes[:min(rows, len(x.Routes))] {
			tell(w, "%s\t%s\t%s\t%s\n", r.hostText(), r.pathText(), cmp.Or(r.Secret, "-"), r.poolText())
		}
		_ = w.Flush() // nobody reads the error
		if more := len(x.Routes) - rows; more > 0 {
			tell(out, "And %s more (--all shows them)\n", phrase.Count(int64(more), "route"))
		}
	}
	for _, p := range x.Pools {
		for _, from := range p.From {
			printShares(out, p, from, rows)
		}
	}
	for i, problem := range x.Problems {
		tell(out, "%s  %s\n", map[bool]string{true: "\nProblems:\n"}[i == 0], problem)
	}
	for i, unknown := range x.Unknown {
		tell(out, "%s  %s\n", map[bool]string{true: "\nNot known, because you may not read it:\n"}[i == 0], unknown)
	}
}

func (r routeView) hostText() string {
	switch {
	case r.Host != "":
		return r.Host
	case r.OwnHostsOnly:
		return "all hosts of the namespace"
	}
	return "hosts that nobody has"
}

func (r routeView) pathText() string {
	if r.Type == "" {
		return "default backend"
	}
	return fmt.Sprintf("%s (%s)", r.Path, r.Type)
}

func (r routeView) poolText() string {
	return cmp.Or(r.Pool, "503")
}

// printShares prints how some load balancers divide the requests of a pool.
func printShares(out io.Writer, p poolView, from sharesView, rows int) {
	by := ""
	if len(from.LoadBalancers) > 0 {
		by = ", by " + phrase.Some(from.LoadBalancers)
	}
	tell(out, "\nRequests to %s (%s)%s:\n", p.Name, p.Protocol, by)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	tell(w, "CLUSTER\tSHARE\tADDRESS\tWHY\n")
	for _, t := range from.Targets[:min(rows, len(from.Targets))] {
		share, address := fmt.Sprintf("%.1f %%", t.Percent), t.Address
		if t.Address == "" {
			share, address = "-", "-"
		}
		tell(w, "%s\t%s\t%s\t%s\n", t.Cluster, share, address, t.Why)
	}
	_ = w.Flush() // nobody reads the error
	if more := len(from.Targets) - rows; more > 0 {
		tell(out, "And %s more (--all shows them)\n", phrase.Count(int64(more), "target"))
	}
	for _, note := range from.Notes {
		tell(out, "Note: %s\n", note)
	}
}
