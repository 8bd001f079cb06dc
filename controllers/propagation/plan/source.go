package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// Source is a federated object with all that decides, besides the cluster, what its copies look like.
type Source struct {
	Kind *Kind
	// Object is the federated object; nil if it is gone.
	Object *unstructured.Unstructured
	// Placement is its annotation, see Read.
	Placement *v1beta1.Placement
	// Policy is the one that the placement names; nil if it names none, or one that is not known yet.
	Policy *v1beta1.PlacementPolicy
	// Autoscalers are those at the federation that target the object.
	Autoscalers []Source
	// Common caches what was made of this version of the object; nil: no cache.
	Common *Common
}

// Target is the member of a decision.
type Target struct {
	// Cluster is the member: its name, labels, zones and region.
	Cluster *v1beta1.Cluster
	// Federation is the UID of the federation, with which copies are marked as ours.
	Federation string
	// Have is our copy in the member, or nil.
	Have *unstructured.Unstructured
	// Number is what the law still allows the copy, if that is more than its share; else nil.
	Number *int64
	// Template is the pod template that the copy keeps until its turn in a rollout; else nil.
	Template map[string]any
	// Siblings are the copies in other clusters, by cluster, for kinds that need them.
	Siblings map[string]*unstructured.Unstructured
	// HeartbeatsStale: the copy's status may be from before the cluster was away, because its nodes' heartbeats are
	// stale.
	HeartbeatsStale bool
	// Floor is the minimum of an autoscaler's copy for now, see Source.Floor; 0: its own.
	Floor int64
	// Needed says what a copy that must go stays for, see Leaves, or "".
	Needed string
	// Scaled: an autoscaler of the federation scales the object there, or will: its copy is there, or Comes.
	Scaled bool
}

// Presence says whether a copy should be in a member.
type Presence int

const (
	// Undecided: there is no placement yet; the member stays as it is.
	Undecided Presence = iota
	// Absent: there should be no copy of ours.
	Absent
	// Released: the copy stays, but is no longer ours.
	Released
	// IfThere: an existing copy should be as desired, but no new one is created (it gets no replicas, or is a finished
	// Job).
	IfThere
	// Present: the copy should be there as desired.
	Present
)

// Wanted decides whether a member should have a copy and, for divided kinds, with which number: nil if there is none,
// or if an autoscaler in the member owns it. The reason is for messages.
func (s Source) Wanted(t Target) (presence Presence, number *int64, reason string) {
	refuses := ""
	if s.Object != nil {
		refuses = t.Cluster.RefusesNamespace(s.namespace())
	}
	switch {
	case s.Object == nil:
		return Absent, nil, "deleted at the federation"
	case s.leaving() && (s.hasFinalizer(v1beta1.OrphanMarkFinalizer) || s.hasFinalizer(v1beta1.OrphanFinalizer)):
		return Released, nil, "orphaned at the federation"
	case s.leaving():
		return Absent, nil, "being deleted at the federation"
	case refuses != "" && s.isNamespace(): // its content may take its time to leave
		return IfThere, nil, refuses
	case refuses != "" && s.dividedField() == "":
		return Absent, nil, refuses
	case !Selected(s.Object, t.Cluster.Labels) && len(s.Autoscalers) > 0 && s.Share(t.Cluster.Name) > 0: // what autoscalers are made to take is counted by the placement
		return Undecided, nil, "waits for the placement to follow the cluster selector"
	case !Selected(s.Object, t.Cluster.Labels):
		return Absent, nil, "the cluster selector does not match"
	case s.Placement == nil && (s.dividedField() != "" || Placed(s.Object) || s.needsPlacement()):
		return Undecided, nil, "waits for a placement"
	case s.Placement == nil && s.Kind.ByPolicy && t.Have != nil && SourceUID(t.Have) == "": // adopted
		return Undecided, nil, "its copy is from before the federation was restored, and stays until a policy selects it"
	case s.Placement == nil && s.Kind.ByPolicy:
		return Absent, nil, "no policy selects it"
	case s.Placement == nil:
		return Present, nil, "goes to every selected cluster"
	case s.Placement.Policy != "" && s.Policy == nil:
		return Undecided, nil, fmt.Sprintf("waits for policy %s", s.Placement.Policy)
	}
	if s.Placement.AtFederation {
		return Absent, nil, "the federation acts on it, for all clusters together"
	}
	share := s.Share(t.Cluster.Name)
	if refuses != "" {
		share = 0
	}
	switch {
	case s.dividedField() == "" && share > 0:
		return Present, nil, "goes there by placement"
	case s.dividedField() == "":
		return Absent, nil, "not there by placement"
	case share == 0:
		return IfThere, &share, "0 replicas by placement"
	case v1beta1.JobEnd(s.Object) != "":
		return IfThere, &share, "the Job is finished: it is not run again"
	}
	number, reason = s.leaveToAutoscaler(t, share)
	return Present, number, reason
}

func (s Source) isNamespace() bool {
	return s.Object.GetKind() == "Namespace" && s.Object.GetAPIVersion() == "v1"
}

// namespace returns the namespace of the object; of a Namespace, its name.
func (s Source) namespace() string {
	if s.isNamespace() {
		return s.Object.GetName()
	}
	return s.Object.GetNamespace()
}

// needsPlacement reports whether an object goes nowhere until a placement, or its own annotation, says so.
func (s Source) needsPlacement() bool {
	_, selects := s.Object.GetAnnotations()[v1beta1.ClusterSelectorAnnotation]
	return !selects && !s.Kind.Custom && v1beta1.Confined(s.Kind.Resource.GroupResource())
}

// Placed reports whether it is, or will be, decided where an object goes. Otherwise an object of a kind that goes where
// policies say is not federated.
func Placed(federated *unstructured.Unstructured) bool {
	return federated.GetAnnotations()[v1beta1.PlacementAnnotation] != ""
}

// Share returns the placement's number for a cluster.
func (s Source) Share(cluster string) int64 {
	if s.Placement == nil {
		return 0
	}
	if s.Placement.Everywhere && s.dividedField() == "" {
		return 1
	}
	return s.Placement.Clusters[cluster] + s.Placement.Overflow[cluster]
}

// placedTotal returns the placement's total.
func (s Source) placedTotal() (n int64) {
	if s.Placement == nil {
		return 0
	}
	for _, numbers := range []map[string]int64{s.Placement.Clusters, s.Placement.Overflow} {
		for _, number := range numbers {
			n += number
		}
	}
	return n
}

// Goes reports whether something of the object should be in a cluster, as far as it is decided.
func (s Source) Goes(t Target) bool {
	presence, _, _ := s.Wanted(t)
	return presence == Present || presence == Undecided
}

// leaveToAutoscaler leaves the number to an autoscaler that has taken it over: then the placement only says that the copy is
// there.
func (s Source) leaveToAutoscaler(t Target, share int64) (*int64, string) {
	has := Applied(s, t.Have)
	switch {
	case !s.hasAutoscaler(t):
	case ScaledByMember(t.Have):
		return nil, fmt.Sprintf("%d replicas by the cluster's autoscaler", has)
	default:
		return &has, fmt.Sprintf("%d replicas, which are its autoscaler's to change", has)
	}
	return &share, fmt.Sprintf("%d replicas by placement", share)
}

// hasAutoscaler reports whether an autoscaler decides how many replicas a copy has. None scales a copy without replicas.
func (s Source) hasAutoscaler(t Target) bool {
	return Applied(s, t.Have) > 0 && (t.Scaled || ScaledByMember(t.Have) && !LeftByAutoscaler(t.Have))
}

// Comes reports whether the copy of an autoscaler of the federation should be in a cluster. One that is being deleted
// counts until it is gone everywhere: then all numbers are the placement's at once, and the clusters have no less than
// is requested. One that stays at the federation is in none.
func (s Source) Comes(t Target) bool {
	return s.leaving() && (s.Placement == nil || !s.Placement.AtFederation) || s.Goes(t)
}

// autoscalersLeave reports whether all autoscalers of the object are being deleted: the numbers that they have left in clusters are no
// request any more.
func (s Source) autoscalersLeave() bool {
	return len(s.Autoscalers) > 0 && !slices.ContainsFunc(s.Autoscalers, func(a Source) bool { return !a.leaving() })
}

// ScaledByMember reports whether an autoscaler in a member owns the number of replicas of a copy.
func ScaledByMember(copy *unstructured.Unstructured) bool {
	return copy != nil && copy.GetAnnotations()[v1beta1.ScaledByAnnotation] != ""
}

// AutoscaledAnnotation is on copies whose number an autoscaler of the federation owns. Kubernetes' API does not show
// whether an autoscaler that set a number still exists. With this annotation the number is the placement's again once
// our autoscaler is gone; without it, the number belongs to an autoscaler that somebody made in the member.
const AutoscaledAnnotation = "federation.kubernetes.io/autoscaled"

// LeftByAutoscaler reports whether an autoscaler of the federation set the number of a copy.
func LeftByAutoscaler(copy *unstructured.Unstructured) bool {
	return ScaledByMember(copy) && copy.GetAnnotations()[AutoscaledAnnotation] != ""
}

// Read parses the placement annotation of an object. Nil: there is none, or it is not decided yet.
func Read(federated *unstructured.Unstructured) *v1beta1.Placement {
	return v1beta1.ParsePlacement(federated.GetAnnotations()[v1beta1.PlacementAnnotation])
}

// dividedField returns the field below spec that is divided, or "". A custom kind is divided if its policy says how.
func (s Source) dividedField() string {
	if s.Kind.Replicas != "" || !s.Kind.Custom || s.Object == nil || s.Policy == nil || s.Policy.Spec.ReplicaPreferences == nil {
		return s.Kind.Replicas
	}
	if _, ok, _ := unstructured.NestedInt64(s.Object.Object, "spec", "replicas"); ok {
		return "replicas"
	}
	return ""
}

// Asked returns the total number of replicas that the user requests: 1 by default.
func (s Source) Asked() int64 {
	n, ok, _ := unstructured.NestedInt64(s.Object.Object, "spec", s.dividedField())
	if !ok {
		return 1
	}
	return n
}

func (s Source) leaving() bool { return s.Object != nil && s.Object.GetDeletionTimestamp() != nil }

func (s Source) hasFinalizer(name string) bool {
	return slices.Contains(s.Object.GetFinalizers(), name)
}

// Selected reports whether the object's cluster-selector annotation, if any, matches the labels of a cluster. An
// invalid selector selects nothing (admission rejects it).
func Selected(federated *unstructured.Unstructured, clusterLabels map[string]string) bool {
	value, ok := federated.GetAnnotations()[v1beta1.ClusterSelectorAnnotation]
	if !ok {
		return true
	}
	selector, errs := v1beta1.ParseClusterSelector(value, field.NewPath(v1beta1.ClusterSelectorAnnotation))
	return len(errs) == 0 && selector.Matches(labels.Set(clusterLabels))
}
