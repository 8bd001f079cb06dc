package mcs

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	writes = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_mcs_writes_total",
		Help: "Writes of ServiceImports, ServiceExports, derived Services and their EndpointSlices, by member cluster (\"\": the federation), resource, operation (create, update, status, delete) and result (ok, error).",
	}, []string{"cluster", "resource", "operation", "result"})
	register sync.Once
)

func registerMetrics() { register.Do(func() { legacyregistry.MustRegister(writes) }) }

func observeWrite(cluster, resource, operation string, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	writes.WithLabelValues(cluster, resource, operation, result).Inc()
}
