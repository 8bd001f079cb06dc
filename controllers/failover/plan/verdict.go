package plan

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Reasons of the condition FailoverSuspended.
const (
	// ReasonFailStatic: so many clusters vanished together that the federation itself is more likely cut off.
	ReasonFailStatic = "FailStatic"
	// ReasonCapReached: the maximum number of zones is failed over.
	ReasonCapReached = "CapReached"
	// ReasonDisabled: the cap is 0.
	ReasonDisabled = "FailoverDisabled"
	// reasonReleased: it was suspended and has a new grace period.
	reasonReleased = "Released"
	// These are the registry's reasons for a cluster that is alive but does not admit us.
	ReasonCredentialRejected = "ClusterCredentialRejected"
	ReasonMisconfigured      = "ClusterMisconfigured"
	ReasonNotTrusted         = "ClusterNotTrusted"
	ReasonExceedsLimits      = "ClusterExceedsLimits"
	ReasonDuplicateCluster   = "DuplicateCluster"
	// ReasonPartiallyReachable: at least half of the processes of the federation reach the cluster, and this one does not.
	ReasonPartiallyReachable = string(v1beta1.ClusterPartiallyReachable)
)

// Unclear reports whether a reason of Ready=False says nothing about the cluster's workloads.
func Unclear(reason string) bool {
	switch reason {
	case ReasonCredentialRejected, ReasonMisconfigured, ReasonNotTrusted, ReasonExceedsLimits, ReasonDuplicateCluster, ReasonPartiallyReachable:
		return true
	}
	return false
}

const override = "; to move it all the same: kubectl federation drain, or unjoin"

// message explains the cluster's phase in a sentence. It stays the same as long as the cause does.
func (m *member) message() string {
	switch s := m.settings; m.next.Phase {
	case v1beta1.PhaseGracePeriod:
		return fmt.Sprintf("not ready: it keeps what it has, and gets no more, for a grace period of %s", s.GracePeriod)
	case v1beta1.PhaseFailedOver:
		return fmt.Sprintf("not ready for longer than the grace period of %s: what was placed here is placed elsewhere", s.GracePeriod)
	case v1beta1.PhaseFailingBack:
		return fmt.Sprintf("ready again: gets %d %% of what it would have, and %d %% when it has been ready for %s%s", m.next.Percent, s.nextStep(m.next.Percent), s.Stable, m.notBefore())
	case v1beta1.PhaseFailoverSuspended:
		return m.whyHeld()
	}
	if m.next.LostAt != nil {
		return "ready again: if it is lost again soon, the time that it was away counts"
	}
	return ""
}

// notBefore describes the hold-down of a cluster without a share.
func (m *member) notBefore() string {
	if m.next.Percent > 0 || m.settings.HoldDown == 0 {
		return ""
	}
	return fmt.Sprintf(", %s after it was failed over at the soonest", m.settings.HoldDown)
}

func (m *member) whyHeld() string {
	switch s := m.settings; m.hold {
	case ReasonFailStatic:
		return fmt.Sprintf("most clusters vanished within %s, or none is left: the federation itself may be cut off, so nothing is moved%s", s.Window, override)
	case ReasonCapReached:
		return fmt.Sprintf("as many zones are failed over as may be at once (%d): what it has stays%s", s.MaxZones, override)
	case ReasonDisabled:
		return "failover is turned off (at most 0 zones may be failed over): what it has stays" + override
	case ReasonPartiallyReachable:
		return "at least half of the federation's processes reach it, and the one that leads does not: what it has stays" + override
	case ReasonNotTrusted:
		return "its certificate is not trusted, which does not mean that its workloads are dead: what it has stays"
	case ReasonExceedsLimits:
		return "it sends more than the federation takes, which does not mean that its workloads are dead: what it has stays"
	case ReasonDuplicateCluster:
		return "it is the cluster of another Cluster, which is used: what is placed here stays"
	case ReasonCredentialRejected:
		return "it answers, but refuses the federation's credential: what it has stays"
	default:
		return "it is not looked at until its configuration is right: what it has stays"
	}
}

func (m *member) verdict() Verdict {
	v := Verdict{Cluster: m.Name, Failover: m.next}
	if m.next == nil {
		return v
	}
	m.next.Message = m.message()
	v.Conditions = m.conditions()
	partly := m.partiallyReachable()
	if partly != nil {
		v.Conditions = append(v.Conditions, *partly)
	}
	v.Changed = m.redated || !equalFailover(m.Status.Failover, m.next) || !m.hasConditions(v.Conditions) || partly == nil && m.Condition(v1beta1.ClusterPartiallyReachable) != nil
	v.Event = m.eventOf()
	if !m.until.IsZero() {
		v.LookAgain = max(m.until.Sub(m.now), time.Millisecond)
	}
	return v
}

// conditions returns FailedOver and FailoverSuspended. They keep their dates while the status is the same, but
// FailedOver has the date of the last move, even after a partial return.
func (m *member) conditions() []v1beta1.ClusterCondition {
	phase, at := string(m.next.Phase), storedTime(m.now)
	out := m.isOut() || m.next.Phase == v1beta1.PhaseFailingBack || m.next.Percent > 0
	held := m.next.Phase == v1beta1.PhaseFailoverSuspended
	conditions := []v1beta1.ClusterCondition{
		newCondition(v1beta1.ClusterFailedOver, out, phase, m.next.Message, at),
		newCondition(v1beta1.ClusterFailoverSuspended, held, cmp.Or(m.hold, phase), m.next.Message, at),
	}
	for i := range conditions {
		if i == 0 && m.movesOut() {
			continue
		}
		if was := m.Condition(conditions[i].Type); was != nil && was.Status == conditions[i].Status {
			conditions[i].LastTransitionTime = was.LastTransitionTime
		}
	}
	return conditions
}

// movesOut reports whether the cluster's replicas are moved off it now.
func (m *member) movesOut() bool {
	was := m.Phase()
	return m.isOut() && (was == v1beta1.PhaseGracePeriod || was == v1beta1.PhaseFailoverSuspended)
}

func newCondition(t v1beta1.ClusterConditionType, is bool, reason, message string, at metav1.Time) v1beta1.ClusterCondition {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	return v1beta1.ClusterCondition{Type: t, Status: status, Reason: reason, Message: message, LastProbeTime: at, LastTransitionTime: at}
}

// hasConditions reports whether the Cluster has these conditions, whatever their dates.
func (m *member) hasConditions(conditions []v1beta1.ClusterCondition) bool {
	for _, c := range conditions {
		was := m.Condition(c.Type)
		if was == nil || was.Status != c.Status || was.Reason != c.Reason || was.Message != c.Message {
			return false
		}
	}
	return true
}

func equalFailover(a, b *v1beta1.ClusterFailover) bool {
	return a != nil && a.Phase == b.Phase && a.Percent == b.Percent && a.Message == b.Message && a.Since.Equal(&b.Since) && a.LostAt.Equal(b.LostAt)
}

// eventOf returns the event to emit: what moves and what does not. The registry reports the loss itself.
func (m *member) eventOf() *Event {
	was, is := m.Phase(), m.next.Phase
	switch held := m.Condition(v1beta1.ClusterFailoverSuspended); {
	case is == v1beta1.PhaseFailoverSuspended && (was != is || held == nil || held.Reason != m.hold):
		return &Event{Warning: true, Reason: "FailoverSuspended", Message: m.next.Message}
	case m.movesOut():
		return &Event{Warning: true, Reason: "ClusterFailedOver", Message: m.next.Message}
	case is == v1beta1.PhaseFailingBack && was == v1beta1.PhaseFailedOver:
		return &Event{Reason: "ClusterReturned", Message: m.next.Message}
	case is == v1beta1.PhaseFailingBack && m.next.Percent > m.Status.Failover.Percent:
		return &Event{Reason: "ClusterFailback", Message: m.next.Message}
	case is == v1beta1.PhaseServing && was == v1beta1.PhaseFailingBack:
		return &Event{Reason: "ClusterFailback", Message: "has been ready for long enough: gets all of what it would have"}
	}
	return nil
}
