package plan

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// evidence is what the last look at a cluster says about what runs there.
type evidence int

const (
	well evidence = iota
	// lost: nothing is known to run there any more.
	lost
	// unclear: we cannot get in, which says nothing about what runs there.
	unclear
)

// member is one cluster while it is judged.
type member struct {
	*v1beta1.Cluster
	settings Settings
	now      time.Time

	evidence evidence
	// unclearFor is why it is unclear, one word.
	unclearFor string
	votes
	// changed is when the cluster last became ready or not, as far as we saw it.
	changed time.Time
	// turned is the same by what is written and by what this process judges, whichever is later, though nobody may have seen it.
	turned time.Time
	// next is nil as long as there is nothing to fail over.
	next *v1beta1.ClusterFailover
	// hold is why it is, or was FailoverSuspended, one word.
	hold string
	// redated: some of our own dates were in the future.
	redated bool
	// due tells that its grace period is over.
	due bool
	// until is when time alone may change the verdict; zero: never.
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
	m.ask()
}

// notAhead takes our own dates that are in the future for now: they were written by a process whose clock was ahead.
func (m *member) notAhead() {
	m.Cluster = m.DeepCopy()
	now := seconds(m.now)
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

// step takes the cluster to its next phase, as far as it alone decides.
func (m *member) step() {
	m.next = m.Status.Failover.DeepCopy()
	if m.next == nil {
		m.first()
		return
	}
	m.hold = m.heldFor()
	switch m.evidence {
	case well:
		m.stepWell()
	case lost:
		m.stepLost()
	case unclear:
		m.stepUnclear()
	}
}

// heldFor is why the cluster is held; reasonReleased where it was held and has its grace period anew; else "".
func (m *member) heldFor() string {
	held := m.Condition(v1beta1.ClusterFailoverSuspended)
	if held == nil || m.Phase() != v1beta1.PhaseFailoverSuspended && held.Reason != reasonReleased {
		return ""
	}
	return held.Reason
}

// first decides for a cluster about which nothing is written. One whose version is known was ready before.
func (m *member) first() {
	m.next = &v1beta1.ClusterFailover{}
	switch {
	case m.evidence == well:
		m.enter(v1beta1.PhaseServing)
	case m.Status.KubernetesVersion == "":
		m.next = nil
	case m.evidence == lost:
		m.stepLost()
	default:
		m.stepUnclear()
	}
}

func (m *member) enter(p v1beta1.FailoverPhase) {
	m.next.Phase, m.next.Since, m.hold = p, seconds(m.now), ""
}

func (m *member) stepWell() {
	if drill := m.Drill(); drill != nil && drill.Reason == v1beta1.ReasonIsolationAborted {
		if m.next.LostAt, m.next.Percent = nil, 0; m.next.Phase != v1beta1.PhaseServing { // its pods never stopped
			m.enter(v1beta1.PhaseServing)
		}
		return
	}
	switch m.next.Phase {
	case v1beta1.PhaseGracePeriod, v1beta1.PhaseFailoverSuspended:
		if m.hold == ReasonFailStatic {
			m.next.LostAt = nil // it was us who were away
		}
		if m.next.Percent > 0 {
			m.enter(v1beta1.PhaseFailingBack)
		} else {
			m.enter(v1beta1.PhaseServing)
		}
		if m.next.LostAt != nil { // what is written may have been written late: it was away until it was ready
			m.next.Since = seconds(later(m.turned, m.next.LostAt.Time))
		}
	case v1beta1.PhaseFailedOver:
		m.next.Percent = 0
		m.enter(v1beta1.PhaseFailingBack)
	}
	if m.next.Phase == v1beta1.PhaseFailingBack {
		m.failBack()
	}
	m.forgive()
}

// failBack gives the cluster its next share once it has been ready for long enough.
func (m *member) failBack() {
	stable := later(later(m.next.Since.Time, m.changed), m.settings.Seen).Add(m.settings.Stable)
	if m.next.Percent == 0 {
		stable = later(stable, m.heldDown())
	}
	if !m.settings.Probes[m.Name].LostSince.IsZero() {
		stable = later(stable, m.now.Add(probeAgain)) // it is lost again, and that is not written yet
	}
	if m.now.Before(stable) {
		m.lookAt(stable)
		return
	}
	m.next.LostAt = nil
	if m.next.Percent = m.settings.step(m.next.Percent); m.next.Percent < 100 {
		m.enter(v1beta1.PhaseFailingBack)
		m.lookAt(m.now.Add(m.settings.Stable))
		return
	}
	m.next.Percent = 0
	m.enter(v1beta1.PhaseServing)
}

// heldDown is until when a cluster that has nothing gets nothing.
func (m *member) heldDown() time.Time {
	if moved := m.Condition(v1beta1.ClusterFailedOver); moved != nil && moved.Status == corev1.ConditionTrue {
		return moved.LastTransitionTime.Add(m.settings.HoldDown)
	}
	return time.Time{}
}

// forgive forgets a loss when the cluster has been back for as long as it was away. Of one that has nothing yet, the
// loss is not forgotten: it is still out.
func (m *member) forgive() {
	if m.next.LostAt == nil || m.next.Phase == v1beta1.PhaseFailingBack && m.next.Percent == 0 {
		return
	}
	paid := m.next.Since.Add(m.debt())
	if m.now.Before(paid) {
		m.lookAt(paid)
		return
	}
	m.next.LostAt = nil
}

// debt is how long the cluster was away when it came back, of its grace period.
func (m *member) debt() time.Duration {
	return max(min(m.next.Since.Sub(m.next.LostAt.Time), m.settings.GracePeriod), 0)
}

func (m *member) stepLost() {
	switch phase := m.next.Phase; {
	case phase == v1beta1.PhaseFailedOver:
		return
	case phase == v1beta1.PhaseFailingBack && m.next.Percent == 0:
		m.enter(v1beta1.PhaseFailedOver)
		return
	case m.next.LostAt == nil || phase != v1beta1.PhaseGracePeriod && (phase != v1beta1.PhaseFailoverSuspended || Unclear(m.hold)), m.lostAgain():
		at := seconds(m.lostAt())
		m.next.LostAt = &at
		m.enter(v1beta1.PhaseGracePeriod)
	}
	from := later(m.next.LostAt.Time, m.settings.Seen)
	if m.hold == reasonReleased {
		from = later(from, m.next.Since.Time)
	}
	deadline := from.Add(m.settings.GracePeriod)
	if m.due = !m.now.Before(deadline); !m.due {
		m.lookAt(deadline)
	} else if !m.confirmed() {
		m.due = false
		m.lookAt(m.now.Add(probeAgain))
	}
}

// lostAgain reports whether a cluster that waits was ready in between, which could not be written: it is lost since later than it waits.
func (m *member) lostAgain() bool {
	return m.next.Phase == v1beta1.PhaseGracePeriod && seconds(m.turned).After(m.next.Since.Time)
}

// probeAgain is when to look again for a probe that confirms that a cluster is lost.
const probeAgain = time.Second

// confirmed reports whether this process, too, judges the cluster lost, and its latest probe agrees. What is written may be old: a cluster
// that is well again stays written as lost for as long as that cannot be written.
func (m *member) confirmed() bool {
	if m.settings.Probes == nil {
		return true
	}
	probe, known := m.settings.Probes[m.Name]
	return known && !probe.Healthy && !probe.LostSince.IsZero() && m.now.Sub(probe.At) <= m.settings.ProbeAge && !m.unanswered(probe.LostSince)
}

// lostAt is when the cluster was lost, put back by what is left of its debt: a blink does not begin a
// new grace period.
func (m *member) lostAt() time.Time {
	at := later(m.changed, m.next.Since.Time)
	if m.next.Phase == v1beta1.PhaseFailoverSuspended {
		at = m.now // it was not ready before, but it answered
	}
	if m.next.LostAt == nil {
		return at
	}
	back := max(at.Sub(m.next.Since.Time), 0)
	return at.Add(-max(m.debt()-back, 0))
}

func (m *member) stepUnclear() {
	switch {
	case m.next.Phase == v1beta1.PhaseFailedOver:
		return
	case m.next.Phase == v1beta1.PhaseFailingBack && m.next.Percent == 0:
		m.enter(v1beta1.PhaseFailedOver)
		return
	case m.next.Phase != v1beta1.PhaseFailoverSuspended || !Unclear(m.hold):
		m.enter(v1beta1.PhaseFailoverSuspended)
	}
	m.hold = m.unclearFor
}

func (m *member) lookAt(t time.Time) {
	if m.until.IsZero() || t.Before(m.until) {
		m.until = t
	}
}

// zone names the zone's worth of clusters that the cluster belongs to.
func (m *member) zone() string {
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

// seconds is the time as the API keeps it.
func seconds(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
