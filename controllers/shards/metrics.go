package shards

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	heldGauge = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "federation_shards_owned", Help: "Virtual shards, of 64, that this replica works with.",
	})
	moved = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_shards_moved_total", Help: "Shards that this replica has taken, from nobody or a dead one, or given to another.",
	}, []string{"how"})
	unreadable = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "federation_shards_table_unreadable", Help: "1 while this replica works with no shard because the table of shards, a Lease, cannot be read.",
	})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() { legacyregistry.MustRegister(heldGauge, moved, unreadable) })
}
