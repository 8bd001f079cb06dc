package loadbalancer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

var (
	ingresses = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	services  = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// proxy remembers what it is given.
type proxy struct {
	mu    sync.Mutex
	table *plan.Table
	certs map[string]*tls.Certificate
	pools map[plan.PoolID]plan.PoolInput
	sets  int
	// fails has the next SetPool panic.
	fails bool
}

func (p *proxy) SetRoutes(table *plan.Table, certs map[string]*tls.Certificate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table, p.certs = table, certs
	for id := range table.Pools() {
		if _, ok := p.pools[id]; !ok {
			panic("a route leads to " + id.String() + ", which the proxy was not given")
		}
	}
}

func (p *proxy) SetPool(in plan.PoolInput) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails {
		p.fails = false
		panic("a pool that cannot be decided")
	}
	p.pools[in.ID] = in
	p.sets++
}

func (p *proxy) DropPool(id plan.PoolID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pools, id)
}

func (p *proxy) Pools() []plan.PoolID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.pools))
}

// show formats the hosts, the pools with their clusters, and the certificates.
func (p *proxy) show() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.table == nil {
		return ""
	}
	lines := []string{"hosts " + strings.Join(p.table.Hosts(), " ")}
	for id, in := range p.pools {
		line := "pool " + id.String()
		for _, o := range in.Offers {
			line += " " + o.Cluster
		}
		if in.ServerName != "" {
			line += " checked as " + in.ServerName
		}
		if in.Settings != nil {
			line += " " + string(in.Settings.Strategy)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	for _, name := range slices.Sorted(maps.Keys(p.certs)) {
		lines = append(lines, "certificate "+name+" of "+p.certs[name].Leaf.DNSNames[0])
	}
	return strings.Join(lines, "\n")
}

// stage is a federation's API with a controller.
type stage struct {
	*testing.T
	*proxy
	dynamic    *dynamicfake.FakeDynamicClient
	kube       *kubefake.Clientset
	controller *Controller
}

func start(t *testing.T, objects ...runtime.Object) *stage {
	t.Helper()
	s := &stage{T: t, proxy: &proxy{pools: map[plan.PoolID]plan.PoolInput{}}, kube: kubefake.NewClientset()}
	s.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		ingresses: "IngressList", services: "ServiceList", v1beta1.PoliciesResource: "PlacementPolicyList", v1beta1.DNSNameGrantsResource: "DNSNameGrantList",
	}, objects...)
	from := dynamicinformer.NewDynamicSharedInformerFactory(s.dynamic, 0)
	s.controller = New(Options{Informers: func(r schema.GroupVersionResource) cache.SharedIndexInformer { return from.ForResource(r).Informer() }, Kube: s.kube, Proxy: s.proxy, Site: plan.Site{Region: "east"}})
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.controller.Run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	from.Start(ctx.Done())
	return s
}

// object reads YAML.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func ingress(t *testing.T, name, host, backend string, generation int) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: shop, name: %s, generation: %d}, spec: {ingressClassName: federation, tls: [{hosts: [%[3]s], secretName: %[3]s}],
		rules: [{host: %[3]s, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: %s, port: {number: 80}}}}]}}]}}`, name, generation, host, backend))
}

func service(t *testing.T, name, strategy string) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {namespace: shop, name: %s, annotations: {federation.kubernetes.io/dns: '{"strategy": "%s"}'}}, spec: {type: LoadBalancer, ports: [{port: 80}]}}`, name, strategy))
}

func offers(clusters ...string) (all []servicednsplan.Offer) {
	for n, c := range clusters {
		all = append(all, servicednsplan.Offer{Cluster: c, Weight: 100, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(n + 1)})}})
	}
	return all
}

// secret is a certificate for a name.
func secret(t *testing.T, name, of string) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{of}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: of}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		corev1.TLSCertKey: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}}
}

// becomes waits until the proxy has what is wanted. The limit is there to end the test, not to judge speed.
func (s *stage) becomes(want string) {
	s.Helper()
	want = strings.ReplaceAll(strings.TrimSpace(want), "\t", "")
	for began := time.Now(); s.show() != want; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			s.Fatalf("the proxy has\n%s\nwant\n%s", s.show(), want)
		}
	}
}

func TestTheProxyHasWhatTheFederationSays(t *testing.T) {
	ctx := t.Context()
	s := start(t, service(t, "web", "Nearest"), service(t, "api", "Failover"), ingress(t, "web", "www.test", "web", 1))
	if err := s.controller.Ready(); err == nil {
		t.Error("ready before anybody has said what clusters have")
	}
	if _, err := s.kube.CoreV1().Secrets("shop").Create(ctx, secret(t, "www.test", "one.test"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.controller.Offers(map[string][]servicednsplan.Offer{"shop/web": offers("east-a", "west-a"), "shop/api": offers("west-a"), "bank/x": offers("east-a")})
	if !s.controller.WaitReady(ctx) {
		t.Fatal("not ready")
	}
	s.becomes(`hosts www.test
		pool shop/web:80 east-a west-a Nearest
		certificate shop/www.test of one.test`)

	s.controller.Offers(map[string][]servicednsplan.Offer{"shop/web": offers("east-a")})
	s.becomes(`hosts www.test
		pool shop/web:80 east-a Nearest
		certificate shop/www.test of one.test`)

	if _, err := s.dynamic.Resource(ingresses).Namespace("shop").Create(ctx, ingress(t, "api", "api.test", "api", 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.becomes(`hosts api.test www.test
		pool shop/api:80 west-a Failover
		pool shop/web:80 east-a Nearest
		certificate shop/www.test of one.test`)

	if _, err := s.dynamic.Resource(ingresses).Namespace("shop").Update(ctx, ingress(t, "web", "www.test", "api", 2), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.becomes(`hosts api.test www.test
		pool shop/api:80 west-a Failover
		certificate shop/www.test of one.test`)

	if _, err := s.dynamic.Resource(services).Namespace("shop").Update(ctx, service(t, "api", "All"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.becomes(`hosts api.test www.test
		pool shop/api:80 west-a All
		certificate shop/www.test of one.test`)

	s.controller.Kept(map[string]servicednsplan.Keep{"www.test.": {Namespace: "bank"}})
	s.becomes(`hosts api.test
		pool shop/api:80 west-a All`)
	s.controller.Kept(map[string]servicednsplan.Keep{})

	if err := s.dynamic.Resource(ingresses).Namespace("shop").Delete(ctx, "api", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.becomes(`hosts www.test
		pool shop/api:80 west-a All
		certificate shop/www.test of one.test`)
}

// TestTLSIsPassedOnWhileTheIngressSaysSo: an annotation changes no generation, and the name of checks follows the hosts.
func TestTLSIsPassedOnWhileTheIngressSaysSo(t *testing.T) {
	s := start(t, service(t, "web", "All"), ingress(t, "web", "www.test", "web", 1))
	s.controller.Offers(map[string][]servicednsplan.Offer{"shop/web": offers("east-a")})
	update := func(host string, generation int, annotations map[string]string) {
		i := ingress(t, "web", host, "web", generation)
		i.SetAnnotations(annotations)
		if _, err := s.dynamic.Resource(ingresses).Namespace("shop").Update(t.Context(), i, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	passed := map[string]string{v1beta1.SSLPassthroughAnnotation: "true"}
	s.becomes("hosts www.test\npool shop/web:80 east-a All")
	update("www.test", 1, passed)
	s.becomes("hosts www.test\npool shop/web:80/TLS east-a checked as www.test All")
	update("vault.test", 2, passed)
	s.becomes("hosts vault.test\npool shop/web:80/TLS east-a checked as vault.test All")
	update("vault.test", 2, nil)
	s.becomes("hosts vault.test\npool shop/web:80 east-a All")
}

// TestWhatDoesNotMatterIsNotPlannedAgain: a status or another Service changes no pool.
func TestWhatDoesNotMatterIsNotPlannedAgain(t *testing.T) {
	s := start(t, service(t, "web", "All"), ingress(t, "web", "www.test", "web", 1))
	s.controller.Offers(map[string][]servicednsplan.Offer{"shop/web": offers("east-a")})
	s.becomes("hosts www.test\npool shop/web:80 east-a All")
	s.mu.Lock()
	before, table := s.sets, s.table
	s.mu.Unlock()
	same := service(t, "web", "All")
	_ = unstructured.SetNestedField(same.Object, "192.0.2.1", "status", "x")
	if _, err := s.dynamic.Resource(services).Namespace("shop").Update(t.Context(), same, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.controller.Offers(map[string][]servicednsplan.Offer{"shop/other": offers("east-a")})
	s.controller.Offers(map[string][]servicednsplan.Offer{"shop/web": offers("west-a")})
	s.becomes("hosts www.test\npool shop/web:80 west-a All")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sets > before+1 || s.table != table {
		t.Errorf("%d pools were set for one that changed; the table is new: %t", s.sets-before, s.table != table)
	}
}

// TestAPassThatFailsIsMadeGoodByTheNext: nothing is lost of what came with it, and until then what was served is served.
func TestAPassThatFailsIsMadeGoodByTheNext(t *testing.T) {
	s := start(t, service(t, "web", "All"), service(t, "api", "All"), ingress(t, "web", "www.test", "web", 1), ingress(t, "old", "old.test", "api", 1))
	s.controller.Offers(map[string][]servicednsplan.Offer{"shop/web": offers("east-a"), "shop/api": offers("west-a")})
	s.controller.Kept(map[string]servicednsplan.Keep{"old.test.": {Namespace: "bank"}})
	s.becomes("hosts www.test\npool shop/web:80 east-a All")
	s.mu.Lock()
	s.fails = true
	s.mu.Unlock()
	if _, err := s.dynamic.Resource(ingresses).Namespace("shop").Update(t.Context(), ingress(t, "web", "www.test", "api", 2), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for failed := false; !failed; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		failed = !s.fails
		s.mu.Unlock()
	}
	s.becomes("hosts www.test\npool shop/web:80 east-a All")
	s.controller.Offers(map[string][]servicednsplan.Offer{"shop/other": offers("east-a")})
	s.becomes("hosts www.test\npool shop/api:80 west-a All")
}

// TestCertificatesAreKeptWhileTheyCannotBeRead, or are wrong; new ones are taken.
func TestCertificatesAreKeptWhileTheyCannotBeRead(t *testing.T) {
	kube := kubefake.NewClientset(secret(t, "a", "one.test"))
	changed := 0
	s := newSecrets(kube, func() { changed++ })
	s.want([]string{"shop/a", "shop/none"})
	s.readAll(t.Context(), true)
	has := func(want string) {
		t.Helper()
		c := s.certificates()
		if len(c) != 1 || c["shop/a"].Leaf.DNSNames[0] != want {
			t.Fatalf("certificates %v, want one of %s", c, want)
		}
	}
	has("one.test")
	for _, next := range []*corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", ResourceVersion: "2"}, Type: corev1.SecretTypeOpaque}, {ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", ResourceVersion: "3"}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{corev1.TLSCertKey: []byte("x")}}} {
		if _, err := kube.CoreV1().Secrets("shop").Update(t.Context(), next, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.readAll(t.Context(), false)
		has("one.test")
	}
	if _, err := kube.CoreV1().Secrets("shop").Update(t.Context(), secret(t, "a", "two.test"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.readAll(t.Context(), false)
	has("two.test")
	kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
	s.readAll(t.Context(), false)
	has("two.test")
	s.want(nil)
	if c := s.certificates(); len(c) > 0 || !s.haveBeenRead() {
		t.Errorf("certificates that nobody wants are kept: %v", c)
	}
}
