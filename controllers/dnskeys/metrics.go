package dnskeys

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/controllers/dnskeys/plan"
)

var (
	keyCount = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_dnssec_keys",
		Help: "Keys that sign the zone or take part in a roll, by zone and phase (Published, Active, Retired).",
	}, []string{"zone", "phase"})
	dsPublished = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_dnssec_ds_published",
		Help: "1 where the parent zone is seen to have the DS record of the key that signs, and of no other key that we have; else 0.",
	}, []string{"zone"})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() { legacyregistry.MustRegister(keyCount, dsPublished) })
}

func setMetrics(zone string, s plan.State) {
	for _, phase := range []plan.Phase{plan.Published, plan.Active, plan.Retired} {
		n := 0
		for _, k := range s.Keys {
			if k.Phase == phase {
				n++
			}
		}
		keyCount.WithLabelValues(zone, string(phase)).Set(float64(n))
	}
	value := 0.0
	if s.ParentSecure {
		value = 1
	}
	dsPublished.WithLabelValues(zone).Set(value)
}

// deleteMetrics removes the metrics of a process that no longer keeps the keys.
func deleteMetrics(zone string) {
	keyCount.DeletePartialMatch(map[string]string{"zone": zone})
	dsPublished.DeleteLabelValues(zone)
}
