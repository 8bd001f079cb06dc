package plan

import (
	"cmp"
	"fmt"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// Site is where a load balancer is, by the words of the clusters' nodes. Empty: nowhere in particular.
type Site struct{ Region, Zone string }

// World is everything that Routes decides from.
type World struct {
	// Ingresses of any class, each once; those of others are left out.
	Ingresses []*networkingv1.Ingress
	// Services are the federated ones that backends may name, and those of the load balancers' class, by namespace/name.
	Services map[string]*corev1.Service
	// ServicePorts are those at which this load balancer serves Services of its class: by TCP and, with UDP, by that too.
	ServicePorts PortRanges
	UDP          bool
	// Grants and Kept say which namespace may have a host, before the age of Ingresses does. Kept is by canonical name.
	Grants []*v1beta1.DNSNameGrant
	Kept   map[string]servicednsplan.Keep
}

// PoolID names a pool: a port of a federated Service. The zero value is no pool.
type PoolID struct {
	Namespace, Service string
	Port               int32
	// TCP: connections to it are passed on as they are (layer 4), in place of requests. UDP: so are its datagrams. TLS: so are connections of TLS, by the
	// server name that clients ask for.
	TCP, UDP, TLS bool
}

// IsZero reports whether it is no pool.
func (p PoolID) IsZero() bool { return p == PoolID{} }

// Key is the Service's namespace/name.
func (p PoolID) Key() string { return p.Namespace + "/" + p.Service }

// String is NAMESPACE/SERVICE:PORT, with /TCP, /UDP or /TLS where it is not for requests.
func (p PoolID) String() string {
	text := fmt.Sprintf("%s:%d", p.Key(), p.Port)
	switch {
	case p.TCP:
		text += "/TCP"
	case p.UDP:
		text += "/UDP"
	case p.TLS:
		text += "/TLS"
	}
	return text
}

// Protocol is how requests are sent to the targets of a pool.
type Protocol string

// Protocols, from the appProtocol of the Service's port.
const (
	HTTP  Protocol = "http"  // HTTP/1.1
	H2C   Protocol = "h2c"   // HTTP/2 without TLS, as for gRPC
	TCP   Protocol = "tcp"   // connections as they are
	UDP   Protocol = "udp"   // datagrams as they are
	TLS   Protocol = "tls"   // connections as they are, which begin by TLS
	HTTPS Protocol = "https" // TLS with the host's name, HTTP/2 or HTTP/1.1
)

// Target is one load balancer of a cluster.
type Target struct {
	Cluster string
	Address netip.AddrPort
}

// String is CLUSTER ADDRESS:PORT.
func (t Target) String() string { return t.Cluster + " " + t.Address.String() }

// Compare orders targets by cluster and address.
func (t Target) Compare(o Target) int {
	return cmp.Or(cmp.Compare(t.Cluster, o.Cluster), t.Address.Compare(o.Address))
}

// Health is what a load balancer sees of a target by itself.
type Health struct {
	// Failing: its checks fail.
	Failing bool
	// Ejected: too many requests failed there. Silent: it takes connections, and says nothing to anybody. Both count for at most half of the targets.
	Ejected, Silent bool
	// Cold is the part of its weight, from 0 to 1, that it does not get yet, since it is back.
	Cold float64
}

// Reason says why something is not as an Ingress or Service asks for.
type Reason struct {
	// Object is "Ingress NAMESPACE/NAME" or "Service NAMESPACE/NAME".
	Object string
	// Cluster is empty if the reason does not concern one cluster.
	Cluster string
	Message string
	// Holder is, for a host that another namespace has, that one's Ingress (namespace/name): for those who may read it, and in no text.
	Holder string
}

// String formats the reason as one line.
func (r Reason) String() string {
	if r.Cluster == "" {
		return r.Object + ": " + r.Message
	}
	return fmt.Sprintf("%s in cluster %s: %s", r.Object, r.Cluster, r.Message)
}
