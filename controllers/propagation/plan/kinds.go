package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// Kind is one row of the table of propagated kinds.
type Kind struct {
	// FederatedKind is what all know of it. Its Replicas is the field below spec whose number the placement divides among the clusters;
	// "" for a kind whose objects go to each selected cluster as they are.
	v1beta1.FederatedKind
	// Custom: not built into Kubernetes. v1beta1.Federated does not decide which of its objects are federated.
	Custom bool
	// ByPolicy: an object goes nowhere unless a placement says so. Without a placement, objects of other kinds go
	// everywhere.
	ByPolicy bool
	// Paced: the number shrinks only as far as the law allows, see Pace. The kind has status.readyReplicas.
	Paced bool
	// Spare returns how many of a copy's replicas can go without taking a ready one. Nil: those that are not ready,
	// because members delete these first.
	Spare func(copy *unstructured.Unstructured) int64
	// Drop are fields of the federated object that members own: they are never sent.
	Drop [][]string
	// Given returns the fields of this object that are the federation's alone: they are never sent either. Nil: none.
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
	// Scale is where objects of a custom kind have what the subresource scale shows, see ScaleStatus. Nil: nowhere.
	Scale *Scale
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
	FederatedKind: v1beta1.FederatedKind{
		Resource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, Kind: "CustomResourceDefinition",
	},
	Custom: true,
}

// CustomKind returns the row of a kind of which only the name is known. Its objects go where policies say, unchanged
// and without their status. Their status at the federation is left alone.
func CustomKind(resource schema.GroupVersionResource, kind string) Kind {
	return Kind{FederatedKind: v1beta1.FederatedKind{Resource: resource, Kind: kind}, Custom: true, ByPolicy: true}
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

// Notes reports whether objects of the kind have no conditions: v1beta1.PropagatedAnnotation then reports what is wrong
// with their copies.
func (k *Kind) Notes() bool { return k.Status == nil || k.NoConditions }

// Kinds are the rows of v1beta1.FederatedKinds, in their order.
var Kinds = rowsOf(v1beta1.FederatedKinds)

func rowsOf(kinds []v1beta1.FederatedKind) []Kind {
	rows := make([]Kind, 0, len(kinds))
	for _, k := range kinds {
		row := Kind{FederatedKind: k}
		if fill := columns[row.GroupKind()]; fill != nil {
			fill(&row)
		}
		rows = append(rows, row)
	}
	return rows
}

// columns fill in what the rows of some kinds have besides.
var columns = map[schema.GroupKind]func(*Kind){
	{Kind: "Namespace"}:      func(k *Kind) { k.Drop = [][]string{{"spec"}} },
	{Kind: "ServiceAccount"}: func(k *Kind) { k.NeededByPods, k.Drop = true, [][]string{{"secrets"}} },
	{Kind: "ConfigMap"}:      func(k *Kind) { k.NeededByPods = true },
	{Kind: "Secret"}:         func(k *Kind) { k.NeededByPods = true },
	{Kind: "Service"}: func(k *Kind) {
		k.NeededByPods, k.Endpoints, k.Addresses, k.Status, k.Given = true, true, true, serviceStatus, notForMembers
	},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: func(k *Kind) { k.NeededByPods = true },
	{Group: "policy", Kind: "PodDisruptionBudget"}: func(k *Kind) {
		k.NeededByPods, k.Status = true, sumFields("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
	},
	{Group: "apps", Kind: "ReplicaSet"}: func(k *Kind) {
		k.Paced, k.Failure = true, true
		k.Status, k.Healthy = replicaSetStatus, replicasHealthy("replicas", "availableReplicas")
	},
	{Group: "apps", Kind: "Deployment"}: func(k *Kind) {
		k.Paced, k.Failure, k.UpdateTimes, k.Spare = true, true, true, deploymentSpare
		k.Status, k.Healthy = deploymentStatus, deploymentHealthy
	},
	{Group: "apps", Kind: "StatefulSet"}: func(k *Kind) {
		k.Paced, k.Spare = true, statefulSetSpare
		k.Status, k.Healthy = statefulSetStatus, replicasHealthy("replicas", "updatedReplicas", "availableReplicas")
	},
	{Group: "apps", Kind: "DaemonSet"}: func(k *Kind) { k.Status, k.Healthy = daemonSetStatus, daemonSetHealthy },
	{Group: "batch", Kind: "Job"}: func(k *Kind) {
		k.Siblings, k.Rounds, k.Adapt, k.Status = true, true, adaptJob, jobStatus
		k.Drop = [][]string{{"spec", "ttlSecondsAfterFinished"}} // a copy that expired would be created, and run, again
	},
	{Group: "batch", Kind: "CronJob"}:                       func(k *Kind) { k.Status, k.NoConditions = cronJobStatus, true },
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: func(k *Kind) { k.Status = autoscalerStatus },
	{Group: "networking.k8s.io", Kind: "Ingress"}:           func(k *Kind) { k.NeededByPods, k.Addresses, k.Status, k.NoConditions = true, true, ingressStatus, true },
}
