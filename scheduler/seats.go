package scheduler

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// use is what a cluster may have of an object.
type use int

const (
	// usable: as much as it has room for.
	usable use = iota
	// keeps: no more than it has.
	keeps
	// out: nothing. What it had is remembered, and returns.
	out
)

// candidate is one cluster for one object.
type candidate struct {
	cluster *v1beta1.Cluster
	group   group
	last    int64 // replicas in the last placement
	use     use
	percent int64  // of its full number: less than 100 while it returns
	because string // why it is not simply usable
	until   time.Duration
	room    *int64 // the most it can hold; nil if not known to be limited
	lost    bool   // it is lost, and failover is disabled
	stuck   int64  // pods of the object that are unschedulable there, or cannot be created
	says    string // the scheduler's message about the unschedulable ones
	unmade  int64  // those of them that cannot be created
	// capacityStale: by its nodes and pods there is room for more, or was when more was requested, though pods are stuck.
	capacityStale bool
}

func (s *candidate) canUse(percent int64) bool { return s.use == usable && s.percent >= percent }

// useRules say what a cluster may have, by its taints and its failover state.
type useRules struct {
	wants *wants
	grace time.Duration
	now   time.Time
}

func (r *useRules) apply(s *candidate) {
	s.percent = 100
	r.applyPhase(s)
	for i := range s.cluster.Spec.Taints {
		r.applyTaint(s, &s.cluster.Spec.Taints[i])
	}
}

func (s *candidate) restrict(to use, because string) {
	if to > s.use {
		s.use, s.because = to, because
	}
}

func (s *candidate) lookAgain(in time.Duration) {
	if in > 0 && (s.until == 0 || in < s.until) {
		s.until = in
	}
}

func (r *useRules) applyPhase(s *candidate) {
	c := s.cluster
	switch phase := c.Phase(); {
	case phase == v1beta1.PhaseFailedOver:
		r.applyLoss(s, c.Status.Failover.LostAt)
	case phase == v1beta1.PhaseGracePeriod:
		s.restrict(keeps, "not ready, in its grace period")
	case phase == v1beta1.PhaseFailoverSuspended:
		s.restrict(keeps, "not ready, failover suspended")
	case phase == v1beta1.PhaseFailingBack:
		r.applyReturn(s)
	case c.IsReady():
	case c.Condition(v1beta1.ClusterReady) == nil:
		s.restrict(keeps, "never seen ready")
	case c.Status.Failover == nil && r.grace > 0:
		left := c.Condition(v1beta1.ClusterReady).LastTransitionTime.Add(r.grace).Sub(r.now)
		if left <= 0 {
			r.applyLoss(s, &c.Condition(v1beta1.ClusterReady).LastTransitionTime)
			return
		}
		s.restrict(keeps, "not ready, in its grace period")
		s.lookAgain(left)
	default:
		s.restrict(keeps, "not ready")
	}
}

// applyLoss moves what is there elsewhere, unless the policy says otherwise.
func (r *useRules) applyLoss(s *candidate, at *metav1.Time) {
	f := r.wants.failover
	if f.Disabled {
		s.restrict(keeps, "failed over, but "+r.wants.stay)
		s.lost = s.last > 0
		return
	}
	if f.GracePeriodSeconds != nil && at != nil {
		if left := at.Add(time.Duration(*f.GracePeriodSeconds) * time.Second).Sub(r.now); left > 0 {
			s.restrict(keeps, "failed over, in the policy's grace period")
			s.lookAgain(left)
			return
		}
	}
	s.restrict(out, "failed over")
}

func (r *useRules) applyReturn(s *candidate) {
	percent := int64(s.cluster.Status.Failover.Percent)
	switch {
	case r.wants.failover.Disabled:
		return
	case percent > 0 && (r.wants.neverFailsBack() || r.wants.failover.Failback == v1beta1.FailbackImmediate):
		return
	case percent < 100:
		s.percent, s.because = percent, fmt.Sprintf("failing back, %d %%", percent)
	}
}

func (r *useRules) applyTaint(s *candidate, t *corev1.Taint) {
	left, tolerated := tolerates(r.wants.tolerations, t, r.now)
	s.lookAgain(left)
	if tolerated {
		return
	}
	because := "taint " + t.ToString()
	switch t.Effect {
	case corev1.TaintEffectNoSchedule:
		s.restrict(keeps, because)
	case corev1.TaintEffectNoExecute:
		s.restrict(out, because)
	}
}

// toleratedTaints returns a reason for each tolerated taint that would otherwise keep an object off a cluster.
func (r *useRules) toleratedTaints(c *v1beta1.Cluster) (why []string) {
	for i := range c.Spec.Taints {
		t := &c.Spec.Taints[i]
		left, ok := tolerates(r.wants.tolerations, t, r.now)
		switch {
		case !ok || t.Effect == corev1.TaintEffectPreferNoSchedule:
		case left > 0:
			why = append(why, fmt.Sprintf("tolerates taint %s for %s", t.ToString(), left.Round(time.Second)))
		default:
			why = append(why, "tolerates taint "+t.ToString())
		}
	}
	return why
}

// tolerates reports whether a toleration matches a taint, and for how long if not for ever.
func tolerates(all []corev1.Toleration, t *corev1.Taint, now time.Time) (left time.Duration, ok bool) {
	for i := range all {
		if !matches(&all[i], t) {
			continue
		}
		seconds := all[i].TolerationSeconds
		if seconds == nil || t.Effect != corev1.TaintEffectNoExecute {
			return 0, true
		}
		if t.TimeAdded == nil {
			continue // nothing to count from
		}
		if more := t.TimeAdded.Add(time.Duration(*seconds) * time.Second).Sub(now); more > left {
			left, ok = more, true
		}
	}
	return left, ok
}

// matches reports whether a toleration matches a taint, by Kubernetes' rule.
func matches(tol *corev1.Toleration, t *corev1.Taint) bool {
	if tol.Effect != "" && tol.Effect != t.Effect || tol.Key != "" && tol.Key != t.Key {
		return false
	}
	return tol.Operator == corev1.TolerationOpExists || tol.Key != "" && tol.Value == t.Value
}

// evicts reports whether a cluster has a taint that evicts what does not tolerate it.
func evicts(c *v1beta1.Cluster) bool {
	for _, t := range c.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			return true
		}
	}
	return false
}
