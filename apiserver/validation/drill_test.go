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

// probe returns a drill with one probe that is changed.
func probe(change func(*v1beta1.DrillProbe)) func(*v1beta1.FailoverDrill) {
	return func(d *v1beta1.FailoverDrill) {
		p := v1beta1.DrillProbe{Name: "web", Service: &v1beta1.DrillProbeService{Namespace: "shop", Name: "web"}, Type: v1beta1.ProbeHTTP}
		change(&p)
		d.Spec.Probes = []v1beta1.DrillProbe{p}
	}
}

func TestFailoverDrill(t *testing.T) {
	for want, change := range map[string]func(*v1beta1.FailoverDrill){
		"": func(*v1beta1.FailoverDrill) {},
		"spec.scope: Required value: name at least one": func(d *v1beta1.FailoverDrill) { d.Spec.Scope.Zones = nil },
		`spec.scope.zones[0]: Invalid value: "a/b/c"`:   func(d *v1beta1.FailoverDrill) { d.Spec.Scope.Zones = []string{"a/b/c"} },
		"spec.scope: Too many":                          func(d *v1beta1.FailoverDrill) { d.Spec.Scope.Clusters = make([]string, 1001) },
		`spec.method: Unsupported value: "Kill": supported values: "Blackhole", "Evacuate", "Isolate", "Shift"`: func(d *v1beta1.FailoverDrill) { d.Spec.Method = "Kill" },
		"spec.reason: Required value":                                                                   func(d *v1beta1.FailoverDrill) { d.Spec.Reason = " " },
		"spec.reason: Too long":                                                                         func(d *v1beta1.FailoverDrill) { d.Spec.Reason = strings.Repeat("x", 2000) },
		"spec.holdSeconds: Invalid value: 5: must be from 10 to 14400":                                  func(d *v1beta1.FailoverDrill) { d.Spec.HoldSeconds = new(int32(5)) },
		"spec.baselineSeconds: Invalid value: 4000: must be from 5 to 3600":                             func(d *v1beta1.FailoverDrill) { d.Spec.BaselineSeconds = new(int32(4000)) },
		"spec.guardrails.minReadyPercent: Invalid value: 101":                                           func(d *v1beta1.FailoverDrill) { d.Spec.Guardrails.MinReadyPercent = new(int32(101)) },
		"spec.guardrails.maxUnplaced: Invalid value: -1":                                                func(d *v1beta1.FailoverDrill) { d.Spec.Guardrails.MaxUnplaced = new(int64(-1)) },
		"spec.isolate: Forbidden: must be left out: it is for methods Isolate and Blackhole, not Shift": func(d *v1beta1.FailoverDrill) { d.Spec.Isolate = &v1beta1.DrillIsolate{} },
		`spec.isolate.as: Unsupported value: "Slow": supported values: "Refused", "Silent"`: func(d *v1beta1.FailoverDrill) {
			d.Spec.Method, d.Spec.Isolate = v1beta1.DrillIsolation, &v1beta1.DrillIsolate{As: "Slow"}
		},
		`spec.allow[0]: Unsupported value: "Fits": supported values: "DoubleRunning", "NotHeld", "Quiet", "Rested"`: func(d *v1beta1.FailoverDrill) { d.Spec.Allow = []string{"Fits"} },
		"spec.probes: Too many: 51: must have at most 50":                                                           func(d *v1beta1.FailoverDrill) { d.Spec.Probes = make([]v1beta1.DrillProbe, 51) }, // test 29 of the design
		"spec.probes[0]: Required value: must have either service or host":                                          probe(func(p *v1beta1.DrillProbe) { p.Host = "shop.example.com" }),
		`spec.probes[0].name: Invalid value: "A b"`:                                                                 probe(func(p *v1beta1.DrillProbe) { p.Name = "A b" }),
		`spec.probes[0].service.name: Invalid value: "a.b"`:                                                         probe(func(p *v1beta1.DrillProbe) { p.Service.Name = "a.b" }),
		`spec.probes[0].host: Invalid value: "169.254.169.254/x"`:                                                   probe(func(p *v1beta1.DrillProbe) { p.Service, p.Host = nil, "169.254.169.254/x" }),
		`spec.probes[0].type: Unsupported value: "Exec"`:                                                            probe(func(p *v1beta1.DrillProbe) { p.Type = "Exec" }),
		`spec.probes[0].port: Invalid value: 0: must be from 1 to 65535`:                                            probe(func(p *v1beta1.DrillProbe) { p.Type = v1beta1.ProbeTCP }),
		`spec.probes[0].port: Invalid value: 53: must be from 0 to 0`:                                               probe(func(p *v1beta1.DrillProbe) { p.Type, p.Port = v1beta1.ProbeDNS, 53 }),
		`spec.probes[0].path: Invalid value: "http://x/"`:                                                           probe(func(p *v1beta1.DrillProbe) { p.Path = "http://x/" }),
		`spec.probes[0].path: Invalid value: "/": must be left out`:                                                 probe(func(p *v1beta1.DrillProbe) { p.Type, p.Port, p.Path = v1beta1.ProbeTCP, 80, "/" }),
		`spec.probes[0].mode: Unsupported value: "Lazy"`:                                                            probe(func(p *v1beta1.DrillProbe) { p.Mode = "Lazy" }),
		`spec.probes[0].periodSeconds: Invalid value: 61`:                                                           probe(func(p *v1beta1.DrillProbe) { p.PeriodSeconds = 61 }),
		`spec.probes[0].timeoutSeconds: Invalid value: 6`:                                                           probe(func(p *v1beta1.DrillProbe) { p.TimeoutSeconds = 6 }),
		"spec.objectives.maxFailedPerMille: Invalid value: 1: must be left":                                         func(d *v1beta1.FailoverDrill) { d.Spec.Objectives.MaxFailedPerMille = new(int32(1)) },
		"spec.guardrails.windowSeconds: Invalid value: 4: must be from 5 to":                                        func(d *v1beta1.FailoverDrill) { d.Spec.Guardrails.WindowSeconds = new(int32(4)) },
		`spec.approval: Unsupported value: "Maybe"`:                                                                 func(d *v1beta1.FailoverDrill) { d.Spec.Approval = "Maybe" },
		"spec.objectives.readyElsewhereSeconds: Invalid value: 9: must be left":                                     func(d *v1beta1.FailoverDrill) { d.Spec.Objectives.ReadyElsewhereSeconds = new(int32(9)) },
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
