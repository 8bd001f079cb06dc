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
	// Object is the federated object; nil where it is no more.
	Object *unstructured.Unstructured
	// Placement is what its annotation says, see Read.
	Placement *v1beta1.Placement
	// Policy is the one that the placement names; nil where it names none, or one that is not known yet.
	Policy *v1beta1.PlacementPolicy
	// Autoscalers are those at the federation that have the object as their target.
	Autoscalers []Source
	// Common has what was made of this version of the object before; nil: all is made anew.
	Common *Common
}

// Target is the member for which something is decided.
type Target struct {
	// Cluster is the member: its name, labels, zones and region.
	Cluster *v1beta1.Cluster
	// Federation is the UID of the federation, by which copies are marked as ours.
	Federation string
	// Have is our copy in the member; nil where there is none.
	Have *unstructured.Unstructured
	// Number is what the law still leaves to the copy, where that is more than its share; else nil.
	Number *int64
	// Template is what the copy keeps as its pod template until its turn in a rollout; else nil.
	Template map[string]any
	// Siblings are the copies in other clusters, by their names, for kinds that ask for them.
	Siblings map[string]*unstructured.Unstructured
	// HeartbeatsStale: what the copy's status says may be from before the cluster was away, since its nodes have not been heard of yet.
	HeartbeatsStale bool
	// Floor is what a copy of an autoscaler has as its least number for now, see Source.Floor; 0: its own.
	Floor int64
	// Needed says what for a copy that is to go stays for now, see Leaves; "": for nothing.
	Needed string
	// Scaled: an autoscaler of the federation scales the object there, or is to: its copy is there, or Comes.
	Scaled bool
}

// Presence reports whether a copy is to be in a member.
type Presence int

const (
	// Undecided: there is no placement yet; the member stays as it is.
	Undecided Presence = iota
	// Absent: no copy of ours is to be there.
	Absent
	// Released: the copy stays, but is no longer ours.
	Released
	// IfThere: a copy that is there is to look as desired, a new one is not made (no replicas fall to it, or it is a Job that is finished).
	IfThere
	// Present: the copy is to be there as desired.
	Present
)

// Wanted decides whether a member is to hold a copy and, of divided kinds, with which number: nil where there
// is none, or where an autoscaler in the member owns it. The reason is for people.
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
	case refuses != "" && s.isNamespace(): // what is in it may take its time to leave
		return IfThere, nil, refuses
	case refuses != "" && s.divided() == "":
		return Absent, nil, refuses
	case !Selected(s.Object, t.Cluster.Labels):
		return Absent, nil, "the cluster selector does not match"
	case s.Placement == nil && (s.divided() != "" || Placed(s.Object) || s.confined()):
		return Undecided, nil, "waits for a placement"
	case s.Placement == nil && s.Kind.ByPolicy:
		return Absent, nil, "no policy selects it"
	case s.Placement == nil:
		return Present, nil, "goes to every selected cluster"
	case s.Placement.Policy != "" && s.Policy == nil:
		return Undecided, nil, fmt.Sprintf("waits for policy %s", s.Placement.Policy)
	}
	share := s.Share(t.Cluster.Name)
	if refuses != "" {
		share = 0
	}
	switch {
	case s.divided() == "" && share > 0:
		return Present, nil, "goes there by placement"
	case s.divided() == "":
		return Absent, nil, "not there by placement"
	case share == 0:
		return IfThere, &share, "0 replicas by placement"
	case v1beta1.JobEnd(s.Object) != "":
		return IfThere, &share, "the Job is finished: it is not run again"
	}
	number, reason = s.autoscaled(t, share)
	return Present, number, reason
}

func (s Source) isNamespace() bool {
	return s.Object.GetKind() == "Namespace" && s.Object.GetAPIVersion() == "v1"
}

// namespace is that of the object; of a Namespace it is the name.
func (s Source) namespace() string {
	if s.isNamespace() {
		return s.Object.GetName()
	}
	return s.Object.GetNamespace()
}

// confined reports whether an object goes nowhere before a placement, or its own annotation, says so.
func (s Source) confined() bool {
	_, selects := s.Object.GetAnnotations()[v1beta1.ClusterSelectorAnnotation]
	return !selects && !s.Kind.Custom && v1beta1.Confined(s.Kind.Resource.GroupResource())
}

// Placed reports whether it is, or will be, decided where an object goes. Without, one of a kind that goes where
// policies say is not federated.
func Placed(federated *unstructured.Unstructured) bool {
	return federated.GetAnnotations()[v1beta1.PlacementAnnotation] != ""
}

// Share is what the placement gives to a cluster.
func (s Source) Share(cluster string) int64 {
	if s.Placement == nil {
		return 0
	}
	if s.Placement.Everywhere && s.divided() == "" {
		return 1
	}
	return s.Placement.Clusters[cluster] + s.Placement.Overflow[cluster]
}

// placed is what the placement gives to all clusters.
func (s Source) placed() (n int64) {
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

// Goes reports whether something of the object is to be in a cluster, as far as it is decided.
func (s Source) Goes(t Target) bool {
	presence, _, _ := s.Wanted(t)
	return presence == Present || presence == Undecided
}

// autoscaled leaves the number to an autoscaler, where there is one and it has taken it up: then the placement
// says only that the copy is there.
func (s Source) autoscaled(t Target, share int64) (*int64, string) {
	has := Applied(s, t.Have)
	switch {
	case !s.autoscales(t):
	case ScaledByMember(t.Have):
		return nil, fmt.Sprintf("%d replicas by the cluster's autoscaler", has)
	default:
		return &has, fmt.Sprintf("%d replicas, which are its autoscaler's to change", has)
	}
	return &share, fmt.Sprintf("%d replicas by placement", share)
}

// autoscales reports whether an autoscaler decides how many replicas a copy has. None does of one that has none.
func (s Source) autoscales(t Target) bool {
	return Applied(s, t.Have) > 0 && (t.Scaled || ScaledByMember(t.Have) && !leftByAutoscaler(t.Have))
}

// Comes tells of an autoscaler of the federation whether its copy is to be in a cluster. One that is being deleted counts
// until it is gone everywhere: then all numbers are the placement's at once, and what the clusters have is no less than
// what is asked for.
func (s Source) Comes(t Target) bool { return s.leaving() || s.Goes(t) }

// ScaledByMember reports whether an autoscaler in a member owns the number of replicas of a copy.
func ScaledByMember(copy *unstructured.Unstructured) bool {
	return copy != nil && copy.GetAnnotations()[v1beta1.ScaledByAnnotation] != ""
}

// AutoscaledAnnotation is on copies whose number is an autoscaler's of the federation. Of Kubernetes' API it cannot be seen
// whether an autoscaler that set a number is still there: when ours is gone, this tells that the number is the
// placement's again, for as long as it is the autoscaler's; without it, there is one that somebody made in the member.
const AutoscaledAnnotation = "federation.kubernetes.io/autoscaled"

// leftByAutoscaler reports whether the number of a copy is what an autoscaler of the federation made of it.
func leftByAutoscaler(copy *unstructured.Unstructured) bool {
	return ScaledByMember(copy) && copy.GetAnnotations()[AutoscaledAnnotation] != ""
}

// Read reads the placement annotation of an object. Nil: there is none, or it is yet to be decided.
func Read(federated *unstructured.Unstructured) *v1beta1.Placement {
	return v1beta1.ParsePlacement(federated.GetAnnotations()[v1beta1.PlacementAnnotation])
}

// divided is the field below spec that is divided, or "". A custom kind is divided where its policy says how.
func (s Source) divided() string {
	if s.Kind.Divided != "" || !s.Kind.Custom || s.Object == nil || s.Policy == nil || s.Policy.Spec.ReplicaPreferences == nil {
		return s.Kind.Divided
	}
	if _, ok, _ := unstructured.NestedInt64(s.Object.Object, "spec", "replicas"); ok {
		return "replicas"
	}
	return ""
}

// Asked is the number that the user asks for in all: 1 where the object does not say.
func (s Source) Asked() int64 {
	n, ok, _ := unstructured.NestedInt64(s.Object.Object, "spec", s.divided())
	if !ok {
		return 1
	}
	return n
}

func (s Source) leaving() bool { return s.Object != nil && s.Object.GetDeletionTimestamp() != nil }

func (s Source) hasFinalizer(name string) bool {
	return slices.Contains(s.Object.GetFinalizers(), name)
}

// Selected reports whether the object's cluster-selector annotation, if there is one, matches the
// labels of a cluster. A selector that cannot be read selects nothing (admission refuses it).
func Selected(federated *unstructured.Unstructured, clusterLabels map[string]string) bool {
	value, ok := federated.GetAnnotations()[v1beta1.ClusterSelectorAnnotation]
	if !ok {
		return true
	}
	selector, errs := v1beta1.ParseClusterSelector(value, field.NewPath(v1beta1.ClusterSelectorAnnotation))
	return len(errs) == 0 && selector.Matches(labels.Set(clusterLabels))
}
