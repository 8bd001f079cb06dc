package readiness

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/controllers/readiness/plan"
)

var (
	survivableGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_readiness_survivable",
		Help: "1 where the loss of the zone or region would be survived now, 0 where not; nothing where that is not known.",
	}, []string{"domain"})
	unschedulableGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_readiness_unschedulable_replicas",
		Help: "Replicas that would fit nowhere if the zone or region were lost now.",
	}, []string{"domain"})
	evaluatedGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_readiness_evaluated_timestamp_seconds",
		Help: "Up to when it is known that what is said of the zone or region is so: now, where nothing of it has changed since it was evaluated.",
	}, []string{"domain"})
	evaluations = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_readiness_evaluations_total",
		Help: "How often the loss of a zone or region was evaluated.",
	}, []string{})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() { legacyregistry.MustRegister(survivableGauge, unschedulableGauge, evaluatedGauge, evaluations) })
}

// observe sets the metrics of all domains.
func (c *Controller) observe(now time.Time) {
	survivableGauge.Reset()
	unschedulableGauge.Reset()
	evaluatedGauge.Reset()
	for _, d := range c.domains {
		if d.Evaluated.IsZero() {
			continue
		}
		name, v := d.Spec.Domain(), plan.Verdict(&d.status)
		switch v.Status {
		case metav1.ConditionTrue:
			survivableGauge.WithLabelValues(name).Set(1)
		case metav1.ConditionFalse:
			survivableGauge.WithLabelValues(name).Set(0)
		}
		unschedulableGauge.WithLabelValues(name).Set(float64(d.status.Unschedulable))
		known := d.Evaluated
		if d.Urgency == plan.None {
			known = now
		}
		evaluatedGauge.WithLabelValues(name).Set(float64(known.Unix()))
	}
}

// forgetMetrics of domains that another process sees to now.
func forgetMetrics() {
	survivableGauge.Reset()
	unschedulableGauge.Reset()
	evaluatedGauge.Reset()
}
