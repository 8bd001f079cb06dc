package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementPolicy says, for objects of its namespace, to which clusters they go, how their replicas
// divide, how they fail over, and what differs from cluster to cluster.
type PlacementPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is asked for.
	Spec PlacementPolicySpec `json:"spec"`
	// What the federation made of it.
	// +optional
	Status PlacementPolicyStatus `json:"status,omitempty"`
}

// PlacementPolicySpec says which objects a policy governs and what becomes of them. An annotation on an
// object wins over the same thing in its policy.
type PlacementPolicySpec struct {
	// The objects: those that match any of the selectors, in the policy's namespace. At least one. Naming a
	// custom kind here is what makes the federation spread its objects, and its definition.
	// +listType=atomic
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// Of two policies that select an object, the one with the higher priority governs it, then the one whose
	// name comes first. Where room is short, objects of higher priority are placed first.
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// The clusters that may be used; all clusters if left out. The annotation cluster-selector on an
	// object replaces it.
	// +optional
	Clusters *ClusterAffinity `json:"clusters,omitempty"`

	// Over how many zones, regions or clusters an object is spread.
	// +optional
	// +listType=map
	// +listMapKey=spreadBy
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`

	// Whether what the policy governs goes to the same clusters: Required, Preferred (default) or None. Required: all of it is in the
	// same clusters, one unless spreadConstraints ask for more, and moves from there as one. Preferred: objects with fewer replicas
	// than there are clusters go where the others of the namespace go, while there is room. None: each goes where it likes.
	// +optional
	WorkloadAffinity WorkloadAffinity `json:"workloadAffinity,omitempty"`

	// How replicas divide. The annotation of the object's kind (replica-set-preferences and so on)
	// replaces it.
	// +optional
	ReplicaPreferences *ReplicaPreferences `json:"replicaPreferences,omitempty"`

	// How the HorizontalPodAutoscalers that the policy governs scale.
	// +optional
	Autoscaling *AutoscalingPolicy `json:"autoscaling,omitempty"`

	// Taints of clusters that do not keep the objects away.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// What happens when a cluster is lost and when it returns.
	// +optional
	Failover *FailoverPolicy `json:"failover,omitempty"`

	// How a change gets to the clusters.
	// +optional
	Rollout *RolloutPolicy `json:"rollout,omitempty"`

	// What differs from cluster to cluster, in this order.
	// +optional
	// +listType=atomic
	Overrides []Override `json:"overrides,omitempty"`

	// Whether ConfigMaps, Secrets and ServiceAccounts that a workload refers to go where the workload goes,
	// unless a policy or annotation says so of them.
	// +optional
	PropagateReferences bool `json:"propagateReferences,omitempty"`

	// How the names of Services and Ingresses are answered. The annotation dns on an object replaces it.
	// +optional
	DNS *DNSSettings `json:"dns,omitempty"`
}

// ResourceSelector selects objects by kind and, of these, by name and labels. All that is given must hold.
type ResourceSelector struct {
	// Group and version, such as "apps/v1"; of a custom kind that of the version to be spread.
	APIVersion string `json:"apiVersion"`
	// The kind, such as "Deployment".
	Kind string `json:"kind"`
	// Names of objects; all names if empty.
	// +optional
	// +listType=set
	Names []string `json:"names,omitempty"`
	// Labels of objects; all objects if left out.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ClusterAffinity selects clusters. All that is given must hold.
type ClusterAffinity struct {
	// Names of clusters; all if empty. A name that no cluster has is no error: the cluster may join later.
	// +optional
	// +listType=set
	Names []string `json:"names,omitempty"`
	// Labels of Cluster objects.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// Zones, of which the cluster has nodes in at least one; all if empty.
	// +optional
	// +listType=set
	Zones []string `json:"zones,omitempty"`
	// Regions, of which the cluster is in one; all if empty.
	// +optional
	// +listType=set
	Regions []string `json:"regions,omitempty"`
}

// SpreadBy is what clusters are grouped by.
type SpreadBy string

// Groups of clusters. A zone is counted together with its region: zone a of two regions is two zones.
const (
	SpreadByCluster SpreadBy = "Cluster"
	SpreadByZone    SpreadBy = "Zone"
	SpreadByRegion  SpreadBy = "Region"
)

// SpreadConstraint bounds over how many groups an object is spread.
type SpreadConstraint struct {
	// Cluster, Zone or Region.
	SpreadBy SpreadBy `json:"spreadBy"`
	// The least number of groups that must hold replicas, from 0. Where fewer can be used, the object is
	// placed on those and a condition says so. Of an object with fewer replicas, each goes to a group of its own.
	// +optional
	MinGroups int32 `json:"minGroups,omitempty"`
	// The most groups that are used; no limit if left out. At least 1 and at least minGroups.
	// +optional
	MaxGroups *int32 `json:"maxGroups,omitempty"`
}

// WorkloadAffinity says whether objects go to the same clusters.
type WorkloadAffinity string

// Affinities between what a policy governs.
const (
	// WorkloadAffinityRequired: all is in the same clusters.
	WorkloadAffinityRequired WorkloadAffinity = "Required"
	// WorkloadAffinityPreferred: objects with few replicas go where the others of their namespace go.
	WorkloadAffinityPreferred WorkloadAffinity = "Preferred"
	// WorkloadAffinityNone: objects with few replicas are spread over the clusters.
	WorkloadAffinityNone WorkloadAffinity = "None"
)

// AutoscalingScope says what a HorizontalPodAutoscaler scales.
type AutoscalingScope string

// Scopes of autoscalers.
const (
	// AutoscalingScopeCluster: each cluster has a copy of the autoscaler, which scales the copy of the workload there.
	AutoscalingScopeCluster AutoscalingScope = "Cluster"
	// AutoscalingScopeFederation: the federation scales the workload as a whole, by the metrics of its pods in all clusters. No cluster
	// has the autoscaler.
	AutoscalingScopeFederation AutoscalingScope = "Federation"
)

// AutoscalingPolicy says how HorizontalPodAutoscalers scale.
type AutoscalingPolicy struct {
	// Cluster (default) or Federation. Cluster: each cluster has a copy of the autoscaler, and minReplicas and maxReplicas hold there.
	// Federation: minReplicas and maxReplicas hold for all clusters together, metrics are those of the pods in all of them, and the
	// replicas are divided by the workload's placement.
	// +optional
	Scope AutoscalingScope `json:"scope,omitempty"`
}

// ScalesAtFederation reports whether autoscalers that the policy governs scale for all clusters together.
func (s *PlacementPolicySpec) ScalesAtFederation() bool {
	return s.Autoscaling != nil && s.Autoscaling.Scope == AutoscalingScopeFederation
}

// Failback says how replicas come back to a cluster that has returned.
type Failback string

// Ways of failing back.
const (
	// FailbackStaged: in the steps of the federation (default 10 %, 50 %, 100 %), each after a stable time.
	FailbackStaged Failback = "Staged"
	// FailbackImmediate: all, as soon as the cluster has been stable.
	FailbackImmediate Failback = "Immediate"
	// FailbackNever: what was moved stays where it is until the object or its policy changes.
	FailbackNever Failback = "Never"
)

// FailoverPolicy says what happens when a cluster is lost and when it returns.
type FailoverPolicy struct {
	// Disabled leaves replicas placed on a cluster that is lost. (DNS leaves it all the same.)
	// +optional
	Disabled bool `json:"disabled,omitempty"`
	// How long a cluster may be away before replicas are placed elsewhere, in seconds. It counts where it
	// is longer than the federation's own grace period.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`
	// Staged (default), Immediate or Never.
	// +optional
	Failback Failback `json:"failback,omitempty"`
}

// RolloutStrategy says in what order clusters get a change.
type RolloutStrategy string

// Orders of a rollout.
const (
	// RolloutAllAtOnce: all clusters get a change at once.
	RolloutAllAtOnce RolloutStrategy = "AllAtOnce"
	// RolloutOneClusterAtATime: the next cluster gets a change of the pod template when the one before it is
	// healthy with it: all its replicas are updated and available.
	RolloutOneClusterAtATime RolloutStrategy = "OneClusterAtATime"
)

// RolloutPolicy says how a change of a workload's pod template gets to the clusters.
type RolloutPolicy struct {
	// AllAtOnce (default) or OneClusterAtATime.
	// +optional
	Strategy RolloutStrategy `json:"strategy,omitempty"`
	// Order of clusters for OneClusterAtATime; those that are not named come after, by name.
	// +optional
	// +listType=set
	Order []string `json:"order,omitempty"`
	// Paused: no further cluster gets a change of the pod template. Replicas still move.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// Override changes copies in some clusters.
type Override struct {
	// The clusters; all if left out.
	// +optional
	Clusters *ClusterAffinity `json:"clusters,omitempty"`
	// Operations of a JSON patch (RFC 6902) on the copy. They may not touch apiVersion, kind, status, or the metadata
	// other than labels and annotations. Where one does not apply, the copy in that cluster stays as it is and the object says so.
	// +listType=atomic
	JSONPatch []JSONPatchOperation `json:"jsonPatch"`
}

// JSONPatchOperation is one operation of a JSON patch (RFC 6902).
type JSONPatchOperation struct {
	// add, remove, replace, move, copy or test.
	Op string `json:"op"`
	// Where, as a JSON pointer (RFC 6901), such as /spec/template/spec/containers/0/image.
	Path string `json:"path"`
	// Where from, for move and copy.
	// +optional
	From string `json:"from,omitempty"`
	// The value, for add, replace and test.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}

// PlacementPolicyStatus is what the federation made of a policy.
type PlacementPolicyStatus struct {
	// The generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Objects that the policy governs.
	// +optional
	Objects int32 `json:"objects,omitempty"`
	// The clusters in which all that it governs is, with workloadAffinity Required.
	// +optional
	// +listType=set
	Clusters []string `json:"clusters,omitempty"`
	// The clusters in which it was before it was moved off one that was lost or drained: it goes back when all of these serve.
	// +optional
	// +listType=set
	Home []string `json:"home,omitempty"`
	// Accepted: False with a reason where a kind that is named cannot be spread.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PolicyAccepted is the type of the condition of a PlacementPolicy.
const PolicyAccepted = "Accepted"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementPolicyList is a list of PlacementPolicies.
type PlacementPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// The policies.
	Items []PlacementPolicy `json:"items"`
}
