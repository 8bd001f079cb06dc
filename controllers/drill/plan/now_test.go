package plan

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

func weeklyByZone() *v1beta1.FailoverDrillSchedule {
	berlin := "Europe/Berlin"
	return &v1beta1.FailoverDrillSchedule{ObjectMeta: metav1.ObjectMeta{Name: "weekly", UID: "u"}, Spec: v1beta1.FailoverDrillScheduleSpec{
		Schedule: "0 10 * * 2", DrillWindows: v1beta1.DrillWindows{TimeZone: &berlin, BlockedDates: []string{"2026-12-24"}}, Rotate: v1beta1.RotateZones,
		Template: v1beta1.FailoverDrillTemplate{Spec: v1beta1.FailoverDrillSpec{Scope: v1beta1.FailoverDrillScope{Zones: []string{"east/a", "east/b"}}, Method: v1beta1.DrillShift, Reason: "r"}},
	}}
}

// A manual drill of a schedule belongs to its creator, keeps to the schedule's windows, and takes one of its scopes.
func TestADrillOfAScheduleNow(t *testing.T) {
	for zone, want := range map[string]string{"east/a": "", "east/c": `--zone "east/c": must be one of east/a, east/b`, "": `--zone ""`} {
		d, err := DrillNow(weeklyByZone(), "", zone, "")
		switch {
		case (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("zone %q: %v, want %q", zone, err, want)
		case err == nil && (len(d.OwnerReferences) > 0 || d.GenerateName != "weekly-" || d.Spec.Windows == nil || len(d.Spec.Scope.Zones) != 1 || d.Spec.Scope.Zones[0] != zone):
			t.Errorf("zone %q: %+v", zone, d)
		}
	}
	whole := weeklyByZone()
	whole.Spec.Rotate = ""
	if d, err := DrillNow(whole, "", "", ""); err != nil || len(d.Spec.Scope.Zones) != 2 {
		t.Errorf("the whole scope: %v, %v", d, err)
	}
	if _, err := DrillNow(whole, "", "east/a", ""); err == nil {
		t.Error("one zone of a schedule that takes no turns")
	}
}
