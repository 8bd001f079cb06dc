package v1beta1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FailoverReadiness reports whether the loss of a zone, or of a region, would be survived now. The federation keeps one
// for each; nobody else writes them, and nothing acts on them.
type FailoverReadiness struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Whose loss it is about.
	Spec FailoverReadinessSpec `json:"spec"`
	// What would happen.
	// +optional
	Status FailoverReadinessStatus `json:"status,omitempty"`
}

// FailoverReadinessSpec names a zone or a region.
type FailoverReadinessSpec struct {
	// The zone, as REGION/ZONE: the clusters that have no nodes elsewhere.
	// +optional
	Zone string `json:"zone,omitempty"`
	// The region: all clusters in it.
	// +optional
	Region string `json:"region,omitempty"`
}

// Domain returns the zone or region, as metrics and events call it.
func (s FailoverReadinessSpec) Domain() string {
	if s.Zone != "" {
		return s.Zone
	}
	return s.Region
}

// FailoverReadinessStatus is what would happen if the clusters were lost, and for long.
type FailoverReadinessStatus struct {
	// Survivable: the loss would be survived; False with InsufficientCapacity, FailoverWouldBeSuspended, NameWithoutServer or Pinned. Drilled: a drill has shown it.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Clusters that would be lost.
	// +optional
	Clusters int32 `json:"clusters,omitempty"`
	// Objects with replicas there.
	// +optional
	Objects int32 `json:"objects,omitempty"`
	// Replicas that are placed there, and would be lost. They are the sum of placed, kept and unschedulable.
	// +optional
	Replicas int64 `json:"replicas,omitempty"`
	// Those that would be placed elsewhere.
	// +optional
	Placed int64 `json:"placed,omitempty"`
	// Those that would not be placed again, because failover is off for them.
	// +optional
	Kept int64 `json:"kept,omitempty"`
	// Those that would fit nowhere.
	// +optional
	Unschedulable int64 `json:"unschedulable,omitempty"`
	// The objects that would fare worst, at most 20: those with most replicas that fit nowhere first, then what is pinned.
	// +optional
	// +listType=atomic
	Worst []ReadinessObject `json:"worst,omitempty"`
	// Names in DNS that are served from there now, and what would become of them. Not set where none is.
	// +optional
	Names *ReadinessNames `json:"names,omitempty"`
	// What would be left free. Not set where the room of the other clusters is not known.
	// +optional
	Headroom *ReadinessHeadroom `json:"headroom,omitempty"`
	// When this was found. It holds as long as nothing of it changes: then nothing is written.
	// +optional
	EvaluatedAt *metav1.Time `json:"evaluatedAt,omitempty"`
	// How long it took to find out, in milliseconds.
	// +optional
	TookMilliseconds int64 `json:"tookMilliseconds,omitempty"`
	// The last drill of just these clusters that came to an end.
	// +optional
	LastDrill *ReadinessDrill `json:"lastDrill,omitempty"`
}

// ReadinessObject is an object that would not fare well.
type ReadinessObject struct {
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
	// Replicas that would be lost.
	Replicas int64 `json:"replicas"`
	// Those of them that would fit nowhere.
	// +optional
	Unschedulable int64 `json:"unschedulable,omitempty"`
	// All that it has is there, and may be nowhere else.
	// +optional
	Pinned bool `json:"pinned,omitempty"`
}

// ReadinessNames are names in DNS.
type ReadinessNames struct {
	// Global names of Services, and hosts, that clusters there serve now.
	Served int32 `json:"served"`
	// Those of them that another cluster would serve.
	Survive int32 `json:"survive"`
	// Those that none would, at most 20.
	// +optional
	// +listType=atomic
	Lost []string `json:"lost,omitempty"`
}

// ReadinessHeadroom is what would be left free in the other clusters, of the resource of which least is.
type ReadinessHeadroom struct {
	// Free, in percent of what they have.
	Percent int32 `json:"percent"`
	// The resource.
	Resource string `json:"resource"`
	// The cluster that would have least of it.
	// +optional
	Cluster string `json:"cluster,omitempty"`
}

// ReadinessDrill is a drill that came to an end.
type ReadinessDrill struct {
	// Name of the drill.
	Name string `json:"name"`
	// Its method.
	// +optional
	Method string `json:"method,omitempty"`
	// Its outcome: Succeeded, Failed, Interrupted or Blocked.
	Outcome string `json:"outcome"`
	// When it ended.
	FinishedAt metav1.Time `json:"finishedAt"`
	// When a drill last succeeded.
	// +optional
	SucceededAt *metav1.Time `json:"succeededAt,omitempty"`
}

// Conditions of a FailoverReadiness.
const (
	// ReadinessSurvivable is True where every replica would find a place, or is not to, and every name a server.
	ReadinessSurvivable = "Survivable"
	// ReadinessDrilled is True where a drill of it has succeeded in the last 90 days.
	ReadinessDrilled = "Drilled"
)

// Reasons of the conditions of a FailoverReadiness.
const (
	ReadinessSurvived                 = "Survived"
	ReadinessInsufficientCapacity     = "InsufficientCapacity"
	ReadinessFailoverWouldBeSuspended = "FailoverWouldBeSuspended"
	ReadinessNameLost                 = "NameWithoutServer"
	ReadinessPinned                   = "Pinned"
	ReadinessCapacityUnknown          = "CapacityUnknown"
	ReadinessNotEvaluated             = "NotEvaluated"
	ReadinessNeverDrilled             = "NeverDrilled"
)

// ReadinessName returns the name of the FailoverReadiness of a zone, as REGION/ZONE, or a region: "zone.east.a",
// "region.east". Labels of nodes may have letters that names may not: of two that differ only in these, the second has
// no FailoverReadiness.
func ReadinessName(s FailoverReadinessSpec) string {
	level, words := "region", []string{s.Region}
	if s.Zone != "" {
		level, words = "zone", strings.SplitN(s.Zone, "/", 2)
	}
	name := level
	for _, word := range words {
		name += "." + asLabel(word)
	}
	return name
}

// asLabel returns a word with only the letters that a part of a name may have.
func asLabel(word string) string {
	letters := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	word = strings.Trim(strings.Map(letters, strings.ToLower(word)), "-")
	if word == "" {
		return "x"
	}
	return word
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FailoverReadinessList is a list of FailoverReadinesses.
type FailoverReadinessList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// One for each zone and region.
	Items []FailoverReadiness `json:"items"`
}
