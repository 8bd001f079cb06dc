package plan

import (
	"strings"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// asks plays a probe with a rate per second from the baseline on, of which each n-th question fails from a time on; 0:
// none does.
type asks struct {
	rate, nth int64
	from      time.Time
	begun     time.Time
	fault     time.Time
	firstFail time.Time
}

func (a *asks) at(m *made, window time.Duration) []Client {
	if m.drill.Status.Phase == "" || m.drill.Status.Phase == v1beta1.DrillPending {
		return nil
	}
	if a.begun.IsZero() {
		a.begun = m.now
	}
	since := a.begun
	if m.drill.Status.Report != nil {
		if a.fault.IsZero() {
			a.fault = m.now
		}
		since = a.fault
	}
	c := Client{DrillProbeResult: v1beta1.DrillProbeResult{Name: "web", From: "Federation", LastFailure: "status 503"}}
	n := int64(0)
	for t := a.begun; t.Before(m.now); t = t.Add(time.Second / time.Duration(a.rate)) {
		failed := false
		if a.nth > 0 && !t.Before(a.from) {
			n++
			failed = n%a.nth == 0
		}
		if failed && a.firstFail.IsZero() {
			a.firstFail = t
		}
		if !t.Before(since) {
			if c.Asked++; failed {
				c.Failed++
			}
		}
		if m.now.Sub(t) <= window {
			if c.Recent++; failed {
				c.RecentFailed++
			}
		}
	}
	return []Client{c}
}

func probed(t *testing.T, a *asks) *made {
	m := newMade(t, v1beta1.DrillShift)
	m.asks = a
	m.drill.Spec.BaselineSeconds, m.drill.Spec.HoldSeconds = new(int32(60)), new(int32(120))
	m.drill.Spec.Probes = []v1beta1.DrillProbe{{Name: "web", Host: "web", Type: v1beta1.ProbeHTTP, Guard: true}}
	m.drill.Spec.Objectives.MaxFailedPerMille = new(int32(1))
	return m
}

// At ten questions a second, a failure of each 50th ends a drill 15 to 32 s after the first failure; a failure of each
// 200th misses an objective of one in a thousand. Acceptance test 18 of drills. The design's guardrail is 10 of a
// thousand in 30 s, the default.
func TestClientsThatFailEndADrill(t *testing.T) {
	a := &asks{rate: 10}
	m := probed(t, a)
	m.phase(v1beta1.DrillHolding)
	a.nth, a.from = 50, m.now
	m.until("the way back", func() bool { return m.drill.Status.Phase != v1beta1.DrillHolding })
	if took := m.now.Sub(a.firstFail); took < 15*time.Second || took > 32*time.Second {
		t.Errorf("ended %s after the first failure", took)
	}
	m.ends(v1beta1.DrillFailed, v1beta1.DrillClientsFail)
	if s := m.drill.Status; !strings.Contains(s.Message, "probe web: 4 questions failed in 30 s") || s.Report.Probes[0].Failed < 4 {
		t.Errorf("%s: %+v", s.Message, s.Report.Probes)
	}

	a = &asks{rate: 10}
	m = probed(t, a)
	m.phase(v1beta1.DrillHolding)
	a.nth, a.from = 200, m.now
	m.ends(v1beta1.DrillFailed, v1beta1.DrillObjectiveMissed)
	if s := m.drill.Status; s.Message != "missed: maxFailedPerMille" || s.Report.Probes[0].Asked < 1200 {
		t.Errorf("%s: %+v", s.Message, s.Report.Probes)
	}

	m = probed(t, &asks{rate: 10})
	m.ends(v1beta1.DrillSucceeded, v1beta1.DrillCompleted)

	a = &asks{rate: 10}
	m = probed(t, a)
	m.drill.Spec.Probes[0].Guard, m.drill.Spec.Objectives.MaxFailedPerMille = false, nil
	m.phase(v1beta1.DrillHolding)
	a.nth, a.from = 2, m.now
	m.ends(v1beta1.DrillSucceeded, v1beta1.DrillCompleted) // without a guardrail
}

// A drill does not leave its baseline while a probe fails or is never answered.
func TestTheBaselineWantsProbesToPass(t *testing.T) {
	a := &asks{rate: 1, nth: 1}
	m := probed(t, a)
	m.ends(v1beta1.DrillBlocked, v1beta1.DrillClientsFail)
	if took := m.now.Sub(begin); took > 10*time.Second {
		t.Errorf("blocked after %s", took)
	}
	m = probed(t, &asks{rate: 1})
	m.drill.Spec.Probes = append(m.drill.Spec.Probes, v1beta1.DrillProbe{Name: "other", Host: "other", Type: v1beta1.ProbeDNS})
	m.ends(v1beta1.DrillBlocked, v1beta1.DrillClientsFail)
	if s := m.drill.Status; !strings.Contains(s.Message, "probe other was never answered: it was not asked") {
		t.Errorf("%s", s.Message)
	}
}
