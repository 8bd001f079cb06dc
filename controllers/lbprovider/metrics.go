package lbprovider

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/controllers/lbprovider/plan"
)

var (
	holdingGauge = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "federation_lb_provider_holds_addresses", StabilityLevel: metrics.ALPHA,
		Help: "1 if this load balancer provider answers at the addresses of Services, 0 if another one does.",
	})
	servicesGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_lb_provider_services", StabilityLevel: metrics.ALPHA,
		Help: "Services of the load balancer provider, by the reason why they lack an address; none: they lack nothing.",
	}, []string{"reason"})
	nodesGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_lb_provider_nodes", StabilityLevel: metrics.ALPHA,
		Help: "Addresses of nodes that the load balancer provider asks for their health, by what they say: well or failing.",
	}, []string{"state"})
)

// RegisterMetrics registers the metrics of a provider.
func RegisterMetrics() { legacyregistry.MustRegister(holdingGauge, servicesGauge, nodesGauge) }

func observeHolding(is bool) {
	holdingGauge.Set(map[bool]float64{true: 1}[is])
}

func observeServices(verdicts map[types.NamespacedName]plan.Verdict) {
	servicesGauge.Reset()
	for _, v := range verdicts {
		servicesGauge.WithLabelValues(v.Reason).Inc()
	}
}

func observeNodes(asked, failing int) {
	nodesGauge.WithLabelValues("well").Set(float64(asked - failing))
	nodesGauge.WithLabelValues("failing").Set(float64(failing))
}
