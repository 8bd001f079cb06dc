package v1beta1

import (
	"fmt"

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
	// How requests come to the cluster's API. Push, the default: the federation connects to it. Pull: an agent in the cluster connects to the
	// federation and forwards them with its own credential; the federation needs neither an address nor a credential of the cluster.
	// +optional
	Connection ClusterConnection `json:"connection,omitempty"`

	// Addresses of the cluster's API, by the network the client is in. The entry with the longest
	// matching client CIDR is used. At least one, and none where connection is Pull.
	// +optional
	// +listType=atomic
	ServerAddressByClientCIDRs []ServerAddressByClientCIDR `json:"serverAddressByClientCIDRs,omitempty"`

	// Name of a Secret in the namespace federation-system that holds the credential: keys "token"
	// and "ca.crt", or key "kubeconfig".
	// +optional
	SecretRef *corev1.LocalObjectReference `json:"secretRef,omitempty"`

	// Taints keep objects away that do not tolerate them: NoSchedule, new replicas; NoExecute, also those that are
	// there. PreferNoSchedule is not supported.
	// +optional
	// +listType=atomic
	Taints []corev1.Taint `json:"taints,omitempty"`

	// The cluster's weight in the answers of DNS, from 0 to 1000; 100 if left out. With 0 its addresses are not
	// published while another cluster of the level serves.
	// +optional
	DNSWeight *int32 `json:"dnsWeight,omitempty"`

	// Has the federation empty the cluster, in order, and keep it empty: its weight in DNS becomes 0; when no resolver
	// keeps its addresses any more, its replicas are placed elsewhere; when none is left there, it is cordoned. When drain is
	// removed, the federation undoes that, in order. kubectl federation drain and undrain write it.
	// +optional
	Drain *ClusterDrain `json:"drain,omitempty"`

	// Where the cluster is, as its operator says, so that the cluster cannot claim another place. What is left out is
	// taken from labels of its nodes.
	// +optional
	Topology *ClusterTopology `json:"topology,omitempty"`

	// Networks, in CIDR notation, that the addresses of its load balancers are in: others that it names are not used, nor host names.
	// All are, if left out.
	// +optional
	// +listType=atomic
	LoadBalancerCIDRs []string `json:"loadBalancerCIDRs,omitempty"`

	// The name of the network that its pods are in: pods of clusters with equal names reach each other by their addresses, so Services that
	// one exports are served in the others by these, and Services without load balancers where no endpoint is ready. To clusters in other
	// networks, or without a name, by the addresses of load balancers.
	// +optional
	Network string `json:"network,omitempty"`

	// Networks, in CIDR notation, that the addresses of its pods are in: others that it names are not used in other clusters. All are, if
	// left out.
	// +optional
	// +listType=atomic
	PodCIDRs []string `json:"podCIDRs,omitempty"`

	// The namespaces that may use the cluster: objects of other namespaces do not go there, whatever policies and
	// annotations select. All may, if left out. Objects of a namespace that is removed from the list leave the cluster.
	// +optional
	// +listType=set
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty"`
}

// ClusterConnection is who connects to whom.
type ClusterConnection string

// The connections.
const (
	// ConnectionPush means that the federation connects to the API of the cluster.
	ConnectionPush ClusterConnection = "Push"
	// ConnectionPull means that an agent in the cluster connects to the federation.
	ConnectionPull ClusterConnection = "Pull"
)

// ClusterDrain says how to drain a cluster.
type ClusterDrain struct {
	// How many seconds after the change of the weight in DNS replicas may move, whatever DNS providers report, from 0 to
	// 604800. If left out, as long as resolvers may keep an answer, from when all providers have the change.
	// +optional
	TTLSeconds *int32 `json:"ttlSeconds,omitempty"`
}

// ClusterTopology says where a cluster is.
type ClusterTopology struct {
	// The region.
	// +optional
	Region string `json:"region,omitempty"`
	// The zones, at most 16.
	// +optional
	// +listType=atomic
	Zones []string `json:"zones,omitempty"`
}

// Taints that the federation's own tools put on Clusters.
const (
	// TaintUnschedulable is what `kubectl federation cordon` sets, with effect NoSchedule.
	TaintUnschedulable = "federation.kubernetes.io/unschedulable"
	// TaintDrain is what `kubectl federation drain` sets, with effect NoExecute.
	TaintDrain = "federation.kubernetes.io/drain"
)

// DefaultDNSWeight is the weight of a Cluster without spec.dnsWeight.
const DefaultDNSWeight = 100

// ServerAddressByClientCIDR is one address of a cluster's API and the clients that are to use it.
type ServerAddressByClientCIDR struct {
	// The clients, as an IPv4 or IPv6 network in CIDR notation; "0.0.0.0/0" is all of IPv4.
	ClientCIDR string `json:"clientCIDR"`
	// The address: a host name, host:port, IP or IP:port. https is implied.
	ServerAddress string `json:"serverAddress"`
}

// ClusterStatus is what the federation last saw of a member cluster.
type ClusterStatus struct {
	// The cluster's conditions: Ready, Offline, FailedOver and FailoverSuspended; AgentConnected for one whose connection is Pull; DNSIncomplete, NodeHeartbeatsStale, PartiallyReachable, DeletionsPendingApproval, TopologyMismatch and FencesMissing where it is so.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []ClusterCondition `json:"conditions,omitempty"`
	// UID of the cluster's namespace kube-system: two Clusters with the same UID are one cluster. It is kept while the
	// cluster cannot be reached, and missing while it is unknown.
	// +optional
	UID string `json:"uid,omitempty"`
	// Zones of the cluster: those of spec.topology, else of its nodes, sorted. They are kept while the cluster cannot be reached.
	// +optional
	// +listType=atomic
	Zones []string `json:"zones,omitempty"`
	// Region of the cluster: that of spec.topology, else of its nodes. It is kept while the cluster cannot be reached.
	// +optional
	Region string `json:"region,omitempty"`
	// Version of the cluster's API server, such as "v1.36.3".
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Kinds that the cluster does not let the federation see, each as RESOURCE.GROUP, sorted: their objects do not go
	// there. Joining the cluster again gives the permissions.
	// +optional
	// +listType=atomic
	InaccessibleResources []string `json:"inaccessibleResources,omitempty"`
	// Copies whose deletion needs approval: very many at once, of objects that the federation does not know, as after a
	// restore from an old backup.
	// +optional
	// +listType=atomic
	DeletionsPendingApproval []PendingDeletions `json:"deletionsPendingApproval,omitempty"`
	// Room in the cluster.
	// +optional
	Capacity *ClusterCapacity `json:"capacity,omitempty"`
	// Where the cluster stands between serving and failed over.
	// +optional
	Failover *ClusterFailover `json:"failover,omitempty"`
	// How far the drain of the cluster, or its undoing, is. Left out where there is neither.
	// +optional
	Drain *ClusterDrainStatus `json:"drain,omitempty"`
}

// PendingDeletions are copies in a cluster whose deletion needs approval.
type PendingDeletions struct {
	// The custom kind of the copies, as RESOURCE.GROUP. Left out for all built-in kinds together.
	// +optional
	Resource string `json:"resource,omitempty"`
	// A name of exactly these copies. An approval covers this set, and no other.
	Set string `json:"set"`
	// How many they are.
	Copies int32 `json:"copies"`
	// How many copies the cluster has.
	Of int32 `json:"of"`
	// Some of them, each as KIND NAMESPACE/NAME; at most 10.
	// +optional
	// +listType=atomic
	Examples []string `json:"examples,omitempty"`
}

// ClusterCapacity is the room in a cluster, by its nodes and pods. Its size is bounded whatever the size of the
// cluster.
type ClusterCapacity struct {
	// When it was observed.
	ObservedAt metav1.Time `json:"observedAt"`
	// Nodes that are ready and may be scheduled to.
	Nodes int32 `json:"nodes"`
	// Sum over these nodes: cpu, memory, pods, and extended resources.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Sum of the requests of the pods on these nodes, the pods themselves counted under pods.
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// What is free, by classes of nodes: each node of a class has at least that much. At most 16 classes, largest
	// first.
	// +optional
	// +listType=atomic
	Free []NodeClass `json:"free,omitempty"`
	// Workloads with pods that have been unschedulable for more than 60 s. At most 256, by kind, namespace and name.
	// +optional
	// +listType=atomic
	Unschedulable []UnschedulablePods `json:"unschedulable,omitempty"`
}

// NodeClass is a number of nodes with at least this room on each.
type NodeClass struct {
	// The number of nodes.
	Nodes int32 `json:"nodes"`
	// What is free on each.
	Free corev1.ResourceList `json:"free"`
}

// UnschedulablePods are the pods of a workload for which the cluster has had no room for a while.
type UnschedulablePods struct {
	// Kind of the workload: ReplicaSet, Deployment, StatefulSet or Job. The pods of a Deployment are counted for it.
	Kind string `json:"kind"`
	// Namespace of the workload.
	Namespace string `json:"namespace"`
	// Name of the workload.
	Name string `json:"name"`
	// How many pods.
	Pods int32 `json:"pods"`
	// The message of the cluster's scheduler about most of them, shortened. At most 64 workloads have one.
	// +optional
	Message string `json:"message,omitempty"`
}

// FailoverPhase is where a cluster stands between serving and failed over.
type FailoverPhase string

// Phases of a cluster.
const (
	// PhaseServing: the cluster is used.
	PhaseServing FailoverPhase = "Serving"
	// PhaseGracePeriod: the cluster is not ready and in its grace period: it keeps what it has and gets no more.
	PhaseGracePeriod FailoverPhase = "GracePeriod"
	// PhaseFailoverSuspended: nothing is moved, though the grace period is over: too many clusters are away at once; or
	// the cluster answers and rejects the federation, which is no sign that its workloads are dead.
	PhaseFailoverSuspended FailoverPhase = "FailoverSuspended"
	// PhaseFailedOver: what was placed on the cluster is placed elsewhere.
	PhaseFailedOver FailoverPhase = "FailedOver"
	// PhaseFailingBack: the cluster is ready again and gets back a share of what it would have.
	PhaseFailingBack FailoverPhase = "FailingBack"
)

// ClusterFailover is where a cluster stands between serving and failed over. It outlives restarts.
type ClusterFailover struct {
	// Serving, GracePeriod, FailoverSuspended, FailedOver or FailingBack.
	Phase FailoverPhase `json:"phase"`
	// When the phase, or the share, began.
	Since metav1.Time `json:"since"`
	// When the cluster was lost, moved back by the time that it had been away shortly before. It is kept until the
	// cluster has been back for as long as it was away.
	// +optional
	LostAt *metav1.Time `json:"lostAt,omitempty"`
	// For FailingBack: how much of its full share the cluster gets, in percent, from 0. For GracePeriod and
	// FailoverSuspended: how much it had when it was lost again.
	// +optional
	Percent int32 `json:"percent,omitempty"`
	// Why, for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// DrainPhase is how far the drain of a cluster is.
type DrainPhase string

// Phases of a drain.
const (
	// DrainPublishing: the weight in DNS is 0, and not all DNS providers have it yet.
	DrainPublishing DrainPhase = "Publishing"
	// DrainExpiring: resolvers may keep the cluster's addresses.
	DrainExpiring DrainPhase = "Expiring"
	// DrainEvicting: the cluster has the taint, and is not known to be empty yet.
	DrainEvicting DrainPhase = "Evicting"
	// DrainDrained: no replica is left there, and the cluster is cordoned.
	DrainDrained DrainPhase = Drained
	// DrainReturning: the taints are off, and not all that is placed there is ready yet.
	DrainReturning DrainPhase = "Returning"
	// DrainBlocked: it does not go on before somebody has done something.
	DrainBlocked DrainPhase = "Blocked"
)

// ClusterDrainStatus is how far the drain of a cluster is. Its size is bounded whatever is in the cluster.
type ClusterDrainStatus struct {
	// Publishing, Expiring, Evicting, Drained, Returning or Blocked.
	Phase DrainPhase `json:"phase"`
	// When the phase began.
	Since metav1.Time `json:"since"`
	// For Expiring: until when.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// What it waits for, if not for Objects: a DNS provider, an answer of the cluster, or somebody.
	// +optional
	Message string `json:"message,omitempty"`
	// How many objects it waits for: those that have replicas there, or, for Returning, do not have all ready.
	// +optional
	Objects int32 `json:"objects,omitempty"`
	// Replicas that are placed there, of these objects; for Returning, of all.
	// +optional
	Placed int64 `json:"placed,omitempty"`
	// Replicas that the copies there ask for, or that are ready, whichever is more.
	// +optional
	Current int64 `json:"current,omitempty"`
	// Replicas that are ready there.
	// +optional
	Ready int64 `json:"ready,omitempty"`
	// The largest of these objects; at most 5.
	// +optional
	// +listType=atomic
	Waiting []DrainObject `json:"waiting,omitempty"`
}

// DrainObject is an object that a drain, or its undoing, waits for.
type DrainObject struct {
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace of the object.
	Namespace string `json:"namespace"`
	// Name of the object.
	Name string `json:"name"`
	// Replicas that are placed in the cluster.
	// +optional
	Placed int64 `json:"placed,omitempty"`
	// Replicas that the copy in the cluster asks for.
	// +optional
	Current int64 `json:"current,omitempty"`
	// Replicas that are ready in the cluster.
	// +optional
	Ready int64 `json:"ready,omitempty"`
	// Why clusters are not as desired for it, as its condition Propagated says, shortened.
	// +optional
	Message string `json:"message,omitempty"`
}

// ClusterConditionType is the type of a cluster's condition.
type ClusterConditionType string

const (
	// ClusterReady means that the cluster's API answered that it is ready.
	ClusterReady ClusterConditionType = "Ready"
	// ClusterOffline means that the cluster's API cannot be reached.
	ClusterOffline ClusterConditionType = "Offline"
	// ClusterAgentConnected is there for a cluster whose connection is Pull: whether its agent is connected.
	ClusterAgentConnected ClusterConditionType = "AgentConnected"
	// ClusterNodeHeartbeatsStale is there while a cluster is ready again and the heartbeats of its nodes are stale:
	// what it reports of its pods may be outdated, and does not count for DNS.
	ClusterNodeHeartbeatsStale ClusterConditionType = "NodeHeartbeatsStale"
	// ClusterTopologyMismatch is there while labels of a cluster's nodes name another region or other zones than its
	// spec.topology, which wins.
	ClusterTopologyMismatch ClusterConditionType = "TopologyMismatch"
	// ClusterFencesMissing is there while no ValidatingAdmissionPolicy in a cluster holds the federation's account to what the federation manages: it is
	// older than Kubernetes 1.30, or joined by an earlier version, or somebody removed them.
	ClusterFencesMissing ClusterConditionType = "FencesMissing"
	// ClusterFailedOver means that what was placed on the cluster is placed elsewhere.
	ClusterFailedOver ClusterConditionType = "FailedOver"
	// ClusterFailoverSuspended means that the cluster is lost and not failed over; the reason says why.
	ClusterFailoverSuspended ClusterConditionType = "FailoverSuspended"
	// ClusterPartiallyReachable is there while some processes of the federation reach a cluster and others do not; the
	// reason says which.
	ClusterPartiallyReachable ClusterConditionType = "PartiallyReachable"
	// ClusterDeletionsPendingApproval is there while the deletion of copies in the cluster needs approval, see
	// status.deletionsPendingApproval.
	ClusterDeletionsPendingApproval ClusterConditionType = "DeletionsPendingApproval"
	// ClusterDNSIncomplete is there while names of the cluster's region or zones are missing in DNS; the reason says why.
	ClusterDNSIncomplete ClusterConditionType = "DNSIncomplete"
)

// Reasons of cluster conditions.
const (
	ReasonClusterReady        = "ClusterReady"
	ReasonClusterNotReady     = "ClusterNotReady"
	ReasonClusterReachable    = "ClusterReachable"
	ReasonClusterNotReachable = "ClusterNotReachable"
	ReasonAgentConnected      = "AgentConnected"
	ReasonNoAgent             = "NoAgent"
	ReasonLeasesNotRenewed    = "LeasesNotRenewed"
	ReasonUnknownObjects      = "UnknownObjects"
	ReasonNodeLabelsDiffer    = "NodeLabelsDiffer"
	ReasonNotRefused          = "NotRefused"
	// ReasonReachableByLeader: the leader reaches it, and others do not.
	ReasonReachableByLeader = "ReachableByLeader"
	// ReasonReachableByMajority: the leader does not reach it, and at least half of the processes do.
	ReasonReachableByMajority = "ReachableByMajority"
	// ReasonReachableByMinority: the leader does not reach it, and less than half of the processes do.
	ReasonReachableByMinority = "ReachableByMinority"
)

// ClusterCondition is one aspect of a cluster's state.
type ClusterCondition struct {
	// Ready or Offline.
	Type ClusterConditionType `json:"type"`
	// True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// When the condition was last checked. It is written when something else of the status
	// changes, and at the first good check with another address or credential; not at every check.
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

// Condition returns the condition of the given type, or nil.
func (c *Cluster) Condition(t ClusterConditionType) *ClusterCondition {
	for i := range c.Status.Conditions {
		if c.Status.Conditions[i].Type == t {
			return &c.Status.Conditions[i]
		}
	}
	return nil
}

// Phase returns the cluster's failover phase; Serving if nothing is written.
func (c *Cluster) Phase() FailoverPhase {
	if c.Status.Failover == nil {
		return PhaseServing
	}
	return c.Status.Failover.Phase
}

// IsFailedOver reports whether everything that was placed in the cluster is placed elsewhere: until it gets back a first share.
func (c *Cluster) IsFailedOver() bool {
	return c.Phase() == PhaseFailedOver || c.Phase() == PhaseFailingBack && c.Status.Failover.Percent == 0
}

// PhaseWithShare returns the phase as lists show it: with the share of a cluster that is failing back.
func (c *Cluster) PhaseWithShare() string {
	if phase := c.Phase(); phase != PhaseFailingBack {
		return string(phase)
	}
	return fmt.Sprintf("%s %d%%", PhaseFailingBack, c.Status.Failover.Percent)
}

// DNSWeight returns the cluster's weight in the answers of DNS.
func (c *Cluster) DNSWeight() int32 {
	if c.Spec.DNSWeight == nil {
		return DefaultDNSWeight
	}
	return *c.Spec.DNSWeight
}

// IsReady reports whether the cluster's API answered, at the last health check, that it is ready.
func (c *Cluster) IsReady() bool {
	ready := c.Condition(ClusterReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// WhyNotReady says why a cluster that is not ready is not.
func (c *Cluster) WhyNotReady() string {
	if ready := c.Condition(ClusterReady); ready != nil {
		return ready.Reason + ": " + ready.Message
	}
	return "the federation's controllers have not looked at it; do they run?"
}

// IsReached reports whether the cluster is ready for the federation as a whole: for the leader, or for at least half of
// all processes.
func (c *Cluster) IsReached() bool {
	partly := c.Condition(ClusterPartiallyReachable)
	return c.IsReady() || partly != nil && partly.Status == corev1.ConditionTrue && partly.Reason == ReasonReachableByMajority
}
