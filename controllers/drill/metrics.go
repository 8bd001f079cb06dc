package drill

import (
	"sync"

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
	probed = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_drill_probes_total",
		Help: "Questions that probes of drills have asked from this process, by type and result: ok, failed, or unknown where it was its own fault.",
	}, []string{"type", "result"})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() { legacyregistry.MustRegister(activeGauge, finished, markSeconds, probed) })
}

// ObserveProbe counts a question of a probe.
func ObserveProbe(kind v1beta1.DrillProbeType, result string) {
	probed.WithLabelValues(string(kind), result).Inc()
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
	markSeconds.DeletePartialMatch(map[string]string{"method": method})
	for mark, after := range d.Status.Report.Marks.After() {
		markSeconds.WithLabelValues(method, mark).Set(after.Seconds())
	}
}
