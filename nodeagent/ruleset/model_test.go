package ruleset

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatStaysTheSameIsNoChange(t *testing.T) {
	m := New(node())
	m.SetSlice(slice("a", "10.180.1.1", "10.180.1.2 notready"))
	if c := m.Update(m.SetService(es1())); len(c.Ports) != 1 || c.Ports[0].Before != nil {
		t.Fatalf("a new Service: %+v", c)
	}
	if c := m.Update(m.SetSlice(slice("a", "10.180.1.1", "10.180.1.3 notready"))...); len(c.Ports) != 0 {
		t.Errorf("an endpoint that is not used changed: %+v", c)
	}
	if c := m.Update(m.SetSlice(slice("a", "10.180.1.1", "10.180.1.3"))...); len(c.Ports) != 1 {
		t.Errorf("an endpoint became ready: %+v", c)
	}
	if c := m.Update(m.DeleteService(Key{"default", "es1"})); len(c.Ports) != 1 || c.Ports[0].After != nil {
		t.Errorf("a Service went: %+v", c)
	}
}

func TestServicesThatAreLeftAlone(t *testing.T) {
	for name, s := range map[string]*corev1.Service{
		"headless":     es1(func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None"} }),
		"ExternalName": es1(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }),
		"other proxy":  es1(func(s *corev1.Service) { s.Labels = map[string]string{LabelServiceProxyName: "other"} }),
		"no address":   es1(func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil }),
	} {
		m := New(node())
		if c := m.Update(m.SetService(s)); len(c.Ports) != 0 || len(c.Reasons) != 0 || len(c.Skipped) != 1 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// What a Service says to two of its ports, and to each slice of its own.
func TestPortsGoByNameAndProtocolInEachSlice(t *testing.T) {
	m := New(node())
	s := es1(func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "dns", Protocol: "UDP", Port: 9200})
	})
	other := slice("b", "10.180.1.2")
	*other.Ports[0].Port = 9999
	m.SetSlice(slice("a", "10.180.1.1"))
	m.SetSlice(other)
	m.Update(m.SetService(s))
	ports := m.PortsOf(Key{"default", "es1"})
	if got := backends(ports[0].Cluster); got != "ready: 10.180.1.1:9200 10.180.1.2:9999" {
		t.Errorf("http: %s", got)
	}
	if got := backends(ports[1].Cluster); got != "none:" {
		t.Errorf("dns: %s", got)
	}
}

func TestFlowsMayGoOnToWhatServes(t *testing.T) {
	s := es1(func(s *corev1.Service) { s.Spec.Ports[0].Protocol = "UDP" })
	udp := slice("a", "10.180.1.1 zone=zb", "10.180.1.2 zone=za", "10.180.1.3 terminating", "10.180.1.4 notready")
	*udp.Ports[0].Protocol = "UDP"
	m := New(node())
	m.SetSlice(udp)
	m.Update(m.SetService(s))
	if got := fmt.Sprint(m.PortsOf(Key{"default", "es1"})[0].Living); got != "[10.180.1.1:9200 10.180.1.2:9200 10.180.1.3:9200]" {
		t.Error(got)
	}
}

func TestAnAddressIsOneServices(t *testing.T) {
	named := func(name string, born int64, change func(*corev1.Service)) *corev1.Service {
		s := es1(change)
		s.Name, s.CreationTimestamp = name, metav1.NewTime(time.Unix(born, 0))
		s.Spec.Ports[0].NodePort, s.Status.LoadBalancer.Ingress = 0, nil
		return s
	}
	m := New(node())
	thief := named("thief", 1, func(s *corev1.Service) {
		s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.ExternalIPs = "10.0.0.9", []string{"10.0.0.9"}, []string{"10.0.147.93"}
	})
	m.Update(m.SetService(thief))
	c := m.Update(m.SetService(named("owner", 2, func(*corev1.Service) {})))
	if len(c.Ports) != 2 || len(c.Reasons) != 1 || !strings.Contains(c.Reasons[0], "10.0.147.93:9200/tcp is that of default/owner:http") {
		t.Errorf("a cluster IP is not an external IP's: %+v", c)
	}
	if c = m.Update(Key{"default", "owner"}, Key{"default", "thief"}); len(c.Ports)+len(c.Reasons) != 0 {
		t.Errorf("what was said is said again: %+v", c)
	}
	if c = m.Update(m.DeleteService(Key{"default", "owner"})); len(c.Ports) != 2 {
		t.Errorf("the address is free again, and the other's: %+v", c)
	}
	if p, _ := m.frontend(sent("tcp 10.0.0.1 10.0.147.93:9200")); p == nil || p.ID.Name != "thief" {
		t.Errorf("%+v has it", p)
	}
}

// Whatever the order of events, the Ports equal those of a model that sees only the end, and the changes add up to
// them.
func TestUpdatesAddUpToABuildFromNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m, held := New(node()), map[string]*Port{}
	services := map[Key]*corev1.Service{}
	for step := range 3000 {
		s := es1()
		s.Name = fmt.Sprint("s", r.IntN(6))
		s.CreationTimestamp = metav1.NewTime(time.Unix(int64(r.IntN(3)), 0))
		s.Spec.ClusterIPs = []string{fmt.Sprint("10.0.0.", r.IntN(5))}
		s.Spec.ExternalIPs = []string{fmt.Sprint("10.0.0.", r.IntN(5))}
		k := Key{s.Namespace, s.Name}
		touched := m.DeleteService(k)
		if delete(services, k); r.IntN(3) > 0 {
			touched, services[k] = m.SetService(s), s
		}
		apply(t, held, m.Update(touched))
		fresh := New(node())
		for _, s := range services {
			fresh.SetService(s)
		}
		fresh.Update(fresh.SetNode(node())...)
		if want, got := fresh.Ports(), m.Ports(); !equal(got, want) || len(held) != len(want) {
			t.Fatalf("step %d: %d ports by changes, %d held, want %d", step, len(got), len(held), len(want))
		}
	}
}

func apply(t *testing.T, held map[string]*Port, c Change) {
	for _, p := range c.Ports {
		if b := p.Before; b != nil {
			if held[b.ID.String()] == nil || !held[b.ID.String()].Equal(b) {
				t.Fatalf("%s changes from what it was not", b.ID)
			}
			delete(held, b.ID.String())
		}
	}
	owner := map[FrontendKey]PortID{}
	for _, p := range c.Ports {
		if p.After != nil {
			held[p.After.ID.String()] = p.After
		}
	}
	for _, p := range held {
		for _, f := range p.Frontends {
			if other, taken := owner[f.Key]; taken {
				t.Fatalf("%s is of %s and %s", f.Key, other, p.ID)
			}
			owner[f.Key] = p.ID
		}
	}
}

func equal(a, b []*Port) bool {
	for i := range a {
		if len(a) != len(b) || !a[i].Equal(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// One change of one Service, whatever the number of others.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{100, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := New(node())
			for i := range n {
				s := es1()
				s.Name = fmt.Sprint("s", i)
				s.Spec.ClusterIPs = []string{netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}).String()}
				s.Spec.Ports[0].NodePort, s.Status.LoadBalancer.Ingress = 0, nil
				m.Update(m.SetService(s))
			}
			m.Update(m.SetService(es1()))
			ten := make([]string, 10)
			for i := range ten {
				ten[i] = fmt.Sprint("10.180.0.", i)
			}
			for i := 0; b.Loop(); i++ {
				ten[9] = fmt.Sprint("10.180.1.", i%200)
				m.Update(m.SetSlice(slice("a", ten...))...)
			}
		})
	}
}
