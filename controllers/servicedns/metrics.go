package servicedns

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/apiserver/apis/federation/v1beta1"
)

var (
	recordCount = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_dns_records",
		Help: "Record sets that the federation has in DNS, by provider.",
	}, []string{"provider"})
	providerUp = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "federation_dns_provider_published",
		Help: "1 where the provider has all records, 0 where the last attempt failed, changes have waited for 10 s, or it reported success for records that are not there.",
	}, []string{"provider"})
	applySeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name:    "federation_dns_apply_duration_seconds",
		Help:    "Time that the DNS provider took for a set of changes, by provider and result (ok, error).",
		Buckets: metrics.ExponentialBuckets(0.0001, 4, 10),
	}, []string{"provider", "result"})
	changeSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name:    "federation_dns_change_duration_seconds",
		Help:    "Time from the first sight of a change of an object, Cluster or host to its publication in DNS, by provider.",
		Buckets: metrics.ExponentialBuckets(0.0001, 4, 10),
	}, []string{"provider"})
	repairs = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "federation_dns_drift_corrections_total",
		Help: "Names at which a provider's zone differed from what was applied and was corrected, by provider.",
	}, []string{"provider"})
	checkSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name:    "federation_dns_health_check_duration_seconds",
		Help:    "Time that a load balancer took for a check, by type (TCP, HTTP, HTTPS) and outcome (ok, failed; unknown: it could not be asked from here).",
		Buckets: metrics.ExponentialBuckets(0.001, 4, 9),
	}, []string{"type", "outcome"})
	checksFailing = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "federation_dns_health_checks_failing",
		Help: "Load balancers that do not answer the checks that objects ask for, counted by the process that leads.",
	})
	register sync.Once
)

func registerMetrics() {
	register.Do(func() {
		legacyregistry.MustRegister(recordCount, providerUp, applySeconds, changeSeconds, repairs, checkSeconds, checksFailing)
	})
}

// observeApply records a call of a provider, and the age of its oldest change; zero if unknown.
func observeApply(provider string, started, since time.Time, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	applySeconds.WithLabelValues(provider, result).Observe(time.Since(started).Seconds())
	if err == nil && !since.IsZero() {
		changeSeconds.WithLabelValues(provider).Observe(time.Since(since).Seconds())
	}
}

func observeRecords(provider string, n int) { recordCount.WithLabelValues(provider).Set(float64(n)) }

func observeRepair(provider string, names int) { repairs.WithLabelValues(provider).Add(float64(names)) }

func observeCheck(check v1beta1.DNSHealthCheckType, outcome string, took time.Duration) {
	checkSeconds.WithLabelValues(string(check), outcome).Observe(took.Seconds())
}

func observeFailing(n int) { checksFailing.Set(float64(n)) }

func observeState(s ProviderState) {
	published := 0.0
	if s.Published {
		published = 1
	}
	providerUp.WithLabelValues(s.Provider).Set(published)
}
