package ruleset

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// sent returns a packet, as "tcp 10.180.1.1 10.0.147.93:9200".
func sent(text string) Packet {
	w := strings.Fields(text)
	return Packet{Protocol: corev1.Protocol(strings.ToUpper(w[0])), From: netip.MustParseAddr(w[1]), To: netip.MustParseAddrPort(w[2])}
}

// goes returns where a packet ends: the target, "masq" where it is masqueraded, and the backends.
func goes(m *Model, packet string) string {
	p := m.Trace(sent(packet))
	out := string(p.Route.To)
	if p.Route.Masquerade {
		out += " masq"
	}
	for _, b := range p.Pool.Backends {
		out += " " + b.Addr.Addr().String()
	}
	return out
}

func external(change ...func(*corev1.Service)) *corev1.Service {
	return es1(append(change, func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"198.51.100.7"} })...)
}

func localOutside(s *corev1.Service) {
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}

func localInside(s *corev1.Service) {
	local := corev1.ServiceInternalTrafficPolicyLocal
	s.Spec.InternalTrafficPolicy = &local
}

func TestWherePacketsGo(t *testing.T) {
	const pod, host, outside = "10.180.9.9", "192.0.2.1", "198.18.0.1"
	const clusterIP, nodePort, lb, ext = "10.0.147.93:9200", "192.0.2.1:32135", "104.197.138.206:9200", "198.51.100.7:9200"
	two := slice("a", "10.180.1.1 @n1", "10.180.2.2 @n2")
	away := slice("a", "10.180.2.2 @n2")
	east := remote("east", "rb", "", "203.0.113.1")
	type packets map[string]string
	for name, c := range map[string]struct {
		service *corev1.Service
		slice   *discoveryv1.EndpointSlice
		want    packets
	}{
		"policies Cluster": {external(), two, packets{
			pod + " " + clusterIP:        "cluster 10.180.1.1 10.180.2.2",
			host + " " + clusterIP:       "cluster masq 10.180.1.1 10.180.2.2",
			outside + " " + clusterIP:    "cluster masq 10.180.1.1 10.180.2.2",
			outside + " " + nodePort:     "cluster masq 10.180.1.1 10.180.2.2",
			pod + " " + lb:               "cluster masq 10.180.1.1 10.180.2.2",
			outside + " " + ext:          "cluster masq 10.180.1.1 10.180.2.2",
			pod + " 10.0.147.93:9201":    "reject",
			pod + " 104.197.138.206:22":  "",
			pod + " 10.180.2.2:9200":     "",
			outside + " 127.0.0.1:32135": "",
		}},
		"external policy Local": {external(localOutside), two, packets{
			pod + " " + clusterIP:    "cluster 10.180.1.1 10.180.2.2",
			outside + " " + nodePort: "local 10.180.1.1",
			outside + " " + lb:       "local 10.180.1.1",
			pod + " " + lb:           "cluster 10.180.1.1 10.180.2.2",
			host + " " + ext:         "cluster masq 10.180.1.1 10.180.2.2",
		}},
		"external policy Local, no endpoint here": {external(localOutside), away, packets{
			outside + " " + nodePort: "drop",
			outside + " " + lb:       "drop",
			pod + " " + lb:           "cluster 10.180.2.2",
			host + " " + nodePort:    "cluster masq 10.180.2.2",
		}},
		"internal policy Local": {external(localInside), two, packets{
			pod + " " + clusterIP:    "local 10.180.1.1",
			outside + " " + nodePort: "cluster masq 10.180.1.1 10.180.2.2",
		}},
		"internal policy Local, no endpoint here": {external(localInside), away, packets{
			pod + " " + clusterIP: "drop",
		}},
		"no endpoint": {external(localOutside, localInside), slice("a"), packets{
			pod + " " + clusterIP: "reject", outside + " " + nodePort: "reject", pod + " " + lb: "reject", outside + " " + ext: "reject",
		}},
		"only another cluster has endpoints: not for what comes from outside": {external(), east, packets{
			pod + " " + clusterIP:    "cluster 203.0.113.1",
			pod + " " + lb:           "cluster masq 203.0.113.1",
			outside + " " + lb:       "reject",
			outside + " " + nodePort: "reject",
		}},
		"a Local policy does not fail over": {external(localOutside, localInside), east, packets{
			pod + " " + clusterIP: "reject", outside + " " + lb: "reject",
		}},
		"source ranges are for load balancer IPs": {external(func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{"198.18.0.0/16 ", "192.0.2.0/24", "2001:db8::/32"}
		}), two, packets{
			outside + " " + lb:       "cluster masq 10.180.1.1 10.180.2.2",
			"198.19.0.1 " + lb:       "drop",
			"198.19.0.1 " + ext:      "cluster masq 10.180.1.1 10.180.2.2",
			"198.19.0.1 " + nodePort: "cluster masq 10.180.1.1 10.180.2.2",
			"104.197.138.206 " + lb:  "cluster masq 10.180.1.1 10.180.2.2",
		}},
		"load balancer IPs of the mode Proxy are left to the load balancer": {external(func(s *corev1.Service) {
			proxy := corev1.LoadBalancerIPModeProxy
			s.Status.LoadBalancer.Ingress[0].IPMode = &proxy
		}), two, packets{pod + " " + lb: ""}},
	} {
		m := New(node())
		m.Update(append(m.SetSlice(c.slice), m.SetService(c.service))...)
		for packet, want := range c.want {
			if got := goes(m, "tcp "+packet); got != want {
				t.Errorf("%s: %s goes %q, want %q", name, packet, got, want)
			}
		}
	}
}

func TestNodePortsAreServedAtTheAddressesGiven(t *testing.T) {
	n := node()
	n.Addrs = append(n.Addrs, netip.MustParseAddr("192.0.2.99"))
	n.NodePortAddrs = []netip.Addr{netip.MustParseAddr("192.0.2.99")}
	m := New(n)
	m.Update(append(m.SetSlice(slice("a", "10.180.1.1")), m.SetService(es1()))...)
	for to, want := range map[string]string{"192.0.2.99": "cluster masq 10.180.1.1", "192.0.2.1": ""} {
		if got := goes(m, "tcp 198.18.0.1 "+to+":32135"); got != want {
			t.Errorf("node port at %s: %q, want %q", to, got, want)
		}
	}
}

func TestBothFamiliesHaveTheirOwnEndpoints(t *testing.T) {
	m := New(node())
	six := slice("six", "fd00:180::1")
	six.AddressType = discoveryv1.AddressTypeIPv6
	m.SetSlice(six)
	m.SetSlice(slice("four", "10.180.1.1"))
	m.Update(m.SetService(es1(func(s *corev1.Service) { s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, "fd00:147::93") })))
	for packet, want := range map[string]string{
		"fd00:180::9 [fd00:147::93]:9200":   "cluster fd00:180::1",
		"10.180.9.9 10.0.147.93:9200":       "cluster 10.180.1.1",
		"2001:db8:9::1 [2001:db8::1]:32135": "cluster masq fd00:180::1",
	} {
		if got := goes(m, "tcp "+packet); got != want {
			t.Errorf("%s goes %q, want %q", packet, got, want)
		}
	}
}

func TestATraceReadsAsAnExplanation(t *testing.T) {
	m := New(node())
	s := es1(func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
	m.Update(append(m.SetSlice(slice("a", "10.180.2.11", "10.180.2.12")), m.SetService(s))...)
	got := fmt.Sprintln(strings.Join(m.Trace(sent("tcp 10.180.2.11 10.0.147.93:9200")).Steps, "\n"))
	want := `tcp 10.180.2.11 → 10.0.147.93:9200
10.0.147.93:9200/tcp is the cluster IP of default/es1:http (KUBE-SVC-LAS23QA33HXV7KBL)
from a pod of this node or cluster: one of 2 backends (ready)
unless 10.180.2.11 had one within 10800 s: then the same
→ 10.180.2.11:9200, 50.0 % of new connections, masqueraded, as it goes back to where it is from
→ 10.180.2.12:9200, 50.0 % of new connections, source address kept
`
	if got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}
