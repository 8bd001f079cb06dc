package ruleset

import (
	"encoding/json"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// FuzzBuild checks that whatever Services and EndpointSlices contain, including those that a cluster's own users write,
// a node serves no clusterset IP beyond the federation's range, nothing of one family at an address of the other, and
// sends to no invalid address.
func FuzzBuild(f *testing.F) {
	add := func(s *corev1.Service, e *discoveryv1.EndpointSlice) {
		service, err1 := json.Marshal(s)
		endpoints, err2 := json.Marshal(e)
		if err1 != nil || err2 != nil {
			f.Fatal(err1, err2)
		}
		f.Add(service, endpoints)
	}
	add(es1(), slice("a", "10.180.2.12 @n2", "10.180.2.11 @n1", "10.180.2.13 notready"))
	add(es1(func(s *corev1.Service) {
		s.Annotations = map[string]string{"federation.kubernetes.io/clusterset-ip": "203.0.113.7", "federation.kubernetes.io/fallback": "x"}
	}), remote("east", "rb", "3", "203.0.113.1"))
	add(es1(func(s *corev1.Service) {
		s.Spec.ClusterIPs, s.Spec.ExternalIPs = []string{"10.0.0.1", "fd00::1", "x"}, []string{"0.0.0.0", "::"}
	}), slice("a"))
	f.Add([]byte(`{"spec":{"clusterIPs":["10.0.0.1"],"ports":[{"port":-1,"nodePort":99999999,"targetPort":"x"}]}}`), []byte(`{"endpoints":[{"addresses":["::ffff:10.0.0.1","1"]}],"ports":[{}]}`))
	f.Fuzz(func(t *testing.T, service, endpoints []byte) {
		s, e, n := &corev1.Service{}, &discoveryv1.EndpointSlice{}, node()
		if json.Unmarshal(service, s) != nil || json.Unmarshal(endpoints, e) != nil {
			return
		}
		ports, _ := Build(&n, s, []*discoveryv1.EndpointSlice{e})
		for _, p := range ports {
			for _, front := range p.Frontends {
				if front.Kind == ClusterSetIP && !inAny(n.ClusterSetIPs, front.Key.Addr) {
					t.Errorf("clusterset IP %s is served", front.Key.Addr)
				}
				if front.Key.Addr.IsValid() && front.Key.Addr.Is6() != p.IPv6 {
					t.Errorf("%s is served, IPv6: %t", front.Key.Addr, p.IPv6)
				}
			}
			for _, to := range p.Living {
				if !to.IsValid() || to.Addr().Is6() != p.IPv6 {
					t.Errorf("%s is an endpoint, IPv6: %t", to, p.IPv6)
				}
			}
		}
	})
}

func inAny(networks []netip.Prefix, a netip.Addr) bool {
	for _, p := range networks {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
