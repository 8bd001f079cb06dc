package plan

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// evidence is what the last health check says about the cluster's workloads.
type evidence int

const (
	well evidence = iota
	// lost: nothing is known to run there any more.
	lost
	// unclear: the API does not admit us, which says nothing about the workloads.
	unclear
)

// member is one cluster while it is judged.
type member struct {
	*v1beta1.Cluster
	settings Settings
	now      time.Time

	evidence evidence
	// unclearFor is the reason, one word.
	unclearFor string
	votes
	// changed is when the cluster last became ready or not, as far as this process saw it.
	changed time.Time
	// turned is the later of what is written and what this process judges, even if nobody saw it.
	turned time.Time
	// next is nil if there is nothing to fail over.
	next *v1beta1.ClusterFailover
	// hold is why it is or was FailoverSuspended, one word.
	hold string
	// redated means that some of our own dates were in the future.
	redated bool
	// due means that its grace period is over.
	due bool
	// until is when time alone may change the verdict; zero means never.
	until time.Time
}

// observe reads what the registry wrote.
func (m *member) observe() {
	m.notAhead()
	m.changed = m.now
	m.evidence = lost
	ready := m.Condition(v1beta1.ClusterReady)
	if ready == nil {
		return
	}
	m.turned = earlier(later(ready.LastTransitionTime.Time, m.settings.Probes[m.Name].LostSince), m.now)
	m.changed = earlier(later(m.turned, m.settings.Seen), m.now)
	switch {
	case ready.Status == corev1.ConditionTrue:
		m.evidence = well
	case Unclear(ready.Reason):
		m.evidence, m.unclearFor = unclear, ready.Reason
	}
	m.countVotes()
}

// notAhead clamps our own dates to now: a process whose clock was ahead may have written them.
func (m *member) notAhead() {
	m.Cluster = m.DeepCopy()
	now := storedTime(m.now)
	clamp := func(t *metav1.Time) {
		if t != nil && t.After(m.now) {
			*t, m.redated = now, true
		}
	}
	if f := m.Status.Failover; f != nil {
		clamp(&f.Since)
		clamp(f.LostAt)
	}
	for _, ours := range []v1beta1.ClusterConditionType{v1beta1.ClusterFailedOver, v1beta1.ClusterFailoverSuspended} {
		if c := m.Condition(ours); c != nil {
			clamp(&c.LastTransitionTime)
		}
	}
}

// step moves the cluster to its next phase as far as that depends on it alone.
func (m *member) step() {
	m.next = m.Status.Failover.DeepCopy()
	if m.next == nil {
		m.enterFirstPhase()
		return
	}
	m.hold = m.suspendedBecause()
	switch m.evidence {
	case well:
		m.stepWell()
	case lost:
		m.stepLost()
	case unclear:
		m.stepUnclear()
	}
}

// suspendedBecause returns why the cluster is suspended, reasonReleased if it was and has a new grace period, or "".
func (m *member) suspendedBecause() string {
	held := m.Condition(v1beta1.ClusterFailoverSuspended)
	if held == nil || m.Phase() != v1beta1.PhaseFailoverSuspended && held.Reason != reasonReleased {
		return ""
	}
	return held.Reason
}

// enterFirstPhase decides about a cluster without a written phase. If its version is known, it was ready before.
func (m *member) enterFirstPhase() {
	m.next = &v1beta1.ClusterFailover{}
	switch {
	case m.evidence == well:
		m.enterPhase(v1beta1.PhaseServing)
	case m.Status.KubernetesVersion == "":
		m.next = nil
	case m.evidence == lost:
		m.stepLost()
	default:
		m.stepUnclear()
	}
}

func (m *member) enterPhase(p v1beta1.FailoverPhase) {
	m.next.Phase, m.next.Since, m.hold = p, storedTime(m.now), ""
}

func (m *member) stepWell() {
	if drill := m.Drill(); drill != nil && drill.Reason == v1beta1.ReasonIsolationAborted {
		if m.next.LostAt, m.next.Percent = nil, 0; m.next.Phase != v1beta1.PhaseServing { // its pods never stopped
			m.enterPhase(v1beta1.PhaseServing)
		}
		return
	}
	switch m.next.Phase {
	case v1beta1.PhaseGracePeriod, v1beta1.PhaseFailoverSuspended:
		if m.hold == ReasonFailStatic {
			m.next.LostAt = nil // the federation itself was away
		}
		if m.next.Percent > 0 {
			m.enterPhase(v1beta1.PhaseFailingBack)
		} else {
			m.enterPhase(v1beta1.PhaseServing)
		}
		if m.next.LostAt != nil { // the write may have been late: it was away until it was ready
			m.next.Since = storedTime(later(m.turned, m.next.LostAt.Time))
		}
	case v1beta1.PhaseFailedOver:
		m.next.Percent = 0
		m.enterPhase(v1beta1.PhaseFailingBack)
	}
	if m.next.Phase == v1beta1.PhaseFailingBack {
		m.failBack()
	}
	m.clearLoss()
}

// failBack gives the cluster its next share once it has been ready for the stable period.
func (m *member) failBack() {
	stable := later(later(m.next.Since.Time, m.changed), m.settings.Seen).Add(m.settings.Stable)
	if m.next.Percent == 0 {
		stable = later(stable, m.heldDown())
	}
	if !m.settings.Probes[m.Name].LostSince.IsZero() {
		stable = later(stable, m.now.Add(probeAgain)) // it is lost again, which is not written yet
	}
	if m.now.Before(stable) {
		m.lookAt(stable)
		return
	}
	m.next.LostAt = nil
	if m.next.Percent = m.settings.nextStep(m.next.Percent); m.next.Percent < 100 {
		m.enterPhase(v1beta1.PhaseFailingBack)
		m.lookAt(m.now.Add(m.settings.Stable))
		return
	}
	m.next.Percent = 0
	m.enterPhase(v1beta1.PhaseServing)
}

// heldDown returns until when a cluster without a share gets none.
func (m *member) heldDown() time.Time {
	if moved := m.Condition(v1beta1.ClusterFailedOver); moved != nil && moved.Status == corev1.ConditionTrue {
		return moved.LastTransitionTime.Add(m.settings.HoldDown)
	}
	return time.Time{}
}

// clearLoss clears a loss when the cluster has been back for as long as it was away. A cluster without a share keeps it:
// it is still failed over.
func (m *member) clearLoss() {
	if m.next.LostAt == nil || m.next.Phase == v1beta1.PhaseFailingBack && m.next.Percent == 0 {
		return
	}
	paid := m.next.Since.Add(m.usedGrace())
	if m.now.Before(paid) {
		m.lookAt(paid)
		return
	}
	m.next.LostAt = nil
}

// usedGrace returns how much of its grace period the cluster had used when it came back.
func (m *member) usedGrace() time.Duration {
	return max(min(m.next.Since.Sub(m.next.LostAt.Time), m.settings.GracePeriod), 0)
}

func (m *member) stepLost() {
	switch phase := m.next.Phase; {
	case phase == v1beta1.PhaseFailedOver:
		return
	case phase == v1beta1.PhaseFailingBack && m.next.Percent == 0:
		m.enterPhase(v1beta1.PhaseFailedOver)
		return
	case m.next.LostAt == nil || phase != v1beta1.PhaseGracePeriod && (phase != v1beta1.PhaseFailoverSuspended || Unclear(m.hold)), m.lostAgain():
		at := storedTime(m.lostAt())
		m.next.LostAt = &at
		m.enterPhase(v1beta1.PhaseGracePeriod)
	}
	from := later(m.next.LostAt.Time, m.settings.Seen)
	if m.hold == reasonReleased {
		from = later(from, m.next.Since.Time)
	}
	deadline := from.Add(m.settings.GracePeriod)
	if m.due = !m.now.Before(deadline); !m.due {
		m.lookAt(deadline)
	} else if !m.isConfirmedLost() {
		m.due = false
		m.lookAt(m.now.Add(probeAgain))
	}
}

// lostAgain reports whether a cluster in its grace period was ready in between, which could not be written: its loss is
// more recent.
func (m *member) lostAgain() bool {
	return m.next.Phase == v1beta1.PhaseGracePeriod && storedTime(m.turned).After(m.next.Since.Time)
}

// probeAgain is the delay before looking for a probe that confirms a loss.
const probeAgain = time.Second

// isConfirmedLost reports whether this process also judges the cluster lost and its latest probe agrees. The written state
// may be stale: a cluster that recovered stays written as lost until it can be written.
func (m *member) isConfirmedLost() bool {
	if m.settings.Probes == nil {
		return true
	}
	probe, known := m.settings.Probes[m.Name]
	return known && !probe.Healthy && !probe.LostSince.IsZero() && m.now.Sub(probe.At) <= m.settings.ProbeAge && !m.votesPending(probe.LostSince)
}

// lostAt returns when the cluster was lost, moved back by its remaining debt: a blink does not begin a new grace
// period.
func (m *member) lostAt() time.Time {
	at := later(m.changed, m.next.Since.Time)
	if m.next.Phase == v1beta1.PhaseFailoverSuspended {
		at = m.now // it was not ready before, but it answered
	}
	if m.next.LostAt == nil {
		return at
	}
	back := max(at.Sub(m.next.Since.Time), 0)
	return at.Add(-max(m.usedGrace()-back, 0))
}

func (m *member) stepUnclear() {
	switch {
	case m.next.Phase == v1beta1.PhaseFailedOver:
		return
	case m.next.Phase == v1beta1.PhaseFailingBack && m.next.Percent == 0:
		m.enterPhase(v1beta1.PhaseFailedOver)
		return
	case m.next.Phase != v1beta1.PhaseFailoverSuspended || !Unclear(m.hold):
		m.enterPhase(v1beta1.PhaseFailoverSuspended)
	}
	m.hold = m.unclearFor
}

func (m *member) lookAt(t time.Time) {
	if m.until.IsZero() || t.Before(m.until) {
		m.until = t
	}
}

// capZone returns the name under which the cluster counts towards the cap.
func (m *member) capZone() string {
	if len(m.Status.Zones) == 0 {
		return "cluster " + m.Name
	}
	return fmt.Sprintf("zone %s/%s", m.Status.Region, strings.Join(m.Status.Zones, "+"))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// storedTime truncates a time as the API stores it.
func storedTime(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
