package v1beta1

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/phrase"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementReview asks where an object is, why, and what it waits for. Who may get the object has the answer. It is created only, never stored, and
// changes nothing: the answer to the create has the status filled in.
type PlacementReview struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata; not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which object is asked about.
	Spec PlacementReviewSpec `json:"spec"`
	// Where it is, and why.
	// +optional
	Status PlacementReviewStatus `json:"status,omitempty"`
}

// PlacementReviewSpec names an object, as a SelfSubjectAccessReview does.
type PlacementReviewSpec struct {
	// API group of the resource; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// Version of the resource.
	Version string `json:"version"`
	// The resource, in the plural: deployments.
	Resource string `json:"resource"`
	// Namespace of the object; empty if it is in none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
	// How long each cluster's answer is awaited: 3s unless it is less.
	// +optional
	MemberTimeout *metav1.Duration `json:"memberTimeout,omitempty"`
}

// PlacementReviewStatus says where an object is, why, and what it waits for.
type PlacementReviewStatus struct {
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
	// Generation of the object.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// Replicas that are requested; not set if the kind has none to divide.
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`
	// Replicas that are placed, in sum.
	// +optional
	Placed int64 `json:"placed,omitempty"`
	// Replicas that fit in no cluster.
	// +optional
	Unschedulable int64 `json:"unschedulable,omitempty"`
	// Replicas that are ready.
	// +optional
	Ready int64 `json:"ready,omitempty"`
	// What ready is from: the copies, unless one of them could not be read. Then status is the object's own, or it is unknown.
	// +optional
	ReadyBy ReadySource `json:"readyBy,omitempty"`
	// Policy that governs the object.
	// +optional
	Policy string `json:"policy,omitempty"`
	// It waits for its first placement.
	// +optional
	Pending bool `json:"pending,omitempty"`
	// It is being deleted.
	// +optional
	Deleting bool `json:"deleting,omitempty"`
	// Why not all clusters are as desired; not set if they are, or if nothing is known.
	// +optional
	NotPropagated *PropagationProblem `json:"notPropagated,omitempty"`
	// What else there is to say of the object.
	// +optional
	// +listType=atomic
	Notes []string `json:"notes,omitempty"`
	// Round of a Job, from the second on.
	// +optional
	Round *ExplainedJobRound `json:"round,omitempty"`
	// Clusters, by name: those that the caller may know of. Who may not list Clusters sees those that the object's placement names, and its copies.
	// +listType=atomic
	Clusters []ClusterExplanation `json:"clusters"`
	// The last decisions about the placement, the latest first.
	// +optional
	// +listType=atomic
	Decisions []PlacementDecision `json:"decisions,omitempty"`
	// The last events of the object, the latest first: those that the caller may read.
	// +optional
	// +listType=atomic
	Events []ExplainedEvent `json:"events,omitempty"`
	// What clusters have of each other for a Service.
	// +optional
	CrossCluster *CrossClusterExplanation `json:"crossCluster,omitempty"`
	// How the federation's load balancers serve an Ingress.
	// +optional
	Routes *RoutesExplanation `json:"routes,omitempty"`
}

// ReadySource is what a number of ready replicas is from; empty: the copies.
type ReadySource string

// Sources of the number while copies cannot be read.
const (
	ReadyByStatus ReadySource = "status" // the object's own
	ReadyUnknown  ReadySource = "unknown"
)

// PropagationProblem is the condition Propagated of an object while it is not True.
type PropagationProblem struct {
	// Status of the condition: False or Unknown.
	Status string `json:"status"`
	// Reason of the condition.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message of the condition, for people.
	// +optional
	Message string `json:"message,omitempty"`
	// When the status changed to this.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// ClusterExplanation is one cluster's part.
type ClusterExplanation struct {
	// Name of the cluster.
	Name string `json:"name"`
	// Replicas that are placed there; for an object without replicas 1 where it should be.
	Desired int64 `json:"desired"`
	// Replicas that it is asked for in addition, in case there is room.
	// +optional
	Overflow int64 `json:"overflow,omitempty"`
	// What was placed there before the cluster was lost, and comes back.
	// +optional
	Home int64 `json:"home,omitempty"`
	// Replicas that the copy requests; not set if there is no copy, or it could not be read.
	// +optional
	Current *int64 `json:"current,omitempty"`
	// Replicas of the copy that are ready.
	// +optional
	Ready int64 `json:"ready,omitempty"`
	// State of the copy.
	Copy CopyState `json:"copy"`
	// Completions of a Job that the cluster should do in the current round; not set if they are not counted, or unknown.
	// +optional
	Completions *int64 `json:"completions,omitempty"`
	// Completions that it has done of these.
	// +optional
	Succeeded int64 `json:"succeeded,omitempty"`
	// Generation of the copy.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// The generation that the status of the copy is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// What the copy was applied as, hashed.
	// +optional
	Hash string `json:"hash,omitempty"`
	// Phase of failover of the cluster.
	Phase string `json:"phase"`
	// Why it has this number, for people.
	// +optional
	// +listType=atomic
	Reasons []string `json:"reasons,omitempty"`
	// When the number last changed, as far as the last decisions tell.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// What it waits for.
	// +optional
	WaitReason WaitReason `json:"waitReason,omitempty"`
	// The same, for people.
	// +optional
	WaitsFor string `json:"waitsFor,omitempty"`
}

// CopyState is the state of the copy in a cluster.
type CopyState string

// States of a copy, in the words that people read.
const (
	CopyInSync      CopyState = "in sync"
	CopyBehind      CopyState = "behind"
	CopyProgressing CopyState = "progressing"
	CopyMissing     CopyState = "missing"
	CopyLeaving     CopyState = "leaving"
	CopyConflict    CopyState = "conflict"
	CopyUnreachable CopyState = "unreachable"
	CopyUnreadable  CopyState = "unreadable"
	CopyNone        CopyState = "none"
)

// WaitReason says what a copy in a cluster waits for; empty: nothing.
type WaitReason string

// Reasons to wait.
const (
	WaitsForCluster     WaitReason = "ClusterNotReady"
	WaitsForAnswer      WaitReason = "CopyUnreadable"
	WaitsForPermission  WaitReason = "Refused"
	WaitsForAutoscaler  WaitReason = "Autoscaler"
	WaitsForEarlierCopy WaitReason = "EarlierCopy"
	WaitsForPropagation WaitReason = "Propagation" // the message is that of the federation for the cluster
	WaitsForConflict    WaitReason = "Conflict"
	WaitsForWrite       WaitReason = "NotWritten"
	WaitsForControllers WaitReason = "NotObserved"
	WaitsForReplicas    WaitReason = "ReplicasNotReady"
)

// ExplainedEvent is an event of the object at the federation.
type ExplainedEvent struct {
	// Type: Normal or Warning.
	Type string `json:"type"`
	// Reason of the event.
	Reason string `json:"reason"`
	// Message of the event, for people.
	// +optional
	Message string `json:"message,omitempty"`
	// How often it happened.
	// +optional
	Count int32 `json:"count,omitempty"`
	// When it last happened.
	LastSeen metav1.Time `json:"lastSeen"`
}

// ExplainedJobRound is the round of a Job, from the second on: completions that its copies, all complete, had left undone are divided again.
type ExplainedJobRound struct {
	// Number of the round.
	Round int64 `json:"round"`
	// Pods of the earlier rounds that succeeded.
	Succeeded int64 `json:"succeeded"`
	// Pods of the earlier rounds that failed.
	// +optional
	Failed int64 `json:"failed,omitempty"`
	// Completions that are divided in this round.
	Completions int64 `json:"completions"`
}

// String describes the round.
func (r *ExplainedJobRound) String() string {
	failed := ""
	if r.Failed > 0 {
		failed = fmt.Sprintf("; %s failed before", phrase.Count(r.Failed, "pod"))
	}
	return fmt.Sprintf("Round %d: of %s %d were done before, %d are divided again%s", r.Round, phrase.Count(r.Succeeded+r.Completions, "completion"), r.Succeeded, r.Completions, failed)
}

// CrossClusterExplanation describes the slices of other clusters of a Service.
type CrossClusterExplanation struct {
	// The federation runs with --cross-cluster-endpoints=false.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
	// Why the desired slices are unknown.
	// +optional
	Unknown string `json:"unknown,omitempty"`
	// The slices, by cluster and name.
	// +optional
	// +listType=atomic
	Slices []SliceExplanation `json:"slices,omitempty"`
	// Clusters with the Service that no other cluster has slices of.
	// +optional
	// +listType=atomic
	Untold []UntoldCluster `json:"untold,omitempty"`
}

// SliceExplanation is one EndpointSlice, there or missing.
type SliceExplanation struct {
	// The cluster that has the slice.
	Cluster string `json:"cluster"`
	// The cluster that it is of; empty if the one that has it does not answer.
	// +optional
	Source string `json:"source,omitempty"`
	// Name of the slice.
	// +optional
	Name string `json:"name,omitempty"`
	// Addresses of the slice; of a missing one, the desired ones.
	// +optional
	// +listType=atomic
	Addresses []string `json:"addresses,omitempty"`
	// Its addresses are ready.
	Ready bool `json:"ready"`
	// Weight of each address.
	// +optional
	Weight int `json:"weight,omitempty"`
	// State of the slice.
	State CopyState `json:"state"`
	// Why, for people.
	// +optional
	Why string `json:"why,omitempty"`
}

// UntoldCluster is a cluster with the Service that no other cluster has slices of, or the whole Service.
type UntoldCluster struct {
	// Name of the cluster; empty: none has.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Why, for people.
	Why string `json:"why"`
}

// RoutesExplanation says how the federation's load balancers serve an Ingress.
type RoutesExplanation struct {
	// Why they do not serve it.
	// +optional
	NotServed string `json:"notServed,omitempty"`
	// The load balancers.
	// +optional
	// +listType=atomic
	LoadBalancers []RegisteredLoadBalancer `json:"loadBalancers,omitempty"`
	// What requests are matched by.
	// +optional
	// +listType=atomic
	Routes []RouteExplanation `json:"routes,omitempty"`
	// Where requests go.
	// +optional
	// +listType=atomic
	Pools []PoolExplanation `json:"pools,omitempty"`
	// What of the Ingress is not as it asks for.
	// +optional
	// +listType=atomic
	Problems []string `json:"problems,omitempty"`
	// What the caller may not read, and so is not said here.
	// +optional
	// +listType=atomic
	Unknown []string `json:"unknown,omitempty"`
}

// RouteExplanation is a host and path that requests are matched by.
type RouteExplanation struct {
	// Host; empty for rules without one: any host that no Ingress names or, with ownHostsOnly, those of the namespace alone.
	// +optional
	Host string `json:"host,omitempty"`
	// A rule without a host is for the hosts of the namespace alone.
	// +optional
	OwnHostsOnly bool `json:"ownHostsOnly,omitempty"`
	// It is for TLS connections to the host, which are passed on as they are.
	// +optional
	Passthrough bool `json:"passthrough,omitempty"`
	// Path; empty for the default backend.
	// +optional
	Path string `json:"path,omitempty"`
	// Type of the path; empty for the default backend.
	// +optional
	PathType string `json:"pathType,omitempty"`
	// The Secret with the certificate, if there is one.
	// +optional
	Secret string `json:"secret,omitempty"`
	// Name of one of the pools; empty for a backend that does not exist, which is answered with 503, or by the end of the connection.
	// +optional
	Pool string `json:"pool,omitempty"`
}

// PoolExplanation says where requests to a port of a Service go.
type PoolExplanation struct {
	// NAMESPACE/SERVICE:PORT, with /TLS for TLS connections that are passed on.
	Name string `json:"name"`
	// Protocol that clusters are asked by.
	Protocol string `json:"protocol"`
	// Load balancers that divide requests alike.
	// +listType=atomic
	From []SharesExplanation `json:"from"`
}

// SharesExplanation says how some load balancers divide requests.
type SharesExplanation struct {
	// Names of the load balancers; empty: all.
	// +optional
	// +listType=atomic
	LoadBalancers []string `json:"loadBalancers,omitempty"`
	// Where requests go.
	// +listType=atomic
	Targets []TargetExplanation `json:"targets"`
	// What else there is to say.
	// +optional
	// +listType=atomic
	Notes []string `json:"notes,omitempty"`
}

// TargetExplanation is a load balancer of a cluster, or a cluster that has none to use.
type TargetExplanation struct {
	// Name of the cluster.
	Cluster string `json:"cluster"`
	// Address of its load balancer.
	// +optional
	Address string `json:"address,omitempty"`
	// Percent of new requests.
	Percent float64 `json:"percent"`
	// How near it is.
	// +optional
	Rank string `json:"rank,omitempty"`
	// Its tier: those of the first that can serve get all requests.
	Tier int `json:"tier"`
	// Why, for people.
	Why string `json:"why"`
}

// RegisteredLoadBalancer is a load balancer of the federation, as it has registered.
type RegisteredLoadBalancer struct {
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
	// It renews its Lease.
	Alive bool `json:"alive"`
	// DNS and Ingresses have its addresses.
	Published bool `json:"published"`
	// When it last renewed its Lease.
	Renewed metav1.Time `json:"renewed"`
	// Why it is not alive, for people.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// Place returns REGION/ZONE, as far as it is known.
func (b *RegisteredLoadBalancer) Place() string {
	return cmp.Or(strings.Trim(b.Region+"/"+b.Zone, "/"), "-")
}
