package v1beta1

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// FederationNamespace is the federation's own namespace, here and in the members. Nothing in it is propagated.
const FederationNamespace = "federation-system"

// AdminsGroup is the group of the federation's administrators. A ClusterRoleBinding of its name lets it do everything
// at the federation, until somebody changes that; another one does in each member that joined with --allow-proxy.
const AdminsGroup = "federation:cluster-admins"

// Annotations that users put on objects.
const (
	// ReplicaSetPreferencesAnnotation holds ReplicaPreferences as JSON, on ReplicaSets.
	ReplicaSetPreferencesAnnotation = "federation.kubernetes.io/replica-set-preferences"
	// DeploymentPreferencesAnnotation holds ReplicaPreferences as JSON, on Deployments.
	DeploymentPreferencesAnnotation = "federation.kubernetes.io/deployment-preferences"
	// StatefulSetPreferencesAnnotation holds ReplicaPreferences as JSON, on StatefulSets.
	StatefulSetPreferencesAnnotation = "federation.kubernetes.io/stateful-set-preferences"
	// JobPreferencesAnnotation holds ReplicaPreferences as JSON, on Jobs.
	JobPreferencesAnnotation = "federation.kubernetes.io/job-preferences"
	// ClusterSelectorAnnotation holds a JSON list of ClusterSelectorRequirements over the labels of
	// Clusters. Without it an object goes to all clusters.
	ClusterSelectorAnnotation = "federation.alpha.kubernetes.io/cluster-selector"
)

// Annotations and labels that the federation writes.
const (
	// ServiceIngressesAnnotation holds ServiceIngresses as JSON, on federated Services and Ingresses.
	ServiceIngressesAnnotation = "federation.kubernetes.io/service-ingresses"
	// PlacementAnnotation holds a Placement as JSON, on federated objects with divided replicas. Other objects have it
	// if a PlacementPolicy or a referrer decides where they go: to the clusters with a number over 0. Secrets and
	// ServiceAccounts go nowhere without it. Its value PlacementPending keeps an object from every cluster.
	PlacementAnnotation = "federation.kubernetes.io/placement"
	// PlacementPending is the value of PlacementAnnotation on an object whose placement is yet to be decided.
	PlacementPending = "pending"
	// CreatedPodsAnnotation holds, as JSON, pods by cluster, on federated ReplicaSets and Deployments: how many there
	// are where the cluster's own controllers have been unable to create more for a while, as for a quota. Replicas
	// beyond them count as pods without room.
	CreatedPodsAnnotation = "federation.kubernetes.io/created-pods"
	// JobRoundAnnotation holds, as JSON, the current round of a federated Job, from the second on: completions that
	// were missing when all of its copies were complete, because clusters took their share with them, are divided
	// again.
	JobRoundAnnotation = "federation.kubernetes.io/job-round"
	// PropagatedAnnotation holds, as JSON, the condition Propagated of a federated object whose status has no
	// conditions, while it is False: a cluster rejects the copy, or has a foreign object of that name.
	PropagatedAnnotation = "federation.kubernetes.io/propagated"
	// OutOfSyncAnnotation holds, as JSON, an OutOfSync: in which clusters a federated object is not as desired, while there
	// are any.
	OutOfSyncAnnotation = "federation.kubernetes.io/out-of-sync"
	// ShardLabel is, on an object in a member, the virtual shard of its federated object: a decimal number.
	ShardLabel = "federation.kubernetes.io/shard"
	// ManagedByLabel marks a federation's object in a member. Its value is the UID of the federation: that of its
	// namespace kube-system.
	ManagedByLabel = "federation.kubernetes.io/managed-by"
	// CopyOfAnnotation is, on an object in a member, KIND.GROUP/NAMESPACE/NAME of its federated object, which are its
	// own, too: an object that somebody makes from a copy, with its labels and annotations, is no copy.
	CopyOfAnnotation = "federation.kubernetes.io/copy-of"
	// AppliedHashAnnotation is, on an object in a member, the hash of what the federation last applied.
	AppliedHashAnnotation = "federation.kubernetes.io/applied-hash"
	// ScaledByAnnotation is, in our memory only, on a copy whose number of replicas an autoscaler in the member
	// owns: the manager of the field.
	ScaledByAnnotation = "federation.kubernetes.io/scaled-by"
	// SourceAnnotation is, on an object in a member, the UID of its federated object; for a Job, from its second round
	// on, with the number of the round: UID/2.
	SourceAnnotation = "federation.kubernetes.io/source-uid"
)

// CopyOf returns the value of CopyOfAnnotation on the copies of an object.
func CopyOf(kind schema.GroupKind, namespace, name string) string {
	if namespace == "" {
		return kind.String() + "/" + name
	}
	return kind.String() + "/" + namespace + "/" + name
}

// IsCopy reports whether an object of a kind in a member is a copy of a federation's: it has the federation's mark, and
// the mark names this object.
func IsCopy(o metav1.Object, kind schema.GroupKind, federation string) bool {
	return o.GetLabels()[ManagedByLabel] == federation && o.GetAnnotations()[CopyOfAnnotation] == CopyOf(kind, o.GetNamespace(), o.GetName())
}

// RevisionOfLabel is, on the revisions that the federation keeps of workloads, the kind of the workload (ADR 126). A ReplicaSet that has it
// is not federated, and has it for all its life.
const RevisionOfLabel = "federation.kubernetes.io/revision-of"

// NotRevisions is the label selector of all objects that are no revisions.
const NotRevisions = "!" + RevisionOfLabel

const (
	// AcceptLabel is, on a namespace that a member had before, the UID of the federation that may put objects into it.
	AcceptLabel = "federation.kubernetes.io/accept"
	// AlsoAcceptLabel is the same for further federations, with the UID at its end and any value.
	AlsoAcceptLabel = "accept.federation.kubernetes.io/"
	// FenceTestConfigMap is the name of a ConfigMap, in FederationNamespace of a member, that the federation's account tries to create in dry runs: fences refuse it.
	FenceTestConfigMap = "federation-fence-test"
	// JoinAnnotation is, on a Cluster and on the Secret with its credential, the id of the join that wrote them, on the Cluster last. Where both have the same,
	// all that the join wrote is known.
	JoinAnnotation = "federation.kubernetes.io/join"
	// ClusterLabel is, on the objects that joining makes, and on pods and nodes in the federation's views, the name of
	// the Cluster.
	ClusterLabel = "federation.kubernetes.io/cluster"
)

// NamespaceOf reports whether a namespace in a member is the federation's: it created it, or may put objects into it.
func NamespaceOf(namespace metav1.Object, federation string) bool {
	_, also := namespace.GetLabels()[AlsoAcceptLabel+federation]
	return also || namespace.GetLabels()[AcceptLabel] == federation || namespace.GetLabels()[ManagedByLabel] == federation
}

// MaxAnnotations is how many bytes the API takes of the annotations of an object, keys and values.
const MaxAnnotations = 256 << 10

// DecidedAnnotations are the annotations of federated objects with what the federation decided and observed.
var DecidedAnnotations = []string{PlacementAnnotation, CreatedPodsAnnotation, JobRoundAnnotation, ServiceIngressesAnnotation, PropagatedAnnotation, OutOfSyncAnnotation}

// Whoever has the verb on the resource by its name, not by "*", may bring decided annotations along: an account that restores backups.
// There are no objects of that resource.
const (
	RestoreVerb       = "restore"
	DecisionsResource = "decisions"
)

// ApproveDeletionsAnnotation is, on a Cluster, the sets of copies whose deletion somebody has approved, separated by
// commas: see status.deletionsPendingApproval. A set is deleted once, because its name stands for its copies.
const ApproveDeletionsAnnotation = "federation.kubernetes.io/approve-deletions"

// Reasons of events of a Cluster about copies there.
const (
	// EventClusterReplaced: another cluster than before answers at the address of a Cluster.
	EventClusterReplaced = "ClusterReplaced"
	// EventUnknownCredential, of a Cluster: somebody may have had tokens of the federation's account there that the federation does not use.
	EventUnknownCredential = "UnknownCredential"
	// EventDeletionsPendingApproval: very many copies would be deleted at once; the deletion needs approval.
	EventDeletionsPendingApproval = "DeletionsPendingApproval"
	// EventServiceNotImported, of a Cluster: it does not let the federation import a Service, or has another object of that name.
	EventServiceNotImported = "ServiceNotImported"
	// EventStaleCopyDeleted: a copy was deleted because its federated object is gone.
	EventStaleCopyDeleted = "StaleCopyDeleted"
	// EventCopyAdopted: the federation does not know the object of a copy; it adopts the copy for the object that has
	// the name.
	EventCopyAdopted = "CopyAdopted"
)

// Labels and annotations of the EndpointSlices that the federation makes in a member, one for each other cluster that
// serves a Service. The labels are those of KEP-1645.
const (
	// RemoteServiceLabel is the name of the Service.
	RemoteServiceLabel = "multicluster.kubernetes.io/service-name"
	// SourceClusterLabel is the name of the Cluster whose addresses the slice has.
	SourceClusterLabel = "multicluster.kubernetes.io/source-cluster"
	// WeightAnnotation is the share of each address among those of other clusters: 1 to 1000.
	WeightAnnotation = "federation.kubernetes.io/weight"
	// ExportedServiceLabel is, on a Service of type LoadBalancer in a member, the name of the exported one that other networks reach by it.
	ExportedServiceLabel = "federation.kubernetes.io/exported-service"
	// ClusterSelectorsAnnotation is, among the exported annotations of a ServiceExport, which clusters' endpoints importing clusters prefer: a list as
	// spec.clusterSelectors of KEP-5939, in JSON.
	ClusterSelectorsAnnotation = "federation.kubernetes.io/cluster-selectors"
	// ClusterSelectorResultsAnnotation is, on a ServiceImport, which clusters each selector selects for the cluster that it is in, as JSON.
	ClusterSelectorResultsAnnotation = "federation.kubernetes.io/cluster-selector-results"
	// ExportedServicePrefix begins the names of such Services.
	ExportedServicePrefix = "exported-"
	// DerivedServicePrefix begins the names of the Services that serve ServiceImports in a member.
	DerivedServicePrefix = "derived-"
)

// Finalizers on federated objects.
const (
	// DeleteFromClustersFinalizer keeps a federated object until its copies in the members are gone.
	DeleteFromClustersFinalizer = "federation.kubernetes.io/delete-from-underlying-clusters"
	// OrphanFinalizer is there from an object's creation; a delete with propagation policy Background
	// or Foreground takes it off. An object that is deleted with it on leaves its copies in the members.
	OrphanFinalizer = "orphan"
	// OrphanMarkFinalizer is added in the write that deletes an object whose copies stay: the garbage collector removes
	// OrphanFinalizer at once, this one stays until we have acted on it.
	OrphanMarkFinalizer = "federation.kubernetes.io/orphan-in-underlying-clusters"
)

// ReplicaPreferences say how the replicas of an object divide over clusters.
type ReplicaPreferences struct {
	// Rebalance allows to move replicas that are placed already. Without it these stay where they are as
	// far as they can.
	// +optional
	Rebalance bool `json:"rebalance,omitempty"`
	// Clusters has preferences by the name of the cluster; "*" stands for all that are not named. A
	// cluster that is neither named nor covered by "*" gets nothing.
	// +optional
	Clusters map[string]ClusterPreferences `json:"clusters,omitempty"`
}

// AnyCluster is the name in ReplicaPreferences.Clusters that stands for all that are not named.
const AnyCluster = "*"

// ClusterPreferences are one cluster's part of ReplicaPreferences.
type ClusterPreferences struct {
	// MinReplicas are assigned before anything is divided by weight.
	// +optional
	MinReplicas int64 `json:"minReplicas,omitempty"`
	// MaxReplicas is the most the cluster gets. Nil: no limit.
	// +optional
	MaxReplicas *int64 `json:"maxReplicas,omitempty"`
	// Weight is the cluster's share of what is left after the minimums.
	// +optional
	Weight int64 `json:"weight,omitempty"`
}

// DefaultReplicaPreferences returns those of an object without an annotation: all clusters alike.
func DefaultReplicaPreferences() *ReplicaPreferences {
	return &ReplicaPreferences{Clusters: map[string]ClusterPreferences{AnyCluster: {Weight: 1}}}
}

// ForCluster returns the preferences for a cluster, and whether there are any.
func (p *ReplicaPreferences) ForCluster(name string) (ClusterPreferences, bool) {
	if c, ok := p.Clusters[name]; ok {
		return c, true
	}
	c, ok := p.Clusters[AnyCluster]
	return c, ok
}

// maxReplicas bounds what preferences may ask for; spec.replicas is an int32.
const maxReplicas = 1<<31 - 1

// ParseReplicaPreferences parses the JSON of a preferences annotation. Errors name the path inside the JSON below path.
// An empty value is invalid: leave the annotation out instead.
func ParseReplicaPreferences(value string, path *field.Path) (*ReplicaPreferences, field.ErrorList) {
	p := &ReplicaPreferences{}
	if err := decodeStrict(value, p, path); err != nil {
		return nil, field.ErrorList{err}
	}
	if errs := p.Validate(path); len(errs) > 0 {
		return nil, errs
	}
	return p, nil
}

// Validate returns the errors in preferences, by the path of each field below path.
func (p *ReplicaPreferences) Validate(path *field.Path) (errs field.ErrorList) {
	for _, name := range slices.Sorted(maps.Keys(p.Clusters)) {
		errs = append(errs, p.Clusters[name].validate(path.Child("clusters").Key(name))...)
	}
	return errs
}

func (c ClusterPreferences) validate(path *field.Path) (errs field.ErrorList) {
	inRange := func(name string, v int64) {
		if v < 0 || v > maxReplicas {
			errs = append(errs, field.Invalid(path.Child(name), v, fmt.Sprintf("must be from 0 to %d", maxReplicas)))
		}
	}
	inRange("minReplicas", c.MinReplicas)
	inRange("weight", c.Weight)
	if c.MaxReplicas != nil {
		inRange("maxReplicas", *c.MaxReplicas)
		if c.MinReplicas > *c.MaxReplicas {
			errs = append(errs, field.Invalid(path.Child("minReplicas"), c.MinReplicas,
				fmt.Sprintf("must be no more than maxReplicas (%d)", *c.MaxReplicas)))
		}
	}
	return errs
}

// ClusterSelectorRequirement is one term of a cluster selector.
type ClusterSelectorRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

var selectorOperators = map[string]selection.Operator{
	"in": selection.In, "notin": selection.NotIn, "exists": selection.Exists, "doesnotexist": selection.DoesNotExist,
	"=": selection.Equals, "==": selection.DoubleEquals, "!=": selection.NotEquals, "!": selection.DoesNotExist,
	"gt": selection.GreaterThan, ">": selection.GreaterThan, "lt": selection.LessThan, "<": selection.LessThan,
}

// ParseClusterSelector parses the JSON of a cluster-selector annotation: all requirements must hold for the labels of a
// Cluster. Errors name the path inside the JSON below path.
func ParseClusterSelector(value string, path *field.Path) (labels.Selector, field.ErrorList) {
	var terms []ClusterSelectorRequirement
	if err := decodeStrict(value, &terms, path); err != nil {
		return nil, field.ErrorList{err}
	}
	selector := labels.NewSelector()
	var errs field.ErrorList
	for i, term := range terms {
		at := path.Index(i)
		op, ok := selectorOperators[strings.ToLower(term.Operator)]
		if !ok {
			errs = append(errs, field.NotSupported(at.Child("operator"), term.Operator,
				[]string{"In", "NotIn", "Exists", "DoesNotExist", "=", "==", "!=", "Gt", "Lt"}))
			continue
		}
		r, err := labels.NewRequirement(term.Key, op, term.Values, field.WithPath(at))
		if err != nil {
			errs = append(errs, fieldErrors(err, at, term)...)
			continue
		}
		selector = selector.Add(*r)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return selector, nil
}

// fieldErrors returns the parts of an error, with the path that NewRequirement was given.
func fieldErrors(err error, at *field.Path, term ClusterSelectorRequirement) (errs field.ErrorList) {
	parts, ok := err.(utilerrors.Aggregate)
	if !ok {
		return field.ErrorList{field.Invalid(at, term, err.Error())}
	}
	for _, part := range parts.Errors() {
		if e, ok := part.(*field.Error); ok {
			errs = append(errs, e)
		} else {
			errs = append(errs, field.Invalid(at, term, part.Error()))
		}
	}
	return errs
}

// ServiceIngresses are, per cluster, the load balancer addresses of a federated Service or Ingress that serve.
type ServiceIngresses struct {
	// Items are sorted by cluster.
	Items []ClusterServiceIngress `json:"items"`
	// Omitted counts what the object's annotations have no room for.
	Omitted *OmittedIngresses `json:"omitted,omitempty"`
}

// OmittedIngresses counts what is left out of ServiceIngresses: addresses, and whole clusters.
type OmittedIngresses struct {
	Addresses int `json:"addresses,omitempty"`
	Clusters  int `json:"clusters,omitempty"`
}

// ClusterServiceIngress is one cluster's part of ServiceIngresses.
type ClusterServiceIngress struct {
	Cluster string `json:"cluster"`
	// Items are nil for a cluster that has a load balancer and no ready endpoint, and for one of which nothing is known. An Ingress has no
	// endpoints of its own.
	Items []corev1.LoadBalancerIngress `json:"items"`
	// Seen is false if the process that writes this does not reach the cluster while others do: the entry is stale. Without Items it
	// says that nobody has seen yet what the cluster has.
	Seen *bool `json:"seen,omitempty"`
}

// IsSeen reports whether the entry is current.
func (c ClusterServiceIngress) IsSeen() bool { return c.Seen == nil || *c.Seen }

// IsKnown reports whether it has been seen what the cluster has.
func (c ClusterServiceIngress) IsKnown() bool { return c.Items != nil || c.IsSeen() }

// String returns the ingresses as the annotation has them, sorted by cluster; "" for none.
func (s ServiceIngresses) String() string {
	if len(s.Items) == 0 && s.Omitted == nil {
		return ""
	}
	sort.Slice(s.Items, func(i, j int) bool { return s.Items[i].Cluster < s.Items[j].Cluster })
	return asJSON(s)
}

// ParseServiceIngresses reads the annotation. One that is missing or cannot be read has no items.
func ParseServiceIngresses(value string) ServiceIngresses {
	var s ServiceIngresses
	if json.Unmarshal([]byte(value), &s) != nil {
		return ServiceIngresses{}
	}
	return s
}

// ParseCreatedPods reads CreatedPodsAnnotation: pods by the name of the cluster. One that cannot be read has none.
func ParseCreatedPods(value string) map[string]int64 {
	var pods map[string]int64
	if value == "" || json.Unmarshal([]byte(value), &pods) != nil {
		return nil
	}
	return pods
}

// Placement is the decision which clusters hold how many replicas of an object.
type Placement struct {
	// Clusters has the replicas by the name of the cluster. Clusters that are not named hold none.
	Clusters map[string]int64 `json:"clusters"`
	// Everywhere: it goes to every cluster, to those that join later, too. Of objects whose replicas are not divided.
	Everywhere bool `json:"everywhere,omitempty"`
	// AtFederation: it goes to no cluster, because the federation itself acts on it: an autoscaler that scales for all clusters together.
	AtFederation bool `json:"atFederation,omitempty"`
	// Overflow has, by the name of the cluster, replicas that it would have had if it had had room.
	Overflow map[string]int64 `json:"overflow,omitempty"`
	// Unschedulable are replicas that fit nowhere.
	Unschedulable int64 `json:"unschedulable,omitempty"`
	// Policy is the name of the PlacementPolicy that governs the object.
	Policy string `json:"policy,omitempty"`
	// Home is the placement before clusters were failed over, kept while they are failed over or failing back: what
	// was moved goes back there.
	Home map[string]int64 `json:"home,omitempty"`
	// Inputs are hashes of the preferences, the cluster selector and the policy of the decision: they show a later one
	// what has changed.
	Inputs string `json:"inputs,omitempty"`
	// Notes are remarks for people: a spread constraint that cannot be met, say.
	Notes []string `json:"notes,omitempty"`
	// History has the last decisions, newest first, at most MaxDecisions.
	History []PlacementDecision `json:"history,omitempty"`
}

// MaxDecisions is the maximum of decisions in a Placement's history.
const MaxDecisions = 5

// PlacementDecision is one change of a placement.
type PlacementDecision struct {
	// At is when it was made, in UTC, to the second.
	At metav1.Time `json:"at"`
	// Cause says why: "created", "spec.replicas 3→5", "cluster east-a lost" …
	Cause string `json:"cause"`
	// Changes are the clusters whose number changed, by name: at most MaxChanges of replicas, and as many of the overflow.
	Changes []PlacementChange `json:"changes,omitempty"`
	// OmittedChanges is how many more changed.
	OmittedChanges int `json:"omittedChanges,omitempty"`
	// Everywhere says whether it goes to every cluster from then on, if that changed.
	Everywhere *bool `json:"everywhere,omitempty"`
	// Unschedulable is the number of replicas that fit nowhere from then on, if that changed.
	Unschedulable *int64 `json:"unschedulable,omitempty"`
}

// MaxChanges bounds the Changes of a PlacementDecision.
const MaxChanges = 10

// PlacementChange is how the number of one cluster changed.
type PlacementChange struct {
	Cluster string `json:"cluster"`
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	// Overflow: it is the cluster's overflow that changed.
	Overflow bool `json:"overflow,omitempty"`
}

// Summary describes the changes: "east-a 20→0, east-b 5→15"; "" if no number changed.
func (d *PlacementDecision) Summary() string {
	var parts []string
	if d.Everywhere != nil {
		parts = append(parts, map[bool]string{true: "to every cluster", false: "no longer to every cluster"}[*d.Everywhere])
	}
	for _, c := range d.Changes {
		parts = append(parts, fmt.Sprintf("%s%s %d→%d", map[bool]string{true: "overflow of "}[c.Overflow], c.Cluster, c.From, c.To))
	}
	if d.OmittedChanges > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", d.OmittedChanges))
	}
	if d.Unschedulable != nil {
		parts = append(parts, fmt.Sprintf("%d unschedulable", *d.Unschedulable))
	}
	return strings.Join(parts, ", ")
}

// String returns the placement as the annotation has it: JSON, equal for equal placements.
func (p *Placement) String() string { return asJSON(p) }

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return strconv.Quote(err.Error()) // cannot happen: maps of strings to integers
	}
	return string(b)
}

// StaysAtFederation reports whether an object goes to no cluster by its placement, because the federation acts on it.
func StaysAtFederation(o metav1.Object) bool {
	p := ParsePlacement(o.GetAnnotations()[PlacementAnnotation])
	return p != nil && p.AtFederation
}

// ParsePlacement parses the placement annotation. It returns nil if there is none or it is invalid: then the decision
// is pending.
func ParsePlacement(value string) *Placement {
	p := &Placement{}
	if value == "" || json.Unmarshal([]byte(value), p) != nil {
		return nil
	}
	return p
}
