package drill

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/apiserver/apis/federation/v1beta1"
)

var (
	activeGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_drill_active",
		Help: "1 while a drill has clusters out of service, or brings them back, by its method.",
	}, []string{"method"})
	finished = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_drills_total",
		Help: "Drills that have ended, by method and outcome: Succeeded, Failed, Interrupted or Blocked.",
	}, []string{"method", "outcome"})
	markSeconds = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_drill_mark_seconds",
		Help: "Of the last drill of a method that ended: how long after the fault (detected, outOfDNS, out, placed, readyElsewhere), or after the way back began (backReady, backInDNS, clean), a mark came.",
	}, []string{"method", "mark"})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() { legacyregistry.MustRegister(activeGauge, finished, markSeconds) })
}

// observeActive sets which drills are under way.
func observeActive(drills []*v1beta1.FailoverDrill) {
	activeGauge.Reset()
	for _, d := range drills {
		if d.UnderWay() && d.Status.Phase != v1beta1.DrillBaseline {
			activeGauge.WithLabelValues(string(d.Spec.Method)).Set(1)
		}
	}
}

// observeFinished counts a drill that has ended.
func observeFinished(d *v1beta1.FailoverDrill) {
	method := string(d.Spec.Method)
	finished.WithLabelValues(method, string(d.Status.Outcome)).Inc()
	if d.Status.Report == nil {
		return
	}
	m := &d.Status.Report.Marks
	set := func(name string, from, mark *metav1.MicroTime) {
		markSeconds.Delete(map[string]string{"method": method, "mark": name})
		if from != nil && mark != nil {
			markSeconds.WithLabelValues(method, name).Set(mark.Sub(from.Time).Seconds())
		}
	}
	set("detected", m.Injected, m.Detected)
	set("outOfDNS", m.Injected, m.OutOfDNS)
	set("out", m.Injected, m.Out)
	set("placed", m.Injected, m.Placed)
	set("readyElsewhere", m.Injected, m.ReadyElsewhere)
	set("backReady", m.Recovering, m.BackReady)
	set("backInDNS", m.Recovering, m.BackInDNS)
	set("clean", m.Recovering, m.Clean)
}
