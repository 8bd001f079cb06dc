package plan

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"federation/apiserver/apis/federation/v1beta1"
)

// What is taken from a copy.
const (
	maxAddresses  = 16
	maxConditions = 32
)

// AddressRejected: the copy is as desired, but its cluster reports addresses that are not used.
const AddressRejected State = "AddressRejected"

// boundCopies returns the copies with their reported status parsed and bounded. The API validates a status as a whole:
// what one cluster reports must neither block what the others report nor make up for what they lack.
func boundCopies(k *Kind, federated *unstructured.Unstructured, copies []Copy) []Copy {
	out := slices.Clone(copies)
	most := int64(math.MaxInt32 / max(1, len(copies)))
	source := Source{Kind: k, Object: federated, Placement: Read(federated)}
	for i := range out {
		c := &out[i]
		c.Message = v1beta1.Printable(c.Message)
		if c.Object == nil {
			continue
		}
		status, _ := c.Object.Object["status"].(map[string]any)
		clean := make(map[string]any, len(status))
		for key, value := range status {
			if value = credibleValue(key, value, most); value != nil {
				clean[key] = value
			}
		}
		if k.Replicas == "replicas" {
			credibleReplicas(clean, source.countsAsServing(c))
		}
		noMore(clean, "ready", "active")
		if k.Addresses {
			c.copyAddresses(status, clean)
		}
		u := &unstructured.Unstructured{Object: maps.Clone(c.Object.Object)}
		u.Object["status"], c.Object = clean, u
	}
	return out
}

// credibleValue returns what is taken of one field of a copy's status, or nil.
func credibleValue(key string, value any, most int64) any {
	switch v := value.(type) {
	case int64:
		if key != "observedGeneration" {
			v = min(v, most)
		}
		return max(0, v)
	case string:
		if key == "currentRevision" || key == "updateRevision" {
			return v1beta1.Printable(v)
		}
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return at.UTC().Format(time.RFC3339)
		}
	case []any:
		if key == "conditions" {
			return credibleConditions(v)
		}
	}
	return nil
}

func credibleConditions(list []any) []any {
	out := make([]any, 0, min(len(list), maxConditions))
	for _, item := range list[:min(len(list), maxConditions)] {
		c, _ := item.(map[string]any)
		clean := map[string]any{}
		for _, key := range []string{"type", "status", "reason", "message", "lastTransitionTime", "lastUpdateTime"} {
			if text, ok := c[key].(string); ok {
				clean[key] = v1beta1.Printable(text)
			}
		}
		out = append(out, clean)
	}
	return out
}

// countsAsServing returns how many replicas of a copy can count as serving: its share or, while it still has more, that, but no
// more than are requested in all. If an autoscaler of its cluster owns the number, the cluster decides.
func (s Source) countsAsServing(c *Copy) int64 {
	has := Applied(s, c.Object)
	if ScaledByMember(c.Object) || c.Object.GetAnnotations()[AutoscaledAnnotation] != "" {
		return has
	}
	return max(s.Share(c.Cluster), min(has, s.Asked()))
}

// credibleReplicas makes the numbers consistent, as the API requires.
func credibleReplicas(status map[string]any, serve int64) {
	for _, key := range []string{"readyReplicas", "availableReplicas"} {
		if n, ok := status[key].(int64); ok {
			status[key] = min(n, max(0, serve))
		}
	}
	for _, key := range []string{"readyReplicas", "updatedReplicas", "currentReplicas", "fullyLabeledReplicas"} {
		noMore(status, key, "replicas")
	}
	noMore(status, "availableReplicas", "readyReplicas")
}

// noMore limits one number by another.
func noMore(status map[string]any, key, by string) {
	if n, ok := status[key].(int64); ok {
		most, _ := status[by].(int64)
		status[key] = min(n, most)
	}
}

// copyAddresses copies the usable load balancer addresses into the clean status, and reports the others.
func (c *Copy) copyAddresses(status, clean map[string]any) {
	list, _, _ := unstructured.NestedFieldNoCopy(status, "loadBalancer", "ingress")
	items, _ := list.([]any)
	if len(items) == 0 {
		return
	}
	var used []any
	why := ""
	for _, item := range items[:min(len(items), maxAddresses)] {
		m, _ := item.(map[string]any)
		address, fault := credibleAddress(m)
		if fault == "" {
			address, fault = c.restrictAddress(address)
		}
		if why == "" {
			why = fault
		}
		if len(address) > 0 {
			used = append(used, address)
		}
	}
	if more := len(items) - maxAddresses; more > 0 && why == "" {
		why = fmt.Sprintf("%d of its load balancer addresses are more than the %d that are used", more, maxAddresses)
	}
	clean["loadBalancer"] = map[string]any{"ingress": used}
	if c.State == Synced && why != "" {
		c.State, c.Message = AddressRejected, why
	}
}

// restrictAddress returns the part of an address that is in the cluster's allowed networks.
func (c *Copy) restrictAddress(address map[string]any) (map[string]any, string) {
	if len(c.LoadBalancers) == 0 {
		return address, ""
	}
	if host := address["hostname"]; host != nil {
		return nil, fmt.Sprintf("its load balancer host name %q is not used: the Cluster's spec.loadBalancerCIDRs allows addresses only", host)
	}
	text, _ := address["ip"].(string)
	ip, _ := netip.ParseAddr(text) // credibleAddress wrote it
	for _, cidr := range c.LoadBalancers {
		if n, err := netip.ParsePrefix(cidr); err == nil && n.Contains(ip) {
			return address, ""
		}
	}
	return nil, fmt.Sprintf("its load balancer address %s is not used: it is not in the Cluster's spec.loadBalancerCIDRs (%s)", ip, joined(c.LoadBalancers, ", "))
}

// credibleAddress returns the usable part of an item of status.loadBalancer.ingress, and what is wrong with the rest.
func credibleAddress(said map[string]any) (address map[string]any, fault string) {
	address = map[string]any{}
	ip, _ := said["ip"].(string)
	host, _ := said["hostname"].(string)
	if ip == "" && host == "" {
		return nil, "one of its load balancer addresses has neither an IP nor a host name"
	}
	if ip != "" {
		if parsed, err := netip.ParseAddr(ip); err != nil || parsed.Zone() != "" {
			fault = fmt.Sprintf("its load balancer address %q is not used: must be an IP address", v1beta1.Printable(ip))
		} else {
			address["ip"] = parsed.Unmap().String()
			if mode := said["ipMode"]; mode == string(corev1.LoadBalancerIPModeVIP) || mode == string(corev1.LoadBalancerIPModeProxy) {
				address["ipMode"] = mode
			}
		}
	}
	if host != "" {
		if _, err := netip.ParseAddr(host); err == nil || len(validation.IsDNS1123Subdomain(host)) > 0 {
			fault = fmt.Sprintf("its load balancer host name %q is not used: must be a DNS name in lower case", v1beta1.Printable(host))
		} else {
			address["hostname"] = host
		}
	}
	return address, fault
}
