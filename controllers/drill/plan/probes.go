package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	// noteEvery is the period at which probe results are recorded during a drill.
	noteEvery = 10 * time.Second
	// minFailures is how many questions of a probe must fail before it ends a drill.
	minFailures = 3
)

// Client is the result of a probe since the fault, or since its start if there is no fault yet.
type Client struct {
	v1beta1.DrillProbeResult
	// Recent are the questions asked within the drill's window, RecentFailed those of them that failed.
	Recent, RecentFailed int64
}

// probes are what a drill asks as clients do, and the answers.
type probes struct {
	spec    *v1beta1.FailoverDrillSpec
	clients []Client
}

func (r *run) probes() probes { return probes{&r.Spec, r.Clients} }

// fail returns which probe fails too often, of all or of those with guard. Failures are counted as shares of a
// whole window's questions, so that the first failures are not most of them.
func (p probes) fail(all bool) (reason, message string) {
	g := &p.spec.Guardrails
	for i := range p.spec.Probes {
		one := &p.spec.Probes[i]
		c := p.resultOf(one.Name)
		if c == nil || !all && !one.Guard {
			continue
		}
		asked := max(c.Recent, int64(g.Window()/one.Period()), 1)
		if perMille := c.RecentFailed * 1000 / asked; c.RecentFailed >= minFailures && c.RecentFailed*1000 > asked*int64(g.FailedPerMille()) {
			return v1beta1.DrillClientsFail, fmt.Sprintf("probe %s: %d questions failed in %d s, %d of a thousand, at most %d may: %s", one.Name, c.RecentFailed, g.Window(), perMille, g.FailedPerMille(), c.LastFailure)
		}
	}
	return "", ""
}

func (p probes) resultOf(probe string) *Client {
	if i := slices.IndexFunc(p.clients, func(c Client) bool { return c.Name == probe }); i >= 0 {
		return &p.clients[i]
	}
	return nil
}

// pass returns which probe keeps the drill in its baseline: one that fails or, at its end, has never been
// answered.
func (p probes) pass(end bool) (reason, message string) {
	if reason, message = p.fail(true); reason != "" || !end {
		return reason, message
	}
	for _, one := range p.spec.Probes {
		if c := p.resultOf(one.Name); c == nil || c.Asked == c.Failed {
			why := "it was not asked"
			if c != nil && c.Asked > 0 {
				why = c.LastFailure
			}
			return v1beta1.DrillClientsFail, fmt.Sprintf("probe %s was never answered: %s", one.Name, why)
		}
	}
	return "", ""
}

// measureClients records the results of the probes, every noteEvery or now.
func (m *meter) measureClients(now bool) {
	r := m.report
	if len(m.Clients) == 0 || !now && r.ProbesAt != nil && m.Now.Sub(r.ProbesAt.Time) < noteEvery {
		return
	}
	r.Probes, r.ProbesAt = nil, m.nowMicro()
	for _, c := range m.Clients {
		r.Probes = append(r.Probes, c.DrillProbeResult)
	}
	slices.SortFunc(r.Probes, func(a, b v1beta1.DrillProbeResult) int { return cmp.Compare(a.Name, b.Name) })
}

// worstPerMille returns how many of a thousand questions of the worst probe failed, rounded up; nil if none was asked.
func worstPerMille(probes []v1beta1.DrillProbeResult) (worst *int32) {
	for _, p := range probes {
		if p.Asked == 0 {
			return nil
		}
		if n := int32((p.Failed*1000 + p.Asked - 1) / p.Asked); worst == nil || n > *worst {
			worst = &n
		}
	}
	return worst
}
