package plan

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// failOver decides about the clusters whose grace period is over, in the order of their loss: failed over, or
// suspended. Clusters that a drill isolates are judged among all. The others are judged as if the drilled ones did not
// exist: a drill neither uses up the cap nor counts towards a lost majority.
func failOver(members []*member, s Settings) {
	failOverAmong(members, s, (*member).isDrilled)
	failOverAmong(slices.DeleteFunc(slices.Clone(members), (*member).isDrilled), s, func(*member) bool { return true })
}

// isDrilled is Drilled of the member's Cluster.
func (m *member) isDrilled() bool { return Drilled(m.Cluster) }

// Drilled reports whether a drill isolates a cluster, or has isolated it and lets it return step by step. Others are
// judged as if it did not exist.
func Drilled(c *v1beta1.Cluster) bool {
	drill := c.Drill()
	return drill != nil && drill.Reason != v1beta1.ReasonIsolationAborted
}

// failOverAmong decides about those members for which decides returns true.
func failOverAmong(members []*member, s Settings, decides func(*member) bool) {
	static := cutOff(members, s)
	zones := map[string]bool{}
	for _, m := range members {
		if m.isOut() && !m.isExempt() {
			zones[m.capZone()] = true
		}
	}
	for _, m := range byLoss(members) {
		switch zone, retired := m.capZone(), m.isExempt(); {
		case !m.due || !decides(m):
		case static[m]:
			m.suspendBecause(ReasonFailStatic)
		case s.MaxZones == 0:
			m.suspendBecause(ReasonDisabled)
		case s.MaxZones > 0 && !retired && !zones[zone] && len(zones) >= s.MaxZones:
			m.suspendBecause(ReasonCapReached)
		case m.next.Phase == v1beta1.PhaseFailoverSuspended:
			m.graceAnew()
		default:
			if !retired {
				zones[zone] = true
			}
			m.next.Percent = 0
			m.enterPhase(v1beta1.PhaseFailedOver)
		}
	}
}

// isExempt reports whether the cluster was drained before it was lost, or is a duplicate. Nothing placed there would
// move, and its absence is intended: it does not count towards the cap or a majority.
func (m *member) isExempt() bool {
	if ready := m.Condition(v1beta1.ClusterReady); ready != nil && ready.Reason == ReasonDuplicateCluster {
		return true
	}
	if m.OutOfService() != v1beta1.Drained || m.evidence == well {
		return m.OutOfService() == v1beta1.Drained
	}
	ready := m.Condition(v1beta1.ClusterReady)
	return ready != nil && !slices.ContainsFunc(m.Spec.Taints, func(t corev1.Taint) bool {
		drains := t.Key == v1beta1.TaintDrain || t.Key == v1beta1.TaintUnschedulable
		return drains && t.TimeAdded != nil && t.TimeAdded.After(ready.LastTransitionTime.Time)
	})
}

func (m *member) isOut() bool { return m.next != nil && m.next.Phase == v1beta1.PhaseFailedOver }

func (m *member) suspendBecause(reason string) {
	if m.next.Phase != v1beta1.PhaseFailoverSuspended {
		m.enterPhase(v1beta1.PhaseFailoverSuspended)
	}
	m.hold = reason
}

// graceAnew begins a new grace period for a cluster that was suspended and is still away when the others are back: it
// may return in a moment for the same reason.
func (m *member) graceAnew() {
	m.enterPhase(v1beta1.PhaseGracePeriod)
	m.hold = reasonReleased
	m.lookAt(m.next.Since.Add(m.settings.GracePeriod))
}

// byLoss returns the lost clusters in the order of their loss.
func byLoss(members []*member) (gone []*member) {
	for _, m := range members {
		if m.next != nil && m.next.LostAt != nil && m.evidence == lost {
			gone = append(gone, m)
		}
	}
	slices.SortFunc(gone, func(a, b *member) int {
		return cmp.Or(a.next.LostAt.Compare(b.next.LostAt.Time), cmp.Compare(a.Name, b.Name))
	})
	return gone
}

// heldAsCutOff returns the clusters that are suspended because they vanished with most others, each in its view, see
// failOver.
func heldAsCutOff(members []*member, s Settings) map[*member]bool {
	static := cutOff(slices.DeleteFunc(slices.Clone(members), (*member).isDrilled), s)
	for m := range cutOff(members, s) {
		if m.isDrilled() {
			static[m] = true
		}
	}
	return static
}

// cutOff returns the clusters that were lost together with more than half of those that served when the first of them
// was lost; or all, if none is left. Retired ones neither serve nor vanish.
func cutOff(members []*member, s Settings) map[*member]bool {
	static := map[*member]bool{}
	gone := slices.DeleteFunc(byLoss(members), (*member).isExempt)
	there, usable := 0, 0
	for _, m := range members {
		if m.next != nil && m.evidence != lost && !m.isExempt() {
			there++
		}
		if m.evidence == well {
			usable++
		}
	}
	end := 0
	for i, first := range gone {
		for end < len(gone) && gone[end].next.LostAt.Sub(first.next.LostAt.Time) <= s.Window {
			end++
		}
		together, before := gone[i:end], there+len(gone)-i
		if usable == 0 || 2*len(together) > before {
			for _, m := range together {
				static[m] = true
			}
		}
	}
	return static
}
