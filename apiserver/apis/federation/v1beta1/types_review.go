package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FailoverReview asks what would happen if clusters were lost. It is created only, never stored, and changes
// nothing: the answer to the create has the status filled in.
type FailoverReview struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata; not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which clusters are taken as lost.
	Spec FailoverReviewSpec `json:"spec"`
	// What would happen.
	// +optional
	Status FailoverReviewStatus `json:"status,omitempty"`
}

// FailoverReviewSpec names what is taken as lost: all clusters that any of the fields names. At least one field.
type FailoverReviewSpec struct {
	// Names of clusters.
	// +optional
	// +listType=set
	Clusters []string `json:"clusters,omitempty"`
	// Zones, as REGION/ZONE or ZONE: clusters that have no nodes elsewhere.
	// +optional
	// +listType=set
	Zones []string `json:"zones,omitempty"`
	// Regions: all clusters in them.
	// +optional
	// +listType=set
	Regions []string `json:"regions,omitempty"`
	// The clusters are taken as drained, not lost: replicas move for which failover is turned off, too; those stay that
	// tolerate the taint of drain; and no limit holds it.
	// +optional
	Drained bool `json:"drained,omitempty"`
}

// FailoverReviewStatus is what would happen.
type FailoverReviewStatus struct {
	// The clusters that are taken as lost, sorted.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
	// Why nothing, or not all, would be moved: the failover limit that would suspend it. Empty: they allow it.
	// +optional
	SuspendedReason string `json:"suspendedReason,omitempty"`
	// The objects whose replicas would move, in the order in which they would be placed.
	// +optional
	// +listType=atomic
	Moves []ReplicaMove `json:"moves,omitempty"`
	// The DNS record sets that would change, sorted by name and type.
	// +optional
	// +listType=atomic
	Records []RecordChange `json:"records,omitempty"`
	// The hosts and paths of Ingresses of class federation for which no cluster would be left, sorted by Ingress, host and path.
	// +optional
	// +listType=atomic
	Routes []RouteLoss `json:"routes,omitempty"`
	// The federation's own load balancers in the lost zones and regions, sorted by name. A lost cluster takes none with it.
	// +optional
	// +listType=atomic
	LoadBalancers []LoadBalancerLoss `json:"loadBalancers,omitempty"`
	// How many of the load balancers that are alive would be left; not set if none would be lost.
	// +optional
	LoadBalancersLeft *int64 `json:"loadBalancersLeft,omitempty"`
	// Replicas that would move, in sum.
	// +optional
	ReplicasMoved int64 `json:"replicasMoved,omitempty"`
	// Replicas that would fit nowhere, in sum.
	// +optional
	ReplicasUnschedulable int64 `json:"replicasUnschedulable,omitempty"`
}

// ReplicaMove is how the replicas of one object would move.
type ReplicaMove struct {
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
	// The clusters whose number would change, by name.
	// +listType=atomic
	Clusters []ReplicaChange `json:"clusters"`
	// Replicas that would fit nowhere.
	// +optional
	Unschedulable int64 `json:"unschedulable,omitempty"`
	// Why it would not move, where it has replicas in a lost cluster and would not.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ReplicaChange is the number of replicas in a cluster, now and then.
type ReplicaChange struct {
	// Name of the cluster.
	Cluster string `json:"cluster"`
	// Replicas placed there now.
	Before int64 `json:"before"`
	// Replicas that would be placed there.
	After int64 `json:"after"`
	// Why, for people.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// RecordChange is a DNS record set, now and then.
type RecordChange struct {
	// Name, with the trailing dot.
	Name string `json:"name"`
	// Type: A, AAAA or CNAME.
	Type string `json:"type"`
	// Data now; empty where there is no such set.
	// +optional
	// +listType=atomic
	Before []string `json:"before,omitempty"`
	// Data then; empty where there would be no such set.
	// +optional
	// +listType=atomic
	After []string `json:"after,omitempty"`
}

// RouteLoss is a host and path that no cluster would serve.
type RouteLoss struct {
	// Namespace of the Ingress, and of the Service behind it.
	Namespace string `json:"namespace"`
	// Name of the Ingress.
	Ingress string `json:"ingress"`
	// Name of the Service.
	Service string `json:"service"`
	// Host that requests are for; empty for rules without one.
	// +optional
	Host string `json:"host,omitempty"`
	// Path; empty for the default backend.
	// +optional
	Path string `json:"path,omitempty"`
}

// LoadBalancerLoss is a load balancer of the federation in a lost zone or region.
type LoadBalancerLoss struct {
	// Name of its Lease.
	Name string `json:"name"`
	// Region that it is in.
	// +optional
	Region string `json:"region,omitempty"`
	// Zone that it is in.
	// +optional
	Zone string `json:"zone,omitempty"`
	// Addresses that clients reach it at.
	// +optional
	// +listType=atomic
	Addresses []string `json:"addresses,omitempty"`
}
