package propagation

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/controllers/propagation/plan"
)

var (
	writes = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_member_writes_total",
		Help: "Writes to member clusters by cluster, operation and result (ok, error).",
	}, []string{"cluster", "operation", "result"})
	writeSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name:    "federation_member_write_duration_seconds",
		Help:    "Time that a write to a member cluster took.",
		Buckets: metrics.ExponentialBuckets(0.001, 2, 14),
	}, []string{"cluster"})
	engaged = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "federation_members_engaged",
		Help: "Member clusters that are reached and worked on.",
	})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() { legacyregistry.MustRegister(writes, writeSeconds, engaged) })
}

func observeWrite(cluster string, verb plan.Verb, started time.Time, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	writes.WithLabelValues(cluster, string(verb), result).Inc()
	writeSeconds.WithLabelValues(cluster).Observe(time.Since(started).Seconds())
}
