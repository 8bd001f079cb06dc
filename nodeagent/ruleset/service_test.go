package ruleset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func TestPoolsAreTheFirstTierThatHasEndpoints(t *testing.T) {
	local := corev1.ServiceExternalTrafficPolicyLocal
	for name, c := range map[string]struct {
		slices         []*discoveryv1.EndpointSlice
		cluster, local string
	}{
		"ready ones": {
			[]*discoveryv1.EndpointSlice{slice("a", "10.180.2.12 @n2", "10.180.2.11 @n1", "10.180.2.13 notready", "10.180.2.14 terminating")},
			"ready: 10.180.2.11:9200 10.180.2.12:9200", "ready on this node: 10.180.2.11:9200"},
		"several slices, an address in two": {
			[]*discoveryv1.EndpointSlice{slice("a", "10.180.2.11 terminating"), slice("b", "10.180.2.11 @n1", "10.180.2.12")},
			"ready: 10.180.2.11:9200 10.180.2.12:9200", "ready on this node: 10.180.2.11:9200"},
		"hints for the zone": {
			[]*discoveryv1.EndpointSlice{slice("a", "10.180.2.11 zone=za", "10.180.2.12 zone=zb zone=za", "10.180.2.13 zone=zb")},
			"ready in this zone: 10.180.2.11:9200 10.180.2.12:9200", "none:"},
		"hints for the node before hints for the zone": {
			[]*discoveryv1.EndpointSlice{slice("a", "10.180.2.11 zone=za fornode=n1", "10.180.2.12 zone=za fornode=n2")},
			"ready on this node: 10.180.2.11:9200", "none:"},
		"hints are ignored where one endpoint has none": {
			[]*discoveryv1.EndpointSlice{slice("a", "10.180.2.11 zone=za", "10.180.2.12")},
			"ready: 10.180.2.11:9200 10.180.2.12:9200", "none:"},
		"hints are ignored where none is for us": {
			[]*discoveryv1.EndpointSlice{slice("a", "10.180.2.11 zone=zb", "10.180.2.12 zone=zc")},
			"ready: 10.180.2.11:9200 10.180.2.12:9200", "none:"},
		"terminating ones that serve, where none is ready": {
			[]*discoveryv1.EndpointSlice{slice("a", "10.180.2.11 @n1 terminating", "10.180.2.12 notready", "10.180.2.13 gone"), remote("east", "ra", "", "203.0.113.1")},
			"terminating, still serving: 10.180.2.11:9200", "terminating, still serving: 10.180.2.11:9200"},
		"a cluster of the region before others": {
			[]*discoveryv1.EndpointSlice{slice("a", "10.180.2.12 notready"), remote("east", "rb", "", "203.0.113.1"), remote("west", "ra", "3", "203.0.113.2")},
			"another cluster of this region, as no endpoint here is ready: 203.0.113.2:9200", "none:"},
		"any cluster": {
			[]*discoveryv1.EndpointSlice{remote("east", "rb", "", "203.0.113.1", "203.0.113.9 notready")},
			"another cluster, as no endpoint here is ready: 203.0.113.1:9200", "none:"},
		"none": {[]*discoveryv1.EndpointSlice{slice("a", "10.180.2.13 gone")}, "none:", "none:"},
	} {
		n := node()
		ports, reasons := Build(&n, es1(func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = local }), c.slices)
		if len(ports) != 1 || len(reasons) != 0 {
			t.Fatalf("%s: %d ports, reasons %q", name, len(ports), reasons)
		}
		if got := backends(ports[0].Cluster); got != c.cluster {
			t.Errorf("%s: cluster pool %q, want %q", name, got, c.cluster)
		}
		if got := backends(ports[0].Local); got != c.local {
			t.Errorf("%s: local pool %q, want %q", name, got, c.local)
		}
	}
}
