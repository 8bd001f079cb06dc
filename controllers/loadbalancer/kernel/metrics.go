package kernel

import (
	"strings"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	corev1 "k8s.io/api/core/v1"
)

var (
	flowsTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_lb_kernel_connections_total", StabilityLevel: metrics.ALPHA,
		Help: "New connections, and flows of datagrams, that the kernel sent to clusters, by Service, cluster, protocol and result: sent (all of them); refused or unanswered (connections that the client tries again).",
	}, []string{"service", "cluster", "protocol", "result"})
	endedTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_lb_kernel_connections_ended_total", StabilityLevel: metrics.ALPHA,
		Help: "Connections, and flows of datagrams, in the kernel that were ended since their cluster began to fail.",
	}, []string{"protocol"})
	failures = metrics.NewCounter(&metrics.CounterOpts{
		Name: "federation_lb_kernel_write_failures_total", StabilityLevel: metrics.ALPHA,
		Help: "How often rules could not be written into the kernel; connections are passed on in user space until they are.",
	})
	active = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "federation_lb_kernel_active", StabilityLevel: metrics.ALPHA,
		Help: "1 if this process writes the rules by which the kernel passes connections on, 0 if another one does.",
	})
)

// RegisterMetrics registers the metrics of an edge.
func RegisterMetrics() { legacyregistry.MustRegister(flowsTotal, endedTotal, failures, active) }

func observeOutcome(service, cluster string, protocol corev1.Protocol, o outcome) {
	for result, n := range map[string]uint64{"sent": o.asked, "refused": o.refused, "unanswered": uint64(o.undelivered) - o.refused} {
		if n > 0 {
			flowsTotal.WithLabelValues(service, cluster, strings.ToLower(string(protocol)), result).Add(float64(n))
		}
	}
}

func observeEnded(protocol corev1.Protocol) {
	endedTotal.WithLabelValues(strings.ToLower(string(protocol))).Inc()
}

func observeActive(is bool) { active.Set(map[bool]float64{true: 1}[is]) }
