package v1beta1

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FailoverDrillSchedule makes FailoverDrills at the times of a cron schedule, one at a time, as a CronJob makes Jobs. Deleting it leaves the drills
// that it has made.
type FailoverDrillSchedule struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// When drills are made, and of what.
	Spec FailoverDrillScheduleSpec `json:"spec"`
	// What has been made so far; written by the federation.
	// +optional
	Status FailoverDrillScheduleStatus `json:"status,omitempty"`
}

// FailoverDrillScheduleSpec says when drills are made, and of what.
type FailoverDrillScheduleSpec struct {
	// When, in cron format, see https://en.wikipedia.org/wiki/Cron. A time that clocks skip is skipped, one that they show twice counts once.
	Schedule string `json:"schedule"`
	// The time zone of the schedule and the windows, and when drills may be under way. Times of the schedule at which one may not are left out.
	DrillWindows `json:",inline"`
	// No drill is made while this is true. Those that are under way go on.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
	// How late a drill may be made, from 10 to 86400 s; 300 if left out. What is missed then is not made up.
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// How many drills that succeeded are kept, from 0 to 100; 10 if left out.
	// +optional
	SuccessfulHistoryLimit *int32 `json:"successfulHistoryLimit,omitempty"`
	// How many drills that ended otherwise are kept, from 0 to 100; 10 if left out.
	// +optional
	FailedHistoryLimit *int32 `json:"failedHistoryLimit,omitempty"`
	// Each drill takes one of the zones, regions or clusters that template.spec.scope names, and in it "*" is all of them: the one whose
	// last success, or last drill of this schedule, is oldest. Left out: each takes the whole scope.
	// +optional
	Rotate DrillRotation `json:"rotate,omitempty"`
	// The drills that are made.
	Template FailoverDrillTemplate `json:"template"`
}

// DrillWindows say when drills may be under way: from the first check until the clusters are brought back.
type DrillWindows struct {
	// The time zone, as "Europe/Berlin"; UTC if left out.
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`
	// Times of the week, as MON-09:00-12:00 (24:00 is the end of the day). Drills are under way in these only; always if left out.
	// +optional
	// +listType=set
	AllowedWindows []string `json:"allowedWindows,omitempty"`
	// Times of the week at which no drill is under way.
	// +optional
	// +listType=set
	BlockedWindows []string `json:"blockedWindows,omitempty"`
	// Days on which no drill is under way, as 2026-12-24.
	// +optional
	// +listType=set
	BlockedDates []string `json:"blockedDates,omitempty"`
}

// DrillRotation is whose turn it is from drill to drill.
type DrillRotation string

const (
	// RotateZones: one zone after the other.
	RotateZones DrillRotation = "Zones"
	// RotateRegions: one region after the other.
	RotateRegions DrillRotation = "Regions"
	// RotateClusters: one cluster after the other.
	RotateClusters DrillRotation = "Clusters"
	// RotateAll, in a scope that is rotated, is all zones, regions or clusters that there are.
	RotateAll = "*"
)

// FailoverDrillTemplate is a drill that a schedule makes.
type FailoverDrillTemplate struct {
	// Labels and annotations of the drills.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// What is tried. Its windows must be left out: the schedule's are used.
	Spec FailoverDrillSpec `json:"spec"`
}

// FailoverDrillScheduleStatus is what a schedule has made so far.
type FailoverDrillScheduleStatus struct {
	// Scheduled: a drill will be made at nextScheduleTime; False with Suspended, NoTime or NoScope.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Names of its drills that have not ended.
	// +optional
	// +listType=atomic
	Active []string `json:"active,omitempty"`
	// The time of the schedule at which it last made a drill.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// When a drill of it last succeeded.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	// The time of the schedule at which it makes the next one.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// The last time of the schedule at which no drill was made though one should have been.
	// +optional
	LastMissed *MissedDrill `json:"lastMissed,omitempty"`
	// Where scopes are rotated: when each had its last drill of this schedule.
	// +optional
	// +listType=map
	// +listMapKey=scope
	Turns []DrillTurn `json:"turns,omitempty"`
	// Who made the schedule, or last changed what it makes, as the API server knows them. Its drills are theirs.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
}

// MissedDrill is a time of a schedule at which no drill was made.
type MissedDrill struct {
	// The time.
	Time metav1.Time `json:"time"`
	// StillActive: the drill before it had not ended. TooLate: the federation was not there to make it.
	Reason string `json:"reason"`
}

// DrillTurn is when a zone, region or cluster had its last drill of a schedule.
type DrillTurn struct {
	// The zone, as REGION/ZONE or ZONE, the region, or the cluster.
	Scope string `json:"scope"`
	// The time of the schedule.
	Time metav1.Time `json:"time"`
}

const (
	// DrillScheduled is a condition of a FailoverDrillSchedule: a drill will be made.
	DrillScheduled = "Scheduled"
	// ScheduleActive, ScheduleSuspended, ScheduleNoTime and ScheduleNoScope are its reasons: nothing is in the way; spec.suspend; the schedule has no
	// time in the windows within a year; there is nothing that the scope names.
	ScheduleActive    = "Active"
	ScheduleSuspended = "Suspended"
	ScheduleNoTime    = "NoTime"
	ScheduleNoScope   = "NoScope"

	// MissedStillActive and MissedTooLate are why no drill was made.
	MissedStillActive = "StillActive"
	MissedTooLate     = "TooLate"

	// DrillScheduledAtAnnotation, on a drill that a schedule made, is the time of the schedule, in RFC 3339.
	DrillScheduledAtAnnotation = "federation.kubernetes.io/drill-scheduled-at"
)

// StartingDeadline returns how late a drill may be made, in seconds.
func (s *FailoverDrillScheduleSpec) StartingDeadline() int64 {
	return orDefault(s.StartingDeadlineSeconds, 300)
}

// Succeeded returns how many drills that succeeded are kept, Failed how many others.
func (s *FailoverDrillScheduleSpec) Succeeded() int {
	return int(orDefault(s.SuccessfulHistoryLimit, 10))
}

// Failed returns how many drills that did not succeed are kept.
func (s *FailoverDrillScheduleSpec) Failed() int { return int(orDefault(s.FailedHistoryLimit, 10)) }

// Suspended reports whether no drill is made.
func (s *FailoverDrillScheduleSpec) Suspended() bool { return orDefault(s.Suspend, false) }

// MakesOther reports whether a schedule now makes other drills than is does, or makes drills again.
func (s *FailoverDrillSchedule) MakesOther(is *FailoverDrillSchedule) bool {
	was, now := s.Spec.DeepCopy(), is.Spec.DeepCopy()
	was.Suspend, now.Suspend = new(was.Suspended()), new(now.Suspended())
	if *now.Suspend {
		was.Suspend = now.Suspend
	}
	return !equality.Semantic.DeepEqual(was, now)
}

// Drill returns a new drill of the schedule. It has no name yet, and the whole scope.
func (s *FailoverDrillSchedule) Drill() *FailoverDrill {
	d := &FailoverDrill{
		ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(s.Spec.Template.Labels), Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, SchemeGroupVersion.WithKind("FailoverDrillSchedule"))}},
		Spec:   *s.Spec.Template.Spec.DeepCopy(),
		Status: FailoverDrillStatus{RequestedBy: s.Status.RequestedBy},
	}
	maps.Copy(d.Annotations, s.Spec.Template.Annotations)
	if w := s.Spec.DrillWindows; len(w.AllowedWindows)+len(w.BlockedWindows)+len(w.BlockedDates) > 0 {
		d.Spec.Windows = w.DeepCopy()
	}
	return d
}

// Of returns the scope that is one zone, region or cluster.
func (r DrillRotation) Of(name string) (s FailoverDrillScope) {
	switch r {
	case RotateZones:
		s.Zones = []string{name}
	case RotateRegions:
		s.Regions = []string{name}
	default:
		s.Clusters = []string{name}
	}
	return s
}

// Candidates returns what a rotation takes in turn, or nil.
func (s *FailoverDrillScheduleSpec) Candidates() []string {
	switch s.Rotate {
	case RotateZones:
		return s.Template.Spec.Scope.Zones
	case RotateRegions:
		return s.Template.Spec.Scope.Regions
	case RotateClusters:
		return s.Template.Spec.Scope.Clusters
	}
	return nil
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FailoverDrillScheduleList is a list of FailoverDrillSchedules.
type FailoverDrillScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// The schedules.
	Items []FailoverDrillSchedule `json:"items"`
}
