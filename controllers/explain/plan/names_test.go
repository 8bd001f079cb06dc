package plan

import "testing"

func TestWhyNoNames(t *testing.T) {
	for object, want := range map[string]string{
		`{"kind":"Service","spec":{"type":"ClusterIP"}}`:                                           "it is of type ClusterIP, and only Services of type LoadBalancer have names",
		`{"kind":"Service","spec":{"type":"LoadBalancer"}}`:                                        "no cluster has a load balancer for it yet",
		`{"kind":"Ingress","spec":{"rules":[{}]}}`:                                                 "its rules have no host",
		`{"kind":"Ingress","spec":{"rules":[{"host":"a.example.org"},{"host":"bexample.test"}]}}`:  "the zone is example.test., and its hosts are not in there: a.example.org, bexample.test",
		`{"kind":"Ingress","spec":{"rules":[{"host":"a.example.org"},{"host":"b.example.test"}]}}`: "no cluster has a load balancer for it yet",
	} {
		if got := WhyNoNames(fromJSON(t, object), "example.test."); got != want {
			t.Errorf("%s: %q, want %q", object, got, want)
		}
	}
}
