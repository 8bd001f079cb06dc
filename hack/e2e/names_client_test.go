package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	questionEvery = 10 * time.Millisecond
	// attemptTimeout and attempts are "options rotate timeout:1 attempts:2" in resolv.conf.
	attemptTimeout, attempts = time.Second, 2
	// afterDetection is how long an address may be given out yet of a cluster that is known not to serve.
	afterDetection = time.Second
)

// reply is what one server said to one attempt.
type reply struct {
	at     time.Time // of the question
	took   time.Duration
	server string
	// rcode is the error where there was no answer.
	rcode     string
	addresses []string
}

// stub asks for the addresses of a name all the time, as the resolver in a C library does: round robin, and the next
// server where one does not answer or says SERVFAIL.
type stub struct {
	name    string
	servers []string
	mu      sync.Mutex
	replies []reply
	// failed are questions to which no server had an answer.
	failed []string
}

// run asks until ctx ends, and returns when the last question has its answer.
func (c *stub) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(questionEvery)
	defer tick.Stop()
	for first := 0; ; first++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			running.Go(func() { c.question(first) })
		}
	}
}

func (c *stub) question(first int) {
	var last reply
	for i := range attempts * len(c.servers) {
		last = c.attempt(c.servers[(first+i)%len(c.servers)])
		if last.rcode == "NOERROR" || last.rcode == "NXDOMAIN" {
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, fmt.Sprintf("at %s: %s", last.at.Format(time.TimeOnly), last.rcode))
}

func (c *stub) attempt(server string) reply {
	m := new(dns.Msg).SetQuestion(dns.Fqdn(c.name), dns.TypeA)
	r := reply{at: time.Now(), server: server}
	in, took, err := (&dns.Client{Timeout: attemptTimeout}).Exchange(m, server)
	if r.took = took; err != nil {
		r.rcode = err.Error()
	} else {
		r.rcode = dns.RcodeToString[in.Rcode]
		for _, rr := range in.Answer {
			if a, ok := rr.(*dns.A); ok {
				r.addresses = append(r.addresses, a.A.String())
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies = append(c.replies, r)
	return r
}

// span is a time in which something held; to is zero while it does.
type span struct{ from, to time.Time }

func (s span) has(at time.Time) bool { return at.After(s.from) && (s.to.IsZero() || at.Before(s.to)) }

// detector looks at what the federation knows of its clusters.
type detector struct {
	mu sync.Mutex
	// out are the times in which a cluster was known not to serve: not ready, or drained.
	out map[string][]span
	// surely is when each was last known not to, at least.
	surely map[string]time.Time
}

func (d *detector) run(ctx context.Context) {
	for last := false; !last; time.Sleep(20 * time.Millisecond) {
		last = ctx.Err() != nil // DNS may have known already what only this look tells
		before := time.Now()
		list, err := s.fed.dyn.Resource(v1beta1.ClustersResource).List(context.WithoutCancel(ctx), metav1.ListOptions{})
		if err != nil {
			continue // it is away, and knows no more than before
		}
		for _, u := range list.Items {
			c := &v1beta1.Cluster{}
			if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c) == nil {
				d.see(c.Name, !c.IsReady() || c.DNSWeight() == 0, before)
			}
		}
	}
}

// see notes what was answered to a question of before.
func (d *detector) see(cluster string, out bool, before time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	spans := d.out[cluster]
	switch was := len(spans) > 0 && spans[len(spans)-1].to.IsZero(); {
	case out && !was:
		d.out[cluster] = append(spans, span{from: time.Now()})
	case !out && was:
		spans[len(spans)-1].to = d.surely[cluster]
	}
	if out {
		d.surely[cluster] = before
	}
}

// last waits until a cluster is found not to serve, and returns since when.
func (d *detector) last(t *testing.T, cluster string) (since time.Time) {
	t.Helper()
	eventually(t, 10*time.Second, func() string {
		d.mu.Lock()
		defer d.mu.Unlock()
		spans := d.out[cluster]
		if len(spans) == 0 || !spans[len(spans)-1].to.IsZero() {
			return cluster + " serves, for all the federation knows"
		}
		since = spans[len(spans)-1].from
		return ""
	})
	return since
}

// judge reports what must not be, and returns how long after its detection a lost cluster was given out at most.
func (c *stub) judge(t *testing.T, d *detector, address map[string]string) (late time.Duration) {
	t.Helper()
	var bad []string
	for _, r := range c.replies {
		if r.rcode == "NXDOMAIN" || r.rcode == "NOERROR" && len(r.addresses) == 0 {
			bad = append(bad, fmt.Sprintf("%s: %s says %s without an address", r.at.Format(time.TimeOnly), r.server, r.rcode))
		}
		for cluster, spans := range d.out {
			for _, out := range spans {
				if !out.has(r.at) || !slices.Contains(r.addresses, address[cluster]) {
					continue
				}
				after := r.at.Sub(out.from)
				if late = max(late, after); after > patience*afterDetection {
					bad = append(bad, fmt.Sprintf("%s: %s gives %s of %s, which is known not to serve since %s", r.at.Format(time.TimeOnly), r.server, address[cluster], cluster, after))
				}
			}
		}
	}
	for _, text := range append(bad[:min(len(bad), 5)], c.failed[:min(len(c.failed), 5)]...) {
		t.Error(text)
	}
	if len(bad)+len(c.failed) > 0 {
		t.Errorf("%d wrong answers, %d questions without an answer", len(bad), len(c.failed))
	}
	return late
}

// figures says how often what was answered.
func (c *stub) figures() string {
	counts, times := map[string]int{}, []time.Duration{}
	for _, r := range c.replies {
		rcode := r.rcode
		switch {
		case strings.Contains(rcode, "refused"):
			rcode = "nobody there"
		case strings.Contains(rcode, "timeout"):
			rcode = "timeout"
		case rcode == "NOERROR":
			times = append(times, r.took)
		}
		counts[rcode]++
	}
	slices.Sort(times)
	return fmt.Sprintf("%d attempts: %v; p50 %s, p99 %s, max %s", len(c.replies), counts, times[len(times)/2], times[len(times)*99/100], times[len(times)-1])
}
