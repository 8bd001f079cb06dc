package plan

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
	propagationplan "federation/controllers/propagation/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// Resources that evidence is read of, beside the object's own.
var (
	Services  = corev1.SchemeGroupVersion.WithResource("services")
	Slices    = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	Ingresses = networkingv1.SchemeGroupVersion.WithResource("ingresses")
)

// AutoscalerKind is the kind of the federation's autoscalers.
var AutoscalerKind = propagationplan.KindOf(autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"))

// Evidence is what has been read of an object, and of what decides about it.
type Evidence struct {
	Object   *unstructured.Unstructured
	Resource schema.GroupVersionResource
	Clusters []*v1beta1.Cluster
	// Policies are those of the object's namespace.
	Policies []*v1beta1.PlacementPolicy
	// Referrers are the possible referrers in the object's namespace, if it may go along with them.
	Referrers []*unstructured.Unstructured
	// Autoscalers are those at the federation that target the object.
	Autoscalers []*unstructured.Unstructured
	// UID is the federation's.
	UID string
	// Copies are the clusters' answers, by cluster.
	Copies map[string]CopyAnswer
	// Across has the clusters' slices of each other; nil unless the object is a Service.
	Across *AcrossEvidence
	// Routes has how the federation's load balancers serve it; nil unless the object is an Ingress.
	Routes *RoutesEvidence
	// Events are the object's at the federation.
	Events []corev1.Event
	// Confined: it is for somebody who may not list Clusters, and so is not told of more than the object's own.
	Confined bool
	Now      time.Time
}

// CopyAnswer is one cluster's answer about the object.
type CopyAnswer struct {
	Copy *unstructured.Unstructured // nil where there is none
	Err  error
}

// AcrossEvidence is what has been read of the clusters' EndpointSlices of each other for a Service.
type AcrossEvidence struct {
	// Off: the federation does not write them.
	Off bool
	// World is the input of the offers, with the Service as its only object.
	World servicednsplan.Input
	// Unknown is why it could not be read.
	Unknown error
	// Slices are the clusters' slices, by cluster.
	Slices map[string]SlicesAnswer
	// Events report what went wrong.
	Events []corev1.Event
}

// SlicesAnswer is one cluster's answer about its slices.
type SlicesAnswer struct {
	Slices []*discoveryv1.EndpointSlice
	// Own and Balancers are, of a Service that is offered by pods, the cluster's own slices, and what was made for the exported Service.
	Own       []*discoveryv1.EndpointSlice
	Balancers []*corev1.Service
	Err       error
}

// RoutesEvidence is what has been read of how the federation's load balancers serve an Ingress.
type RoutesEvidence struct {
	Ingress *networkingv1.Ingress
	// World has no Services if the user may not read them.
	World loadbalancerplan.World
	// Objects are the Services that the Ingress names.
	Objects []servicednsplan.Object
	// Names is the input of their offers; without objects if the user may not read it.
	Names     servicednsplan.Input
	Balancers []loadbalancerplan.Registration
	// Missing are the Secrets for TLS that do not exist.
	Missing []string
	// Unknown says what could not be read, and what does not follow for that.
	Unknown []string
}

// IsBalanced reports whether the load balancers serve the Ingress.
func (r *RoutesEvidence) IsBalanced() bool { return v1beta1.IsBalanced(r.Ingress) }

// isOurCopy reports whether an object in a member is a copy of this federation's.
func isOurCopy(u *unstructured.Unstructured, uid string) bool {
	return u != nil && v1beta1.IsCopy(u, u.GroupVersionKind().GroupKind(), uid)
}
