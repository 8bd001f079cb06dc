package crosscluster

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/controllers/crosscluster/plan"
)

var (
	writes = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_cross_cluster_writes_total",
		Help: "Writes of EndpointSlices with other clusters' addresses, by member cluster, operation (create, update, delete) and result (ok, error).",
	}, []string{"cluster", "operation", "result"})
	register sync.Once
)

func registerMetrics() { register.Do(func() { legacyregistry.MustRegister(writes) }) }

func observeWrite(cluster string, verb plan.Verb, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	writes.WithLabelValues(cluster, string(verb), result).Inc()
}
