package placement

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	placements = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_placements_total",
		Help: "Placements written, by kind: first, moved, removed.",
	}, []string{"change"})
	passSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Name:    "federation_placement_pass_duration_seconds",
		Help:    "Time in which all objects of a pass were decided; one object, or all.",
		Buckets: metrics.ExponentialBuckets(0.0001, 4, 10),
	})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() { legacyregistry.MustRegister(placements, passSeconds) })
}

func observePass(started time.Time) { passSeconds.Observe(time.Since(started).Seconds()) }

func observeWritten(in *intent) {
	change := "moved"
	switch {
	case in.value == "":
		change = "removed"
	case in.first:
		change = "first"
	}
	placements.WithLabelValues(change).Inc()
}
