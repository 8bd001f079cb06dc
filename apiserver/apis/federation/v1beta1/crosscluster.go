package v1beta1

import (
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Annotations of Services about traffic between clusters. The federation's node agent reads those on the copies.
const (
	// FallbackAnnotation, "true", makes the Service's own addresses lead to other clusters, too, where the node agent
	// works beside another service proxy. The default is "false".
	FallbackAnnotation = "federation.kubernetes.io/fallback"
	// FallbackBelowAnnotation, "1%" to "100%", is the share of a cluster's endpoints that must be ready. If fewer are,
	// other clusters get the missing share of new connections.
	FallbackBelowAnnotation = "federation.kubernetes.io/fallback-below"
	// ClusterSetIPAnnotation requests, with ClusterSetIPAuto, addresses that are the same in all clusters. The
	// federation replaces the value by these: "ADDRESS[,ADDRESS]", one per family.
	ClusterSetIPAnnotation = "federation.kubernetes.io/clusterset-ip"
	// ClusterSetIPAuto is the value of ClusterSetIPAnnotation that users write.
	ClusterSetIPAuto = "auto"
)

// ConditionClusterSetIP says on a federated Service, while it is False, why it lacks the clusterset IPs that it asks
// for.
const ConditionClusterSetIP = "ClusterSetIPAllocated"

// Reasons of events about the EndpointSlices of other clusters in members.
const (
	// EventMissingPermissions, of a Cluster: the federation's account there may not write them.
	EventMissingPermissions = "MissingPermissions"
	// EventSliceRejected, of a federated Service: a member rejects its slices. The message is "CLUSTER: why".
	EventSliceRejected = "EndpointSliceRejected"
)

// ParseClusterSetIPs reads the value of ClusterSetIPAnnotation: none for ClusterSetIPAuto.
func ParseClusterSetIPs(value string, path *field.Path) (addresses []netip.Addr, errs field.ErrorList) {
	if value == ClusterSetIPAuto {
		return nil, nil
	}
	const allowed = `must be "auto", for which the federation puts the addresses: at most one a family, with a comma between`
	for text := range strings.SplitSeq(value, ",") {
		a, err := netip.ParseAddr(text)
		if err != nil || a.String() != text || a.Is4In6() || a.Zone() != "" || len(addresses) > 1 || len(addresses) == 1 && addresses[0].Is4() == a.Is4() {
			return nil, field.ErrorList{field.Invalid(path, value, allowed)}
		}
		addresses = append(addresses, a)
	}
	return addresses, nil
}

// ValidateFallback checks the value of FallbackAnnotation.
func ValidateFallback(value string, path *field.Path) field.ErrorList {
	if value != "true" && value != "false" {
		return field.ErrorList{field.NotSupported(path, value, []string{"true", "false"})}
	}
	return nil
}

// ValidateFallbackBelow checks the value of FallbackBelowAnnotation.
func ValidateFallbackBelow(value string, path *field.Path) field.ErrorList {
	digits, percent := strings.CutSuffix(value, "%")
	if n, err := strconv.ParseUint(digits, 10, 7); err != nil || !percent || n < 1 || n > 100 {
		return field.ErrorList{field.Invalid(path, value, `must be from "1%" to "100%"`)}
	}
	return nil
}
