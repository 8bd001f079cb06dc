package ruleset

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
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

// A port that cannot be served is left out with a reason, and the others are served; an address that is none, likewise.
func TestWhatCannotBeServedIsLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*corev1.Service)
		want, reason string
	}{
		"all":               {func(*corev1.Service) {}, "http 9200 dns 53", ""},
		"port 0":            {func(s *corev1.Service) { s.Spec.Ports[0].Port = 0 }, "dns 53", `spec.ports "http": port 0 or nodePort 32135 is not from 1 to 65535`},
		"port 65536":        {func(s *corev1.Service) { s.Spec.Ports[0].Port = 65536 }, "dns 53", `spec.ports "http": port 65536 or nodePort 32135 is not from 1 to 65535`},
		"port 65535":        {func(s *corev1.Service) { s.Spec.Ports[0].Port = 65535 }, "http 65535 dns 53", ""},
		"node port -1":      {func(s *corev1.Service) { s.Spec.Ports[1].NodePort = -1 }, "http 9200", `spec.ports "dns": port 53 or nodePort -1 is not from 1 to 65535`},
		"node port 65536":   {func(s *corev1.Service) { s.Spec.Ports[1].NodePort = 65536 }, "http 9200", `spec.ports "dns": port 53 or nodePort 65536 is not from 1 to 65535`},
		"SCTP":              {func(s *corev1.Service) { s.Spec.Ports[1].Protocol = "SCTP" }, "http 9200 dns 53", ""},
		"no protocol":       {func(s *corev1.Service) { s.Spec.Ports[1].Protocol = "" }, "http 9200 dns 53", ""},
		"another protocol":  {func(s *corev1.Service) { s.Spec.Ports[1].Protocol = "ICMP" }, "http 9200", `spec.ports "dns": protocol "ICMP" is none of TCP, UDP, SCTP`},
		"an older API":      {func(s *corev1.Service) { s.Spec.ClusterIPs = nil }, "http 9200 dns 53", ""},
		"no IP address":     {func(s *corev1.Service) { s.Spec.ClusterIPs[0] = "ten" }, "", `spec.clusterIPs: "ten" is no IP address`},
		"an external name":  {func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"web"} }, "http 9200 dns 53", `spec.externalIPs: "web" is no IP address`},
		"a range that none": {func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.1"} }, "http 9200 dns 53", `spec.loadBalancerSourceRanges: "192.0.2.1" is no range like 192.0.2.0/24`},
	} {
		s := es1(func(s *corev1.Service) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "dns", Protocol: "UDP", Port: 53})
		})
		c.change(s)
		ports, reasons := Build(new(node()), s, nil)
		var got []string
		for _, p := range ports {
			at := slices.IndexFunc(p.Frontends, func(f Frontend) bool { return f.Key.Addr == netip.MustParseAddr("10.0.147.93") && f.Kind == ClusterIP })
			got = append(got, p.ID.Port, fmt.Sprint(p.Frontends[at].Key.Port))
		}
		slices.Sort(reasons)
		if reason := strings.Join(slices.Compact(reasons), "; "); strings.Join(got, " ") != c.want || reason != strings.TrimSuffix("Service default/es1: "+c.reason, "Service default/es1: ") {
			t.Errorf("%s: got %q, reason %q; want %q, %q", name, got, reason, c.want, c.reason)
		}
	}
}

// A client stays with its backend if the Service says so: three hours, or as long as it says.
func TestAffinityIsThatOfTheService(t *testing.T) {
	config := func(seconds *int32) *corev1.SessionAffinityConfig {
		return &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: seconds}}
	}
	for _, c := range []struct {
		affinity corev1.ServiceAffinity
		config   *corev1.SessionAffinityConfig
		want     uint32
	}{
		{"", nil, 0}, {corev1.ServiceAffinityNone, config(new(int32(60))), 0}, {corev1.ServiceAffinityClientIP, nil, 10800},
		{corev1.ServiceAffinityClientIP, &corev1.SessionAffinityConfig{}, 10800}, {corev1.ServiceAffinityClientIP, config(nil), 10800},
		{corev1.ServiceAffinityClientIP, config(new(int32(0))), 10800}, {corev1.ServiceAffinityClientIP, config(new(int32(1))), 1}, {corev1.ServiceAffinityClientIP, config(new(int32(86400))), 86400},
	} {
		ports, _ := Build(new(node()), es1(func(s *corev1.Service) { s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = c.affinity, c.config }), nil)
		if got := ports[0].Affinity; got != c.want {
			t.Errorf("%s %v: got %d s, want %d s", c.affinity, c.config, got, c.want)
		}
	}
}

// A load balancer asks a node for its health only where the Service is one for load balancers with the policy Local, and the agent serves it alone.
func TestHealthCheckNodePorts(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(*corev1.Service)
		federated bool
		want      uint16
	}{
		"Local":              {func(*corev1.Service) {}, false, 31000},
		"Local, federated":   {func(*corev1.Service) {}, true, 0},
		"Cluster":            {func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster }, false, 0},
		"of the type Node":   {func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }, false, 0},
		"none":               {func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 0 }, false, 0},
		"one that cannot be": {func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 65536 + 31000 }, false, 0},
	} {
		n := node()
		n.Federated = c.federated
		ports, _ := Build(&n, es1(localOutside, func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 31000 }, c.change), nil)
		if got := ports[0].HealthCheckNodePort; got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

// The policy Local counts only for a Service that is reached from outside, by its type or by external IPs.
func TestTheExternalPolicyIsForWhatIsOutside(t *testing.T) {
	for _, c := range []struct {
		kind     corev1.ServiceType
		external []string
		want     string
	}{
		{corev1.ServiceTypeClusterIP, nil, "cluster masq 10.180.2.2"}, {corev1.ServiceTypeClusterIP, []string{"198.51.100.7"}, "drop"},
		{corev1.ServiceTypeNodePort, nil, "drop"}, {corev1.ServiceTypeLoadBalancer, nil, "drop"},
	} {
		m := New(node())
		s := es1(localOutside, func(s *corev1.Service) { s.Spec.Type, s.Spec.ExternalIPs = c.kind, c.external })
		m.Update(append(m.SetSlice(slice("a", "10.180.2.2 @n2")), m.SetService(s))...)
		if got := goes(m, "tcp 198.18.0.1 104.197.138.206:9200"); got != c.want {
			t.Errorf("%s, external IPs %v: got %q, want %q", c.kind, c.external, got, c.want)
		}
	}
}

// Who may connect to a load balancer's address is asked of each range by itself: of the packet's family, all where one has no bits, and the load balancer's own
// address where the node itself may.
func TestSourceRangesAreAskedOneByOne(t *testing.T) {
	chance := rand.New(rand.NewPCG(41, 1))
	ranges := []string{"198.18.0.0/15", " 198.18.7.9/24 ", "192.0.2.0/24", "2001:db8::/32", "2001:db8:7::/48", "0.0.0.0/0", "::/0", "203.0.113.0/24"}
	froms := []string{"198.18.7.1", "198.19.0.1", "192.0.2.1", "192.0.2.200", "104.197.138.206", "2001:db8::1", "2001:db8:7::1", "fd00::1", "2001:db9::5"}
	for range 3000 {
		var some []string
		for _, r := range ranges {
			if chance.IntN(4) == 0 {
				some = append(some, r)
			}
		}
		m := New(node())
		m.Update(m.SetService(es1(func(s *corev1.Service) {
			s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, "fd00:147::93")
			s.Spec.LoadBalancerSourceRanges = some
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: "2001:db9::5"})
		})))
		from := netip.MustParseAddr(froms[chance.IntN(len(froms))])
		vip := map[bool]string{false: "104.197.138.206", true: "2001:db9::5"}[from.Is6()]
		may, asked, node := false, false, false
		for _, text := range some {
			if r := netip.MustParsePrefix(strings.TrimSpace(text)); r.Addr().Is6() == from.Is6() {
				asked, may = true, may || r.Contains(from)
				node = node || slices.ContainsFunc(m.Node().Addrs, r.Contains)
			}
		}
		may = may || !asked || node && from.String() == vip
		got := m.Trace(Packet{From: from, To: netip.AddrPortFrom(netip.MustParseAddr(vip), 9200), Protocol: "TCP"}).Route.To
		if want := map[bool]Target{true: Reject, false: Drop}[may]; got != want { // there is no endpoint
			t.Fatalf("ranges %q, from %s to %s: got %s, want %s", some, from, vip, got, want)
		}
	}
}

// What is not sent on is not masqueraded, a pool without a route is empty, and the same address is there once, whatever else asks for it.
func TestFrontendsAreNormalized(t *testing.T) {
	chance := rand.New(rand.NewPCG(42, 1))
	addrs := []string{"10.0.147.93", "198.51.100.7", "198.51.100.8", "::ffff:198.51.100.7", "2001:db8:7::1", " 198.51.100.8"}
	some := func() (out []string) {
		for range chance.IntN(4) {
			out = append(out, addrs[chance.IntN(len(addrs))])
		}
		return out
	}
	for range 3000 {
		n := node()
		n.Federated, n.MasqueradeAll = chance.IntN(3) == 0, chance.IntN(2) == 0
		s := es1(annotated(AnnotationFallback, "true"), func(s *corev1.Service) {
			s.Spec.ExternalIPs, s.Status.LoadBalancer.Ingress = some(), nil
			for _, ip := range some() {
				s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
			}
			if chance.IntN(2) == 0 {
				localOutside(s)
			}
			if chance.IntN(2) == 0 {
				localInside(s)
			}
		})
		words := []string{"", "@n1", "notready", "terminating"}
		ports, _ := Build(&n, s, []*discoveryv1.EndpointSlice{slice("a", "10.180.1.1 "+words[chance.IntN(4)]), remote("east", "rb", "", "203.0.113.1")})
		for i, f := range ports[0].Frontends {
			if i > 0 && ports[0].Frontends[i-1].Key.Compare(f.Key) >= 0 {
				t.Fatalf("%s comes after %s", f.Key, ports[0].Frontends[i-1].Key)
			}
			if f.Key.Addr == netip.MustParseAddr("10.0.147.93") && f.Kind != ClusterIP {
				t.Fatalf("the cluster IP is served as %s", f.Kind)
			}
			for _, r := range []Route{f.FromPod, f.FromNode, f.FromOutside} {
				if pool := ports[0].Pool(r.To); (pool == nil) == r.To.LeadsToPool() || pool != nil && len(pool.Backends) == 0 || pool == nil && r.Masquerade {
					t.Fatalf("%s: route %+v to %+v", f.Key, r, pool)
				}
			}
		}
		for _, to := range Pools {
			used := slices.ContainsFunc(ports[0].Frontends, func(f Frontend) bool { return f.FromPod.To == to || f.FromNode.To == to || f.FromOutside.To == to })
			if full := len(ports[0].Pool(to).Backends) > 0; full != used {
				t.Fatalf("pool %s has %v, used %t", to, ports[0].Pool(to), used)
			}
		}
	}
}

// An address is served as what it is, however it is written: with IPv4 inside of IPv6, or with spaces around it.
func TestAddressesAreServedHoweverWritten(t *testing.T) {
	for _, written := range []string{"198.51.100.7", "::ffff:198.51.100.7", " 198.51.100.7", "198.51.100.7 "} {
		ports, _ := Build(new(node()), es1(func(s *corev1.Service) {
			s.Spec.ExternalIPs, s.Status.LoadBalancer.Ingress = nil, []corev1.LoadBalancerIngress{{IP: written}}
		}), nil)
		found := 0
		for _, f := range ports[0].Frontends {
			if f.Key.Addr.String() == "198.51.100.7" {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%q is served %d times as 198.51.100.7, want once", written, found)
		}
	}
}
