package iptables

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/nodeagent/nettest"
	"federation/nodeagent/ruleset"
)

// world is a rig whose first node has our rules, by the model from Services.
type world struct {
	*testing.T
	rig    *nettest.Rig
	node   *nettest.Node
	model  *ruleset.Model
	writer *Writer
}

var (
	vip      = netip.MustParseAddrPort("10.96.0.10:80")
	lb       = netip.MustParseAddrPort("203.0.113.7:80")
	nodePort = netip.MustParseAddrPort("192.0.2.10:30080")
)

func newWorld(t *testing.T, rig *nettest.Rig, b Backend) *world {
	n := ruleset.Node{
		Name: "node-0", Addrs: []netip.Addr{nodePort.Addr()},
		Pods: ruleset.Pods{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.180.0.0/16")}},
	}
	w := &world{t, rig, rig.Nodes[0], ruleset.New(n), New(Config{Backend: b, IPv4: true})}
	in(t, w.node, func() error { return w.writer.Sync(t.Context(), w.model.Node(), nil) })
	return w
}

// serve has a Service lead to these pods, and writes what that changes.
func (w *world) serve(name string, change func(*corev1.Service), pods ...*nettest.Host) {
	w.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, ClusterIP: vip.Addr().String(), ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster,
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30080, Protocol: "TCP"}, {Name: "dns", Port: 53, NodePort: 30053, Protocol: "UDP"}},
	}, Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: lb.Addr().String()}}}}}
	if change != nil {
		change(service)
	}
	keys := append(w.model.SetSlice(w.slice(name, pods)), w.model.SetService(service))
	c := w.model.Update(keys...)
	in(w.T, w.node, func() error { return w.writer.Write(w.Context(), w.model.Node(), c.Ports) })
}

func (w *world) slice(name string, pods []*nettest.Host) *discoveryv1.EndpointSlice {
	http, dns, tcp, udp, n8080, n53 := "http", "dns", corev1.ProtocolTCP, corev1.ProtocolUDP, int32(8080), int32(53)
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &http, Protocol: &tcp, Port: &n8080}, {Name: &dns, Protocol: &udp, Port: &n53}},
	}
	for _, p := range pods {
		e, addr := discoveryv1.Endpoint{}, p.Address(vip.Addr())
		e.Addresses = []string{addr.String()}
		if w.node.PodsV4.Contains(addr) {
			here := "node-0"
			e.NodeName = &here
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

// arrives checks who answers a client, and which address of it is seen there.
func (w *world) arrives(client *nettest.Host, to netip.AddrPort, want nettest.Answer) {
	w.Helper()
	if got, err := client.Get(to); err != nil || got != want {
		w.Errorf("%s → %s: %v %v, want %v", client.Name, to, got, err, want)
	}
}

func (w *world) refused(client *nettest.Host, to netip.AddrPort) {
	w.Helper()
	if err := client.Refused(to); err != nil {
		w.Errorf("%s → %s: not refused at once: %v", client.Name, to, err)
	}
}

// dropped checks that there is no answer, and no refusal.
func (w *world) dropped(client *nettest.Host, to netip.AddrPort) {
	w.Helper()
	if c, err := client.Dial(to); err == nil || client.Refused(to) == nil {
		w.Errorf("%s → %s: %v %v, want no answer", client.Name, to, c, err)
	}
}

func TestWhatArrives(t *testing.T) {
	eachBackend(t, func(t *testing.T, _ *nettest.Node, b Backend) {
		rig := nettest.New(t)
		here, there, client := rig.Nodes[0].Pod(t, "here"), rig.Nodes[1].Pod(t, "there"), rig.Nodes[0].Pod(t, "client")
		for _, h := range []*nettest.Host{here, there} {
			h.ServeHTTP(t, 8080)
			h.ServeUDP(t, 53)
		}
		// A node has a default route; ours leads outside, which has no rules.
		rig.Nodes[0].Route(t, netip.MustParsePrefix("0.0.0.0/0"), rig.Outside.Address(vip.Addr()))
		for _, p := range []netip.AddrPort{vip, lb} {
			rig.Outside.Route(t, netip.PrefixFrom(p.Addr(), 32), nodePort.Addr())
		}
		w := newWorld(t, rig, b)
		pod, host, outside := client.Address(vip.Addr()), nodePort.Addr(), rig.Outside.Address(vip.Addr())

		w.serve("web", nil, there)
		w.arrives(client, vip, nettest.Answer{Server: "there", Client: pod})
		w.arrives(rig.Nodes[0].Host, vip, nettest.Answer{Server: "there", Client: host})
		w.arrives(rig.Outside, vip, nettest.Answer{Server: "there", Client: host})
		w.arrives(rig.Outside, nodePort, nettest.Answer{Server: "there", Client: host})
		w.arrives(rig.Outside, lb, nettest.Answer{Server: "there", Client: host})
		w.arrives(client, lb, nettest.Answer{Server: "there", Client: host})
		w.refused(client, netip.AddrPortFrom(vip.Addr(), 81))
		if got, err := client.Flow(t, netip.AddrPortFrom(vip.Addr(), 53)).Ask(); err != nil || got.Server != "there" {
			t.Errorf("UDP: %v %v", got, err)
		}

		w.serve("web", nil, here)
		w.arrives(client, vip, nettest.Answer{Server: "here", Client: pod})
		gateway := netip.MustParseAddr("10.180.0.1")
		w.arrives(here, vip, nettest.Answer{Server: "here", Client: gateway}) // hairpin

		w.serve("web", func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = "Local" }, here, there)
		for range 8 {
			w.arrives(rig.Outside, nodePort, nettest.Answer{Server: "here", Client: outside})
		}
		w.serve("web", func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = "Local" }, there)
		w.dropped(rig.Outside, nodePort)
		w.arrives(client, lb, nettest.Answer{Server: "there", Client: pod})

		w.serve("web", func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"198.18.0.0/16"} }, here)
		w.dropped(rig.Outside, lb)
		w.arrives(rig.Outside, nodePort, nettest.Answer{Server: "here", Client: gateway})

		w.serve("web", func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }, here, there)
		first, _ := client.Get(vip)
		for range 8 {
			w.arrives(client, vip, first)
		}

		w.serve("web", nil)
		w.refused(client, vip)
		w.refused(rig.Nodes[0].Host, vip)
		w.refused(rig.Outside, nodePort)
	})
}

// Equal shares, within what chance allows: chi-square of three backends stays under 13.8 in 999 of 1000 cases.
func TestSharesAreEqual(t *testing.T) {
	eachBackend(t, func(t *testing.T, _ *nettest.Node, b Backend) {
		rig := nettest.New(t)
		client, pods, count := rig.Nodes[0].Pod(t, "client"), []*nettest.Host{}, map[string]float64{}
		for i := range 3 {
			pods = append(pods, rig.Nodes[0].Pod(t, fmt.Sprint("web-", i)))
			pods[i].ServeHTTP(t, 8080)
		}
		w := newWorld(t, rig, b)
		w.serve("web", nil, pods...)
		const n = 300
		for range n {
			got, err := client.Get(vip)
			if err != nil {
				t.Fatal(err)
			}
			count[got.Server]++
		}
		chi := 0.0
		for _, p := range pods {
			chi += (count[p.Name] - n/3) * (count[p.Name] - n/3) / (n / 3)
		}
		if chi > 13.8 {
			t.Errorf("shares %v: chi-square %.1f", count, chi)
		}
	})
}

// Another hand takes rules away: all, only nat's, or one chain. Watch says so, and a Sync puts them back; what others
// have in the tables stays. Cleanup leaves only that.
func TestWhatOthersFlushComesBack(t *testing.T) {
	eachBackend(t, func(t *testing.T, _ *nettest.Node, b Backend) {
		rig := nettest.New(t)
		server, client := rig.Nodes[0].Pod(t, "server"), rig.Nodes[0].Pod(t, "client")
		server.ServeHTTP(t, 8080)
		w := newWorld(t, rig, b)
		w.serve("web", nil, server)
		w.arrives(client, vip, nettest.Answer{Server: "server", Client: client.Address(vip.Addr())})
		table := "iptables-" + string(b)
		run := func(args ...string) {
			t.Helper()
			in(t, w.node, func() error { return exec.Command(table, args...).Run() })
		}
		chain := prefixCluster + w.model.PortsOf(ruleset.Key{Namespace: "default", Name: "web"})[1].Hash
		for _, harm := range [][]string{{"-t", "nat", "-F"}, {"-t", "filter", "-F"}, {"-t", "nat", "-D", "OUTPUT", "1"}, {"-t", "nat", "-F", chain}} {
			run("-t", "nat", "-A", "OUTPUT", "-d", "198.51.100.1", "-j", "ACCEPT")
			w.look()
			run(harm...)
			if !w.look() {
				t.Errorf("%v: not seen", harm)
			}
			in(t, w.node, func() error { return w.writer.Sync(t.Context(), w.model.Node(), w.model.Ports()) })
			w.arrives(client, vip, nettest.Answer{Server: "server", Client: client.Address(vip.Addr())})
		}
		run("-t", "nat", "-C", "OUTPUT", "-d", "198.51.100.1", "-j", "ACCEPT")
		in(t, w.node, func() error { return w.writer.Cleanup(t.Context()) })
		in(t, w.node, func() error {
			there, err := w.writer.families[0].save(context.Background())
			if err == nil && (len(there.chains) > 0 || len(missing(there)) != len(jumps)) {
				return fmt.Errorf("left over: %v %v", there.chains, there.jumps)
			}
			return err
		})
		run("-t", "nat", "-C", "OUTPUT", "-d", "198.51.100.1", "-j", "ACCEPT")
	})
}

// look is one of Watch's.
func (w *world) look() (lost bool) {
	in(w.T, w.node, func() error {
		lost = w.writer.families[0].look(w.Context(), time.Nanosecond)
		return nil
	})
	return lost
}
