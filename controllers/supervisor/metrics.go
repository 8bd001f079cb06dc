package supervisor

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	up = metrics.NewGaugeVec(&metrics.GaugeOpts{Name: "federation_component_up", StabilityLevel: metrics.ALPHA,
		Help: "1 while a part of the process runs, 0 while it waits to be restarted after a failure."}, []string{"component"})
	restarts = metrics.NewCounterVec(&metrics.CounterOpts{Name: "federation_component_restarts_total", StabilityLevel: metrics.ALPHA,
		Help: "How often a part of the process was restarted after a failure."}, []string{"component"})
	panics = metrics.NewCounterVec(&metrics.CounterOpts{Name: "federation_component_panics_total", StabilityLevel: metrics.ALPHA,
		Help: "Panics, of which the item that was worked on is tried again, or the part restarted."}, []string{"component"})
)

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(up, restarts, panics) })
