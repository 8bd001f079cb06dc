package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Cluster is a Kubernetes cluster that is a member of the federation.
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata. The name is a DNS label: it becomes part of other names.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Where the cluster is and how to authenticate to it.
	// +optional
	Spec ClusterSpec `json:"spec,omitempty"`
	// What the federation last saw of the cluster.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterSpec says where a member cluster is and how to authenticate to it.
type ClusterSpec struct {
	// Addresses of the cluster's API, by the network the client is in. The entry with the longest
	// matching client CIDR is used. At least one.
	// +listType=atomic
	ServerAddressByClientCIDRs []ServerAddressByClientCIDR `json:"serverAddressByClientCIDRs"`

	// Name of a Secret in the namespace federation-system that holds the credential: keys "token"
	// and "ca.crt", or key "kubeconfig".
	// +optional
	SecretRef *corev1.LocalObjectReference `json:"secretRef,omitempty"`
}

// ServerAddressByClientCIDR is one address of a cluster's API and the clients that are to use it.
type ServerAddressByClientCIDR struct {
	// The clients, as an IPv4 or IPv6 network in CIDR notation; "0.0.0.0/0" is all of IPv4.
	ClientCIDR string `json:"clientCIDR"`
	// The address: a host name, host:port, IP or IP:port. https is implied.
	ServerAddress string `json:"serverAddress"`
}

// ClusterStatus is what the federation last saw of a member cluster.
type ClusterStatus struct {
	// The cluster's conditions: Ready and Offline.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []ClusterCondition `json:"conditions,omitempty"`
	// Zones of the cluster's nodes, sorted. They are kept while the cluster cannot be reached.
	// +optional
	// +listType=atomic
	Zones []string `json:"zones,omitempty"`
	// Region of the cluster's nodes. It is kept while the cluster cannot be reached.
	// +optional
	Region string `json:"region,omitempty"`
	// Version of the cluster's API server, such as "v1.36.3".
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
}

// ClusterConditionType is the type of a cluster's condition.
type ClusterConditionType string

const (
	// ClusterReady means that the cluster's API answered that it is ready.
	ClusterReady ClusterConditionType = "Ready"
	// ClusterOffline means that the cluster's API cannot be reached.
	ClusterOffline ClusterConditionType = "Offline"
)

// Reasons of cluster conditions.
const (
	ReasonClusterReady        = "ClusterReady"
	ReasonClusterNotReady     = "ClusterNotReady"
	ReasonClusterReachable    = "ClusterReachable"
	ReasonClusterNotReachable = "ClusterNotReachable"
)

// ClusterCondition is one aspect of a cluster's state.
type ClusterCondition struct {
	// Ready or Offline.
	Type ClusterConditionType `json:"type"`
	// True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// When the condition was last looked at. It is written when something else of the status
	// changes, not at every look.
	// +optional
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty"`
	// When the status of the condition last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// One word for why.
	// +optional
	Reason string `json:"reason,omitempty"`
	// A sentence for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterList is a list of Clusters.
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// The clusters.
	Items []Cluster `json:"items"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:conversion-gen:explicit-from=net/url.Values

// ClusterProxyOptions are the options of the subresource clusters/NAME/proxy.
type ClusterProxyOptions struct {
	metav1.TypeMeta `json:",inline"`
	// Path is the part of the URL behind /proxy: the path of the request at the member's API.
	// +optional
	Path string `json:"path,omitempty"`
}

// Condition returns the condition of the given type, or nil where there is none.
func (c *Cluster) Condition(t ClusterConditionType) *ClusterCondition {
	for i := range c.Status.Conditions {
		if c.Status.Conditions[i].Type == t {
			return &c.Status.Conditions[i]
		}
	}
	return nil
}

// IsReady tells whether the cluster's API answered, at the last look, that it is ready.
func (c *Cluster) IsReady() bool {
	ready := c.Condition(ClusterReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}
