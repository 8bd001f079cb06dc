package clusterregistry

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/apiserver/apis/federation/v1beta1"
)

var (
	readyGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_cluster_ready",
		Help: "Whether a member cluster is ready (1) or not (0).",
	}, []string{"cluster"})
	healthCheckSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name:    "federation_cluster_health_check_duration_seconds",
		Help:    "Time that a health check of a member cluster took, also where it got no answer.",
		Buckets: metrics.ExponentialBuckets(0.001, 2, 12),
	}, []string{"cluster"})
	transitions = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_cluster_transitions_total",
		Help: "Changes of a member cluster's condition Ready, by its new status and reason.",
	}, []string{"cluster", "status", "reason"})
	conditionGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_cluster_condition",
		Help: "1 while a member cluster has a condition that waits for a person: DeletionsPendingApproval or FencesMissing.",
	}, []string{"cluster", "type"})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() { legacyregistry.MustRegister(readyGauge, healthCheckSeconds, transitions, conditionGauge) })
}

func observeHealthCheck(cluster string, begin time.Time) {
	healthCheckSeconds.WithLabelValues(cluster).Observe(time.Since(begin).Seconds())
}

// observed is what the metrics of a cluster say.
type observed struct {
	of    *v1beta1.Cluster
	ready bool
}

// observe brings the metrics up to date. Of a cluster that is as it was, which is said each second, it does nothing.
func (o *observed) observe(c *v1beta1.Cluster, ready bool, transition *v1beta1.ClusterCondition) {
	if is := (observed{c, ready}); *o != is || transition != nil {
		*o = is
		observeState(c, ready, transition)
	}
}

func observeState(c *v1beta1.Cluster, ready bool, transition *v1beta1.ClusterCondition) {
	gauge := 0.0
	if ready {
		gauge = 1
	}
	readyGauge.WithLabelValues(c.Name).Set(gauge)
	for _, t := range []v1beta1.ClusterConditionType{v1beta1.ClusterDeletionsPendingApproval, v1beta1.ClusterFencesMissing} {
		if is := c.Condition(t); is != nil && is.Status == corev1.ConditionTrue {
			conditionGauge.WithLabelValues(c.Name, string(t)).Set(1)
		} else {
			conditionGauge.Delete(map[string]string{"cluster": c.Name, "type": string(t)})
		}
	}
	if transition != nil {
		transitions.WithLabelValues(c.Name, string(transition.Status), transition.Reason).Inc()
	}
}

// forgetMetrics of a cluster that is checked no more.
func forgetMetrics(cluster string) {
	is := map[string]string{"cluster": cluster}
	readyGauge.Delete(is)
	healthCheckSeconds.Delete(is)
	transitions.DeletePartialMatch(is)
	conditionGauge.DeletePartialMatch(is)
}
