package validation

import (
	"net"
	"net/netip"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// ValidateCluster checks a new Cluster.
func ValidateCluster(c *v1beta1.Cluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&c.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	return append(errs, validateSpec(&c.Spec, field.NewPath("spec"))...)
}

// ValidateClusterUpdate checks a change of a Cluster.
func ValidateClusterUpdate(c, old *v1beta1.Cluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&c.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateSpec(&c.Spec, field.NewPath("spec"))...)
}

// ValidateClusterStatusUpdate checks a change of a Cluster's status.
func ValidateClusterStatusUpdate(c, old *v1beta1.Cluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&c.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if reflect.DeepEqual(c.Status, old.Status) {
		return errs
	}
	path := field.NewPath("status")
	errs = append(errs, validateConditions(c.Status.Conditions, path.Child("conditions"))...)
	errs = append(errs, validateCapacity(c.Status.Capacity, path.Child("capacity"))...)
	errs = append(errs, validateDrainStatus(c.Status.Drain, path.Child("drain"))...)
	return append(errs, validateFailoverState(c.Status.Failover, path.Child("failover"))...)
}

func validateSpec(spec *v1beta1.ClusterSpec, path *field.Path) (errs field.ErrorList) {
	errs = validateConnection(spec, path)
	addresses := path.Child("serverAddressByClientCIDRs")
	seen := map[string]bool{}
	for i, a := range spec.ServerAddressByClientCIDRs {
		at := addresses.Index(i)
		errs = append(errs, validateClientCIDR(a.ClientCIDR, at.Child("clientCIDR"))...)
		errs = append(errs, validateServerAddress(a.ServerAddress, at.Child("serverAddress"))...)
		if seen[a.ClientCIDR] {
			errs = append(errs, field.Duplicate(at.Child("clientCIDR"), a.ClientCIDR))
		}
		seen[a.ClientCIDR] = true
	}
	if ref := spec.SecretRef; ref != nil {
		errs = append(errs, validateSecretName(ref.Name, path.Child("secretRef", "name"))...)
	}
	errs = append(errs, validateTaints(spec.Taints, path.Child("taints"))...)
	if w := spec.DNSWeight; w != nil {
		errs = append(errs, inRange(int64(*w), 0, maxDNSWeight, path.Child("dnsWeight"))...)
	}
	if d := spec.Drain; d != nil && d.TTLSeconds != nil {
		errs = append(errs, inRange(int64(*d.TTLSeconds), 0, maxDrainTTL, path.Child("drain", "ttlSeconds"))...)
	}
	errs = append(errs, validateTopology(spec.Topology, path.Child("topology"))...)
	if spec.Network != "" {
		errs = append(errs, topologyName(spec.Network, path.Child("network"))...)
	}
	errs = append(errs, validateNamespaces(spec.AllowedNamespaces, path.Child("allowedNamespaces"))...)
	errs = append(errs, validateNetworks(spec.PodCIDRs, path.Child("podCIDRs"))...)
	return append(errs, validateNetworks(spec.LoadBalancerCIDRs, path.Child("loadBalancerCIDRs"))...)
}

// validateConnection checks that there is what the federation connects to, or nothing of it where it does not connect.
func validateConnection(spec *v1beta1.ClusterSpec, path *field.Path) (errs field.ErrorList) {
	addresses := path.Child("serverAddressByClientCIDRs")
	switch spec.Connection {
	case "", v1beta1.ConnectionPush:
		if len(spec.ServerAddressByClientCIDRs) == 0 {
			errs = append(errs, field.Required(addresses, "at least one address of the cluster's API is needed"))
		}
	case v1beta1.ConnectionPull:
		if len(spec.ServerAddressByClientCIDRs) > 0 {
			errs = append(errs, field.Forbidden(addresses, "the federation does not connect to a cluster whose connection is Pull"))
		}
		if spec.SecretRef != nil {
			errs = append(errs, field.Forbidden(path.Child("secretRef"), "the credential of a cluster whose connection is Pull stays there"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("connection"), spec.Connection, []v1beta1.ClusterConnection{v1beta1.ConnectionPull, v1beta1.ConnectionPush}))
	}
	return errs
}

// maxDrainTTL is the longest wait for resolvers, in seconds: they keep nothing for more than a week.
const maxDrainTTL = 7 * 24 * 60 * 60

// Bounds of what is pinned of a cluster.
const (
	maxZones    = 16
	maxNetworks = 64
)

// maxNamespaces is how many namespaces a cluster can be for: a thousand names of the longest are 64 KB.
const maxNamespaces = 1000

func validateNamespaces(names []string, path *field.Path) (errs field.ErrorList) {
	if len(names) > maxNamespaces {
		errs = append(errs, field.TooMany(path, len(names), maxNamespaces))
	}
	return append(errs, eachOnce(names, path, func(name string, path *field.Path) (errs field.ErrorList) {
		for _, msg := range apivalidation.ValidateNamespaceName(name, false) {
			errs = append(errs, field.Invalid(path, name, msg))
		}
		return errs
	})...)
}

func validateTopology(t *v1beta1.ClusterTopology, path *field.Path) (errs field.ErrorList) {
	if t == nil {
		return nil
	}
	if t.Region != "" {
		errs = topologyName(t.Region, path.Child("region"))
	}
	if len(t.Zones) > maxZones {
		errs = append(errs, field.TooMany(path.Child("zones"), len(t.Zones), maxZones))
	}
	return append(errs, eachOnce(t.Zones, path.Child("zones"), topologyName)...)
}

func validateNetworks(networks []string, path *field.Path) (errs field.ErrorList) {
	if len(networks) > maxNetworks {
		errs = append(errs, field.TooMany(path, len(networks), maxNetworks))
	}
	return append(errs, eachOnce(networks, path, func(cidr string, path *field.Path) field.ErrorList {
		if n, err := netip.ParsePrefix(cidr); err != nil || n != n.Masked() || n.Addr().Is4In6() {
			return field.ErrorList{field.Invalid(path, cidr, "must be a network in CIDR notation, without bits of a host and IPv4 not as IPv6, such as 192.0.2.0/24 or 2001:db8::/32")}
		}
		return nil
	})...)
}

func validateSecretName(name string, path *field.Path) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(path, "name a Secret in the namespace "+v1beta1.FederationNamespace+", or leave secretRef out")}
	}
	for _, msg := range apivalidation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}

func validateClientCIDR(cidr string, path *field.Path) field.ErrorList {
	if _, err := netip.ParsePrefix(cidr); err != nil {
		return field.ErrorList{field.Invalid(path, cidr, "must be a network in CIDR notation, such as 0.0.0.0/0 or 2001:db8::/32")}
	}
	return nil
}

// validateServerAddress accepts host, host:port, IP and IP:port; an IPv6 address with a port, and nothing else, is in brackets.
func validateServerAddress(address string, path *field.Path) field.ErrorList {
	host, bracketed := address, strings.HasPrefix(address, "[")
	if h, port, err := net.SplitHostPort(address); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return field.ErrorList{field.Invalid(path, address, "the port must be a number from 1 to 65535")}
		}
		host = h
	}
	ip, err := netip.ParseAddr(host)
	isIP := err == nil && ip.Zone() == "" && bracketed == (host != address && ip.Is6())
	if !isIP && (bracketed || len(validation.IsDNS1123Subdomain(host)) > 0) {
		return field.ErrorList{field.Invalid(path, address, "must be host, host:port, IP or IP:port, without a scheme, path or zone")}
	}
	return nil
}

var conditionStatuses = []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}

func validateConditions(conditions []v1beta1.ClusterCondition, path *field.Path) (errs field.ErrorList) {
	seen := map[v1beta1.ClusterConditionType]bool{}
	for i, c := range conditions {
		at := path.Index(i)
		if c.Type == "" {
			errs = append(errs, field.Required(at.Child("type"), ""))
		}
		if seen[c.Type] {
			errs = append(errs, field.Duplicate(at.Child("type"), c.Type))
		}
		seen[c.Type] = true
		if c.Status != corev1.ConditionTrue && c.Status != corev1.ConditionFalse && c.Status != corev1.ConditionUnknown {
			errs = append(errs, field.NotSupported(at.Child("status"), c.Status, conditionStatuses))
		}
	}
	return errs
}
