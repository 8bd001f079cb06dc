package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer"
	"federation/controllers/loadbalancer/plan"
	"federation/controllers/loadbalancer/proxy"
	servicednsplan "federation/controllers/servicedns/plan"
)

// How much the limits are measured with.
const (
	manyHosts, manyClusters = 1000, 20
	manyChanges             = 10_000
	slowClients             = 10_000
	besideRate              = 1000 // requests a second of the load beside
)

var (
	servicesResource  = corev1.SchemeGroupVersion.WithResource("services")
	ingressesResource = networkingv1.SchemeGroupVersion.WithResource("ingresses")
)

// changeTimes are what the child with many hosts has measured.
type changeTimes struct {
	Ingress, Offer [2]time.Duration // p50 and p99
}

// measuredProxy says when a change has come to the proxy.
type measuredProxy struct {
	*proxy.Proxy
	routed, pooled chan struct{}
}

func (p *measuredProxy) SetRoutes(table *plan.Table, certs map[string]*tls.Certificate) {
	p.Proxy.SetRoutes(table, certs)
	notify(p.routed)
}

func (p *measuredProxy) SetPool(in plan.PoolInput) {
	p.Proxy.SetPool(in)
	notify(p.pooled)
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// fleetOf is a federation of many hosts, as a load balancer watches it.
type fleetOf struct {
	client     *dynamicfake.FakeDynamicClient
	controller *loadbalancer.Controller
	proxy      *measuredProxy
}

// hostName is the n-th host; the first is the one that the load asks for.
func hostName(n int) string {
	if n == 0 {
		return host
	}
	return fmt.Sprintf("h%d.example.test", n)
}

func manyIngress(n, generation int) *unstructured.Unstructured {
	return decoded(&networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web%d", n), Generation: int64(generation)},
		Spec: networkingv1.IngressSpec{IngressClassName: new(v1beta1.IngressClassName), Rules: []networkingv1.IngressRule{{Host: hostName(n), IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{
				{Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: backendOf(n)},
				{Path: fmt.Sprintf("/v%d", generation), PathType: new(networkingv1.PathTypePrefix), Backend: backendOf(n)},
			}}}}}},
	})
}

func backendOf(n int) networkingv1.IngressBackend {
	return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: fmt.Sprintf("web%d", n), Port: networkingv1.ServiceBackendPort{Number: backendPort}}}
}

func manyOffers(but int) (all []servicednsplan.Offer) {
	for c := range manyClusters {
		if c != but {
			all = append(all, servicednsplan.Offer{Cluster: fmt.Sprintf("c%d", c), Weight: 100, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, byte(c + 1)})}})
		}
	}
	return all
}

func decoded(obj any) *unstructured.Unstructured {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(err) // of our own types
	}
	return &unstructured.Unstructured{Object: u}
}

func newFleet(ctx context.Context) *fleetOf {
	var objects []runtime.Object
	offers := map[string][]servicednsplan.Offer{}
	for n := range manyHosts {
		name := fmt.Sprintf("web%d", n)
		objects = append(objects, manyIngress(n, 1), decoded(&corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: backendPort}}},
		}))
		offers["shop/"+name] = manyOffers(-1)
	}
	f := &fleetOf{proxy: &measuredProxy{proxy.New(proxy.Options{Refuse: func(netip.Addr) error { return nil }}), make(chan struct{}, 1), make(chan struct{}, 1)}}
	f.client = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		ingressesResource: "IngressList", servicesResource: "ServiceList", v1beta1.PoliciesResource: "PlacementPolicyList", v1beta1.DNSNameGrantsResource: "DNSNameGrantList",
	}, objects...)
	from := dynamicinformer.NewDynamicSharedInformerFactory(f.client, 0)
	f.controller = loadbalancer.New(loadbalancer.Options{Informers: func(r schema.GroupVersionResource) cache.SharedIndexInformer { return from.ForResource(r).Informer() }, Kube: kubefake.NewClientset(), Proxy: f.proxy})
	f.controller.Offers(offers)
	from.Start(ctx.Done())
	go func() { _ = f.controller.Run(ctx) }() // it ends with the process
	f.controller.WaitReady(ctx)
	return f
}

// serveMany serves many hosts, and for each line of input makes the changes and writes how long they took to be served.
func serveMany() error {
	proxy.CollectSeldom()
	ctx := context.Background()
	f := newFleet(ctx)
	go f.proxy.Run(ctx)
	s, err := f.proxy.Listen(ctx, proxy.ListenOptions{Address: plainAddress, MaxConnections: 2 * slowClients, MaxOfClient: 2 * slowClients})
	if err != nil {
		return err
	}
	go func() { _ = s.Serve() }() // it ends with the process
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var times changeTimes
		ingress, offer := &result{}, &result{}
		for n := range manyChanges / 2 {
			began := time.Now()
			if _, err := f.client.Resource(ingressesResource).Namespace("shop").Update(ctx, manyIngress(n%manyHosts, n+2), metav1.UpdateOptions{}); err != nil {
				return err
			}
			<-f.proxy.routed
			ingress.times = append(ingress.times, time.Since(began))
			began = time.Now()
			f.controller.Offers(map[string][]servicednsplan.Offer{fmt.Sprintf("shop/web%d", n%manyHosts): manyOffers(n % manyClusters)})
			<-f.proxy.pooled
			offer.times = append(offer.times, time.Since(began))
		}
		times.Ingress = [2]time.Duration{ingress.quantile(0.5), ingress.quantile(0.99)}
		times.Offer = [2]time.Duration{offer.quantile(0.5), offer.quantile(0.99)}
		if err := json.NewEncoder(os.Stdout).Encode(times); err != nil {
			return err
		}
	}
	return nil
}

// limits measures a load balancer of many hosts, changes under load, and one with many slow clients.
func (b *bench) limits(self string, roots []byte) (string, error) {
	child := exec.Command(self, "--serve", "many")
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := child.Start(); err != nil {
		return "", err
	}
	defer func() { _ = child.Process.Kill() }() // it has nothing to end
	g := newGenerator(loads[0], roots, b.connections)
	defer g.close()
	if err := g.waitReady(); err != nil {
		return "", err
	}
	calm := g.run(b.length, besideRate)
	atRest := usage(child.Process.Pid).RSS
	changed := make(chan *result)
	stop := make(chan struct{})
	go func() { changed <- g.runUntil(stop, besideRate) }()
	if _, err := io.WriteString(in, "change\n"); err != nil {
		return "", err
	}
	began := time.Now()
	var times changeTimes
	err = json.NewDecoder(out).Decode(&times)
	took := time.Since(began)
	close(stop)
	during := <-changed
	if err != nil {
		return "", err
	}
	afterChanges := usage(child.Process.Pid).RSS
	_ = child.Process.Kill() // its address is for the next
	_ = child.Wait()         // it was killed
	slow, err := b.slowClients(self, g)
	if err != nil {
		return "", err
	}
	var w strings.Builder
	fmt.Fprintf(&w, "\n### Limits\n\nfederation-lb with %d hosts in %d clusters each, and %d requests a second beside:\n\n| | |\n|---|---|\n", manyHosts, manyClusters, besideRate)
	fmt.Fprintf(&w, "| memory | %d MB; %d MB after the changes |\n", atRest>>20, afterChanges>>20)
	fmt.Fprintf(&w, "| %d changes, one after the other | %v; an Ingress is served after p50 %v, p99 %v, what a cluster has after %v, %v |\n", manyChanges, took.Round(10*time.Millisecond), rounded(times.Ingress[0]), rounded(times.Ingress[1]), rounded(times.Offer[0]), rounded(times.Offer[1]))
	fmt.Fprintf(&w, "| requests beside the changes | %d, %d failed, p99 %v; %v before |\n", during.requests, during.failed, rounded(during.quantile(0.99)), rounded(calm.quantile(0.99)))
	return w.String() + slow, nil
}

// slowClients measures what many clients cost that send a head byte by byte, and what it does to others.
func (b *bench) slowClients(self string, g *generator) (string, error) {
	child := exec.Command(self, "--serve", "ours", "--dir", b.dir)
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		return "", err
	}
	defer func() { _ = child.Process.Kill() }() // it has nothing to end
	g.close()
	clear(g.open)
	if err := g.waitReady(); err != nil {
		return "", err
	}
	before := g.run(2*b.length, besideRate)
	atRest := usage(child.Process.Pid).RSS
	slow, err := newSlowClients(slowClients)
	if err != nil {
		return "", err
	}
	defer slow.close()
	beside := g.run(4*b.length, besideRate)
	held := usage(child.Process.Pid).RSS
	return fmt.Sprintf("| %d clients that send a byte of a head each second, without the many hosts | %d MB, %d MB before: %.1f KB each; requests beside: %d, %d failed, p99 %v, %v before |\n",
		slowClients, held>>20, atRest>>20, float64(held-atRest)/1024/slowClients, beside.requests, beside.failed, rounded(beside.quantile(0.99)), rounded(before.quantile(0.99))), nil
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// crowd are clients that send a byte of a head each second, over connections that they open again when they are closed.
type crowd struct {
	stop chan struct{}
	done chan struct{}
}

func newSlowClients(number int) (*crowd, error) {
	conns := make([]net.Conn, number)
	dial := func(n int) (err error) {
		conns[n], err = net.DialTimeout("tcp", plainAddress, 5*time.Second)
		return err
	}
	for n := range conns {
		if err := dial(n); err != nil {
			return nil, err
		}
	}
	c := &crowd{make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(c.done)
		head := []byte("GET /" + strings.Repeat("a", 100))
		for at := 0; ; at++ {
			for n := range conns {
				if _, err := conns[n].Write(head[at%len(head):][:1]); err != nil {
					_ = conns[n].Close() // it has been closed
					_ = dial(n)          // the next write says if not
				}
			}
			select {
			case <-c.stop:
				for n := range conns {
					_ = conns[n].Close() // the run is over
				}
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return c, nil
}

func (c *crowd) close() {
	close(c.stop)
	<-c.done
}
