package plan

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

// A report has the durations of previous complete drills of the same clusters and method, and of no others.
func TestEarlierDrillsAreCompared(t *testing.T) {
	m := newMade(t, v1beta1.DrillShift)
	before := func(method v1beta1.DrillMethod, cluster string, outcome v1beta1.DrillOutcome, reason string, outOfDNS time.Duration) {
		d := drilled(cluster, begin.Add(-48*time.Hour))
		d.UID, d.Spec.Method, d.Status.Outcome, d.Status.Reason = types.UID(fmt.Sprint(len(m.drills))), method, outcome, reason
		d.Status.Report.Marks = v1beta1.DrillMarks{Injected: new(metav1.NewMicroTime(begin)), OutOfDNS: new(metav1.NewMicroTime(begin.Add(outOfDNS)))}
		m.drills = append(m.drills, d)
	}
	for i := range 7 {
		before(v1beta1.DrillShift, "a", v1beta1.DrillSucceeded, v1beta1.DrillCompleted, time.Duration(i+1)*time.Second)
	}
	before(v1beta1.DrillShift, "a", v1beta1.DrillFailed, v1beta1.DrillObjectiveMissed, 9*time.Second)
	before(v1beta1.DrillShift, "a", v1beta1.DrillFailed, v1beta1.DrillReadyBelow, time.Hour)
	before(v1beta1.DrillShift, "a", v1beta1.DrillInterrupted, v1beta1.DrillRealFailure, time.Hour)
	before(v1beta1.DrillShift, "b", v1beta1.DrillSucceeded, v1beta1.DrillCompleted, time.Hour)
	before(v1beta1.DrillEvacuate, "a", v1beta1.DrillSucceeded, v1beta1.DrillCompleted, time.Hour)
	m.drills = append(m.drills, m.drill)
	m.ends(v1beta1.DrillSucceeded, v1beta1.DrillCompleted)
	if got, want := m.drill.Status.Report.Earlier, (&v1beta1.DrillEarlier{Runs: 8, P75Milliseconds: map[string]int64{"outOfDNS": 6000}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	m = newMade(t, v1beta1.DrillShift)
	m.ends(v1beta1.DrillSucceeded, v1beta1.DrillCompleted)
	if got := m.drill.Status.Report.Earlier; got != nil {
		t.Errorf("the first one is compared with %+v", got)
	}
}
