package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestFailoverDrillSchedule(t *testing.T) {
	for want, change := range map[string]func(*v1beta1.FailoverDrillScheduleSpec){
		"": func(*v1beta1.FailoverDrillScheduleSpec) {},
		`spec.schedule: Invalid value: "": empty`:                    func(s *v1beta1.FailoverDrillScheduleSpec) { s.Schedule = "" },
		`spec.schedule: Invalid value: "TZ=0": must not have a time`: func(s *v1beta1.FailoverDrillScheduleSpec) { s.Schedule = "TZ=0" },
		`spec.schedule: Invalid value: "@every 1h": @every`:          func(s *v1beta1.FailoverDrillScheduleSpec) { s.Schedule = "@every 1h" },
		`spec.schedule: Invalid value: "0 0 30 2 *": never comes`:    func(s *v1beta1.FailoverDrillScheduleSpec) { s.Schedule = "0 0 30 2 *" },
		`spec.schedule: Invalid value: "60 * * * *"`:                 func(s *v1beta1.FailoverDrillScheduleSpec) { s.Schedule = "60 * * * *" },
		`spec.timeZone: Invalid value: "Mars/Base"`:                  func(s *v1beta1.FailoverDrillScheduleSpec) { s.TimeZone = new("Mars/Base") },
		`spec.timeZone: Invalid value: "Local"`:                      func(s *v1beta1.FailoverDrillScheduleSpec) { s.TimeZone = new("Local") },
		`spec.allowedWindows[1]: Invalid value: "MON-12:00-09:00"`: func(s *v1beta1.FailoverDrillScheduleSpec) {
			s.AllowedWindows = []string{"MON-09:00-12:00", "MON-12:00-09:00"}
		},
		`spec.blockedWindows: Too many: 101`:                          func(s *v1beta1.FailoverDrillScheduleSpec) { s.BlockedWindows = make([]string, 101) },
		`spec.blockedDates[0]: Invalid value: "24.12."`:               func(s *v1beta1.FailoverDrillScheduleSpec) { s.BlockedDates = []string{"24.12."} },
		`spec.startingDeadlineSeconds: Invalid value: 5: must be`:     func(s *v1beta1.FailoverDrillScheduleSpec) { s.StartingDeadlineSeconds = new(int64(5)) },
		`spec.successfulHistoryLimit: Invalid value: -1: must be`:     func(s *v1beta1.FailoverDrillScheduleSpec) { s.SuccessfulHistoryLimit = new(int32(-1)) },
		`spec.failedHistoryLimit: Invalid value: 101: must be`:        func(s *v1beta1.FailoverDrillScheduleSpec) { s.FailedHistoryLimit = new(int32(101)) },
		`spec.rotate: Unsupported value: "Racks"`:                     func(s *v1beta1.FailoverDrillScheduleSpec) { s.Rotate = "Racks" },
		`spec.template.spec.scope.regions: Required value: names`:     func(s *v1beta1.FailoverDrillScheduleSpec) { s.Rotate = v1beta1.RotateRegions },
		`spec.rotate: Invalid value: "Zones": template.spec.scope mu`: func(s *v1beta1.FailoverDrillScheduleSpec) { s.Template.Spec.Scope.Clusters = []string{"east-a"} },
		`spec.template.spec.scope.zones: Invalid value: "*": must be`: func(s *v1beta1.FailoverDrillScheduleSpec) { s.Template.Spec.Scope.Zones = []string{"*", "east/a"} },
		`spec.template.spec.scope.zones[0]: Invalid value: "*"`:       func(s *v1beta1.FailoverDrillScheduleSpec) { s.Rotate = "" },
		`spec.template.spec.reason: Required value`:                   func(s *v1beta1.FailoverDrillScheduleSpec) { s.Template.Spec.Reason = "" },
		`spec.template.spec.windows: Forbidden`:                       func(s *v1beta1.FailoverDrillScheduleSpec) { s.Template.Spec.Windows = &v1beta1.DrillWindows{} },
		`spec.template.metadata.labels: Invalid value: "a b"`:         func(s *v1beta1.FailoverDrillScheduleSpec) { s.Template.Labels = map[string]string{"a b": "c"} },
	} {
		s := &v1beta1.FailoverDrillSchedule{ObjectMeta: metav1.ObjectMeta{Name: "weekly"}, Spec: v1beta1.FailoverDrillScheduleSpec{
			Schedule: "0 10 * * 2", Rotate: v1beta1.RotateZones, Template: v1beta1.FailoverDrillTemplate{Spec: v1beta1.FailoverDrillSpec{
				Scope: v1beta1.FailoverDrillScope{Zones: []string{"*"}}, Method: v1beta1.DrillShift, Reason: "a test"}}}}
		change(&s.Spec)
		if got := ValidateFailoverDrillSchedule(s).ToAggregate(); (want == "") != (got == nil) || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("%v, want %q", got, want)
		}
	}
	s := &v1beta1.FailoverDrillSchedule{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("x", 53)}}
	if got := ValidateFailoverDrillSchedule(s).ToAggregate(); !strings.Contains(got.Error(), "metadata.name: Too long: may not be more than 52") {
		t.Errorf("a long name: %v", got)
	}
}

// The errors of windows come in the order of the fields each time, and a long value is cut between letters.
func TestFaultsOfWindowsAreInOrder(t *testing.T) {
	long := "a" + strings.Repeat("ü", 100)
	for range 20 {
		errs := validateWindows(&v1beta1.DrillWindows{AllowedWindows: []string{long}, BlockedWindows: []string{"y"}}, nil)
		if got := fields(errs); got != "allowedWindows[0] blockedWindows[0]" {
			t.Fatalf("faults at %s", got)
		}
		if shown := errs[0].BadValue.(string); shown != "a"+strings.Repeat("ü", 29)+"…" {
			t.Fatalf("%q", shown)
		}
	}
}
