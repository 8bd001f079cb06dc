package plan

import (
	"fmt"
	"net/netip"
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/dnsprovider"
)

// rank orders clusters: a name gets the addresses of the best rank that has any.
type rank int

const (
	// serving: the cluster serves.
	serving rank = iota
	// drained: it serves, but should not while others do. So it is while it is failed over.
	drained
	// failing: it reports that it serves, but fails the federation's check.
	failing
	// unseen: it served when last seen.
	unseen
	// nothing: it has no addresses.
	nothing
)

// part is what one cluster has for an object.
type part struct {
	*Cluster
	rank rank
	// why describes the rank.
	why string
	// weight and priority apply to this object.
	weight   uint32
	priority int32
	served
}

// served has the addresses and host names of load balancers.
type served struct {
	addresses []netip.Addr
	hosts     []string
}

func (s *served) add(more served) {
	s.addresses = append(s.addresses, more.addresses...)
	s.hosts = append(s.hosts, more.hosts...)
}

func (s *served) isEmpty() bool { return len(s.addresses) == 0 && len(s.hosts) == 0 }

// partOf returns what a cluster has for the object, with its rank.
func (p *planner) partOf(cluster *Cluster, item v1beta1.ClusterServiceIngress) *part {
	of := p.settings().ForCluster(cluster.Name)
	out := &part{Cluster: cluster, weight: weightOf(cluster, p.settings()), priority: of.Priority, served: p.servedBy(cluster.Name, item)}
	p.rankPart(out, item)
	return out
}

// rankPart ranks a cluster. Unless it simply serves, the reason goes into the plan.
func (p *planner) rankPart(t *part, item v1beta1.ClusterServiceIngress) {
	switch {
	case item.Items == nil:
		t.rank, t.why = nothing, "no endpoint is ready: its addresses are out"
	case t.isEmpty():
		t.rank, t.why = nothing, "its load balancer has no address that can be given out"
	case !t.Ready && !t.CutOff:
		t.rank, t.why = unseen, "the cluster is not ready: its addresses are out"
	case t.HeartbeatsStale && !t.CutOff:
		t.rank, t.why = unseen, "its nodes have not renewed their Leases since it returned: its addresses are left out"
	case !item.IsSeen() && !t.CutOff:
		t.rank, t.why = unseen, "the federation's process that looks after the object does not reach the cluster, though others do: its addresses are out"
	case t.weight == 0:
		t.rank, t.why = drained, "the cluster's DNS weight is 0: its addresses count only for the global name, and only while no other cluster serves"
	case t.FailedOver && !t.CutOff:
		t.rank, t.why = drained, "the cluster is failed over, and its pods move: its addresses count only for the global name, and only while no other cluster serves, until it fails back"
	case t.CutOff:
		t.why = "most clusters vanished together: its addresses stay, for it may be the federation that is cut off; if the cluster is dead: kubectl federation drain " + t.Name
	default:
		t.why = "serves"
		return
	}
	switch {
	case t.CutOff && t.rank == serving:
		p.addCodedReason(FailStatic, t.Name, "%s", t.why)
	case t.rank != nothing || item.Items == nil:
		p.addReason(t.Name, "%s", t.why)
	}
}

// maxOfCluster bounds the addresses and hosts of a cluster per object, and the addresses of a host.
const maxOfCluster = 16

// servedBy returns what may be published of the load balancers.
func (p *planner) servedBy(cluster string, item v1beta1.ClusterServiceIngress) (s served) {
	items := item.Items[:min(len(item.Items), maxOfCluster)]
	if n := len(item.Items) - len(items); n > 0 {
		p.addCodedReason(AddressRejected, cluster, "%d of its %d load balancer addresses are not used: at most %d of a cluster are", n, len(item.Items), maxOfCluster)
	}
	for _, ingress := range items {
		if ingress.IP == "" {
			p.addHost(&s, cluster, ingress.Hostname)
		} else if addr, err := netip.ParseAddr(ingress.IP); err != nil || addr.Zone() != "" {
			p.addReason(cluster, "load balancer address %q: must be an IP address", ingress.IP)
		} else {
			s.addresses = append(s.addresses, p.publishable(cluster, "load balancer address %s", addr)...)
		}
	}
	return s
}

func (p *planner) addHost(s *served, cluster, hostname string) {
	host, err := dnsprovider.CanonicalName(hostname)
	switch {
	case err != nil:
		p.addReason(cluster, "load balancer host: %v", err)
	case host == "localhost." || strings.HasSuffix(host, ".localhost."):
		p.addCodedReason(AddressRejected, cluster, "load balancer host %s is not used: it is whoever asks for it", host)
	case dnsprovider.InZone(host, p.in.Zone):
		p.addReason(cluster, "load balancer host %s: must be outside the zone %s, where it could lead to itself", host, p.in.Zone)
	default:
		s.hosts = append(s.hosts, host)
	}
}

// chooseParts returns the parts that a name uses, and where it is to be explained the standing of each.
func (p *planner) chooseParts(l *level) (given []*part, standings []Standing) {
	best, first := nothing, int32(0)
	for _, t := range l.parts {
		last := t.rank > serving && l.up != "" // below the last level only clusters that serve count
		if t.rank < best && !last {
			best = t.rank
		}
	}
	failover := p.answerSettings().Strategy == v1beta1.DNSFailover
	for i, t := range partsOfRank(l.parts, best) {
		if i == 0 || t.priority < first {
			first = t.priority
		}
	}
	for _, t := range l.parts {
		ranks := best != nothing && t.rank == best
		standsBy := ranks && failover && t.priority > first
		if ranks && !standsBy {
			given = append(given, t)
			if best == unseen {
				p.addCodedReason(FailStatic, t.Name, "no other cluster serves: the addresses stay that it had when it was last seen")
			}
		}
		if !p.in.Explain { // there may be a thousand clusters
			continue
		}
		s := Standing{Cluster: t.Name, Given: ranks && !standsBy, Why: t.why}
		switch {
		case standsBy:
			s.Why = fmt.Sprintf("stands by: its priority is %d, and a cluster of priority %d serves", t.priority, first)
		case s.Given && best != serving:
			s.Why = "given all the same: no other cluster serves; " + t.why
		}
		standings = append(standings, s)
	}
	return given, standings
}

func partsOfRank(parts []*part, r rank) (some []*part) {
	for _, t := range parts {
		if t.rank == r {
			some = append(some, t)
		}
	}
	return some
}
