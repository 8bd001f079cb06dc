package behaviours

import (
	"errors"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/nodeagent/nettest"
	"federation/nodeagent/ruleset"
)

// Run checks all behaviours in both families.
func Run(t *testing.T, open func(testing.TB) Writer) {
	for name, check := range map[string]func(*testing.T, *World){
		"a cluster IP":                        clusterIP,
		"each endpoint has its share":         shares,
		"each cluster has its weight":         weights,
		"SCTP":                                sctp,
		"a node port":                         nodePort,
		"node ports at some addresses":        nodePortAddresses,
		"external and load balancer IPs":      externalIPs,
		"source ranges":                       sourceRanges,
		"a pod that reaches itself":           hairpin,
		"the policy Local":                    localPolicy,
		"the internal policy Local":           internalLocal,
		"affinity":                            affinity,
		"what has no endpoint is refused":     noEndpoints,
		"a port that the Service has not":     otherPort,
		"the last endpoint goes":              lastEndpoint,
		"another Service at the same address": rebirth,
		"an endpoint of another cluster":      otherCluster,
		"a clusterset IP":                     clusterSetIP,
		"fewer endpoints than are to be":      scarce,
		"the scope federated":                 scopeFederated,
		"terminating endpoints serve on":      terminating,
		"UDP flows of endpoints that go":      flowsGo,
		"UDP flows of Services that go":       flowsOfGoneServices,
		"UDP flows that live stay":            flowsStay,
		"UDP flows from before their rules":   flowsFromBefore,
		"no connection fails during changes":  churn,
	} {
		for family, ipv6 := range map[string]bool{"IPv4": false, "IPv6": true} {
			t.Run(name+"/"+family, func(t *testing.T) { check(t, NewWorld(t, ipv6, open)) })
		}
	}
}

// refused reports whether an error is a refusal; a node that refuses its own packet gets "not permitted".
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPERM)
}

// silent reports whether an error means no answer at all.
func silent(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

func clusterIP(t *testing.T, w *World) {
	w.Service(t)
	w.Endpoints(t, w.There)
	w.Gets(t, w.Client, w.Web(w.VIP), w.There, w.Client.Address(w.VIP))
	w.Gets(t, w.Nodes[0].Host, w.Web(w.VIP), w.There, w.Node())
	w.Gets(t, w.Outside, w.Web(w.VIP), w.There, w.Node())
	if got, err := w.Client.Flow(t, w.DNS(w.VIP)).Ask(); err != nil || got.Server != w.There.Name {
		t.Errorf("UDP: %v, %v", got, err)
	}
}

func shares(t *testing.T, w *World) {
	w.Service(t)
	w.Endpoints(t, w.Here, w.There)
	w.shared(t, map[*nettest.Host]float64{w.Here: 0.5, w.There: 0.5})
}

func nodePort(t *testing.T, w *World) {
	w.Service(t, nodePorts)
	w.Endpoints(t, w.There)
	at := netip.AddrPortFrom(w.Node(), 30080)
	w.Gets(t, w.Outside, at, w.There, w.Node())
	w.Gets(t, w.Client, at, w.There, w.Node())
	w.Gets(t, w.Nodes[0].Host, at, w.There, w.Node())
	if got, err := w.Outside.Flow(t, netip.AddrPortFrom(w.Node(), 30053)).Ask(); err != nil || got.Server != w.There.Name {
		t.Errorf("UDP: %v, %v", got, err)
	}
	w.Endpoints(t)
	w.Refused(t, w.Outside, w.Node(), 30080, 30053)
	w.Refused(t, w.Client, w.Node(), 30080, 30053)
}

func nodePorts(s *corev1.Service) {
	s.Spec.Type = corev1.ServiceTypeNodePort
	s.Spec.Ports[0].NodePort, s.Spec.Ports[1].NodePort = 30080, 30053
}

func nodePortAddresses(t *testing.T, w *World) {
	node := *w.Model.Node()
	other := w.OtherVIP // what is of the node, and no Service's
	w.Nodes[0].AddAddress(t, other)
	node.NodePortAddrs = []netip.Addr{w.Node()}
	w.Model.SetNode(node)
	w.Sync(t)
	w.Service(t, nodePorts)
	w.Endpoints(t, w.There)
	w.Gets(t, w.Outside, netip.AddrPortFrom(w.Node(), 30080), w.There, w.Node())
	if err := w.Outside.Refused(netip.AddrPortFrom(other, 30080)); err != nil {
		t.Errorf("at an address that is not for node ports: %v", err)
	}
}

func externalIPs(t *testing.T, w *World) {
	for _, kind := range []func(*corev1.Service){w.loadBalancer, w.externalIP} {
		w.Service(t, nodePorts, w.elsewhere, kind)
		w.Endpoints(t, w.There)
		w.Gets(t, w.Outside, w.Web(w.VIP), w.There, w.Node())
		w.Gets(t, w.Client, w.Web(w.VIP), w.There, netip.Addr{})
		w.Endpoints(t)
		w.Refused(t, w.Outside, w.VIP, 80, 53)
	}
}

// elsewhere gives the Service another cluster IP, so that VIP is free for other uses.
func (w *World) elsewhere(s *corev1.Service) {
	s.Spec.ClusterIP, s.Spec.ClusterIPs = w.OtherVIP.String(), []string{w.OtherVIP.String()}
}

func (w *World) loadBalancer(s *corev1.Service) {
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: w.VIP.String()}}
}

func (w *World) externalIP(s *corev1.Service) { s.Spec.ExternalIPs = []string{w.VIP.String()} }

func sourceRanges(t *testing.T, w *World) {
	ranges := func(allowed ...netip.Addr) func(*corev1.Service) {
		return func(s *corev1.Service) {
			for _, a := range allowed {
				s.Spec.LoadBalancerSourceRanges = append(s.Spec.LoadBalancerSourceRanges, netip.PrefixFrom(a, a.BitLen()).String())
			}
		}
	}
	w.Service(t, nodePorts, w.elsewhere, w.loadBalancer, ranges(w.Outside.Address(w.VIP), w.There.Address(w.VIP)))
	w.Endpoints(t, w.There)
	w.Gets(t, w.Outside, w.Web(w.VIP), w.There, w.Node())
	if got, err := w.Client.Flow(t, w.DNS(w.VIP)).Ask(); !silent(err) {
		t.Errorf("from outside of the ranges: %v, %v, want silence", got, err)
	}
	w.Gets(t, w.Client, w.Web(w.OtherVIP), w.There, w.Client.Address(w.VIP)) // the cluster IP has no ranges
	w.Service(t, nodePorts, w.elsewhere, w.loadBalancer, ranges(w.Client.Address(w.VIP)))
	w.Gets(t, w.Client, w.Web(w.VIP), w.There, netip.Addr{})
	if got, err := w.Outside.Flow(t, w.DNS(w.VIP)).Ask(); !silent(err) {
		t.Errorf("from outside of the new ranges: %v, %v, want silence", got, err)
	}
}

func hairpin(t *testing.T, w *World) {
	w.Service(t)
	w.Endpoints(t, w.Here)
	got, err := w.Here.Get(w.Web(w.VIP))
	if err != nil || got.Server != w.Here.Name || got.Client == w.Here.Address(w.VIP) {
		t.Errorf("a pod to itself: %v, %v; want an answer to an address of the node", got, err)
	}
	w.Gets(t, w.Client, w.Web(w.VIP), w.Here, w.Client.Address(w.VIP))
}

func external(local bool) func(*corev1.Service) {
	return func(s *corev1.Service) {
		if local {
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}
	}
}

func localPolicy(t *testing.T, w *World) {
	w.Service(t, nodePorts, w.elsewhere, w.loadBalancer, external(true))
	w.Endpoints(t, w.Here, w.There)
	outside := w.Outside.Address(w.VIP)
	for range 8 {
		w.Gets(t, w.Outside, w.Web(w.VIP), w.Here, outside)
		w.Gets(t, w.Outside, netip.AddrPortFrom(w.Node(), 30080), w.Here, outside)
	}
	w.Endpoints(t, w.There)
	for _, to := range []netip.AddrPort{w.DNS(w.VIP), netip.AddrPortFrom(w.Node(), 30053)} {
		if got, err := w.Outside.Flow(t, to).Ask(); !silent(err) {
			t.Errorf("%s without an endpoint on this node: %v, %v; want silence", to, got, err)
		}
	}
	w.Gets(t, w.Client, w.Web(w.VIP), w.There, w.Client.Address(w.VIP)) // as if it had gone by the load balancer
	w.Gets(t, w.Nodes[0].Host, w.Web(w.VIP), w.There, w.Node())
	w.Gets(t, w.Client, w.Web(w.OtherVIP), w.There, w.Client.Address(w.VIP))
}

func internalLocal(t *testing.T, w *World) {
	w.Service(t, func(s *corev1.Service) {
		local := corev1.ServiceInternalTrafficPolicyLocal
		s.Spec.InternalTrafficPolicy = &local
	})
	w.Endpoints(t, w.Here, w.There)
	for range 8 {
		w.Gets(t, w.Client, w.Web(w.VIP), w.Here, w.Client.Address(w.VIP))
	}
	w.Endpoints(t, w.There)
	if got, err := w.Client.Flow(t, w.DNS(w.VIP)).Ask(); !silent(err) {
		t.Errorf("without an endpoint on this node: %v, %v; want silence", got, err)
	}
}

func affinity(t *testing.T, w *World) {
	seconds := int32(100)
	w.Service(t, nodePorts, func(s *corev1.Service) {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	})
	w.Endpoints(t, w.Here, w.There)
	for _, to := range []netip.AddrPort{w.Web(w.VIP), netip.AddrPortFrom(w.Node(), 30080)} {
		for _, client := range []*nettest.Host{w.Client, w.Outside, w.Nodes[0].Host} {
			if got := w.servers(t, client, to, 16); len(got) != 1 {
				t.Errorf("%s to %s is not kept with one endpoint: %v", client.Name, to, got)
			}
		}
	}
	first, _ := w.Client.Get(w.Web(w.VIP))
	stays := map[string]*nettest.Host{w.Here.Name: w.There, w.There.Name: w.Here}[first.Server]
	w.Endpoints(t, stays) // the client's goes
	w.Gets(t, w.Client, w.Web(w.VIP), stays, netip.Addr{})
	w.Endpoints(t, w.Here, w.There)
	if got := w.servers(t, w.Client, w.Web(w.VIP), 16); got[stays.Name] != 16 {
		t.Errorf("when the old endpoint is back the client is not kept with the new: %v", got)
	}
}

func noEndpoints(t *testing.T, w *World) {
	w.Service(t, nodePorts)
	for _, from := range []*nettest.Host{w.Client, w.Nodes[0].Host, w.Outside} {
		w.Refused(t, from, w.VIP, 80, 53)
		w.Refused(t, from, w.Node(), 30080, 30053)
	}
	w.Endpoints(t, w.There)
	w.Gets(t, w.Client, w.Web(w.VIP), w.There, netip.Addr{})
}

func otherPort(t *testing.T, w *World) {
	w.Service(t)
	w.Endpoints(t, w.There)
	for _, from := range []*nettest.Host{w.Client, w.Nodes[0].Host, w.Outside} {
		w.Refused(t, from, w.VIP, 81, 54)
	}
}

func lastEndpoint(t *testing.T, w *World) {
	w.Service(t)
	w.Endpoints(t, w.There)
	w.Gets(t, w.Client, w.Web(w.VIP), w.There, netip.Addr{})
	w.Endpoints(t)
	w.Refused(t, w.Client, w.VIP, 80, 53)
	w.Endpoints(t, w.Here)
	w.Gets(t, w.Client, w.Web(w.VIP), w.Here, netip.Addr{})
}

func rebirth(t *testing.T, w *World) {
	w.Service(t)
	w.Endpoints(t, w.Here)
	w.Gets(t, w.Client, w.Web(w.VIP), w.Here, netip.Addr{})
	old := w.Model.DeleteService(ruleset.Key{Namespace: "default", Name: "web"})
	reborn := w.Model.SetService(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "reborn"},
		Spec: corev1.ServiceSpec{ClusterIP: w.VIP.String(), ClusterIPs: []string{w.VIP.String()},
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}}},
	})
	w.Model.SetSlice(w.Slice("reborn", w.There))
	w.Apply(t, old, reborn)
	w.Gets(t, w.Client, w.Web(w.VIP), w.There, netip.Addr{})
	w.Refused(t, w.Client, w.VIP, 81, 53)
	w.Apply(t, w.Model.DeleteService(reborn))
	w.silent(t, w.VIP)
}

func terminating(t *testing.T, w *World) {
	s := w.Slice("web", w.There)
	yes, no := true, false
	s.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}
	w.Service(t)
	w.Apply(t, w.Model.SetSlice(s)...)
	w.Gets(t, w.Client, w.Web(w.VIP), w.There, netip.Addr{})
	w.Endpoints(t, w.Here)
	w.Gets(t, w.Client, w.Web(w.VIP), w.Here, netip.Addr{})
}

// answers checks who answers on a flow; nil: it is refused.
func answers(t *testing.T, flow *nettest.Flow, want *nettest.Host) {
	t.Helper()
	got, err := flow.Ask()
	switch {
	case want == nil && !refused(err):
		t.Errorf("flow: answer of %q, %v; want it refused", got.Server, err)
	case want != nil && (err != nil || got.Server != want.Name):
		t.Errorf("flow: answer of %q, %v; want %s", got.Server, err, want.Name)
	}
}

func flowsGo(t *testing.T, w *World) {
	w.Service(t, nodePorts)
	w.Endpoints(t, w.There)
	flows := []*nettest.Flow{w.Client.Flow(t, w.DNS(w.VIP)), w.Nodes[0].Flow(t, w.DNS(w.VIP)), w.Outside.Flow(t, netip.AddrPortFrom(w.Node(), 30053))}
	for _, want := range []*nettest.Host{w.There, w.Here, w.There, nil, w.Here} {
		if want == nil {
			w.Endpoints(t)
		} else {
			w.Endpoints(t, want)
		}
		for _, f := range flows {
			answers(t, f, want)
		}
	}
}

// flowsFromBefore has clients send, each from one port, before there are rules; the kernel's entries of that must not
// outlive the arrival of the rules. Another UDP Service has just been deleted, or there never was one.
func flowsFromBefore(t *testing.T, w *World) {
	all := func(s *corev1.Service) {
		nodePorts(s)
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		s.Spec.ExternalIPs = []string{w.OtherVIP.String()}
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: w.nth(1).String()}}
	}
	w.Outside.Route(t, netip.PrefixFrom(w.nth(1), w.VIP.BitLen()), w.Node())
	node := netip.AddrPortFrom(w.Node(), 30053)
	for _, another := range []bool{false, true, true} {
		if another {
			w.Service(t, func(s *corev1.Service) {
				s.Name, s.Spec.ClusterIP = "another", w.nth(2).String()
				s.Spec.ClusterIPs, s.Spec.Type = []string{s.Spec.ClusterIP}, corev1.ServiceTypeNodePort
				s.Spec.Ports[0].NodePort, s.Spec.Ports[1].NodePort = 30081, 30054
			})
			w.Apply(t, w.Model.SetSlice(w.Slice("another", w.Here))...)
			w.Apply(t, w.Model.DeleteService(ruleset.Key{Namespace: "default", Name: "another"}))
		}
		flows := map[string]*nettest.Flow{
			"a pod asks the cluster IP": w.Client.Flow(t, w.DNS(w.VIP)), "the node asks the cluster IP": w.Nodes[0].Flow(t, w.DNS(w.VIP)),
			"outside asks the node port": w.Outside.Flow(t, node), "a pod asks the node port": w.Client.Flow(t, node), "the node asks its node port": w.Nodes[0].Flow(t, node),
			"outside asks the external IP": w.Outside.Flow(t, w.DNS(w.OtherVIP)), "a pod asks the external IP": w.Client.Flow(t, w.DNS(w.OtherVIP)),
			"outside asks the load balancer": w.Outside.Flow(t, w.DNS(w.nth(1))), "a pod asks the load balancer": w.Client.Flow(t, w.DNS(w.nth(1))),
		}
		for who, got := range askAll(flows) {
			if got != "" {
				t.Fatalf("%s before there are rules: answer of %q", who, got)
			}
		}
		w.Endpoints(t, w.There)
		w.Service(t, all)
		for who, got := range askAll(flows) {
			if got != w.There.Name {
				t.Errorf("%s, as before there were rules; another Service went: %t: answer of %q", who, another, got)
			}
		}
		w.Apply(t, w.Model.DeleteService(ruleset.Key{Namespace: "default", Name: "web"}))
		w.Endpoints(t)
	}
}

// askAll returns who answers each of the flows; "": nobody.
func askAll(flows map[string]*nettest.Flow) map[string]string {
	var mu sync.Mutex
	var group sync.WaitGroup
	out := map[string]string{}
	for who, f := range flows {
		group.Go(func() {
			got, err := f.Ask()
			mu.Lock()
			defer mu.Unlock()
			if out[who] = got.Server; err != nil {
				out[who] = ""
			}
		})
	}
	group.Wait()
	return out
}

func flowsOfGoneServices(t *testing.T, w *World) {
	w.Service(t)
	w.Endpoints(t, w.There)
	flow := w.Client.Flow(t, w.DNS(w.VIP))
	answers(t, flow, w.There)
	w.Apply(t, w.Model.DeleteService(ruleset.Key{Namespace: "default", Name: "web"}))
	if got, err := flow.Ask(); err == nil {
		t.Errorf("a flow of a deleted Service: answer of %q", got.Server)
	}
}

// flowsStay checks that a flow to one endpoint keeps it: when others are added, when it terminates and still serves,
// and when another Service changes. Its server sees one client port all the time.
func flowsStay(t *testing.T, w *World) {
	w.Service(t)
	w.Endpoints(t, w.There)
	flow := w.Client.Flow(t, w.DNS(w.VIP))
	answers(t, flow, w.There)
	w.Endpoints(t, w.Here, w.There)
	answers(t, flow, w.There)
	s := w.Slice("web", w.Here, w.There)
	yes, no := true, false
	s.Endpoints[1].Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}
	w.Apply(t, w.Model.SetSlice(s)...)
	answers(t, flow, w.There)
	w.Apply(t, w.Model.SetSlice(w.Slice("other", w.Here))...)
	answers(t, flow, w.There)
	w.Endpoints(t, w.Here)
	answers(t, flow, w.Here)
}
