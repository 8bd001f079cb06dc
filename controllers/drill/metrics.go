package drill

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/drill/plan"
)

var (
	activeGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_drill_active",
		Help: "1 while a drill has clusters out of service, or brings them back, by its method.",
	}, []string{"method"})
	clusterGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_drill_cluster",
		Help: "1 for each cluster that a drill has out of service, or brings back: alerts about it are the drill's.",
	}, []string{"cluster", "drill"})
	overdue = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "federation_drill_overdue",
		Help: "Drills that have had clusters out of service for a minute longer than spec.holdSeconds, or have brought them back for a minute longer than spec.recoverySeconds.",
	})
	finished = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_drills_total",
		Help: "Drills that have ended, by method and outcome: Succeeded, Failed, Interrupted or Blocked.",
	}, []string{"method", "outcome"})
	markSeconds = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_drill_mark_seconds",
		Help: "Of the last drill of a method that ended: how long after the fault (detected, outOfDNS, lastUse, out, placed, readyElsewhere), or after the way back began (backReady, backInDNS, failback.PERCENT, clean), a mark came.",
	}, []string{"method", "mark"})
	probed = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_drill_probes_total",
		Help: "Questions that probes of drills have asked from this process, by type and result: ok, failed, or unknown where it was its own fault.",
	}, []string{"type", "result"})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() {
		legacyregistry.MustRegister(activeGauge, clusterGauge, overdue, finished, markSeconds, probed)
		startCounting()
	})
}

// startCounting has each counter of finished drills begin at 0: increase of Prometheus does not see the first of a series that begins at 1.
func startCounting() {
	for _, method := range []v1beta1.DrillMethod{v1beta1.DrillShift, v1beta1.DrillEvacuate, v1beta1.DrillIsolation, v1beta1.DrillBlackhole} {
		for _, outcome := range []v1beta1.DrillOutcome{v1beta1.DrillSucceeded, v1beta1.DrillFailed, v1beta1.DrillInterrupted, v1beta1.DrillBlocked} {
			finished.WithLabelValues(string(method), string(outcome)).Add(0)
		}
	}
}

// ObserveProbe counts one question of a probe.
func ObserveProbe(kind v1beta1.DrillProbeType, result string) {
	probed.WithLabelValues(string(kind), result).Inc()
}

// observeActive sets which drills are active, and how many are overdue.
func observeActive(drills []*v1beta1.FailoverDrill, now time.Time) {
	activeGauge.Reset()
	clusterGauge.Reset()
	late := 0
	for _, d := range drills {
		if !d.UnderWay() || d.Status.Phase == v1beta1.DrillBaseline {
			continue
		}
		activeGauge.WithLabelValues(string(d.Spec.Method)).Set(1)
		for _, name := range d.Status.Clusters {
			clusterGauge.WithLabelValues(name, d.Name).Set(1)
		}
		if plan.Overdue(d, now) {
			late++
		}
	}
	overdue.Set(float64(late))
}

// observeFinished counts a finished drill.
func observeFinished(d *v1beta1.FailoverDrill) {
	method := string(d.Spec.Method)
	finished.WithLabelValues(method, string(d.Status.Outcome)).Inc()
	if d.Status.Report == nil {
		return
	}
	markSeconds.DeletePartialMatch(map[string]string{"method": method})
	for mark, after := range d.Status.Report.Marks.Elapsed() {
		markSeconds.WithLabelValues(method, mark).Set(after.Seconds())
	}
}
