package clients

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	drillplan "federation/controllers/drill/plan"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
	"federation/controllers/loadbalancer/proxy"
	servicednsplan "federation/controllers/servicedns/plan"
)

// listenAs serves as the load balancer of a cluster at 127.0.0.n.
func listenAs(t *testing.T, n byte, port uint16) (addr netip.AddrPort, server *http.Server) {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, n}), port).String())
	if err != nil {
		t.Fatal(err)
	}
	server = &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return l.Addr().(*net.TCPAddr).AddrPort(), server
}

// loadBalancer runs one of the federation's own, which serves www.example.com from these clusters.
func loadBalancer(t *testing.T, clusters ...netip.AddrPort) (port int32) {
	t.Helper()
	accept := func(netip.Addr) error { return nil }
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: int32(clusters[0].Port())}}}}
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: service.Spec.Ports[0].Port}}}
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"}, Spec: networkingv1.IngressSpec{
		IngressClassName: new(v1beta1.IngressClassName), Rules: []networkingv1.IngressRule{{Host: "www.example.com", IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: backend}}},
		}}},
	}}
	p := proxy.New(proxy.Options{Refuse: accept})
	p.SetRoutes(loadbalancerplan.Routes(loadbalancerplan.World{Ingresses: []*networkingv1.Ingress{ingress}, Services: map[string]*corev1.Service{"shop/web": service}}), nil)
	pool := loadbalancerplan.PoolInput{ID: loadbalancerplan.PoolID{Namespace: "shop", Service: "web", Port: service.Spec.Ports[0].Port}, Service: service}
	for i, addr := range clusters {
		pool.Offers = append(pool.Offers, servicednsplan.Offer{Cluster: string(rune('a' + i)), Weight: 100, Addresses: []netip.Addr{addr.Addr()}})
	}
	p.SetPool(pool)
	s, err := p.Listen(t.Context(), proxy.ListenOptions{Address: "127.0.0.1:0", MaxConnections: 1000, MaxOfClient: 1000})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	go func() { _ = s.Serve() }()
	t.Cleanup(func() { cancel(); <-ended; _ = s.Shutdown(ctx) })
	return int32(s.Addr().(*net.TCPAddr).Port)
}

// A probe of a host that the federation's load balancers serve is a client behind them: a cluster that dies costs it nothing, though its name answers
// as before, and that all are gone is seen.
func TestProbesAskThroughLoadBalancers(t *testing.T) {
	at, address, _ := nameserver(t)
	here := "127.0.0.1"
	address.Store(&here) // of the load balancer
	first, a := listenAs(t, 103, 0)
	second, b := listenAs(t, 104, first.Port())
	port := loadBalancer(t, first, second)
	c := New(Options{Resolve: Server(at), Refuse: func(netip.Addr) error { return nil }, TTL: time.Hour, Federation: "fed", Zone: "example.com"})
	c.Want(t.Context(), drillOf(v1beta1.DrillProbe{Name: "front", Host: "www.example.com", Type: v1beta1.ProbeHTTP, Port: port, Path: "/healthz"},
		v1beta1.DrillProbe{Name: "nobody", Host: "nobody.example.com", Type: v1beta1.ProbeHTTP, Port: port}))
	count := func(name string) (found drillplan.Client) {
		for _, one := range c.Counts(time.Now(), time.Minute) {
			if one.Name == name {
				found = one
			}
		}
		return found
	}
	becomes(t, "it is asked", func() bool { return count("front").Asked > 1 })
	_ = a.Close()
	asked := count("front").Asked
	becomes(t, "it is asked while a cluster is gone", func() bool { return count("front").Asked > asked+3 })
	if one := count("front"); one.Failed > 0 {
		t.Errorf("clients behind the load balancer saw the loss of a cluster: %+v", one)
	}
	if one := count("nobody"); one.Failed == 0 || one.LastFailure != "status 404" {
		t.Errorf("a host that no Ingress has: %+v", one)
	}
	_ = b.Close()
	becomes(t, "all clusters are gone", func() bool { return count("front").Failed > 0 })
	c.Want(t.Context(), nil)
}
