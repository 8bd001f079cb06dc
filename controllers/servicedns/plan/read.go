package plan

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// Read decodes a federated Service or Ingress. policies are those of its namespace. An object that is being deleted has
// no ingresses. It fails if an annotation cannot be parsed.
func Read(u *unstructured.Unstructured, policies []*v1beta1.PlacementPolicy) (o Object, err error) {
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "type")
	o = Object{
		Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Created: u.GetCreationTimestamp().Time,
		Type: corev1.ServiceType(kind), Hosts: Hosts(u), Reported: IsReported(u), Balanced: IsBalanced(u) && u.GetDeletionTimestamp() == nil, BalancedAt: BalancedAt(u),
	}
	annotations := u.GetAnnotations()
	if value := annotations[v1beta1.ServiceIngressesAnnotation]; value != "" && u.GetDeletionTimestamp() == nil {
		if err := json.Unmarshal([]byte(value), &o.Ingresses); err != nil {
			return o, fmt.Errorf("annotation %s: %w", v1beta1.ServiceIngressesAnnotation, err)
		}
	}
	if value := annotations[v1beta1.DNSAnnotation]; value != "" {
		settings, errs := v1beta1.ParseDNSSettings(value, field.NewPath("metadata", "annotations").Key(v1beta1.DNSAnnotation))
		o.Settings = settings
		return o, errs.ToAggregate()
	}
	if policy := v1beta1.Governing(policies, u.GroupVersionKind().GroupKind(), u.GetName(), u.GetLabels()); policy != nil {
		o.Settings = policy.Spec.DNS
	}
	return o, nil
}

// IsReported reports whether it has been reported what the clusters have of an object.
func IsReported(u *unstructured.Unstructured) bool {
	return u.GetAnnotations()[v1beta1.ServiceIngressesAnnotation] != "" || v1beta1.ConditionOf(u, v1beta1.ConditionPropagated) != nil
}

// Hosts returns the hosts of an Ingress' rules; none for other objects.
func Hosts(u *unstructured.Unstructured) (hosts []string) {
	rules, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "rules")
	list, _ := rules.([]any)
	for _, rule := range list {
		m, _ := rule.(map[string]any)
		if host, _ := m["host"].(string); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// Usability returns everything that names depend on of a Cluster, apart from other clusters' loss, as a comparable
// string.
func Usability(c *v1beta1.Cluster) string { return fmt.Sprint(ClusterOf(c, nil)) }

// ClusterOf reads a Cluster. held has the names of those that count as before though they are unreachable.
func ClusterOf(c *v1beta1.Cluster, held map[string]bool) Cluster {
	return Cluster{
		Name: c.Name, Ready: c.IsReached(), HeartbeatsStale: c.Condition(v1beta1.ClusterNodeHeartbeatsStale) != nil, CutOff: held[c.Name],
		FailedOver: c.IsFailedOver(), Weight: uint32(max(c.DNSWeight(), 0)),
		Zones: c.Status.Zones, Region: c.Status.Region, Network: c.Spec.Network, PodCIDRs: c.Spec.PodCIDRs, LoadBalancerCIDRs: c.Spec.LoadBalancerCIDRs,
	}
}
