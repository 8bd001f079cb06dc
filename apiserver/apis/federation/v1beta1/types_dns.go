package v1beta1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DNSAnnotation holds DNSSettings as JSON, on Services and Ingresses. It replaces the settings of their policy.
const DNSAnnotation = "federation.kubernetes.io/dns"

// ConditionDNSPublished is the type of a condition on Services of type LoadBalancer: they have the names that they ask
// for.
const ConditionDNSPublished = "DNSPublished"

// DNSStrategy says which of the clusters that serve are in an answer.
type DNSStrategy string

// Strategies.
const (
	// DNSAll: all of them.
	DNSAll DNSStrategy = "All"
	// DNSWeighted: one of them at a time, as often as its weight says.
	DNSWeighted DNSStrategy = "Weighted"
	// DNSFailover: those with the lowest priority number of which one serves; the others are on standby.
	DNSFailover DNSStrategy = "Failover"
	// DNSNearest: those in the region that the client is near.
	DNSNearest DNSStrategy = "Nearest"
)

// DNSSettings configure the answers for the names of a Service or Ingress.
type DNSSettings struct {
	// How long resolvers may keep an answer, in seconds, from 1 to 86400; the federation's own if left out.
	// +optional
	TTLSeconds *int32 `json:"ttlSeconds,omitempty"`
	// All (default), Weighted, Failover or Nearest. Weighted and Nearest need a server that can choose: the built-in
	// one. Others give all addresses.
	// +optional
	Strategy DNSStrategy `json:"strategy,omitempty"`
	// By the name of the cluster; "*" stands for all that are not named.
	// +optional
	Clusters map[string]DNSClusterSettings `json:"clusters,omitempty"`
	// Extra names of a Service in the federation's zone, which answer as its global name does. If two objects claim a
	// name, the older one gets it.
	// +optional
	// +listType=set
	Hosts []string `json:"hosts,omitempty"`
	// The federation also checks the health of the load balancers: a cluster whose load balancer fails is out of the
	// answers while others serve. If left out, only what the members report counts.
	// +optional
	HealthCheck *DNSHealthCheck `json:"healthCheck,omitempty"`
}

// DNSClusterSettings are one cluster's part of DNSSettings.
type DNSClusterSettings struct {
	// The cluster's share of the answers beside the others' with strategy Weighted, from 0 to 1000; spec.dnsWeight of
	// the Cluster if left out. With every strategy 0 keeps the cluster out while another one serves.
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// The order with strategy Failover: clusters with lower numbers come first. From 0, the default, to 1000.
	// +optional
	Priority int32 `json:"priority,omitempty"`
}

// ForCluster returns the settings for a cluster.
func (s *DNSSettings) ForCluster(name string) DNSClusterSettings {
	if c, ok := s.Clusters[name]; ok {
		return c
	}
	return s.Clusters[AnyCluster]
}

// Bounds of DNSSettings.
const (
	maxDNSTTL    = 86400
	maxDNSNumber = 1000
	maxDNSHosts  = 100
	// maxDNSName is how long a host may be: its mark of ownership is 12 bytes longer, and a name has 253.
	maxDNSName = 253 - len("_federation.")
)

var dnsStrategies = []DNSStrategy{DNSAll, DNSFailover, DNSNearest, DNSWeighted}

// ParseDNSSettings reads the JSON of the annotation. Errors name the path inside the JSON below path.
func ParseDNSSettings(value string, path *field.Path) (*DNSSettings, field.ErrorList) {
	s := &DNSSettings{}
	if err := decodeStrict(value, s, path); err != nil {
		return nil, field.ErrorList{err}
	}
	if errs := s.Validate(path); len(errs) > 0 {
		return nil, errs
	}
	return s, nil
}

// Validate returns the errors in settings, by the path of each field below path.
func (s *DNSSettings) Validate(path *field.Path) (errs field.ErrorList) {
	if ttl := s.TTLSeconds; ttl != nil {
		errs = append(errs, checkBetween(*ttl, 1, maxDNSTTL, path.Child("ttlSeconds"))...)
	}
	if s.Strategy != "" && !slices.Contains(dnsStrategies, s.Strategy) {
		errs = append(errs, field.NotSupported(path.Child("strategy"), s.Strategy, dnsStrategies))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Clusters)) {
		at := path.Child("clusters").Key(name)
		if w := s.Clusters[name].Weight; w != nil {
			errs = append(errs, checkBetween(*w, 0, maxDNSNumber, at.Child("weight"))...)
		}
		errs = append(errs, checkBetween(s.Clusters[name].Priority, 0, maxDNSNumber, at.Child("priority"))...)
	}
	if s.HealthCheck != nil {
		errs = append(errs, s.HealthCheck.validate(path.Child("healthCheck"))...)
	}
	return append(errs, validateHosts(s.Hosts, path.Child("hosts"))...)
}

func checkBetween(value, least, most int32, path *field.Path) field.ErrorList {
	if value < least || value > most {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be from %d to %d", least, most))}
	}
	return nil
}

func validateHosts(hosts []string, path *field.Path) (errs field.ErrorList) {
	if len(hosts) > maxDNSHosts {
		errs = append(errs, field.TooMany(path, len(hosts), maxDNSHosts))
	}
	for i, host := range hosts {
		at := path.Index(i)
		if slices.Contains(hosts[:i], host) {
			errs = append(errs, field.Duplicate(at, host))
		}
		for _, msg := range validation.IsDNS1123Subdomain(host) {
			errs = append(errs, field.Invalid(at, host, msg))
		}
		if len(host) > maxDNSName {
			errs = append(errs, field.TooLong(at, "", maxDNSName))
		}
		for label := range strings.SplitSeq(host, ".") {
			if len(label) > validation.DNS1123LabelMaxLength {
				errs = append(errs, field.Invalid(at, host, fmt.Sprintf("label %q has %d bytes: must be at most %d", label, len(label), validation.DNS1123LabelMaxLength)))
			}
		}
	}
	return errs
}
