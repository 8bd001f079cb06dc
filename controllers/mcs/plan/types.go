package plan

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Manager is the value of the label endpointslice.kubernetes.io/managed-by on our slices.
const Manager = "mcs.federation.kubernetes.io"

// Rank says how good a cluster is for clients in others: a lower one is used.
type Rank int

// The ranks of clusters.
const (
	Serving Rank = iota
	Drained
	Lost
)

// Export is what one cluster exports of a Service.
type Export struct {
	Cluster string
	// Export is the ServiceExport there.
	Export *mcsv1beta1.ServiceExport
	// Service is the one of that name there, or nil.
	Service *corev1.Service
	// Slices are the EndpointSlices of that Service.
	Slices []*discoveryv1.EndpointSlice
	// Balancer is the Service that was made there for other networks, or nil.
	Balancer *corev1.Service
	// Refused, unless it is "", is why the federation does not let the cluster export in this namespace.
	Refused string
}

// Source is a cluster of the federation, as one that may export.
type Source struct {
	Cluster string
	// Network is the name of the network that its pods are in; "" if it is not known.
	Network string
	// PodCIDRs and LoadBalancerCIDRs are what addresses of its pods and load balancers are in; none: any.
	PodCIDRs, LoadBalancerCIDRs []string
	// Properties are what selectors of clusters select it by.
	Properties map[string]string
	Rank       Rank
	// Absent: it is known to take no part.
	Absent bool
	// Known: what it exports is known. Else others keep what they have of it.
	Known bool
	// Export is nil where it exports nothing under the name.
	Export *Export
}

// Import is what clusters that import a Service get.
type Import struct {
	// Spec has no IPs: these differ between clusters.
	Spec mcsv1beta1.ServiceImportSpec
	// Clusters are those that export it, sorted.
	Clusters            []string
	Labels, Annotations map[string]string
	// selectors are those of clusters that are in Annotations.
	selectors []clusterSelector
}

// Have is what a member has for a Service, of what the federation wrote.
type Have struct {
	Import  *mcsv1beta1.ServiceImport
	Derived *corev1.Service
	Slices  []*discoveryv1.EndpointSlice
	// Balancer is the Service by which other networks reach what the member exports.
	Balancer *corev1.Service
}

// Input is what is known of a Service in one member.
type Input struct {
	// Federation is the value of v1beta1.ManagedByLabel.
	Federation      string
	Namespace, Name string
	// Member is the cluster that imports; Network is that of its pods.
	Member, Network string
	// Imports: the member has the namespace, and the federation lets it import there.
	Imports bool
	// Sources are all clusters of the federation, the member too.
	Sources []Source
	Have    Have
}

// Decision is what a member is to have; nil: nothing of the kind. Its objects are made from those that the member has, where it
// has them.
type Decision struct {
	// Import is to be there before the others, which it owns.
	Import  *mcsv1beta1.ServiceImport
	Derived *corev1.Service
	// Balancer belongs to the member's export.
	Balancer *corev1.Service
	// Slices are to be there, by name, but for those of the clusters in Keep, which stay as they are.
	Slices map[string]*discoveryv1.EndpointSlice
	Keep   map[string]bool
	// Conditions are those of the member's export; nil: not known now, or it has none.
	Conditions []metav1.Condition
}
