package failover

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/failover/plan"
)

var (
	suspendedGauge = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "federation_clusters_failover_suspended",
		Help: "Clusters that are lost and not failed over, because most are away at once, the limit is reached, or they refuse the federation's credential.",
	})
	failedOverGauge = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "federation_clusters_failed_over",
		Help: "Clusters that are failed over: what was placed there is placed elsewhere.",
	})
	phaseGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_cluster_failover_phase",
		Help: "1 for the phase that a cluster is in: Serving, GracePeriod, FailoverSuspended, FailedOver or FailingBack.",
	}, []string{"cluster", "phase"})
	events = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_failover_events_total",
		Help: "What happened to clusters: ClusterFailedOver, FailoverSuspended, ClusterReturned, ClusterFailback.",
	}, []string{"reason"})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() { legacyregistry.MustRegister(suspendedGauge, failedOverGauge, phaseGauge, events) })
}

func observeVerdicts(verdicts []plan.Verdict) {
	held, out := 0, 0
	phaseGauge.Reset()
	for _, v := range verdicts {
		if v.Failover == nil {
			continue
		}
		phaseGauge.WithLabelValues(v.Cluster, string(v.Failover.Phase)).Set(1)
		switch v.Failover.Phase {
		case v1beta1.PhaseFailoverSuspended:
			held++
		case v1beta1.PhaseFailedOver:
			out++
		}
	}
	suspendedGauge.Set(float64(held))
	failedOverGauge.Set(float64(out))
}

// forgetMetrics drops the metrics of clusters that another process handles now.
func forgetMetrics() { observeVerdicts(nil) }

func countEvent(e *plan.Event) { events.WithLabelValues(e.Reason).Inc() }
