package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// Kind is one row of the table of propagated kinds.
type Kind struct {
	// Resource is the resource at the federation and in the members.
	Resource schema.GroupVersionResource
	// Kind is the name of the kind.
	Kind string
	// Custom: not built into Kubernetes. v1beta1.Federated does not decide which of its objects are federated.
	Custom bool
	// ByPolicy: an object goes nowhere unless a placement says so. Without a placement, objects of other kinds go
	// everywhere.
	ByPolicy bool
	// Divided is the field below spec whose number the placement divides among the clusters, such as "replicas"; "" for
	// a kind whose objects go to each selected cluster as they are.
	Divided string
	// Paced: the number shrinks only as far as the law allows, see Pace. The kind has status.readyReplicas.
	Paced bool
	// Spare returns how many of a copy's replicas can go without taking a ready one. Nil: those that are not ready,
	// because members delete these first.
	Spare func(copy *unstructured.Unstructured) int64
	// Drop are fields of the federated object that members own: they are never sent.
	Drop [][]string
	// Given returns the fields that the federation itself set in this object: they are never sent either. Nil: none.
	Given func(federated *unstructured.Unstructured) [][]string
	// Adapt changes what is sent to a cluster where leaving out fields is not enough.
	Adapt func(content map[string]any, s Source, t Target)
	// Siblings: Adapt needs the copies in other clusters before it makes a new one.
	Siblings bool
	// Healthy reports whether all of a copy runs as its spec says. Nil: rollouts do not wait for the kind.
	Healthy func(copy *unstructured.Unstructured) bool
	// Endpoints: the kind's copies have EndpointSlices, whose readiness counts for the status.
	Endpoints bool
	// Addresses: the copies have load balancers, whose addresses DNS learns from the federated object. Without Endpoints
	// those of each copy count.
	Addresses bool
	// NeededByPods: pods need what the copies hold or do. A copy leaves after the pods, see Leaves.
	NeededByPods bool
	// Failure: the kind has the condition ReplicaFailure, see Unmade.
	Failure bool
	// Rounds: the copies may have to be replaced for what is missing in total, see Round.
	Rounds bool
	// Status returns the federated object's status from its copies. Nil: no status.
	Status func(federated *unstructured.Unstructured, copies []Copy) map[string]any
	// NoConditions: the status has no place for conditions. UpdateTimes: they have a lastUpdateTime.
	NoConditions, UpdateTimes bool
}

// GroupKind returns the kind with its group.
func (k *Kind) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: k.Resource.Group, Kind: k.Kind}
}

// EndpointSlices are watched in members beside the kinds that have Endpoints.
var EndpointSlices = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}

// CustomResourceDefinitions is the row of the definitions of custom kinds. It is in no table: a definition is
// propagated only if a policy names its kind.
var CustomResourceDefinitions = Kind{
	Resource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	Kind:     "CustomResourceDefinition", Custom: true,
}

// CustomKind returns the row of a kind of which only the name is known. Its objects go where policies say, unchanged
// and without their status. Their status at the federation is left alone.
func CustomKind(resource schema.GroupVersionResource, kind string) Kind {
	return Kind{Resource: resource, Kind: kind, Custom: true, ByPolicy: true}
}

// Federated returns the rows of v1beta1.FederatedResources, in their order.
func Federated() []Kind {
	kinds := make([]Kind, 0, len(v1beta1.FederatedResources))
	for _, r := range v1beta1.FederatedResources {
		if k := KindOf(r); k != nil {
			kinds = append(kinds, *k)
		}
	}
	return kinds
}

// KindOf returns the row of a built-in resource in any version, or nil.
func KindOf(resource schema.GroupVersionResource) *Kind {
	if resource.GroupResource() == CustomResourceDefinitions.Resource.GroupResource() {
		return &CustomResourceDefinitions
	}
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Resource.GroupResource() == resource.GroupResource() })
	if i < 0 {
		return nil
	}
	return &Kinds[i]
}

func newKind(group, version, resource, kind string) Kind {
	return Kind{Resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, Kind: kind}
}

// Notes reports whether objects of the kind have no conditions: v1beta1.PropagatedAnnotation then reports what is wrong
// with their copies.
func (k *Kind) Notes() bool { return k.Status == nil || k.NoConditions }

// withColumns returns the row with more columns filled in.
func (k Kind) withColumns(fill func(*Kind)) Kind { fill(&k); return k }

// Kinds are all built-in kinds that can be propagated, in order of creation.
var Kinds = []Kind{
	newKind("", "v1", "namespaces", "Namespace").withColumns(func(k *Kind) { k.Drop = [][]string{{"spec"}} }),
	newKind("", "v1", "serviceaccounts", "ServiceAccount").withColumns(func(k *Kind) { k.NeededByPods, k.Drop = true, [][]string{{"secrets"}} }),
	newKind("", "v1", "configmaps", "ConfigMap").withColumns(func(k *Kind) { k.NeededByPods = true }),
	newKind("", "v1", "secrets", "Secret").withColumns(func(k *Kind) { k.NeededByPods = true }),
	newKind("", "v1", "services", "Service").withColumns(func(k *Kind) {
		k.NeededByPods, k.Endpoints, k.Addresses, k.Status, k.Given = true, true, true, serviceStatus, givenClusterIPs
	}),
	newKind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy").withColumns(func(k *Kind) { k.NeededByPods = true }),
	newKind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget").withColumns(func(k *Kind) {
		k.NeededByPods, k.Status = true, sumFields("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
	}),
	newKind("apps", "v1", "replicasets", "ReplicaSet").withColumns(func(k *Kind) {
		k.Divided, k.Paced, k.Failure = "replicas", true, true
		k.Status, k.Healthy = replicaSetStatus, replicasHealthy("replicas", "availableReplicas")
	}),
	newKind("apps", "v1", "deployments", "Deployment").withColumns(func(k *Kind) {
		k.Divided, k.Paced, k.Failure, k.UpdateTimes, k.Spare = "replicas", true, true, true, deploymentSpare
		k.Status, k.Healthy = deploymentStatus, deploymentHealthy
	}),
	newKind("apps", "v1", "statefulsets", "StatefulSet").withColumns(func(k *Kind) {
		k.Divided, k.Paced, k.Spare = "replicas", true, statefulSetSpare
		k.Status, k.Healthy = statefulSetStatus, replicasHealthy("replicas", "updatedReplicas", "availableReplicas")
	}),
	newKind("apps", "v1", "daemonsets", "DaemonSet").withColumns(func(k *Kind) {
		k.Status, k.Healthy = daemonSetStatus, daemonSetHealthy
	}),
	newKind("batch", "v1", "jobs", "Job").withColumns(func(k *Kind) {
		k.Divided, k.Siblings, k.Rounds, k.Adapt, k.Status = "parallelism", true, true, adaptJob, jobStatus
		k.Drop = [][]string{{"spec", "ttlSecondsAfterFinished"}} // a copy that expired would be created, and run, again
	}),
	newKind("batch", "v1", "cronjobs", "CronJob").withColumns(func(k *Kind) { k.Status, k.NoConditions = cronJobStatus, true }),
	newKind("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler").withColumns(func(k *Kind) { k.Status = autoscalerStatus }),
	newKind("networking.k8s.io", "v1", "ingresses", "Ingress").withColumns(func(k *Kind) { k.NeededByPods, k.Addresses, k.Status, k.NoConditions = true, true, ingressStatus, true }),
}
