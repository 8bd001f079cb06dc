package readiness

import (
	"math"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/controllers/readiness/plan"
)

// Results of refits.
const refitSurvivable, refitUndecided = "survivable", "undecided"

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
	drillAge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_drill_age_seconds",
		Help: "How long ago a drill of just the zone or region last succeeded; +Inf where none ever has.",
	}, []string{"domain"})
	evaluations = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_readiness_evaluations_total",
		Help: "How often the loss of a zone or region was evaluated.",
	}, []string{})
	refits = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_readiness_refits_total",
		Help: "How often room was counted again for a zone or region in doubt, by result: survivable as before, or undecided until an evaluation.",
	}, []string{"result"})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() {
		legacyregistry.MustRegister(survivableGauge, unschedulableGauge, evaluatedGauge, drillAge, evaluations, refits)
	})
}

// setMetrics sets the metrics of all domains.
func (c *Controller) setMetrics(now time.Time) {
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
		default:
			survivableGauge.DeleteLabelValues(name)
		}
		unschedulableGauge.WithLabelValues(name).Set(float64(d.status.Unschedulable))
		known := d.Evaluated
		if d.refitted.After(known) && d.Since.IsZero() {
			known = d.refitted
		}
		if d.Urgency == plan.None {
			known = now
		}
		evaluatedGauge.WithLabelValues(name).Set(float64(known.Unix()))
		age := math.Inf(1)
		if r := c.storedObject(d.Name); r != nil && r.Status.LastDrill != nil && r.Status.LastDrill.SucceededAt != nil {
			age = now.Sub(r.Status.LastDrill.SucceededAt.Time).Seconds()
		}
		drillAge.WithLabelValues(name).Set(age)
	}
}

// domainGauges have one value for each domain.
var domainGauges = []*metrics.GaugeVec{survivableGauge, unschedulableGauge, evaluatedGauge, drillAge}

func forgetDomain(name string) {
	for _, g := range domainGauges {
		g.DeleteLabelValues(name)
	}
}

// forgetMetrics drops the metrics of domains that another process handles now.
func forgetMetrics() {
	for _, g := range domainGauges {
		g.Reset()
	}
}
