package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

// askEvery is the period of probing the federation, and the limit of each probe; awayAfter is how many failed probes in
// a row make it away.
const askEvery, awayAfter = 2 * time.Second, 2

// watchAway calls tell each time the federation goes away or comes back, until ctx ends.
func watchAway(ctx context.Context, ask func(context.Context) error, tell func(away bool)) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for missed := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asking, cancel := context.WithTimeout(ctx, askEvery)
		err := ask(asking)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if missed++; missed == awayAfter {
				klog.ErrorS(err, "The federation is away: answers come from its last known state")
				tell(true)
			}
		default:
			if missed >= awayAfter {
				klog.InfoS("The federation is back")
				tell(false)
			}
			missed = 0
		}
	}
}

// askReady returns a probe of the federation's API: whether it is ready, and whether this server may still read there.
func askReady(kube kubernetes.Interface, heard *lastHeard) func(context.Context) error {
	return func(ctx context.Context) error {
		if _, err := kube.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
			return err
		}
		_, err := kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.InfoConfigMap, metav1.GetOptions{})
		if err == nil {
			heard.now()
		}
		return err
	}
}

// lastHeard is when the federation last let this server read.
type lastHeard struct{ nanos atomic.Int64 }

func (h *lastHeard) now() { h.nanos.Store(time.Now().UnixNano()) }

// ageDesc describes the metric of lastHeard.
var ageDesc = prometheus.NewDesc("federation_dns_server_federation_age_seconds",
	"Time since the federation last let federation-dns read; since the start, before it did at all.", nil, nil)

// Describe is part of prometheus.Collector.
func (h *lastHeard) Describe(to chan<- *prometheus.Desc) { to <- ageDesc }

// Collect is part of prometheus.Collector.
func (h *lastHeard) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, time.Since(time.Unix(0, h.nanos.Load())).Seconds())
}
