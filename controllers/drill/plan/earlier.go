package plan

import (
	"cmp"
	"slices"

	"federation/apiserver/apis/federation/v1beta1"
)

// maxEarlier is the maximum of drills to compare with.
const maxEarlier = 50

// compareEarlier compares a drill of clusters with previous complete drills of the same clusters and method. Drills that ended early say nothing
// about durations. Nil if there are none.
func compareEarlier(drills []*v1beta1.FailoverDrill, of *v1beta1.FailoverDrill, clusters []string) *v1beta1.DrillEarlier {
	var runs []*v1beta1.FailoverDrill
	for _, o := range drills {
		s := &o.Status
		full := s.Outcome == v1beta1.DrillSucceeded || s.Outcome == v1beta1.DrillFailed && (s.Reason == v1beta1.DrillObjectiveMissed || s.Reason == v1beta1.DrillLeftBehind)
		if o.UID != of.UID && full && s.Report != nil && s.PhaseSince != nil && o.Spec.Method == of.Spec.Method && slices.Equal(s.Clusters, clusters) {
			runs = append(runs, o)
		}
	}
	if len(runs) == 0 {
		return nil
	}
	slices.SortFunc(runs, func(a, b *v1beta1.FailoverDrill) int {
		return cmp.Or(b.Status.PhaseSince.Compare(a.Status.PhaseSince.Time), cmp.Compare(a.Name, b.Name))
	})
	runs = runs[:min(len(runs), maxEarlier)]
	took := map[string][]int64{}
	for _, o := range runs {
		for mark, after := range o.Status.Report.Marks.Elapsed() {
			took[mark] = append(took[mark], after.Milliseconds())
		}
	}
	is := &v1beta1.DrillEarlier{Runs: int32(len(runs)), P75Milliseconds: map[string]int64{}}
	for mark, all := range took {
		slices.Sort(all)
		is.P75Milliseconds[mark] = all[(3*len(all)+3)/4-1]
	}
	return is
}
