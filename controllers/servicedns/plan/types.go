package plan

import (
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/dnsprovider"
)

// Input is everything that Records decides from.
type Input struct {
	// Federation is the federation's name, one label of the names.
	Federation string
	// Zone is the canonical name of the DNS zone.
	Zone string
	// TTL of the records in seconds, unless an object's settings have one.
	TTL     uint32
	Objects []Object
	// Claims decide which object has which host. Nil: as the Objects claim them.
	Claims *Claims
	// Clusters are the joined ones.
	Clusters []Cluster
	// LoadBalancers are the federation's own.
	LoadBalancers []LoadBalancer
	// Resolved has the addresses of load balancers' host names, by canonical name. A missing host is not resolved yet.
	Resolved map[string][]netip.Addr
	// Refuse returns an error for addresses that are not used. Nil: v1beta1.RefuseAddress.
	Refuse func(netip.Addr) error
	// Failing are the failing targets, by Target.Key.
	Failing map[string]Failure
	// Explain asks for Plan.Names.
	Explain bool
	// Offers asks for Plan.Offers.
	Offers bool
	// Unnamed: names are not wanted, nor records.
	Unnamed bool
}

// Kinds of objects with names.
const (
	KindService = "Service"
	KindIngress = "Ingress"
)

// Object is a federated Service or Ingress, reduced to what names need.
type Object struct {
	// Kind is KindService or KindIngress.
	Kind            string
	Namespace, Name string
	// Created is the creation time: of two objects that claim a host, the older one gets it.
	Created time.Time
	// Type of a Service.
	Type corev1.ServiceType
	// Hosts are those of an Ingress' rules.
	Hosts []string
	// Balanced: it is an Ingress or Service that the federation's own load balancers serve. BalancedAt are, for a Service, the addresses of those that do.
	Balanced   bool
	BalancedAt []netip.Addr
	// Ingresses is the object's annotation; nil if it has none yet.
	Ingresses *v1beta1.ServiceIngresses
	// Reported: what the clusters have of it has been reported once.
	Reported bool
	// Settings are those of its annotation, or else of its policy; nil for the defaults.
	Settings *v1beta1.DNSSettings
}

// Key identifies the object: "Service shop/web".
func (o *Object) Key() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// Cluster is a member cluster, reduced to what names need.
type Cluster struct {
	Name string
	// Ready is false for an unreachable cluster: its addresses do not count.
	Ready bool
	// HeartbeatsStale is true for a cluster that is ready again but whose nodes' heartbeats are stale: it counts as not
	// ready.
	HeartbeatsStale bool
	// FailedOver is true while what was placed there is placed elsewhere: should it be ready again, its pods are about to
	// go. Its addresses count as those of a drained one until it fails back.
	FailedOver bool
	// CutOff is true for a cluster that is unreachable probably because the federation is cut off: its addresses count as
	// before.
	CutOff bool
	// Weight is its weight in DNS. 0 means drained: its addresses count only for the global name and hosts, and only if
	// no other cluster serves.
	Weight uint32
	Zones  []string
	Region string
	// Network is the name of the network of its pods, or "". PodCIDRs and LoadBalancerCIDRs are what addresses of its pods and load balancers
	// are in; none: anything.
	Network                     string
	PodCIDRs, LoadBalancerCIDRs []string
}

// onlyZone returns the cluster's zone, "" if it has none or several.
func (c *Cluster) onlyZone() string {
	if len(c.Zones) == 1 {
		return c.Zones[0]
	}
	return ""
}

// Plan is the result of Records.
type Plan struct {
	// Records are sorted by dnsprovider.Compare.
	Records []dnsprovider.RRSet
	// Reasons say why something is missing or unexpected; sorted.
	Reasons []Reason
	// Resolve has the host names to resolve, canonical and sorted.
	Resolve []string
	// Targets has the load balancers to check, sorted by key.
	Targets []Target
	// Names has, if requested, all names sorted, including those without records.
	Names []Name
	// Offers has, if requested, what clusters have of Services; sorted by object and cluster.
	Offers []Offer
}

// Reason says why something is missing in DNS, or unexpected.
type Reason struct {
	// Object is the object's Key.
	Object string
	// Cluster is empty if the reason does not concern one cluster.
	Cluster string
	// Code is a reason of Condition, if it matters there.
	Code    string
	Message string
}

// String formats the reason as one line.
func (r Reason) String() string {
	if r.Cluster == "" {
		return fmt.Sprintf("%s: %s", r.Object, r.Message)
	}
	return fmt.Sprintf("%s in cluster %s: %s", r.Object, r.Cluster, r.Message)
}

// Level is what a name stands for.
type Level string

// Levels of names.
const (
	LevelZone   Level = "zone"
	LevelRegion Level = "region"
	LevelGlobal Level = "global"
	LevelHost   Level = "host"
)

// Name is one name of an object, with each cluster's part in it.
type Name struct {
	// Name is canonical.
	Name   string
	Object string
	Level  Level
	// Records are the name's answers by type; none if it has no data.
	Records []dnsprovider.RRSet
	// Clusters are those whose place the name stands for, sorted.
	Clusters []Standing
}

// Standing is one cluster's part in a name.
type Standing struct {
	Cluster string
	// Given: its addresses are in the answers.
	Given bool
	// Why is a short explanation.
	Why string
}
