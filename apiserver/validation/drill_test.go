package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

func drillOf(change func(*v1beta1.FailoverDrill)) *v1beta1.FailoverDrill {
	d := &v1beta1.FailoverDrill{ObjectMeta: metav1.ObjectMeta{Name: "d", ResourceVersion: "1"}, Spec: v1beta1.FailoverDrillSpec{
		Scope: v1beta1.FailoverDrillScope{Zones: []string{"east/a"}}, Method: v1beta1.DrillShift, Reason: "a test"}}
	change(d)
	return d
}

func TestFailoverDrill(t *testing.T) {
	for want, change := range map[string]func(*v1beta1.FailoverDrill){
		"": func(*v1beta1.FailoverDrill) {},
		"spec.scope: Required value: name at least one": func(d *v1beta1.FailoverDrill) { d.Spec.Scope.Zones = nil },
		`spec.scope.zones[0]: Invalid value: "a/b/c"`:   func(d *v1beta1.FailoverDrill) { d.Spec.Scope.Zones = []string{"a/b/c"} },
		"spec.scope: Too many":                          func(d *v1beta1.FailoverDrill) { d.Spec.Scope.Clusters = make([]string, 1001) },
		`spec.method: Unsupported value: "Kill": supported values: "Evacuate", "Isolate", "Shift"`: func(d *v1beta1.FailoverDrill) { d.Spec.Method = "Kill" },
		"spec.reason: Required value":                                         func(d *v1beta1.FailoverDrill) { d.Spec.Reason = " " },
		"spec.reason: Too long":                                               func(d *v1beta1.FailoverDrill) { d.Spec.Reason = strings.Repeat("x", 2000) },
		"spec.holdSeconds: Invalid value: 5: must be from 10 to 14400":        func(d *v1beta1.FailoverDrill) { d.Spec.HoldSeconds = new(int32(5)) },
		"spec.baselineSeconds: Invalid value: 4000: must be from 5 to 3600":   func(d *v1beta1.FailoverDrill) { d.Spec.BaselineSeconds = new(int32(4000)) },
		"spec.guardrails.minReadyPercent: Invalid value: 101":                 func(d *v1beta1.FailoverDrill) { d.Spec.Guardrails.MinReadyPercent = new(int32(101)) },
		"spec.guardrails.maxUnplaced: Invalid value: -1":                      func(d *v1beta1.FailoverDrill) { d.Spec.Guardrails.MaxUnplaced = new(int64(-1)) },
		"spec.isolate: Forbidden: must be left out: it is for method Isolate": func(d *v1beta1.FailoverDrill) { d.Spec.Isolate = &v1beta1.DrillIsolate{} },
		`spec.isolate.as: Unsupported value: "Slow": supported values: "Refused", "Silent"`: func(d *v1beta1.FailoverDrill) {
			d.Spec.Method, d.Spec.Isolate = v1beta1.DrillIsolation, &v1beta1.DrillIsolate{As: "Slow"}
		},
		`spec.allow[0]: Unsupported value: "Fits": supported values: "DoubleRunning", "NotHeld"`: func(d *v1beta1.FailoverDrill) { d.Spec.Allow = []string{"Fits"} },
		`spec.approval: Unsupported value: "Maybe"`:                                              func(d *v1beta1.FailoverDrill) { d.Spec.Approval = "Maybe" },
		"spec.objectives.readyElsewhereSeconds: Invalid value: 9: must be left":                  func(d *v1beta1.FailoverDrill) { d.Spec.Objectives.ReadyElsewhereSeconds = new(int32(9)) },
	} {
		if got := ValidateFailoverDrill(drillOf(change)).ToAggregate(); (want == "") != (got == nil) || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("%v, want %q", got, want)
		}
	}
}

func TestADrillIsNotChanged(t *testing.T) {
	old := drillOf(func(*v1beta1.FailoverDrill) {})
	longer := drillOf(func(d *v1beta1.FailoverDrill) { d.Spec.HoldSeconds = new(int32(900)) })
	if errs := ValidateFailoverDrillUpdate(longer, old); len(errs) != 1 || !strings.Contains(errs[0].Error(), "abort or delete it") {
		t.Errorf("%v", errs)
	}
	if errs := ValidateFailoverDrillUpdate(old, old); len(errs) > 0 {
		t.Errorf("%v", errs)
	}
}
