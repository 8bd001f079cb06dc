package nodeagent

import (
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// The metrics have kube-proxy's names, so that its dashboards and alerts keep working.
var (
	syncDuration = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: "kubeproxy", Name: "sync_proxy_rules_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "How long it took to bring a change into the kernel, from taking it up to the commit.",
		Buckets: metrics.ExponentialBuckets(0.0001, 2, 20),
	})
	fullSyncDuration = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: "kubeproxy", Name: "sync_full_proxy_rules_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "The same for looking at all rules and writing what differs.",
		Buckets: metrics.ExponentialBuckets(0.001, 2, 18),
	})
	programming = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: "kubeproxy", Name: "network_programming_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "From what changed the endpoints (as their EndpointSlice tells) to the commit.",
		Buckets: metrics.ExponentialBuckets(0.001, 2, 20),
	})
	arrivalToCommit = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: "nodeagent", Name: "arrival_to_commit_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "From the arrival of the first of the changes of a write to the commit.",
		Buckets: metrics.ExponentialBuckets(0.0001, 1.25, 60),
	})
	lastSync = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "kubeproxy", Name: "sync_proxy_rules_last_timestamp_seconds", StabilityLevel: metrics.ALPHA,
		Help: "When rules were last brought into the kernel, in seconds since 1970.",
	})
	failures = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "nodeagent", Name: "write_failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Writes of rules that failed.",
	})
	healthzAnswers = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "kubeproxy", Name: "proxy_healthz_total", StabilityLevel: metrics.ALPHA,
		Help: "Answers to /healthz by status.",
	}, []string{"code"})
)

func init() {
	legacyregistry.MustRegister(syncDuration, fullSyncDuration, programming, arrivalToCommit, lastSync, failures, healthzAnswers)
}

// observeWrite records a write.
func observeWrite(w work, start time.Time) {
	took := time.Since(start).Seconds()
	syncDuration.Observe(took)
	if w.sync {
		fullSyncDuration.Observe(took)
	}
	if !w.arrived.IsZero() {
		arrivalToCommit.Observe(time.Since(w.arrived).Seconds())
	}
	for _, t := range w.changed {
		programming.Observe(time.Since(t).Seconds())
	}
	lastSync.SetToCurrentTime()
}
