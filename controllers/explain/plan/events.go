package plan

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// mostEvents bounds the events of an explanation.
const mostEvents = 5

// lastEvents returns the last events, the latest first.
func lastEvents(all []corev1.Event) (last []v1beta1.ExplainedEvent) {
	for i := range all {
		e := &all[i]
		at := e.LastTimestamp
		if e.Series != nil {
			at = metav1.NewTime(e.Series.LastObservedTime.Time)
		} else if at.IsZero() {
			at = metav1.NewTime(e.EventTime.Time)
		}
		last = append(last, v1beta1.ExplainedEvent{Type: e.Type, Reason: e.Reason, Message: v1beta1.Printable(e.Message), Count: cmp.Or(e.Count, 1), LastSeen: at})
	}
	slices.SortStableFunc(last, func(a, b v1beta1.ExplainedEvent) int { return b.LastSeen.Compare(a.LastSeen.Time) })
	return last[:min(len(last), mostEvents)]
}
