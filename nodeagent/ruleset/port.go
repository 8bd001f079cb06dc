package ruleset

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Key names a Service.
type Key struct{ Namespace, Name string }

func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Port is what a node does for one port of a Service in one address family. It is never changed once it is
// out of the model.
type Port struct {
	ID   PortID
	Hash string // 16 characters: KUBE-SVC-<Hash> and its like; the same in both families
	IPv6 bool

	// Frontends are the addresses that it answers at, sorted by Key, without those of an older Service.
	Frontends []Frontend
	// Cluster are the backends by the traffic policy Cluster, Local those on this node. If Cluster includes other
	// clusters', Own are those of this cluster, for connections that must not leave it. A pool without a route is
	// empty.
	Cluster, Own, Local Pool
	// Living are, for UDP and SCTP, the serving endpoints, sorted, including those in no pool: existing flows to them
	// may continue.
	Living []netip.AddrPort
	// Affinity is for how many seconds a client stays with its backend, counted from its last connection; 0: not at all.
	Affinity uint32
	// Retried, of a Balancer: a client does not hear that a backend refuses its new connection. Its next SYN, about a second later, goes to any backend.
	Retried bool
	// HealthCheckNodePort is a TCP port of the node that load balancers ask for health; 0: none.
	HealthCheckNodePort uint16
}

// Kind is how a frontend came to be.
type Kind string

// The kinds of frontends.
const (
	ClusterIP    Kind = "cluster IP"
	ClusterSetIP Kind = "clusterset IP" // the same in all clusters (KEP-1645)
	NodePort     Kind = "node port"
	ExternalIP   Kind = "external IP"
	LoadBalancer Kind = "load balancer IP"
)

// Inside reports whether pods connect to addresses of the kind; clients outside of the cluster do not know them.
func (k Kind) Inside() bool { return k == ClusterIP || k == ClusterSetIP }

// FrontendKey is what a packet must have as destination.
type FrontendKey struct {
	Addr     netip.Addr // of a node port invalid: any address of the node that serves node ports
	IPv6     bool       // the family, which Addr tells too if it is valid
	Protocol corev1.Protocol
	Port     uint16
}

// Frontend is one destination that a Port answers at, and what happens there with new connections, by where
// they come from.
type Frontend struct {
	Key  FrontendKey
	Kind Kind
	// Alone: the address belongs to this Service only, so that ports without a frontend are refused there.
	Alone bool
	// SourceRanges are who may connect; none: everybody. Others are dropped, whatever the routes say.
	SourceRanges []netip.Prefix
	// FromPod is for what Node.Pods detects, FromNode for the node's own addresses, FromOutside for the rest.
	// Where Node.Pods detects nothing, pods are outside.
	FromPod, FromNode, FromOutside Route
}

// Target is the end of a route.
type Target string

// The targets of routes.
const (
	ToCluster Target = "cluster" // one of Port.Cluster, by weight
	ToOwn     Target = "own"     // one of Port.Own, by weight
	ToLocal   Target = "local"   // one of Port.Local, by weight
	Reject    Target = "reject"  // refused at once: TCP reset, else ICMP port unreachable
	Drop      Target = "drop"    // no answer: another node might have one
	Yield     Target = "yield"   // not touched: the node's other service proxy serves it
)

// Pool returns the pool of a target; nil if it has none.
func (p *Port) Pool(to Target) *Pool {
	switch to {
	case ToCluster:
		return &p.Cluster
	case ToOwn:
		return &p.Own
	case ToLocal:
		return &p.Local
	}
	return nil
}

// Pools are the targets that lead to pools.
var Pools = [...]Target{ToCluster, ToOwn, ToLocal}

// LeadsToPool reports whether connections are sent on to a pool.
func (t Target) LeadsToPool() bool { return slices.Contains(Pools[:], t) }

// Uses reports whether one of the routes has the target.
func (f *Frontend) Uses(to Target) bool {
	return f.FromPod.To == to || f.FromNode.To == to || f.FromOutside.To == to
}

// Route is what happens to a new connection.
type Route struct {
	To Target
	// Masquerade: the backend sees an address of this node as source, so that answers come back this way.
	// Beside it, what a backend sends to itself (hairpin) and what goes to a remote backend is always masqueraded.
	Masquerade bool
}

// Tier says which of the existing endpoints a pool has.
type Tier string

// The tiers, in their order: the first with an endpoint is the pool.
const (
	TierNode         Tier = "ready on this node"                                                 // by hints, or by the policy Local
	TierZone         Tier = "ready in this zone"                                                 // by hints
	TierReady        Tier = "ready"                                                              //
	TierScarce       Tier = "ready, but too few of all here: the rest is left to other clusters" // by AnnotationFallbackBelow
	TierTerminating  Tier = "terminating, still serving"                                         //
	TierRemoteRegion Tier = "another cluster of this region, as no endpoint here is ready"
	TierRemote       Tier = "another cluster, as no endpoint here is ready"
	TierNone         Tier = "none"
)

// Remote reports whether the tier is of other clusters.
func (t Tier) Remote() bool { return t == TierRemoteRegion || t == TierRemote }

// Pool are the backends that new connections are divided over.
type Pool struct {
	Tier     Tier
	Backends []Backend // sorted by address; each address once
}

// Backend is an address that connections are sent to.
type Backend struct {
	Addr   netip.AddrPort
	Weight uint32 // its share of new connections among all of its pool; at least 1
	Local  bool   // on this node
	// Cluster is the other cluster whose load balancer this is; "" for an endpoint of this cluster.
	Cluster string
}
