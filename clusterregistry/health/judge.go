package health

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Answer is what one check of a cluster's API found.
type Answer int

// The answers, from good to bad.
const (
	// Healthy: the API says that it is well.
	Healthy Answer = iota
	// Slow: no answer in time, but the cluster sent other bytes meanwhile.
	Slow
	// Unhealthy: the API answered that it is not well.
	Unhealthy
	// CredentialRejected: the API answered 401 or 403.
	CredentialRejected
	// NotTrusted: something answered whose certificate we do not trust.
	NotTrusted
	// ExceedsLimits: it sent more than we take, and is left alone for a while.
	ExceedsLimits
	// Duplicate: it is the cluster of another Cluster, which is used in its place.
	Duplicate
	// Unreachable: refused, reset, not found, or no answer in time.
	Unreachable
	// Misconfigured: we did not check, because the Cluster or its Secret lacks what is needed.
	Misconfigured
)

// Unclear reports whether an answer says nothing about what runs in the cluster.
func (a Answer) Unclear() bool {
	switch a {
	case CredentialRejected, NotTrusted, ExceedsLimits, Duplicate, Misconfigured:
		return true
	}
	return false
}

// Reasons besides those of the API package.
const (
	ReasonCredentialRejected = "ClusterCredentialRejected"
	ReasonNotTrusted         = "ClusterNotTrusted"
	ReasonMisconfigured      = "ClusterMisconfigured"
	ReasonExceedsLimits      = "ClusterExceedsLimits"
	ReasonDuplicateCluster   = "DuplicateCluster"
)

// Evidence is the outcome of one check.
type Evidence struct {
	Answer Answer
	// Detail says why, for people. It should be the same each time that the cause is the same.
	Detail string
}

// Policy says how patient we are.
type Policy struct {
	// Period is the time from the begin of one check to that of the next, while all is well and while a
	// cluster stays away.
	Period time.Duration
	// Retry is the same after a bad check at a cluster that was well.
	Retry time.Duration
	// Threshold is the number of bad checks in a row that make a cluster not ready; at least 1.
	Threshold int
	// Settle is the number of equal checks in a row that change the reason why it is not ready: a cluster
	// that starts refuses connections, then credentials, then is not well, each for a moment.
	Settle int
	// SlowThreshold is Threshold where the last check was Slow.
	SlowThreshold int
}

// DefaultPolicy marks a dead cluster after two bad checks, a slow one after five.
func DefaultPolicy() Policy {
	return Policy{Period: time.Second, Retry: 250 * time.Millisecond, Threshold: 2, Settle: 3, SlowThreshold: 5}
}

// State is what is known of a cluster between checks. The zero value is a cluster never looked at.
type State struct {
	// Conditions are Ready and Offline, or none before the first verdict.
	Conditions []v1beta1.ClusterCondition
	// Heartbeats is said beside those where nodes are waited for; nil: none are.
	Heartbeats *v1beta1.ClusterCondition
	// Agent says whether the cluster's agent is connected; nil: it has none.
	Agent *v1beta1.ClusterCondition
	// UID is the identity of the cluster; "" while it is not known.
	UID string
	// Failures counts the bad checks in a row.
	Failures int
	// Answer is what the last check found, and Streak how many checks in a row found the same.
	Answer Answer
	Streak int
}

// Ready reports whether the cluster can be used.
func (s State) Ready() bool {
	return status(s.Conditions, v1beta1.ClusterReady) == corev1.ConditionTrue
}

// LostSince is since when the cluster cannot be used; zero while it can, and before the first verdict.
func (s State) LostSince() time.Time {
	if c := findCondition(s.Conditions, v1beta1.ClusterReady); c != nil && c.Status != corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// Verdict is what follows from a check.
type Verdict struct {
	// State to keep for the next check.
	State State
	// Next is the time from the begin of this check to that of the next.
	Next time.Duration
	// Transition is the new Ready condition where its status or reason changed, else nil: an event for people.
	Transition *v1beta1.ClusterCondition
}

// Judge weighs the evidence of one check, made at now, against what was known.
func Judge(prev State, e Evidence, p Policy, now time.Time) Verdict {
	next := prev.countCheck(e.Answer)
	notReady := status(prev.Conditions, v1beta1.ClusterReady) == corev1.ConditionFalse
	switch {
	case p.isConvinced(next, notReady):
		next.Conditions = mergeConditions(prev.Conditions, conditions(e), now)
		return Verdict{State: next, Next: p.Period, Transition: transition(prev.Conditions, next.Conditions)}
	case notReady:
		return Verdict{State: next, Next: p.Period}
	default:
		return Verdict{State: next, Next: p.Retry}
	}
}

// countCheck returns the state with one more check counted.
func (s State) countCheck(a Answer) State {
	if s.Answer != a {
		s.Answer, s.Streak = a, 0
	}
	s.Streak++
	s.Failures++
	if a == Healthy {
		s.Failures = 0
	}
	return s
}

// isConvinced reports whether the checks counted in s suffice to believe the last one.
func (p Policy) isConvinced(s State, notReady bool) bool {
	switch {
	case s.Answer == Healthy || s.Answer == Misconfigured || s.Answer == ExceedsLimits || s.Answer == Duplicate: // facts that a second check would only repeat
		return true
	case notReady:
		return s.Streak >= p.Settle
	case s.Answer == Slow:
		return s.Failures >= p.SlowThreshold
	default:
		return s.Failures >= p.Threshold
	}
}

func transition(old, new []v1beta1.ClusterCondition) *v1beta1.ClusterCondition {
	was, is := findCondition(old, v1beta1.ClusterReady), findCondition(new, v1beta1.ClusterReady)
	if was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return is
}
