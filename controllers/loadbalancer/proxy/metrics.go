package proxy

import (
	"strconv"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Ingresses and clusters bound the labels: what clients send is none.
var (
	requests = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_lb_requests_total", StabilityLevel: metrics.ALPHA,
		Help: "Requests, by Ingress, the cluster that answered, and status code; 499: the client left. Without an Ingress: none matched.",
	}, []string{"ingress", "cluster", "code"})
	durations = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name: "federation_lb_request_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time from the head of a request to the end of its answer, by Ingress.",
		Buckets: []float64{0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60},
	}, []string{"ingress"})
	retries = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_lb_retries_total", StabilityLevel: metrics.ALPHA,
		Help: "Requests that one cluster did not answer and that were sent to another one.",
	}, []string{"from", "to"})
	ejections = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_lb_ejections_total", StabilityLevel: metrics.ALPHA,
		Help: "How often an address of a cluster was ejected because requests failed there.",
	}, []string{"cluster"})
	failing = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_lb_targets_failing", StabilityLevel: metrics.ALPHA,
		Help: "Addresses of a cluster that fail the checks of this load balancer.",
	}, []string{"cluster"})
	refusedTargets = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_lb_targets_refused", StabilityLevel: metrics.ALPHA,
		Help: "Addresses that a cluster says to be its load balancers, counted for each port of a Service, and that are not used since connections would come back: they are those of load balancers of the federation, or of this machine.",
	}, []string{"cluster"})
	connections = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "federation_lb_connections", StabilityLevel: metrics.ALPHA, Help: "Open connections of clients.",
	})
	refused = metrics.NewCounter(&metrics.CounterOpts{
		Name: "federation_lb_connections_refused_total", StabilityLevel: metrics.ALPHA, Help: "Connections closed at once because there were too many, of all or of one client.",
	})
)

var (
	streamsTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_lb_service_connections_total", StabilityLevel: metrics.ALPHA,
		Help: "Connections to ports of Services, and TLS connections that are passed on, that have ended, by Service, cluster and result: ended; broken (by one side, or idle for too long); lost (the cluster began to fail); unreachable (no cluster took it).",
	}, []string{"service", "cluster", "result"})
	streamBytes = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_lb_service_bytes_total", StabilityLevel: metrics.ALPHA,
		Help: "Bytes of connections to ports of Services, and of TLS connections that are passed on, that have ended, by Service, cluster and direction: sent or received by the client.",
	}, []string{"service", "cluster", "direction"})
)

// RegisterMetrics registers the metrics of proxies.
func RegisterMetrics() {
	legacyregistry.MustRegister(requests, durations, retries, ejections, failing, refusedTargets, connections, refused, streamsTotal, streamBytes)
}

func observeRequest(n *record) {
	requests.WithLabelValues(n.ingress, n.cluster, strconv.Itoa(n.status)).Inc()
	durations.WithLabelValues(n.ingress).Observe(time.Since(n.began).Seconds())
}

// observeStream counts a connection that has ended, and logs it if there is a log.
func observeStream(n *streamRecord, log *accessLog) {
	service := n.service()
	streamsTotal.WithLabelValues(service, n.cluster, n.result).Inc()
	streamBytes.WithLabelValues(service, n.cluster, "sent").Add(float64(n.sent))
	streamBytes.WithLabelValues(service, n.cluster, "received").Add(float64(n.received))
	if log != nil {
		log.add(func(b []byte) []byte { return appendStream(b, n) })
	}
}

func observeOut(cluster string, fails bool) {
	if fails {
		failing.WithLabelValues(cluster).Inc()
	} else {
		failing.WithLabelValues(cluster).Dec()
	}
}
