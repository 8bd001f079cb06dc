package health

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// conditions says in the API's words what the evidence means.
func conditions(e Evidence) []v1beta1.ClusterCondition {
	reachable := condition(v1beta1.ClusterOffline, corev1.ConditionFalse, v1beta1.ReasonClusterReachable, "cluster is reachable")
	notReady := func(reason, message string) v1beta1.ClusterCondition {
		return condition(v1beta1.ClusterReady, corev1.ConditionFalse, reason, message)
	}
	switch e.Answer {
	case Healthy:
		return []v1beta1.ClusterCondition{condition(v1beta1.ClusterReady, corev1.ConditionTrue, v1beta1.ReasonClusterReady, "/healthz responded with ok"), reachable}
	case Slow:
		return []v1beta1.ClusterCondition{notReady(v1beta1.ReasonClusterNotReady, withDetail("/healthz did not respond in time", e)), reachable}
	case Unhealthy:
		return []v1beta1.ClusterCondition{notReady(v1beta1.ReasonClusterNotReady, withDetail("/healthz responded without ok", e)), reachable}
	case CredentialRejected:
		return []v1beta1.ClusterCondition{notReady(ReasonCredentialRejected, withDetail("the cluster refuses the credential in its Secret", e)), reachable}
	case NotTrusted:
		return []v1beta1.ClusterCondition{
			notReady(ReasonNotTrusted, withDetail("the certificate of the cluster's API is not trusted", e)),
			condition(v1beta1.ClusterOffline, corev1.ConditionUnknown, ReasonNotTrusted, "it is not known whether it is the cluster that answers"),
		}
	case ExceedsLimits:
		return []v1beta1.ClusterCondition{notReady(ReasonExceedsLimits, e.Detail), reachable}
	case Duplicate:
		return []v1beta1.ClusterCondition{
			notReady(ReasonDuplicateCluster, e.Detail),
			condition(v1beta1.ClusterOffline, corev1.ConditionUnknown, ReasonDuplicateCluster, "the cluster is not used by this name"),
		}
	case Unreachable:
		return []v1beta1.ClusterCondition{
			notReady(v1beta1.ReasonClusterNotReachable, withDetail("cluster is not reachable", e)),
			condition(v1beta1.ClusterOffline, corev1.ConditionTrue, v1beta1.ReasonClusterNotReachable, "cluster is not reachable"),
		}
	default:
		return []v1beta1.ClusterCondition{
			notReady(ReasonMisconfigured, e.Detail),
			condition(v1beta1.ClusterOffline, corev1.ConditionUnknown, ReasonMisconfigured, "the cluster is not checked until its configuration is right"),
		}
	}
}

func condition(t v1beta1.ClusterConditionType, s corev1.ConditionStatus, reason, message string) v1beta1.ClusterCondition {
	return v1beta1.ClusterCondition{Type: t, Status: s, Reason: reason, Message: v1beta1.Printable(message)}
}

func withDetail(message string, e Evidence) string {
	if e.Detail == "" {
		return message
	}
	return message + ": " + e.Detail
}

// mergeConditions dates the new conditions. While a cluster stays unreachable it keeps the message of the
// first failure: refused and timed out take turns while a cluster restarts, and each would be a write.
func mergeConditions(old, new []v1beta1.ClusterCondition, now time.Time) []v1beta1.ClusterCondition {
	for i := range new {
		c := &new[i]
		c.LastProbeTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		was := findCondition(old, c.Type)
		if was == nil || was.Status != c.Status {
			continue
		}
		c.LastTransitionTime = was.LastTransitionTime
		if c.Reason == was.Reason && c.Reason == v1beta1.ReasonClusterNotReachable {
			c.Message = was.Message
		}
	}
	return new
}

func findCondition(conditions []v1beta1.ClusterCondition, t v1beta1.ClusterConditionType) *v1beta1.ClusterCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

func status(conditions []v1beta1.ClusterCondition, t v1beta1.ClusterConditionType) corev1.ConditionStatus {
	if c := findCondition(conditions, t); c != nil {
		return c.Status
	}
	return corev1.ConditionUnknown
}
