package clusterregistry

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/apiserver/apis/federation/v1beta1"
)

var (
	readyGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_cluster_ready",
		Help: "Whether a member cluster is ready (1) or not (0).",
	}, []string{"cluster"})
	lookSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name:    "federation_cluster_look_duration_seconds",
		Help:    "Time that a look at a member cluster's health took, also where it got no answer.",
		Buckets: metrics.ExponentialBuckets(0.001, 2, 12),
	}, []string{"cluster"})
	transitions = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_cluster_transitions_total",
		Help: "Changes of a member cluster's condition Ready, by its new status and reason.",
	}, []string{"cluster", "status", "reason"})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() { legacyregistry.MustRegister(readyGauge, lookSeconds, transitions) })
}

func (k *keeper) observeLook(begin time.Time) {
	lookSeconds.WithLabelValues(k.name).Observe(time.Since(begin).Seconds())
}

func (k *keeper) observeState(transition *v1beta1.ClusterCondition) {
	ready := 0.0
	if k.state.Ready() {
		ready = 1
	}
	readyGauge.WithLabelValues(k.name).Set(ready)
	if transition != nil {
		transitions.WithLabelValues(k.name, string(transition.Status), transition.Reason).Inc()
	}
}

// forgetMetrics of a cluster that is looked at no more.
func forgetMetrics(cluster string) {
	is := map[string]string{"cluster": cluster}
	readyGauge.Delete(is)
	lookSeconds.Delete(is)
	transitions.DeletePartialMatch(is)
}
