package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	reviewplan "federation/controllers/review/plan"
)

// most is the maximum of objects, and of names, in a status.
const most = 20

// drilledFor is how long a successful drill counts.
const drilledFor = 90 * 24 * time.Hour

// Status returns the status for a loss: numbers and conditions. before is the previous status.
func Status(before *v1beta1.FailoverReadinessStatus, l *reviewplan.Loss, now time.Time, took time.Duration) v1beta1.FailoverReadinessStatus {
	at := metav1.NewTime(now.Truncate(time.Second))
	s := v1beta1.FailoverReadinessStatus{
		Clusters: int32(len(l.Clusters)), Objects: int32(len(l.Objects)), Headroom: l.Headroom, EvaluatedAt: &at, TookMilliseconds: took.Milliseconds(),
		Conditions: slices.Clone(before.Conditions), LastDrill: before.LastDrill,
	}
	for _, o := range l.Objects {
		s.Replicas, s.Placed, s.Kept, s.Unschedulable = s.Replicas+o.Replicas, s.Placed+o.Placed, s.Kept+o.Kept, s.Unschedulable+o.Unschedulable
	}
	if l.Names > 0 {
		s.Names = &v1beta1.ReadinessNames{Served: int32(l.Names), Survive: int32(l.Names - len(l.NamesLost)), Lost: l.NamesLost[:min(len(l.NamesLost), most)]}
	}
	s.Worst = worstObjects(l.Objects)
	meta.SetStatusCondition(&s.Conditions, survivableCondition(&s, l, at))
	meta.SetStatusCondition(&s.Conditions, Drilled(s.LastDrill, at))
	return s
}

// worstObjects returns the objects that fare worst, the worst first.
func worstObjects(objects []reviewplan.ObjectLoss) (out []v1beta1.ReadinessObject) {
	bad := slices.DeleteFunc(slices.Clone(objects), func(o reviewplan.ObjectLoss) bool { return o.Unschedulable == 0 && !o.Pinned })
	slices.SortStableFunc(bad, func(a, b reviewplan.ObjectLoss) int {
		return cmp.Or(cmp.Compare(b.Unschedulable, a.Unschedulable), cmp.Compare(b.Replicas, a.Replicas), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	for _, o := range bad[:min(len(bad), most)] {
		out = append(out, v1beta1.ReadinessObject{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Replicas: o.Replicas, Unschedulable: o.Unschedulable, Pinned: o.Pinned})
	}
	return out
}

// survivableCondition returns the verdict. Its reason is the most severe one, its message has all.
func survivableCondition(s *v1beta1.FailoverReadinessStatus, l *reviewplan.Loss, at metav1.Time) metav1.Condition {
	c := metav1.Condition{Type: v1beta1.ReadinessSurvivable, Status: metav1.ConditionTrue, Reason: v1beta1.ReadinessSurvived, LastTransitionTime: at}
	var said []string
	because := func(holds bool, reason, format string, args ...any) {
		if !holds {
			return
		}
		if len(said) == 0 {
			c.Status, c.Reason = metav1.ConditionFalse, reason
		}
		said = append(said, fmt.Sprintf(format, args...))
	}
	pinned, nowhere := splitPinned(l.Objects)
	because(l.Held != "" && s.Replicas > 0, v1beta1.ReadinessFailoverWouldBeSuspended, "nothing, or not all, would be moved: %s", l.Held)
	because(nowhere > 0, v1beta1.ReadinessInsufficientCapacity, "%d of %d replicas would fit nowhere", nowhere, s.Replicas)
	because(len(l.NamesLost) > 0, v1beta1.ReadinessNameLost, "%d of %d names would have no server: %s", len(l.NamesLost), l.Names, firstOf(l.NamesLost))
	because(len(pinned) > 0, v1beta1.ReadinessPinned, "%d objects are there alone, and may be nowhere else: %s", len(pinned), firstOf(pinned))
	switch {
	case len(said) == 0 && len(l.Unknown) > 0:
		c.Status, c.Reason = metav1.ConditionUnknown, v1beta1.ReadinessCapacityUnknown
		said = append(said, "the room in clusters that would get replicas is not known: "+firstOf(l.Unknown))
	case len(said) == 0:
		said = append(said, fmt.Sprintf("%d of %d replicas would be placed elsewhere, %d kept where they are; %d names would be served by others", s.Placed, s.Replicas, s.Kept, l.Names))
	}
	c.Message = strings.Join(said, "; ")
	return c
}

// Lacking returns the status of a loss before its turn if it is certain that not everything would find a place for lack
// of a resource. The numbers are those of the last evaluation.
func Lacking(before *v1beta1.FailoverReadinessStatus, of corev1.ResourceName, now time.Time) v1beta1.FailoverReadinessStatus {
	s := provisionalStatus(before, now)
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: v1beta1.ReadinessSurvivable, Status: metav1.ConditionFalse, Reason: v1beta1.ReadinessInsufficientCapacity, LastTransitionTime: *s.EvaluatedAt,
		Message: fmt.Sprintf("the other clusters have lost room: what would have to move there asks for more %s than they have left together; the next evaluation counts the replicas that would fit nowhere", of)})
	return s
}

// Doubted returns the status of a survivable loss that has been in doubt for long and has not been evaluated.
func Doubted(before *v1beta1.FailoverReadinessStatus, now time.Time) v1beta1.FailoverReadinessStatus {
	s := provisionalStatus(before, now)
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: v1beta1.ReadinessSurvivable, Status: metav1.ConditionUnknown, Reason: v1beta1.ReadinessNotEvaluated, LastTransitionTime: *s.EvaluatedAt,
		Message: "it was survivable; since then the other clusters have become so full, or its objects so large, that it may not be: the next evaluation will tell"})
	return s
}

// Settled returns the status of a loss whose doubt is over without an evaluation: as it was last evaluated, found now.
func Settled(evaluated, before *v1beta1.FailoverReadinessStatus, now time.Time) v1beta1.FailoverReadinessStatus {
	s := *evaluated.DeepCopy()
	s.EvaluatedAt = new(metav1.NewTime(now.Truncate(time.Second)))
	v := Verdict(evaluated)
	v.LastTransitionTime = *s.EvaluatedAt
	s.Conditions = slices.Clone(before.Conditions)
	meta.SetStatusCondition(&s.Conditions, v) // which keeps the time where the status stays
	return s
}

func provisionalStatus(before *v1beta1.FailoverReadinessStatus, now time.Time) v1beta1.FailoverReadinessStatus {
	s := *before.DeepCopy()
	s.EvaluatedAt = new(metav1.NewTime(now.Truncate(time.Second)))
	return s
}

// splitPinned returns the pinned objects, and how many replicas of the others would fit nowhere.
func splitPinned(objects []reviewplan.ObjectLoss) (pinned []string, nowhere int64) {
	for _, o := range objects {
		if o.Pinned {
			pinned = append(pinned, fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name))
		} else {
			nowhere += o.Unschedulable
		}
	}
	return pinned, nowhere
}

// firstOf joins the first three words.
func firstOf(words []string) string {
	if len(words) <= 3 {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:3], ", "), len(words)-3)
}

// Drilled returns the condition for the last drill.
func Drilled(last *v1beta1.ReadinessDrill, at metav1.Time) metav1.Condition {
	c := metav1.Condition{Type: v1beta1.ReadinessDrilled, Status: metav1.ConditionFalse, Reason: v1beta1.ReadinessNeverDrilled, Message: "no drill of it has succeeded", LastTransitionTime: at}
	if last == nil || last.SucceededAt == nil {
		return c
	}
	c.Reason, c.Message = "LongAgo", "the last drill that succeeded was more than 90 days ago"
	if at.Sub(last.SucceededAt.Time) < drilledFor {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Succeeded", "drill "+last.Name
	}
	return c
}

// Same reports whether two statuses are the same apart from the time and cost of the evaluation.
func Same(a, b *v1beta1.FailoverReadinessStatus) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	for _, s := range []*v1beta1.FailoverReadinessStatus{x, y} {
		s.EvaluatedAt, s.TookMilliseconds = nil, 0
		for i := range s.Conditions {
			s.Conditions[i].LastTransitionTime, s.Conditions[i].ObservedGeneration = metav1.Time{}, 0
		}
	}
	return reflect.DeepEqual(x, y)
}

// Verdict returns the condition Survivable; Unknown, NotEvaluated if there is none yet.
func Verdict(s *v1beta1.FailoverReadinessStatus) metav1.Condition {
	if c := meta.FindStatusCondition(s.Conditions, v1beta1.ReadinessSurvivable); c != nil {
		return *c
	}
	return metav1.Condition{Type: v1beta1.ReadinessSurvivable, Status: metav1.ConditionUnknown, Reason: v1beta1.ReadinessNotEvaluated}
}
