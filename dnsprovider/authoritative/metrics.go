package authoritative

import (
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
)

// counters count answers. Each socket has its own, so that threads do not wait for one another.
type counters struct {
	answers [len(countedTypes) + 1][len(countedCodes) + 1]atomic.Uint64
	limited atomic.Uint64
	// took counts UDP queries by how long it took from their receipt until answers were sent; the last
	// is for what took longer than all bounds.
	took  [len(tookBounds) + 1]atomic.Uint64
	nanos atomic.Uint64
}

// countedTypes and countedCodes are the values that have a count of their own; the others have one together.
var (
	countedTypes = [...]uint16{dns.TypeA, dns.TypeAAAA, dns.TypeCNAME, dns.TypeNS, dns.TypeSOA, dns.TypeTXT, dns.TypeANY}
	countedCodes = [...]int{dns.RcodeSuccess, dns.RcodeNameError, dns.RcodeRefused, dns.RcodeFormatError, dns.RcodeServerFailure, dns.RcodeNotImplemented, dns.RcodeBadVers}
	tookBounds   = [...]time.Duration{10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond,
		250 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond}
)

// count counts an answer.
func (c *counters) count(qtype uint16, rcode int) {
	t, r := 0, 0
	for t < len(countedTypes) && countedTypes[t] != qtype {
		t++
	}
	for r < len(countedCodes) && countedCodes[r] != rcode {
		r++
	}
	c.answers[t][r].Add(1)
}

// observe records how long n queries took that were answered together.
func (c *counters) observe(took time.Duration, n int) {
	i := 0
	for i < len(tookBounds) && took > tookBounds[i] {
		i++
	}
	c.took[i].Add(uint64(n))
	c.nanos.Add(uint64(took) * uint64(n))
}

var (
	answersDesc = prometheus.NewDesc("federation_dns_server_answers_total",
		"Answers of the built-in DNS server, by the type asked for and the code.", []string{"type", "rcode"}, nil)
	limitedDesc = prometheus.NewDesc("federation_dns_server_rate_limited_total",
		"Answers over UDP that were left out or cut to nothing, as their network had had its share.", nil, nil)
	tookDesc = prometheus.NewDesc("federation_dns_server_answer_duration_seconds",
		"Time from the receipt of a query over UDP until answers to all that came with it were sent.", nil, nil)
	ageDesc = prometheus.NewDesc("federation_dns_server_zone_age_seconds",
		"Time since the zone last changed; since the start, before it was given at all.", nil, nil)
	serialDesc = prometheus.NewDesc("federation_dns_server_zone_serial", "Serial number of the zone.", nil, nil)
)

var _ prometheus.Collector = (*Server)(nil)

// Describe is part of prometheus.Collector.
func (s *Server) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{answersDesc, limitedDesc, tookDesc, ageDesc, serialDesc} {
		to <- d
	}
}

// Collect gives the server's metrics; register the server to export them. It is part of prometheus.Collector.
func (s *Server) Collect(to chan<- prometheus.Metric) {
	collectAnswers(s.counters, to)
	var limited, nanos, n uint64
	buckets := map[float64]uint64{}
	for _, c := range s.counters {
		limited += c.limited.Load()
		nanos += c.nanos.Load()
	}
	for i := range len(tookBounds) + 1 {
		for _, c := range s.counters {
			n += c.took[i].Load()
		}
		if i < len(tookBounds) {
			buckets[tookBounds[i].Seconds()] = n
		}
	}
	current := s.zone.current.Load()
	to <- prometheus.MustNewConstMetric(limitedDesc, prometheus.CounterValue, float64(limited))
	to <- prometheus.MustNewConstHistogram(tookDesc, n, time.Duration(nanos).Seconds(), buckets)
	to <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, time.Since(current.made).Seconds())
	to <- prometheus.MustNewConstMetric(serialDesc, prometheus.GaugeValue, float64(current.soa.Serial))
}

func collectAnswers(all []*counters, to chan<- prometheus.Metric) {
	for t := range len(countedTypes) + 1 {
		for r := range len(countedCodes) + 1 {
			var n uint64
			for _, c := range all {
				n += c.answers[t][r].Load()
			}
			if n == 0 {
				continue
			}
			qtype, rcode := "other", "other"
			if t < len(countedTypes) {
				qtype = dns.TypeToString[countedTypes[t]]
			}
			if r < len(countedCodes) {
				rcode = dns.RcodeToString[countedCodes[r]]
			}
			to <- prometheus.MustNewConstMetric(answersDesc, prometheus.CounterValue, float64(n), qtype, rcode)
		}
	}
}
