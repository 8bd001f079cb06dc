package servicedns

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	recordCount = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "federation_dns_records",
		Help: "Record sets that the federation has in DNS.",
	})
	applySeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name:    "federation_dns_apply_duration_seconds",
		Help:    "Time that the DNS provider took for a set of changes, by result (ok, error).",
		Buckets: metrics.ExponentialBuckets(0.0001, 4, 10),
	}, []string{"result"})
	changeSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Name:    "federation_dns_change_duration_seconds",
		Help:    "Time from the first sight of a change of a Service, Cluster or host to its being in DNS.",
		Buckets: metrics.ExponentialBuckets(0.0001, 4, 10),
	})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() { legacyregistry.MustRegister(recordCount, applySeconds, changeSeconds) })
}

// observeApply notes a call of the provider, and how old the oldest of its changes is; zero: unknown.
func observeApply(started, since time.Time, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	applySeconds.WithLabelValues(result).Observe(time.Since(started).Seconds())
	if err == nil && !since.IsZero() {
		changeSeconds.Observe(time.Since(since).Seconds())
	}
}
