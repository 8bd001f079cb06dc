package plan

import (
	"fmt"
	"net/netip"

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
	// TTL of the records in seconds.
	TTL      uint32
	Services []Service
	// Clusters are the joined ones.
	Clusters []Cluster
	// Resolved has addresses of host names of load balancers, by canonical name. A host that is
	// missing is not resolved yet.
	Resolved map[string][]netip.Addr
}

// Service is what matters of a federated Service.
type Service struct {
	Namespace, Name string
	Type            corev1.ServiceType
	// Ingresses is the Service's annotation; nil when it has none yet.
	Ingresses *v1beta1.ServiceIngresses
}

// Cluster is what matters of a member cluster.
type Cluster struct {
	Name string
	// Ready is false for a cluster that cannot be reached: its addresses do not count.
	Ready bool
	// Drained is true for a cluster with DNS weight 0: its addresses count only at the global level, and
	// only where no other cluster serves.
	Drained bool
	Zones   []string
	Region  string
}

// Plan is what Records decided.
type Plan struct {
	// Records are sorted by dnsprovider.Compare.
	Records []dnsprovider.RRSet
	// Reasons say why something is not, or not as one might expect; sorted.
	Reasons []Reason
	// Resolve are the host names whose addresses are needed, canonical and sorted.
	Resolve []string
}

// Reason says why something is not in DNS, or not as one might expect.
type Reason struct {
	// Service is namespace/name.
	Service string
	// Cluster is empty when the reason is not one cluster's.
	Cluster string
	Message string
}

// String gives the reason as one line.
func (r Reason) String() string {
	if r.Cluster == "" {
		return fmt.Sprintf("%s: %s", r.Service, r.Message)
	}
	return fmt.Sprintf("%s in cluster %s: %s", r.Service, r.Cluster, r.Message)
}
