package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

const unseen = servicednsplan.RankUnseen

// poolInput has a load balancer in region east.
func poolInput(offers ...servicednsplan.Offer) PoolInput {
	return PoolInput{ID: PoolID{Namespace: "shop", Service: "a", Port: 80}, Site: Site{Region: "east"}, Service: service("shop", "a"), Offers: offers, Health: map[Target]Health{}}
}

func TestWhereRequestsGo(t *testing.T) {
	a, b, w := offer("east-a", 0, 100, "192.0.2.1"), offer("east-b", 0, 100, "192.0.2.2"), offer("west-a", 0, 100, "192.0.2.3")
	failing := func(targets ...string) func(*PoolInput) {
		return func(in *PoolInput) {
			for _, at := range targets {
				in.Health[target(at)] = Health{Failing: true}
			}
		}
	}
	ejected := func(targets ...string) func(*PoolInput) {
		return func(in *PoolInput) {
			for _, at := range targets {
				in.Health[target(at)] = Health{Ejected: true}
			}
		}
	}
	below := func(percent string, then func(*PoolInput)) func(*PoolInput) {
		return func(in *PoolInput) {
			in.Service.Annotations = map[string]string{v1beta1.FallbackBelowAnnotation: percent}
			then(in)
		}
	}
	nothing := func(*PoolInput) {}
	for name, c := range map[string]struct {
		in     PoolInput
		change func(*PoolInput)
		want   string
	}{
		"own region first":                                  {poolInput(a, b, w), nothing, "east-a 50, east-b 50, west-a by"},
		"no region: all alike":                              {poolInput(a, b, w), func(in *PoolInput) { in.Site = Site{} }, "east-a 33.33, east-b 33.33, west-a 33.33"},
		"nothing of the own region serves":                  {poolInput(w), nothing, "west-a 100"},
		"weights inside of a tier":                          {poolInput(a, offer("east-b", 0, 300, "192.0.2.2"), w), nothing, "east-a 25, east-b 75, west-a by"},
		"addresses of a cluster share evenly":               {poolInput(a, offer("east-b", 0, 100, "192.0.2.2,192.0.2.4")), nothing, "east-a 50, east-b 25, east-b 25"},
		"one of two fails: its share goes to the next tier": {poolInput(a, b, w), failing("east-a 192.0.2.1"), "east-b 50, west-a 50, east-a out"},
		"fallback-below 50%: the other one can take it":     {poolInput(a, b, w), below("50%", failing("east-a 192.0.2.1")), "east-b 100, west-a by, east-a out"},
		"fallback-below 80%":                                {poolInput(a, b, w), below("80%", failing("east-a 192.0.2.1")), "east-b 62.5, west-a 37.5, east-a out"},
		"one of two fails, and there is no next tier":       {poolInput(a, b), failing("east-a 192.0.2.1"), "east-b 100, east-a out"},
		"one of two addresses fails: half of the cluster":   {poolInput(a, offer("east-b", 0, 100, "192.0.2.2,192.0.2.4"), w), failing("east-b 192.0.2.4"), "east-a 50, east-b 25, west-a 25, east-b out"},
		"the region fails":                                  {poolInput(a, b, w), failing("east-a 192.0.2.1", "east-b 192.0.2.2"), "west-a 100, east-a out, east-b out"},
		"all fail: all stay":                                {poolInput(a, b, w), failing("east-a 192.0.2.1", "east-b 192.0.2.2", "west-a 192.0.2.3"), "east-a 50, east-b 50, west-a out"},
		"drained gets nothing while others serve":           {poolInput(offer("east-a", 1, 0, "192.0.2.1"), b, w), nothing, "east-b 100, west-a by, east-a by"},
		"drained is used before another region that fails":  {poolInput(offer("east-a", 1, 0, "192.0.2.1"), w), failing("west-a 192.0.2.3"), "east-a 100, west-a out"},
		"all drained: they serve":                           {poolInput(offer("east-a", 1, 0, "192.0.2.1"), offer("east-b", 1, 0, "192.0.2.2")), nothing, "east-a 50, east-b 50"},
		"unseen gets nothing, and is missed":                {poolInput(offer("east-a", unseen, 100, "192.0.2.1"), b, w), nothing, "east-b 50, west-a 50, east-a by"},
		"all unseen: they stay":                             {poolInput(offer("east-a", unseen, 100, "192.0.2.1"), offer("west-a", unseen, 100, "192.0.2.3")), nothing, "east-a 100, west-a by"},
		"failing the federation's check, and missed":        {poolInput(offer("east-a", 2, 100, "192.0.2.1"), b, w), nothing, "east-b 50, west-a 50, east-a by"},
		"a serving one that is not reached, and one unseen": {poolInput(a, offer("west-a", unseen, 100, "192.0.2.3")), failing("east-a 192.0.2.1"), "west-a 100, east-a out"},
		"one is ejected":                                    {poolInput(a, b, w), ejected("east-a 192.0.2.1"), "east-b 50, west-a 50, east-a out"},
		"more than half are ejected: that does not count":   {poolInput(a, b, w), ejected("east-a 192.0.2.1", "east-b 192.0.2.2"), "east-a 50, east-b 50, west-a by"},
		"one fails, one is ejected, of two":                 {poolInput(a, b), func(in *PoolInput) { failing("east-a 192.0.2.1")(in); ejected("east-b 192.0.2.2")(in) }, "east-b 100, east-a out"},
		"one fails, one is ejected, of three":               {poolInput(a, b, w), func(in *PoolInput) { failing("east-a 192.0.2.1")(in); ejected("east-b 192.0.2.2")(in) }, "west-a 100, east-a out, east-b out"},
		"one that is back begins with little":               {poolInput(a, b), func(in *PoolInput) { in.Health[target("east-a 192.0.2.1")] = Health{Cold: 0.9} }, "east-a 9.091, east-b 90.91"},
		"a region that is back begins with little":          {poolInput(a, w), func(in *PoolInput) { in.Health[target("east-a 192.0.2.1")] = Health{Cold: 0.9} }, "east-a 10, west-a 90"},
		"the last one is not kept cold":                     {poolInput(a), func(in *PoolInput) { in.Health[target("east-a 192.0.2.1")] = Health{Cold: 1} }, "east-a 100"},
		"an address that is back begins with little":        {poolInput(offer("east-b", 0, 100, "192.0.2.2,192.0.2.4")), func(in *PoolInput) { in.Health[target("east-b 192.0.2.2")] = Health{Cold: 0.5} }, "east-b 33.33, east-b 66.67"},
		"no offers":                  {poolInput(), nothing, ""},
		"an offer without addresses": {poolInput(offer("east-a", 0, 100, ""), w), nothing, "west-a 100"},
		"failover goes by priorities, not by regions": {poolInput(a, b, w), func(in *PoolInput) {
			in.Settings = &v1beta1.DNSSettings{Strategy: v1beta1.DNSFailover, Clusters: map[string]v1beta1.DNSClusterSettings{"west-a": {Priority: 1}, "*": {Priority: 7}, "east-b": {Priority: 9}}}
		}, "west-a 100, east-a by, east-b by"},
		"failover goes down one step": {poolInput(a, b, w), func(in *PoolInput) {
			in.Settings = &v1beta1.DNSSettings{Strategy: v1beta1.DNSFailover, Clusters: map[string]v1beta1.DNSClusterSettings{"west-a": {Priority: 1}, "*": {Priority: 7}, "east-b": {Priority: 9}}}
			failing("west-a 192.0.2.3")(in)
		}, "east-a 100, east-b by, west-a out"},
	} {
		c.change(&c.in)
		got := DecidePool(c.in)
		if show(got) != c.want {
			t.Errorf("%s: got %q, want %q; reasons %v", name, show(got), c.want, got.Reasons)
		}
		for _, p := range got.Parts {
			if p.Why == "" {
				t.Errorf("%s: %s has no reason", name, p.Target)
			}
		}
	}
}

func TestReasonsOfPools(t *testing.T) {
	for want, in := range map[string]PoolInput{
		"Service shop/a: no cluster has an address that serves": poolInput(),
		"Service shop/a: no address answers the checks": func() PoolInput {
			in := poolInput(offer("east-a", 0, 100, "192.0.2.1"))
			in.Health[target("east-a 192.0.2.1")] = Health{Failing: true}
			return in
		}(),
		"Service shop/a: requests fail or wait at 1 of 1 addresses": func() PoolInput {
			in := poolInput(offer("east-a", 0, 100, "192.0.2.1"))
			in.Health[target("east-a 192.0.2.1")] = Health{Ejected: true}
			return in
		}(),
		"Service shop/a in cluster east-a: used though it is drained":                        poolInput(offer("east-a", 1, 0, "192.0.2.1")),
		"Service shop/a in cluster east-a: used though it is unseen":                         poolInput(offer("east-a", unseen, 1, "192.0.2.1")),
		"Service shop/a in cluster east-a: used though it is failing the federation's check": poolInput(offer("east-a", 2, 1, "192.0.2.1")),
	} {
		got := DecidePool(in).Reasons
		if !slices.ContainsFunc(got, func(r Reason) bool { return strings.HasPrefix(r.String(), want) }) {
			t.Errorf("reasons %v, want one that begins with %q", got, want)
		}
	}
	if got := DecidePool(poolInput(offer("east-a", 0, 100, "192.0.2.1"))).Reasons; len(got) > 0 {
		t.Errorf("reasons where all is as usual: %v", got)
	}
}

// TestAddressesThatLeadBack: those of load balancers of the federation and of this machine are no targets, in whatever form a cluster says them.
func TestAddressesThatLeadBack(t *testing.T) {
	balancers := NamesByAddress([]servicednsplan.LoadBalancer{{Name: "one", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.201"), netip.MustParseAddr("2001:db8::201")}}})
	own := map[netip.Addr]bool{netip.MustParseAddr("198.51.100.7"): true, netip.MustParseAddr("192.0.2.201"): true}
	const registered, machine = "it is that of the federation's load balancer one", "it is one of the load balancer's own machine"
	for said, c := range map[string]struct{ parts, why string }{
		"192.0.2.1": {"east-a 100", ""}, "192.0.2.201": {"", registered}, "::ffff:192.0.2.201": {"", registered}, "64:ff9b::192.0.2.201": {"", registered},
		"2002:c000:2c9::1": {"", registered}, "2001:db8::201": {"", registered}, "198.51.100.7": {"", machine},
		"192.0.2.201,192.0.2.1": {"east-a 100", registered}, "198.51.100.7,192.0.2.1,192.0.2.2": {"east-a 50, east-a 50", machine},
	} {
		p := DecidePool(PoolInput{ID: PoolID{Namespace: "shop", Service: "a", Port: 80}, Service: service("shop", "a"), Offers: []servicednsplan.Offer{offer("east-a", 0, 100, said)}, Balancers: balancers, Own: own})
		if got := show(p); got != c.parts {
			t.Errorf("%s: %q, want %q", said, got, c.parts)
		}
		told := slices.ContainsFunc(p.Reasons, func(r Reason) bool { return r.Cluster == "east-a" && c.why != "" && strings.Contains(r.Message, c.why) })
		if refused := len(p.Refused) == 1 && p.Refused[0].Own == (c.why == machine); told != (c.why != "") || told != refused {
			t.Errorf("%s: reasons %v, refused %v; want %q", said, p.Reasons, p.Refused, c.why)
		}
	}
	two := PoolInput{ID: PoolID{Namespace: "shop", Service: "a", Port: 80}, Balancers: balancers, Offers: []servicednsplan.Offer{offer("east-a", 0, 100, "192.0.2.201"), offer("west-a", 0, 100, "192.0.2.2")}}
	if got := show(DecidePool(two)); got != "west-a 100" {
		t.Errorf("the others of two clusters: %q", got)
	}
}

func TestProtocols(t *testing.T) {
	for protocol, want := range map[string]Protocol{"": HTTP, "http": HTTP, "kubernetes.io/h2c": H2C, "grpc": H2C, "https": HTTPS, "kubernetes.io/ws": HTTP, "kubernetes.io/wss": HTTPS, "example.com/own": HTTP} {
		in := poolInput()
		if protocol != "" {
			in.Service.Spec.Ports[0].AppProtocol = &protocol
		}
		if got := DecidePool(in).Protocol; got != want {
			t.Errorf("appProtocol %q: %s, want %s", protocol, got, want)
		}
	}
	in := poolInput()
	in.Settings = &v1beta1.DNSSettings{HealthCheck: &v1beta1.DNSHealthCheck{Type: v1beta1.DNSHealthCheckHTTP}}
	if got := DecidePool(in).Check; got == nil || got.Path != "/" {
		t.Errorf("check %v, want one of the path /", got)
	}
}

// randomPool makes clusters in three regions, some of which this load balancer does not reach.
func randomPool(r *rand.Rand) PoolInput {
	in := poolInput()
	for n := range r.IntN(7) {
		region := []string{"east", "west", "north"}[r.IntN(3)]
		o := offer(fmt.Sprintf("%s-%d", region, n), []int{0, 0, 0, 1, 2, unseen}[r.IntN(6)], uint32(1+r.IntN(200)), "")
		for a := range r.IntN(4) {
			o.Addresses = append(o.Addresses, target(fmt.Sprintf("x 192.0.%d.%d", n, a+1)).Address.Addr())
		}
		for _, a := range o.Addresses {
			t := target(o.Cluster + " " + a.String())
			switch r.IntN(6) {
			case 0:
				in.Health[t] = Health{Failing: true}
			case 1:
				in.Health[t] = Health{Ejected: true}
			case 2:
				in.Health[t] = Health{Cold: r.Float64()}
			}
		}
		in.Offers = append(in.Offers, o)
	}
	if r.IntN(3) == 0 {
		in.Service.Annotations = map[string]string{v1beta1.FallbackBelowAnnotation: fmt.Sprintf("%d%%", 1+r.IntN(100))}
	}
	return in
}

// TestLawsOfPools: shares sum up to all; nothing that is out gets any while something else does not; ranks are kept; no target is
// forgotten or made up; order does not matter.
func TestLawsOfPools(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 4))
		in := randomPool(r)
		p := DecidePool(in)
		var sum float64
		targets, reached := 0, false
		for _, o := range in.Offers {
			targets += len(o.Addresses)
		}
		for _, part := range p.Parts {
			sum += part.Share
			reached = reached || !part.Out
			if part.Share < 0 || math.IsNaN(part.Share) {
				t.Fatalf("seed %d: share %v of %s", seed, part.Share, part.Target)
			}
		}
		if len(p.Parts) != targets {
			t.Fatalf("seed %d: %d parts of %d targets", seed, len(p.Parts), targets)
		}
		if want := min(1, float64(targets)); math.Abs(sum-want) > 1e-9 {
			t.Fatalf("seed %d: the shares' sum is %v: %s", seed, sum, show(p))
		}
		if why := brokenLaw(in, p, reached); why != "" {
			t.Fatalf("seed %d: %s: %s", seed, why, show(p))
		}
		r.Shuffle(len(in.Offers), func(a, b int) { in.Offers[a], in.Offers[b] = in.Offers[b], in.Offers[a] })
		if other := DecidePool(in); !reflect.DeepEqual(p, other) {
			t.Fatalf("seed %d: the order of offers matters: %s and %s", seed, show(p), show(other))
		}
	}
}

// brokenLaw returns what is wrong with the shares of a pool.
func brokenLaw(in PoolInput, p Pool, reached bool) string {
	rank := map[string]int{}
	for _, o := range in.Offers {
		rank[o.Cluster] = o.Rank
	}
	ejected := 0
	for _, part := range p.Parts {
		if part.Out && !in.Health[part.Target].Failing {
			ejected++
		}
		for _, other := range p.Parts {
			switch {
			case part.Out && part.Share > 0 && reached:
				return part.String() + " is out and has a share"
			case part.Share > 0 && !other.Out && rank[other.Cluster] < rank[part.Cluster]:
				return part.String() + " has a share though " + other.String() + " has a better rank"
			case part.Share > 0 && other.Share == 0 && !other.Out && rank[other.Cluster] == rank[part.Cluster] && other.Tier < part.Tier:
				return part.String() + " has a share though " + other.String() + " of a tier before it has none"
			}
		}
	}
	if 2*ejected > len(p.Parts) {
		return "more than half are ejected"
	}
	return ""
}

// TestALossMovesItsShareOnly: when one target of an own tier of equal clusters is lost, the others of the tier keep what they have as
// long as another tier takes the rest, whatever N is.
func TestALossMovesItsShareOnly(t *testing.T) {
	for n := 2; n < 20; n++ {
		var offers []servicednsplan.Offer
		for c := range n {
			offers = append(offers, offer(fmt.Sprintf("east-%d", c), 0, 100, fmt.Sprintf("192.0.2.%d", c+1)))
		}
		in := poolInput(append(offers, offer("west-a", 0, 100, "198.51.100.1"))...)
		in.Health[target("east-0 192.0.2.1")] = Health{Failing: true}
		for _, part := range DecidePool(in).Parts {
			want := 1 / float64(n)
			if part.Out {
				want = 0
			}
			if math.Abs(part.Share-want) > 1e-9 {
				t.Errorf("%d clusters: %s has %v, want %v", n, part.Target, part.Share, want)
			}
		}
	}
}

// TestHealthMovesWithoutSteps: a little more or less of a cluster's warmth changes shares by a little.
func TestHealthMovesWithoutSteps(t *testing.T) {
	before := map[Target]float64{}
	for step := 0; step <= 1000; step++ {
		in := poolInput(offer("east-a", 0, 100, "192.0.2.1"), offer("east-b", 0, 50, "192.0.2.2"), offer("west-a", 0, 100, "192.0.2.3"))
		in.Service.Annotations = map[string]string{v1beta1.FallbackBelowAnnotation: "70%"}
		in.Health[target("east-a 192.0.2.1")] = Health{Cold: float64(step) / 1000}
		for _, part := range DecidePool(in).Parts {
			if was, ok := before[part.Target]; ok && math.Abs(was-part.Share) > 0.005 {
				t.Fatalf("at %d: %s goes from %v to %v", step, part.Target, was, part.Share)
			}
			before[part.Target] = part.Share
		}
	}
}

func TestTrace(t *testing.T) {
	table := Routes(world(ingress("shop/web", 1, "www.one.test /a Prefix a:80", "www.one.test /none Exact none:80", "tls cert www.one.test")))
	pool := func(id PoolID) (Pool, bool) {
		in := poolInput(offer("east-a", 0, 100, "192.0.2.1"), offer("west-a", 1, 0, "192.0.2.3"))
		return DecidePool(in), id == in.ID
	}
	for ask, want := range map[string]string{
		"other.test /": `host "other.test": no Ingress of the class has it: 404
`,
		"WWW.one.test. /a/b": `host "WWW.one.test.": served as www.one.test, for namespace shop
certificate: Secret shop/cert
path "/a/b": Prefix "/a" of Ingress shop/web
Service shop/a:80, by http
  100.0 %  east-a 192.0.2.1:80  serving, tier 0
    0.0 %  west-a 192.0.2.3:80  drained, tier 1; stands by: others are serving
`,
		"www.one.test /none": `host "www.one.test": served as www.one.test, for namespace shop
certificate: Secret shop/cert
path "/none": Exact "/none" of Ingress shop/web
backend: there is no such Service and port: 503
`,
		"www.one.test /x": `host "www.one.test": served as www.one.test, for namespace shop
certificate: Secret shop/cert
path "/x": nothing matches, and there is no default backend: 404
`,
	} {
		host, path, _ := strings.Cut(ask, " ")
		if got := Trace(table, host, path, pool); got != want {
			t.Errorf("%s: got\n%swant\n%s", ask, got, want)
		}
	}
}
