package nodeagent

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/nodeagent/ruleset"
)

// slim removes what no rule needs, which is most of an object's memory. It stays cached as long as the object exists.
func (a *Agent) slim(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.Service:
		o.ObjectMeta, o.Spec.Selector = slimMeta(o.ObjectMeta), nil
	case *discoveryv1.EndpointSlice:
		o.ObjectMeta, o.Endpoints = slimMeta(o.ObjectMeta), slices.Clone(o.Endpoints) // a decoded slice has spare capacity
		for i := range o.Endpoints {
			o.Endpoints[i] = a.slimEndpoint(o.Endpoints[i])
		}
	case *corev1.Node:
		o.ManagedFields, o.Status.Images = nil, nil
	}
	return obj, nil
}

// labels and annotations are those that rules need.
var (
	labels = []string{ruleset.LabelServiceProxyName, discoveryv1.LabelServiceName, ruleset.LabelRemoteService, ruleset.LabelSourceCluster,
		ruleset.LabelManagedBy, corev1.LabelTopologyRegion}
	annotations = []string{ruleset.AnnotationWeight, ruleset.AnnotationClusterSetIP, ruleset.AnnotationFallback,
		ruleset.AnnotationFallbackBelow, corev1.EndpointsLastChangeTriggerTime}
)

func slimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, Labels: onlyKeys(labels, m.Labels), Annotations: onlyKeys(annotations, m.Annotations)}
}

// onlyKeys returns the values that have one of these keys.
func onlyKeys(keys []string, m map[string]string) map[string]string {
	maps.DeleteFunc(m, func(k, _ string) bool { return !slices.Contains(keys, k) })
	if len(m) == 0 {
		return nil
	}
	return m
}

// slimEndpoint returns the endpoint with its addresses, conditions and hints; of its node only whether it is this one.
func (a *Agent) slimEndpoint(e discoveryv1.Endpoint) discoveryv1.Endpoint {
	c := e.Conditions
	out := discoveryv1.Endpoint{Addresses: e.Addresses, Hints: e.Hints, Conditions: discoveryv1.EndpointConditions{
		Ready: sharedBool(c.Ready), Serving: sharedBool(c.Serving), Terminating: sharedBool(c.Terminating)}}
	if e.NodeName != nil && *e.NodeName == a.NodeName {
		out.NodeName = &a.NodeName
	}
	return out
}

var yes, no = true, false

// sharedBool returns a pointer to the same value that others have, too.
func sharedBool(b *bool) *bool {
	switch {
	case b == nil:
		return nil
	case *b:
		return &yes
	}
	return &no
}
