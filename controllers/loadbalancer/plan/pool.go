package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// PoolInput is everything that DecidePool decides from.
type PoolInput struct {
	ID      PoolID
	Site    Site
	Service *corev1.Service
	// ServerName is that of a host whose TLS goes to the pool, for checks; empty if none does.
	ServerName string
	// Offers are what the clusters have of the Service.
	Offers []servicednsplan.Offer
	// Settings are the Service's for DNS, which hold here too; nil for the defaults.
	Settings *v1beta1.DNSSettings
	// Balancers has the addresses of the federation's own load balancers, with their names; Own are those of the machine that decides; both as
	// v1beta1.EmbeddedIPv4 has them. Connections to them would come back, so they are no targets, whatever clusters say.
	Balancers map[netip.Addr]string
	Own       map[netip.Addr]bool
	// Health is what the load balancer sees of targets; of those without an entry nothing is known against them.
	Health map[Target]Health
}

// Pool says where new requests to a port of a Service go. Nobody changes it once it is made.
type Pool struct {
	ID       PoolID
	Protocol Protocol
	// Parts are all targets, in the order in which a request is tried again, apart from chance: those in use first.
	Parts []Part
	// Check is the check that the Service's settings ask for; nil: any answer will do.
	Check *v1beta1.DNSHealthCheck
	// ProxyProtocol: connections begin with a header of PROXY protocol v2.
	ProxyProtocol bool
	// ServerName is what checks by TLS ask for.
	ServerName string
	// CheckPort is, of a pool of datagrams, the port of the Service by which its targets are checked, with TCP; 0: it has none, and they are not checked.
	CheckPort uint16
	// Refused are what clusters say to be their load balancers, and connections to would come back.
	Refused []Refused
	// Reasons say what is not as usual; sorted.
	Reasons []Reason
}

// Refused is an address that is no target.
type Refused struct {
	Target
	// Own: it is one of the machine that decides; otherwise one of a load balancer of the federation.
	Own bool
}

// Part is a target and its part of a pool.
type Part struct {
	Target
	// Share of new requests, from 0 to 1. The sum over a pool is 1, or 0 if it has no targets.
	Share float64
	// Rank is that of its cluster, in words: "serving", "drained", "failing the federation's check" or "unseen".
	Rank string
	// Tier is 0 for the first choice of this site.
	Tier int
	// Out: this load balancer does not reach it.
	Out bool
	// Lost: flows to it are to end, so that clients begin new ones. Its checks fail, or for datagrams, whose targets may have no checks, its cluster neither
	// serves nor is drained; and others are used.
	Lost bool
	// Why describes its part.
	Why string
}

// The ranks of servicedns that matter here.
const (
	rankServing = 0
	rankDrained = 1
)

// candidate is one cluster in a pool.
type candidate struct {
	servicednsplan.Offer
	tier    int
	weight  float64
	targets []Part
	// usable is how much of its weight can be used, from 0 to 1.
	usable float64
}

// DecidePool divides new requests among the targets of a pool. The order of its input does not matter.
func DecidePool(in PoolInput) Pool {
	p := poolPlanner{in: in, pool: Pool{ID: in.ID, Protocol: in.protocol(), ServerName: in.ServerName}, static: true}
	if in.Settings != nil && in.Settings.HealthCheck != nil {
		check := in.Settings.HealthCheck.WithDefaults()
		p.pool.Check = &check
	}
	p.pool.ProxyProtocol = in.Service != nil && in.Service.Annotations[v1beta1.ProxyProtocolAnnotation] == v1beta1.ProxyProtocolV2
	p.pool.CheckPort = in.checkPort()
	p.findCandidates()
	p.judge()
	best := p.bestRank()
	var used []*candidate
	for _, c := range p.candidates {
		if c.Rank == best && c.usable > 0 {
			used = append(used, c)
		}
	}
	p.divide(used)
	p.explain(best)
	return p.pool
}

// poolPlanner plans one pool.
type poolPlanner struct {
	in         PoolInput
	pool       Pool
	candidates []*candidate
	// static: this load balancer reaches none of the targets, so what it sees does not count.
	static bool
}

func (p *poolPlanner) addReason(cluster, format string, args ...any) {
	p.pool.Reasons = append(p.pool.Reasons, Reason{Object: "Service " + p.in.ID.Key(), Cluster: cluster, Message: fmt.Sprintf(format, args...)})
}

// protocol reads the appProtocol of the port.
func (in PoolInput) protocol() Protocol {
	switch {
	case in.ID.TCP:
		return TCP
	case in.ID.UDP:
		return UDP
	case in.ID.TLS:
		return TLS
	case in.Service == nil:
		return HTTP
	}
	for _, port := range in.Service.Spec.Ports {
		if port.Port != in.ID.Port || port.AppProtocol == nil {
			continue
		}
		switch *port.AppProtocol {
		case "kubernetes.io/h2c", "grpc":
			return H2C
		case "https", "kubernetes.io/wss":
			return HTTPS
		}
	}
	return HTTP
}

// checkPort returns the first port of the Service by TCP, for a pool of datagrams: nothing can be asked of a server of unknown protocol by one.
func (in PoolInput) checkPort() uint16 {
	if !in.ID.UDP || in.Service == nil {
		return 0
	}
	for _, port := range in.Service.Spec.Ports {
		if isTCP(port) {
			return uint16(port.Port)
		}
	}
	return 0
}

// findCandidates finds the clusters with addresses, and their tiers.
func (p *poolPlanner) findCandidates() {
	for _, o := range p.in.Offers {
		if len(o.Addresses) == 0 {
			continue
		}
		c := &candidate{Offer: o, tier: p.tierOf(o), weight: float64(max(o.Weight, 1))}
		for _, a := range slices.SortedFunc(slices.Values(o.Addresses), netip.Addr.Compare) {
			if t := (Target{o.Cluster, netip.AddrPortFrom(a, uint16(p.in.ID.Port))}); !p.refuses(t) {
				c.targets = append(c.targets, Part{Target: t})
			}
		}
		if len(c.targets) > 0 {
			p.candidates = append(p.candidates, c)
		}
	}
	slices.SortFunc(p.candidates, func(a, b *candidate) int { return cmp.Compare(a.Cluster, b.Cluster) })
	var tiers []int
	for _, c := range p.candidates {
		tiers = append(tiers, c.tier)
	}
	slices.Sort(tiers)
	tiers = slices.Compact(tiers)
	for _, c := range p.candidates {
		c.tier, _ = slices.BinarySearch(tiers, c.tier)
	}
}

// refuses reports whether connections to a target would come back, and adds why.
func (p *poolPlanner) refuses(t Target) bool {
	a := v1beta1.EmbeddedIPv4(t.Address.Addr())
	name, balances := p.in.Balancers[a]
	switch {
	case balances:
		p.addReason(t.Cluster, "address %s is not used: it is that of the federation's load balancer %s, so connections would go in a circle", a, name)
	case p.in.Own[a]:
		p.addReason(t.Cluster, "address %s is not used: it is one of the load balancer's own machine", a)
	default:
		return false
	}
	p.pool.Refused = append(p.pool.Refused, Refused{t, !balances})
	return true
}

// tierOf returns a number that is lower for clusters that come first.
func (p *poolPlanner) tierOf(o servicednsplan.Offer) int {
	if s := p.in.Settings; s != nil && s.Strategy == v1beta1.DNSFailover {
		return int(s.ForCluster(o.Cluster).Priority)
	}
	if p.in.Site.Region != "" && o.Region != p.in.Site.Region {
		return 1
	}
	return 0
}

// judge says how much of each cluster can be used. Ejection counts for at most half of the targets, and nothing counts if the load
// balancer reaches none.
func (p *poolPlanner) judge() {
	all, ejected := 0, 0
	for _, c := range p.candidates {
		for _, t := range c.targets {
			h := p.in.Health[t.Target]
			if h.Failing {
				continue // of those that are left half must stay
			}
			if all++; h.Ejected || h.Silent {
				ejected++
			}
		}
	}
	mayEject := 2*ejected <= all
	if !mayEject {
		p.addReason("", "requests fail or wait at %d of %d addresses, which are more than half: they are used all the same, unless their checks fail", ejected, all)
	}
	for _, c := range p.candidates {
		for i := range c.targets {
			h := p.in.Health[c.targets[i].Target]
			c.targets[i].Out = h.Failing || (h.Ejected || h.Silent) && mayEject
			p.static = p.static && c.targets[i].Out
		}
	}
	if p.static && len(p.candidates) > 0 {
		p.addReason("", "no address answers the checks of this load balancer: all count as before, for it may be the one that is cut off")
	}
	for _, c := range p.candidates {
		for _, t := range c.targets {
			if !t.Out || p.static {
				c.usable += p.warmth(t.Target) / float64(len(c.targets))
			}
		}
	}
}

// warmth is the part of its weight that a target gets; a little in any case, so that it warms up.
func (p *poolPlanner) warmth(t Target) float64 {
	if p.static {
		return 1
	}
	return 1 - min(max(p.in.Health[t].Cold, 0), 0.95)
}

// bestRank returns the best rank of which something can be used.
func (p *poolPlanner) bestRank() int {
	best := -1
	for _, c := range p.candidates {
		if c.usable > 0 && (best < 0 || c.Rank < best) {
			best = c.Rank
		}
	}
	return best
}

// divide gives each of the clusters its share: tier by tier, each as much as what is left of it allows.
func (p *poolPlanner) divide(used []*candidate) {
	tiers := 0
	for _, c := range p.candidates {
		tiers = max(tiers, c.tier+1)
	}
	shares, left, sum := make([]float64, tiers), 1.0, 0.0
	for tier := range shares {
		shares[tier] = min(left, p.capacityOf(tier, used))
		left -= shares[tier]
		sum += shares[tier]
	}
	for tier, share := range shares {
		var weight float64
		of := slices.DeleteFunc(slices.Clone(used), func(c *candidate) bool { return c.tier != tier })
		for _, c := range of {
			weight += c.weight * c.usable
		}
		for _, c := range of {
			p.share(c, share/sum*c.weight*c.usable/weight)
		}
	}
}

// capacityOf returns how much of all requests a tier can take, from 0 to 1: with r of its weight a usable, r / (N% · a). Drained
// clusters are not missed.
func (p *poolPlanner) capacityOf(tier int, used []*candidate) float64 {
	var usable, whole float64
	for _, c := range p.candidates {
		if c.tier == tier && (c.Rank != rankDrained || slices.Contains(used, c)) {
			whole += c.weight
		}
	}
	for _, c := range used {
		if c.tier == tier {
			usable += c.weight * c.usable
		}
	}
	if whole == 0 {
		return 0
	}
	return min(1, usable/(p.leastUsable()*whole))
}

// leastUsable is the part of a tier that must be usable so that nothing spills: the Service's annotation, or all of it.
func (p *poolPlanner) leastUsable() float64 {
	if p.in.Service == nil {
		return 1
	}
	text, ok := p.in.Service.Annotations[v1beta1.FallbackBelowAnnotation]
	percent, err := strconv.ParseUint(strings.TrimSuffix(text, "%"), 10, 7)
	if !ok || err != nil || percent < 1 || percent > 100 { // the API server refuses others
		return 1
	}
	return float64(percent) / 100
}

// share divides a cluster's share among its addresses.
func (p *poolPlanner) share(c *candidate, share float64) {
	var sum float64
	for _, t := range c.targets {
		if !t.Out || p.static {
			sum += p.warmth(t.Target)
		}
	}
	for i, t := range c.targets {
		if !t.Out || p.static {
			c.targets[i].Share = share * p.warmth(t.Target) / sum
		}
	}
}

// explain sorts the targets, and says of each why it has its part.
func (p *poolPlanner) explain(best int) {
	ranks := map[string]int{}
	for _, c := range p.candidates {
		ranks[c.Cluster] = c.Rank
		for _, t := range c.targets {
			t.Rank, t.Tier = rankName(c.Rank), c.tier
			t.Lost = best >= 0 && t.Share == 0 && (p.in.Health[t.Target].Failing || p.in.ID.UDP && c.Rank > max(best, rankDrained))
			t.Why = p.whyPart(c, t, best)
			p.pool.Parts = append(p.pool.Parts, t)
		}
		if c.Rank == best && best > rankServing && c.usable > 0 {
			p.addReason(c.Cluster, "used though it is %s: no cluster serves that this load balancer reaches", rankName(best))
		}
	}
	if len(p.pool.Parts) == 0 {
		then := "requests are answered with 503"
		switch {
		case p.in.ID.TCP || p.in.ID.TLS:
			then = "connections are closed"
		case p.in.ID.UDP:
			then = "datagrams are refused"
		}
		p.addReason("", "no cluster has an address that serves: %s", then)
	}
	slices.SortStableFunc(p.pool.Parts, func(a, b Part) int {
		return cmp.Or(boolCompare(b.Share > 0, a.Share > 0), boolCompare(a.Out, b.Out), cmp.Compare(ranks[a.Cluster], ranks[b.Cluster]), cmp.Compare(a.Tier, b.Tier), a.Compare(b.Target))
	})
	slices.SortFunc(p.pool.Reasons, func(a, b Reason) int { return strings.Compare(a.String(), b.String()) })
}

// boolCompare orders false before true.
func boolCompare(a, b bool) int {
	if a == b {
		return 0
	}
	if b {
		return -1
	}
	return 1
}

// rankName describes a rank of servicedns.
func rankName(rank int) string {
	switch {
	case rank == rankServing:
		return "serving"
	case rank == rankDrained:
		return "drained"
	case rank >= servicednsplan.RankUnseen:
		return "unseen"
	}
	return "failing the federation's check"
}

func (p *poolPlanner) whyPart(c *candidate, t Part, best int) string {
	h := p.in.Health[t.Target]
	where := fmt.Sprintf("%s, tier %d", rankName(c.Rank), c.tier)
	switch {
	case t.Out && p.static:
		return where + "; its checks fail, as those of all"
	case h.Failing:
		return where + "; out: its checks fail"
	case t.Out && h.Silent:
		return where + "; out: it takes connections, and says nothing"
	case t.Out:
		return where + "; out: requests failed there"
	case c.Rank != best:
		return where + "; stands by: others are " + rankName(best)
	case t.Share == 0:
		return where + "; stands by: tiers before it take all"
	case h.Cold > 0:
		return where + "; warming up"
	}
	return where
}
