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

// clientsFail returns which probe fails too often, of all or of those with guard. Failures are counted as shares of a
// whole window's questions, so that the first failures are not most of them.
func (d *drill) clientsFail(all bool) (reason, message string) {
	g := &d.Spec.Guardrails
	for i := range d.Spec.Probes {
		p := &d.Spec.Probes[i]
		c := d.clientOf(p.Name)
		if c == nil || !all && !p.Guard {
			continue
		}
		asked := max(c.Recent, int64(g.Window()/p.Period()), 1)
		if perMille := c.RecentFailed * 1000 / asked; c.RecentFailed >= minFailures && c.RecentFailed*1000 > asked*int64(g.FailedPerMille()) {
			return v1beta1.DrillClientsFail, fmt.Sprintf("probe %s: %d questions failed in %d s, %d of a thousand, at most %d may: %s", p.Name, c.RecentFailed, g.Window(), perMille, g.FailedPerMille(), c.LastFailure)
		}
	}
	return "", ""
}

func (d *drill) clientOf(probe string) *Client {
	if i := slices.IndexFunc(d.Clients, func(c Client) bool { return c.Name == probe }); i >= 0 {
		return &d.Clients[i]
	}
	return nil
}

// clientsPass returns which probe keeps the drill in its baseline: one that fails or, at its end, has never been
// answered.
func (d *drill) clientsPass(end bool) (reason, message string) {
	if reason, message = d.clientsFail(true); reason != "" || !end {
		return reason, message
	}
	for _, p := range d.Spec.Probes {
		if c := d.clientOf(p.Name); c == nil || c.Asked == c.Failed {
			why := "it was not asked"
			if c != nil && c.Asked > 0 {
				why = c.LastFailure
			}
			return v1beta1.DrillClientsFail, fmt.Sprintf("probe %s was never answered: %s", p.Name, why)
		}
	}
	return "", ""
}

// measureClients records the results of the probes, every noteEvery or now.
func (d *drill) measureClients(now bool) {
	r := d.step.Status.Report
	if len(d.Clients) == 0 || !now && r.ProbesAt != nil && d.Now.Sub(r.ProbesAt.Time) < noteEvery {
		return
	}
	r.Probes, r.ProbesAt = nil, d.nowMicro()
	for _, c := range d.Clients {
		r.Probes = append(r.Probes, c.DrillProbeResult)
	}
	slices.SortFunc(r.Probes, func(a, b v1beta1.DrillProbeResult) int { return cmp.Compare(a.Name, b.Name) })
}

// worstPerMille returns how many of a thousand questions of the worst probe failed, rounded up; nil if none was asked.
func (d *drill) worstPerMille() (worst *int32) {
	for _, p := range d.step.Status.Report.Probes {
		if p.Asked == 0 {
			return nil
		}
		if n := int32((p.Failed*1000 + p.Asked - 1) / p.Asked); worst == nil || n > *worst {
			worst = &n
		}
	}
	return worst
}
