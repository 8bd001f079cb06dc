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
	// TTL of the records in seconds, where an object's settings have none.
	TTL     uint32
	Objects []Object
	// Claims say which object has which host; nil: as the Objects claim them.
	Claims *Claims
	// Clusters are the joined ones.
	Clusters []Cluster
	// Resolved has addresses of host names of load balancers, by canonical name. A host that is
	// missing is not resolved yet.
	Resolved map[string][]netip.Addr
	// Refuse says which addresses are not used, and why; nil: as v1beta1.RefuseAddress.
	Refuse func(netip.Addr) error
	// Failing are the targets that do not answer, by Target.Key.
	Failing map[string]Failure
	// Explain asks for Plan.Names.
	Explain bool
	// Offers asks for Plan.Offers.
	Offers bool
}

// Kinds of objects that have names.
const (
	KindService = "Service"
	KindIngress = "Ingress"
)

// Object is what matters of a federated Service or Ingress.
type Object struct {
	// Kind is KindService or KindIngress.
	Kind            string
	Namespace, Name string
	// Created is when it was made: of two that want a host, the older has it.
	Created time.Time
	// Type of a Service.
	Type corev1.ServiceType
	// Hosts are those of an Ingress' rules.
	Hosts []string
	// Ingresses is the object's annotation; nil when it has none yet.
	Ingresses *v1beta1.ServiceIngresses
	// Settings are those of its annotation or else its policy; nil for the defaults.
	Settings *v1beta1.DNSSettings
}

// Key names the object among all, as "Service shop/web".
func (o *Object) Key() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// Cluster is what matters of a member cluster.
type Cluster struct {
	Name string
	// Ready is false for a cluster that cannot be reached: its addresses do not count.
	Ready bool
	// HeartbeatsStale is true for a cluster that is ready again while its nodes have not been heard of: it counts as not ready.
	HeartbeatsStale bool
	// Held is true for a cluster that cannot be reached because, most likely, nothing can be reached from here: its
	// addresses count as they did.
	Held bool
	// Weight is its weight in DNS. One of 0 is drained: its addresses count only at the global level, and only where no
	// other cluster serves.
	Weight uint32
	Zones  []string
	Region string
}

// Plan is what Records decided.
type Plan struct {
	// Records are sorted by dnsprovider.Compare.
	Records []dnsprovider.RRSet
	// Reasons say why something is not, or not as one might expect; sorted.
	Reasons []Reason
	// Resolve are the host names whose addresses are needed, canonical and sorted.
	Resolve []string
	// Targets are what is to be checked; sorted by their keys.
	Targets []Target
	// Names are, where they are asked for, all names sorted, those without records too.
	Names []Name
	// Offers are, where they are asked for, what clusters have of Services; sorted by object and cluster.
	Offers []Offer
}

// Reason says why something is not in DNS, or not as one might expect.
type Reason struct {
	// Object is its Key.
	Object string
	// Cluster is empty when the reason is not one cluster's.
	Cluster string
	// Code is one of those of Condition, where the reason is worth one.
	Code    string
	Message string
}

// String gives the reason as one line.
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

// Name is one name of an object, with what each cluster has to do with it.
type Name struct {
	// Name is canonical.
	Name   string
	Object string
	Level  Level
	// Records are what the name answers, by type; none: the name has no data.
	Records []dnsprovider.RRSet
	// Clusters are those whose place the name stands for, sorted.
	Clusters []Standing
}

// Standing is what one cluster has to do with a name.
type Standing struct {
	Cluster string
	// Given: its addresses are in the answers.
	Given bool
	// Why is a few words for people.
	Why string
}
