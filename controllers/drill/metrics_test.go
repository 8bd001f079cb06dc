package drill

import (
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestFailuresAreCountedFromZero: the first drill that fails is an increase, which FederationDrillFailed goes by: a series that began with it would have none.
func TestFailuresAreCountedFromZero(t *testing.T) {
	registerMetrics()
	failed := func() (value float64, there bool) {
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				if f.GetName() == "federation_drills_total" && labels["method"] == string(v1beta1.DrillBlackhole) && labels["outcome"] == string(v1beta1.DrillFailed) {
					return m.GetCounter().GetValue(), true
				}
			}
		}
		return 0, false
	}
	before, there := failed()
	if !there {
		t.Fatal("there is no counter before a drill has failed")
	}
	observeFinished(&v1beta1.FailoverDrill{Spec: v1beta1.FailoverDrillSpec{Method: v1beta1.DrillBlackhole}, Status: v1beta1.FailoverDrillStatus{Outcome: v1beta1.DrillFailed}})
	if after, _ := failed(); after != before+1 {
		t.Errorf("%v drills have failed, %v before", after, before)
	}
}
