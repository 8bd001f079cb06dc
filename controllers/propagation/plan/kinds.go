package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is one row of the table of propagated kinds.
type Kind struct {
	// Resource is the resource at the federation and in the members.
	Resource schema.GroupVersionResource
	// Kind is the name of the kind.
	Kind string
	// Divided kinds have spec.replicas, which the placement annotation divides over the clusters. The
	// others go to each selected cluster as they are.
	Divided bool
	// Drop are fields of the federated object that members own: they are never sent.
	Drop [][]string
	// Endpoints: the kind's copies have EndpointSlices, whose readiness counts for the status.
	Endpoints bool
	// Status sums up the copies in what the federated object's status is to have. Nil: no status.
	Status func(federated *unstructured.Unstructured, copies []Copy) map[string]any
}

// Kinds are all kinds that are propagated, in the order in which they have to be created.
var Kinds = []Kind{
	{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace",
		Drop: [][]string{{"spec"}},
	},
	{Resource: schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, Kind: "ServiceAccount", Drop: [][]string{{"secrets"}}},
	{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap"},
	{Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret"},
	{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, Kind: "Service",
		Endpoints: true, Status: serviceStatus,
	},
	{Resource: schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}, Kind: "NetworkPolicy"},
	{Resource: schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}, Kind: "PodDisruptionBudget"},
	{
		Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, Kind: "ReplicaSet",
		Divided: true, Status: replicaSetStatus,
	},
	{
		Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment",
		Divided: true, Status: deploymentStatus,
	},
	{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, Kind: "StatefulSet", Divided: true},
	{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}, Kind: "DaemonSet"},
	{Resource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, Kind: "Job", Divided: true},
	{Resource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}, Kind: "CronJob"},
	{Resource: schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}, Kind: "HorizontalPodAutoscaler"},
	{
		Resource: schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}, Kind: "Ingress",
		Status: ingressStatus,
	},
}

// EndpointSlices are watched in members beside the kinds that have Endpoints.
var EndpointSlices = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
