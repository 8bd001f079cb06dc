package proxy

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// cluster is a server on an address of its own, as the load balancer of a cluster.
type cluster struct {
	name    string
	addr    netip.AddrPort
	server  *http.Server
	seen    atomic.Int64 // requests
	handler atomic.Pointer[http.HandlerFunc]
}

// names answers with the cluster's name.
func (c *cluster) names(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.name) }

// port is that of all clusters, as that of a Service is.
func freePort(t testing.TB) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}

// newCluster starts a server at 127.0.0.n.
func newCluster(t testing.TB, name string, n byte, port uint16) *cluster {
	t.Helper()
	c := &cluster{name: name, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, n}), port)}
	c.does(c.names)
	c.start(t)
	t.Cleanup(func() { _ = c.server.Close() })
	return c
}

func (c *cluster) does(h http.HandlerFunc) { c.handler.Store(&h) }

func (c *cluster) start(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", c.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	c.server = &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.seen.Add(1)
		(*c.handler.Load())(w, r)
	})}
	go func() { _ = c.server.Serve(l) }()
}

func (c *cluster) offer(rank int) servicednsplan.Offer {
	region, _, _ := strings.Cut(c.name, "-")
	return servicednsplan.Offer{Cluster: c.name, Region: region, Weight: 100, Rank: rank, Addresses: []netip.Addr{c.addr.Addr()}}
}

// bed is a proxy with a listener, in region east, with the Ingress shop/web for www.test, whose backend is shop/web.
type bed struct {
	*Proxy
	t      testing.TB
	server *Server
	url    string
	id     plan.PoolID
	in     plan.PoolInput
}

func serviceOf(port uint16, appProtocol string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: int32(port)}}}}
	if appProtocol != "" {
		s.Spec.Ports[0].AppProtocol = &appProtocol
	}
	return s
}

func newBed(t testing.TB, o Options, listen ListenOptions, service *corev1.Service, clusters ...*cluster) *bed {
	t.Helper()
	o.Refuse = func(netip.Addr) error { return nil }
	b := &bed{Proxy: New(o), t: t, id: plan.PoolID{Namespace: "shop", Service: "web", Port: service.Spec.Ports[0].Port}}
	b.SetRoutes(tableOf(service, "www.test", ""), nil)
	b.in = plan.PoolInput{ID: b.id, Site: plan.Site{Region: "east"}, Service: service}
	for _, c := range clusters {
		b.in.Offers = append(b.in.Offers, c.offer(0))
	}
	b.SetPool(b.in)
	b.listen(listen)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return b
}

func (b *bed) listen(o ListenOptions) {
	b.t.Helper()
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.MaxConnections == 0 {
		o.MaxConnections, o.MaxOfClient = 1000, 1000
	}
	var err error
	if b.server, err = b.Listen(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
	b.url = b.server.Addr().String()
	server := b.server
	go func() { _ = server.Serve() }()
	b.t.Cleanup(func() { _ = server.Close() })
}

// tableOf routes a host, and with a Secret also by TLS.
func tableOf(service *corev1.Service, host, secret string) *plan.Table {
	return plan.Routes(plan.World{Services: map[string]*corev1.Service{"shop/web": service}, Ingresses: []*networkingv1.Ingress{ingressOf(service, host, secret)}})
}

func ingressOf(service *corev1.Service, host, secret string) *networkingv1.Ingress {
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: networkingv1.IngressSpec{
			IngressClassName: new(v1beta1.IngressClassName), TLS: []networkingv1.IngressTLS{{SecretName: secret}},
			Rules: []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
				Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: service.Spec.Ports[0].Port}}},
			}}}}}},
		},
	}
}

// twoClusters are east-a, the first choice, and west-a.
func twoClusters(t *testing.T) (port uint16, east, west *cluster) {
	t.Helper()
	port = freePort(t)
	return port, newCluster(t, "east-a", 101, port), newCluster(t, "west-a", 102, port)
}

// do sends a request for www.test, and returns status and body.
func (b *bed) do(method, path string, body io.Reader, headers ...string) (int, string, http.Header) {
	b.t.Helper()
	r, err := http.NewRequest(method, "http://"+b.url+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Host = "www.test"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	answer, err := client.Do(r)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer.StatusCode, string(text), answer.Header
}

var client = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// raw sends bytes over a connection of its own, and returns the status of the first answer; 0 if there was none.
func (b *bed) raw(text string) (status int, header http.Header, body string) {
	b.t.Helper()
	c, err := net.Dial("tcp", b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		b.t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, nil, ""
	}
	if answer.Close {
		answer.Header.Set("Connection", "close")
	}
	all, _ := io.ReadAll(io.LimitReader(answer.Body, max(answer.ContentLength, 0)))
	return answer.StatusCode, answer.Header, string(all)
}

// eventually waits until check returns "". The limit is there to end the test, not to judge speed.
func eventually(t *testing.T, check func() string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		last := check()
		if last == "" {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatal(last)
		}
	}
}

// shares formats the parts of the pool.
func (b *bed) shares() string {
	p, _ := b.Pool(b.id)
	var out []string
	for _, part := range p.Parts {
		out = append(out, fmt.Sprintf("%s %.0f", part.Cluster, 100*part.Share))
	}
	return strings.Join(out, ", ")
}

// certificate makes a certificate for names.
func certificateOf(t *testing.T, names ...string) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}
