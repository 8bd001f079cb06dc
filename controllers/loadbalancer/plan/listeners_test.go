package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// balanced returns a Service "NAMESPACE/NAME" of the class, so many minutes old.
func balanced(key string, age int, ports ...int32) *corev1.Service {
	namespace, name, _ := strings.Cut(key, "/")
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1_000_000, 0).Add(-time.Duration(age) * time.Minute))},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(v1beta1.LoadBalancerClassName)},
	}
	for _, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: p})
	}
	return s
}

// holding says in its status that a load balancer serves it at a port.
func holding(s *corev1.Service, port int32) *corev1.Service {
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.80", Ports: []corev1.PortStatus{{Port: port, Protocol: corev1.ProtocolTCP}}}}
	return s
}

func worldOf(services ...*corev1.Service) World {
	w := World{Services: map[string]*corev1.Service{}, ServicePorts: PortRanges{{5000, 5999}}}
	for _, s := range services {
		w.Services[s.Namespace+"/"+s.Name] = s
	}
	return w
}

func showListeners(t *Table) string {
	var out []string
	for _, l := range t.Listeners() {
		out = append(out, fmt.Sprintf("%d→%s", l.Port, l.Pool.Key()))
	}
	return strings.Join(out, " ")
}

// TestPortsBelongToOneService: to the one that has it by its status, or else the oldest; never to two.
func TestPortsBelongToOneService(t *testing.T) {
	udp := balanced("shop/dns", 1, 5353)
	udp.Spec.Ports[0].Protocol = corev1.ProtocolUDP
	other := balanced("shop/other", 1, 5000)
	other.Spec.LoadBalancerClass = new("example.com/lb")
	deleted := balanced("shop/deleted", 1, 5000)
	deleted.DeletionTimestamp = new(metav1.Now())
	for name, c := range map[string]struct {
		services []*corev1.Service
		want     string
		reasons  string
	}{
		"one":                         {[]*corev1.Service{balanced("shop/a", 1, 5000, 5001)}, "5000→shop/a 5001→shop/a", ""},
		"the older one":               {[]*corev1.Service{balanced("shop/a", 1, 5000), balanced("bank/b", 2, 5000)}, "5000→bank/b", "Service shop/a: port 5000 is not served: another Service has it"},
		"by name, of the same age":    {[]*corev1.Service{balanced("shop/a", 1, 5000), balanced("bank/b", 1, 5000)}, "5000→bank/b", "Service shop/a: port 5000 is not served: another Service has it"},
		"an old one that asks later":  {[]*corev1.Service{holding(balanced("shop/a", 1, 5000), 5000), balanced("bank/b", 9, 5000)}, "5000→shop/a", "Service bank/b: port 5000 is not served: another Service has it"},
		"one that has another port":   {[]*corev1.Service{holding(balanced("shop/a", 1, 5000), 5000), holding(balanced("bank/b", 9, 5000, 5001), 5001)}, "5000→shop/a 5001→bank/b", "Service bank/b: port 5000 is not served: another Service has it"},
		"a port that is not given":    {[]*corev1.Service{balanced("shop/a", 1, 22)}, "", `Service shop/a: port 22 is not served: this load balancer serves Services at ports "5000-5999" only`},
		"UDP":                         {[]*corev1.Service{udp}, "", "Service shop/dns: port 5353 is not served: protocol UDP: must be TCP, or UDP at a load balancer that serves it"},
		"another class, and deletion": {[]*corev1.Service{other, deleted}, "", ""},
	} {
		table := Routes(worldOf(c.services...))
		var reasons []string
		for _, r := range table.Reasons {
			reasons = append(reasons, r.String())
		}
		if got := showListeners(table); got != c.want || strings.Join(reasons, "; ") != c.reasons {
			t.Errorf("%s: %q, reasons %q; want %q, %q", name, got, reasons, c.want, c.reasons)
		}
		for _, l := range table.Listeners() {
			if !table.Pools()[l.Pool] || !l.Pool.TCP {
				t.Errorf("%s: pool %s is missing, or not one of connections", name, l.Pool)
			}
		}
	}
}

// TestServiceStatus: each load balancer that serves a port, with what becomes of every port.
func TestServiceStatus(t *testing.T) {
	a, b := balanced("shop/a", 2, 5000, 7000), balanced("bank/b", 1, 5000)
	status := ServiceStatus(worldOf(a, b).Services, map[string]string{
		"one": `{"addresses":["192.0.2.2","192.0.2.1"],"servicePorts":"5000-5999"}`, "two": `{"addresses":["192.0.2.3"]}`, "bad": `{`, "worse": `{"addresses":["192.0.2.4"],"servicePorts":"x"}`,
	})
	show := func(key string) string {
		var out []string
		for _, i := range status[key] {
			line := i.IP
			for _, p := range i.Ports {
				line += fmt.Sprintf(" %d", p.Port)
				if p.Error != nil {
					line += " " + *p.Error
				}
			}
			out = append(out, line)
		}
		return strings.Join(out, "; ")
	}
	want := "192.0.2.1 5000 7000 " + PortNotServed + "; 192.0.2.2 5000 7000 " + PortNotServed
	if got := show("shop/a"); got != want {
		t.Errorf("shop/a: %q, want %q", got, want)
	}
	if list, known := status["bank/b"]; !known || list != nil {
		t.Errorf("bank/b, whose port is another's: %v, %t", list, known)
	}
	a.Status.LoadBalancer.Ingress = status["shop/a"]
	b.CreationTimestamp = metav1.NewTime(time.Unix(1, 0))
	if got := showListeners(Routes(worldOf(a, b))); got != "5000→shop/a" {
		t.Errorf("what was written does not keep the port: %q", got)
	}
}

// TestConnectionsArePooledAsRequests: by the same ranks and tiers, with a pool of their own.
func TestConnectionsArePooledAsRequests(t *testing.T) {
	s := balanced("shop/a", 1, 5000)
	s.Annotations = map[string]string{v1beta1.ProxyProtocolAnnotation: v1beta1.ProxyProtocolV2}
	in := PoolInput{ID: PoolID{Namespace: "shop", Service: "a", Port: 5000, TCP: true}, Site: Site{Region: "east"}, Service: s}
	in.Offers = append(in.Offers, offer("east-a", 0, 100, "192.0.2.1"), offer("east-b", 1, 0, "192.0.2.2"), offer("west-a", 0, 100, "192.0.2.3"))
	p := DecidePool(in)
	if got := show(p); got != "east-a 100, west-a by, east-b by" || p.Protocol != TCP || !p.ProxyProtocol {
		t.Errorf("%s by %s, PROXY protocol %t", got, p.Protocol, p.ProxyProtocol)
	}
	table := Routes(worldOf(s))
	pool := func(id PoolID) (Pool, bool) { return p, id == in.ID }
	if text := TracePort(table, 5000, pool); !strings.HasPrefix(text, "port 5000: connections are passed on as they are\nService shop/a:5000/TCP, by tcp, with a header of PROXY protocol v2\n  100.0 %  east-a 192.0.2.1:5000  serving, tier 0\n") {
		t.Error(text)
	}
	if text := TracePort(table, 5001, pool); text != "port 5001: no Service of the class is served there\n" {
		t.Error(text)
	}
}

// TestDatagrams: a load balancer that serves UDP has ports of both protocols apart, and the status says which one does.
func TestDatagrams(t *testing.T) {
	udp := func(s *corev1.Service) *corev1.Service {
		s.Spec.Ports[0].Protocol = corev1.ProtocolUDP
		return s
	}
	dns, syslog, late := balanced("shop/dns", 3, 5053, 5853), udp(balanced("shop/syslog", 2, 5053)), udp(balanced("shop/late", 1, 5053))
	w := worldOf(dns, syslog, late)
	w.UDP = true
	table := Routes(w)
	var got []string
	for _, l := range table.Listeners() {
		got = append(got, l.Pool.String())
	}
	if want := "shop/dns:5053/TCP shop/syslog:5053/UDP shop/dns:5853/TCP"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	if len(table.Reasons) != 1 || table.Reasons[0].String() != "Service shop/late: port 5053 is not served: another Service has it" {
		t.Errorf("reasons %v", table.Reasons)
	}
	status := ServiceStatus(w.Services, map[string]string{
		"both": `{"addresses":["192.0.2.1"],"servicePorts":"5000-5999","udp":true}`, "tcp": `{"addresses":["192.0.2.2"],"servicePorts":"5000-5999"}`})
	if in := status["shop/syslog"]; len(in) != 1 || in[0].IP != "192.0.2.1" || in[0].Ports[0].Error != nil || in[0].Ports[0].Protocol != corev1.ProtocolUDP {
		t.Errorf("the status of a Service by UDP has %v, want the one load balancer that serves it", in)
	}
	syslog.Status.LoadBalancer.Ingress = status["shop/syslog"]
	syslog.CreationTimestamp = metav1.NewTime(time.Unix(2_000_000, 0))
	if l := Routes(w).Listeners(); l[1].Pool.Key() != "shop/syslog" {
		t.Errorf("what was written does not keep the port: %v", l)
	}
	pool := func(id PoolID) (Pool, bool) {
		return DecidePool(PoolInput{ID: id, Service: w.Services[id.Key()]}), true
	}
	if text := TracePort(table, 5053, pool); !strings.Contains(text, "port 5053: connections are") || !strings.Contains(text, "port 5053: datagrams are passed on as they are\nService shop/syslog:5053/UDP, by udp\n") {
		t.Error(text)
	}
}

// TestCheckPort: a pool of datagrams is checked by a port of its Service with TCP, if that has one.
func TestCheckPort(t *testing.T) {
	s := balanced("shop/dns", 1, 5053, 5853)
	s.Spec.Ports[0].Protocol = corev1.ProtocolUDP
	for id, want := range map[PoolID]uint16{{Port: 5053, UDP: true}: 5853, {Port: 5853, TCP: true}: 0} {
		if p := DecidePool(PoolInput{ID: id, Service: s}); p.CheckPort != want {
			t.Errorf("%s is checked by port %d, want %d", id, p.CheckPort, want)
		}
	}
	if s.Spec.Ports = s.Spec.Ports[:1]; DecidePool(PoolInput{ID: PoolID{UDP: true}, Service: s}).CheckPort != 0 {
		t.Error("a Service by UDP only is checked by TCP")
	}
}

// TestLost: what goes on with a target begins again elsewhere if its checks fail, or for datagrams if the federation does not count on it, and others are used.
func TestLost(t *testing.T) {
	tcp, udp := PoolID{Port: 5000, TCP: true}, PoolID{Port: 5000, UDP: true}
	at := func(cluster, address string) Target {
		return Target{cluster, netip.MustParseAddrPort(address + ":5000")}
	}
	a, b := at("a", "192.0.2.1"), at("b", "192.0.2.2")
	for name, c := range map[string]struct {
		id     PoolID
		ranks  [2]int // of a and b
		health map[Target]Health
		want   string
	}{
		"all is well":                          {tcp, [2]int{0, 0}, nil, ""},
		"checks fail":                          {tcp, [2]int{0, 0}, map[Target]Health{a: {Failing: true}}, "a"},
		"all checks fail":                      {tcp, [2]int{0, 0}, map[Target]Health{a: {Failing: true}, b: {Failing: true}}, ""},
		"ejected":                              {tcp, [2]int{0, 0}, map[Target]Health{a: {Ejected: true}}, ""},
		"drained":                              {tcp, [2]int{rankDrained, 0}, nil, ""},
		"unseen":                               {tcp, [2]int{servicednsplan.RankUnseen, 0}, nil, ""},
		"by datagrams, checks fail":            {udp, [2]int{0, 0}, map[Target]Health{a: {Failing: true}}, "a"},
		"by datagrams, drained":                {udp, [2]int{rankDrained, 0}, nil, ""},
		"by datagrams, unseen":                 {udp, [2]int{servicednsplan.RankUnseen, 0}, nil, "a"},
		"by datagrams, unseen beside drained":  {udp, [2]int{servicednsplan.RankUnseen, rankDrained}, nil, "a"},
		"by datagrams, both are unseen":        {udp, [2]int{servicednsplan.RankUnseen, servicednsplan.RankUnseen}, nil, ""},
		"by datagrams, all fail or are unseen": {udp, [2]int{servicednsplan.RankUnseen, 0}, map[Target]Health{b: {Failing: true}}, "b"},
	} {
		p := DecidePool(PoolInput{ID: c.id, Health: c.health, Offers: []servicednsplan.Offer{offer("a", c.ranks[0], 1, "192.0.2.1"), offer("b", c.ranks[1], 1, "192.0.2.2")}})
		var lost []string
		for _, part := range p.Parts {
			if part.Lost {
				lost = append(lost, part.Cluster)
			}
		}
		if strings.Join(lost, " ") != c.want {
			t.Errorf("%s: lost are %v, want %q", name, lost, c.want)
		}
	}
}

func TestPortRanges(t *testing.T) {
	for _, text := range []string{"", "5432", "5432,9000-9100"} {
		if r, err := ParsePortRanges(text); err != nil || r.String() != text {
			t.Errorf("%q: %q, %v", text, r, err)
		}
	}
	for _, text := range []string{"0", "70000", "9-8", "x", "1,", "1-1001", "1-500,501-1001"} {
		if r, err := ParsePortRanges(text); err == nil {
			t.Errorf("%q is taken: %q", text, r)
		}
	}
}
