package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// fails returns failures of an object's check at these addresses.
func fails(o Object, addresses ...string) map[string]Failure {
	failing := map[string]Failure{}
	for _, address := range addresses {
		key := Target{Namespace: o.Namespace, Address: address, Check: o.Settings.HealthCheck.WithDefaults()}.Key()
		failing[key] = Failure{Target: key, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Why: "status 503"}
	}
	return failing
}

func TestChecks(t *testing.T) {
	three := with(service("east-a=192.0.2.1", "east-b=192.0.2.2", "west-a=192.0.2.3"), `{"healthCheck":{"type":"HTTP"}}`)
	change := func(at int, do func(*Cluster)) []Cluster {
		c := threeClusters()
		do(&c[at])
		return c
	}
	all := []string{"@ A 192.0.2.1 192.0.2.2 192.0.2.3", "a.east A 192.0.2.1", "a.west A 192.0.2.3", "b.east A 192.0.2.2", "east A 192.0.2.1 192.0.2.2", "west A 192.0.2.3"}
	for name, c := range map[string]struct {
		clusters []Cluster
		object   Object
		fails    []string
		want     []string
		static   bool
		reasons  []string
	}{
		"all answer": {threeClusters(), three, nil, all, false, nil},
		"one of three does not: its names lead up": {threeClusters(), three, []string{"192.0.2.3"},
			[]string{"@ A 192.0.2.1 192.0.2.2", "a.east A 192.0.2.1", "a.west CNAME west", "b.east A 192.0.2.2", "east A 192.0.2.1 192.0.2.2", "west CNAME @"}, false,
			[]string{"west-a: it fails the check HTTP 192.0.2.3:80/ from the federation since 2026-01-02T03:04:05Z (status 503): its addresses are out"}},
		"two of three: it may be us": {threeClusters(), three, []string{"192.0.2.1", "192.0.2.2"}, all, true,
			[]string{"east-a: it fails the check", "east-b: it fails the check"}},
		"one of two serves": {change(2, func(c *Cluster) { c.Ready = false }), three, []string{"192.0.2.1"},
			[]string{"@ A 192.0.2.2", "a.east CNAME east", "a.west CNAME west", "b.east A 192.0.2.2", "east A 192.0.2.2", "west CNAME @"}, false,
			[]string{"east-a: it fails the check", "west-a: the cluster is not ready"}},
		"the only one that serves: it may be us": {threeClusters(), with(service("east-a=192.0.2.1", "east-b"), `{"healthCheck":{"type":"HTTP"}}`), []string{"192.0.2.1"},
			[]string{"@ A 192.0.2.1", "a.east A 192.0.2.1", "b.east CNAME east", "east A 192.0.2.1"}, true, []string{"east-a: it fails the check", "east-b: no endpoint"}},
		"beside a drained one that answers": {change(1, func(c *Cluster) { c.Weight = 0 }), with(service("east-a=192.0.2.1", "east-b=192.0.2.2"), `{"healthCheck":{"type":"HTTP"}}`), []string{"192.0.2.1"},
			[]string{"@ A 192.0.2.2", "a.east CNAME east", "b.east CNAME east", "east CNAME @"}, false, []string{"east-a: it fails the check", "east-b: the cluster's DNS weight is 0"}},
		"one address of two answers": {threeClusters(), with(service("east-a=192.0.2.1,2001:db8::1", "east-b=192.0.2.2"), `{"healthCheck":{"type":"HTTP"}}`), []string{"2001:db8::1"},
			[]string{"@ A 192.0.2.1 192.0.2.2", "@ AAAA 2001:db8::1", "a.east A 192.0.2.1", "a.east AAAA 2001:db8::1", "b.east A 192.0.2.2", "east A 192.0.2.1 192.0.2.2", "east AAAA 2001:db8::1"}, false, nil},
		"a host that does not answer": {threeClusters(), with(service("east-a=lb.cloud.test", "east-b=192.0.2.2"), `{"healthCheck":{"type":"HTTP"}}`), []string{"lb.cloud.test."},
			[]string{"@ A 192.0.2.2", "a.east CNAME east", "b.east A 192.0.2.2", "east A 192.0.2.2"}, false, []string{"east-a: it fails the check HTTP lb.cloud.test:80/"}},
		"who does not ask for a check": {threeClusters(), with(service("east-a=192.0.2.1"), `{}`), nil, []string{"@ A 192.0.2.1", "a.east A 192.0.2.1", "east A 192.0.2.1"}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(c.clusters, c.object)
			if c.fails != nil {
				in.Failing = fails(c.object, c.fails...)
			}
			got := Records(in)
			check(t, got, c.want, c.reasons)
			if static(got) != c.static {
				t.Errorf("fail static: %t, want %t", static(got), c.static)
			}
		})
	}
}

// Objects with the same load balancer and check share a target; a different check is a different target.
func TestTargetsAreShared(t *testing.T) {
	a := with(service("east-a=192.0.2.1"), `{"healthCheck":{"type":"HTTP"}}`)
	b := named(with(service("east-a=192.0.2.1"), `{"healthCheck":{"type":"HTTP","port":80,"path":"/","periodSeconds":10}}`), KindService, "b", 1)
	c := named(with(service("east-a=192.0.2.1"), `{"healthCheck":{"type":"HTTPS","host":"c.example.org","failureThreshold":1}}`), KindService, "c", 1)
	var keys []string
	for _, target := range Records(input(threeClusters(), a, b, c)).Targets {
		keys = append(keys, target.Key())
	}
	want := []string{"HTTP 192.0.2.1:80/ of default every 10s timeout 2s rows 3/2", "HTTPS 192.0.2.1:443/ of default host c.example.org every 10s timeout 2s rows 1/2"}
	if strings.Join(keys, "|") != strings.Join(want, "|") {
		t.Errorf("%q, want %q", keys, want)
	}
	unverified := Target{Address: "192.0.2.1", Check: v1beta1.DNSHealthCheck{Type: "HTTPS", InsecureSkipVerify: true}}
	if key := unverified.Key(); !strings.Contains(key, "unverified") {
		t.Errorf("key %q", key)
	}
}

func TestFailuresAreReadAsTheyAreWritten(t *testing.T) {
	a, b := Failure{"HTTP a", time.Date(2026, 1, 1, 0, 0, 0, 5, time.UTC), "refused"}, Failure{"HTTP b", time.Date(2026, 1, 1, 1, 0, 0, 0, time.FixedZone("", 3600)), "slow"}
	text := FormatFailures([]Failure{b, a})
	if text != FormatFailures([]Failure{a, b}) {
		t.Errorf("the order counts: %s", text)
	}
	got, err := ParseFailures(text)
	if err != nil || len(got) != 2 || got["HTTP a"].Why != "refused" || !got["HTTP b"].Since.Equal(b.Since) {
		t.Errorf("%v, %v", got, err)
	}
	if none, err := ParseFailures(""); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
	if _, err := ParseFailures("{"); err == nil || !strings.Contains(err.Error(), "federation-dns-health-checks: failing") {
		t.Errorf("error %v", err)
	}
	var many []Failure
	for i := range 20000 {
		many = append(many, Failure{Target: fmt.Sprintf("HTTP %05d %s", i, strings.Repeat("x", 50))})
	}
	if text := FormatFailures(many); len(text) > maxFailures+10 {
		t.Errorf("%d bytes", len(text))
	} else if got, err := ParseFailures(text); err != nil || len(got) < 5000 {
		t.Errorf("%d failures, %v", len(got), err)
	}
}

func static(p Plan) bool {
	return slices.ContainsFunc(p.Reasons, func(r Reason) bool { return r.Code == FailStatic })
}
