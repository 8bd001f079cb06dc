package servicedns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
	"federation/dnsprovider"
)

const zone = "example.com."

// memory is a provider that keeps a zone in memory, counts calls, and can be made to fail.
type memory struct {
	mu    sync.Mutex
	sets  []dnsprovider.RRSet
	calls int
	// began is the first ChangeSet.
	began string
	fails int
	// gate, if set, must give an element for each call of Apply. waits is how many calls have come to it.
	gate  chan struct{}
	waits atomic.Int64
}

func (m *memory) Records(context.Context, string) ([]dnsprovider.RRSet, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.sets), nil
}

func (m *memory) Apply(_ context.Context, _ string, changes dnsprovider.ChangeSet) error {
	if m.gate != nil {
		m.waits.Add(1)
		<-m.gate
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls++; m.calls == 1 {
		m.began = changes.String()
	}
	if m.fails > 0 {
		m.fails--
		return errors.New("the provider is away")
	}
	sets, err := changes.Apply(m.sets)
	if err == nil {
		m.sets = sets
	}
	return err
}

// names formats the zone as "name TYPE data…", names without the zone and the common part.
func (m *memory) names() []string {
	sets, _ := m.Records(context.Background(), zone)
	out := []string{}
	for _, s := range sets {
		line := strings.Join(append([]string{s.Name, string(s.Type)}, s.Rdata...), " ")
		out = append(out, strings.NewReplacer(".default.fed.svc.example.com.", "", ".default.fed.svc.", ".", ".example.com.", "").Replace(line))
	}
	return out
}

func (m *memory) first() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.began
}

func (m *memory) callCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// stage is a federation's API with a controller.
type stage struct {
	*testing.T
	client     *fake.FakeDynamicClient
	provider   *memory
	controller *Controller
}

func start(t *testing.T, provider *memory, resolver Resolver, objects ...runtime.Object) *stage {
	t.Helper()
	return startWith(t, provider, Options{Resolver: resolver}, objects...)
}

// startWith is start with options.
func startWith(t *testing.T, provider *memory, o Options, objects ...runtime.Object) *stage {
	t.Helper()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		servicesResource: "ServiceList", ingressesResource: "IngressList", v1beta1.ClustersResource: "ClusterList", v1beta1.PoliciesResource: "PlacementPolicyList", v1beta1.DNSNameGrantsResource: "DNSNameGrantList"}, objects...)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	o.Informers = func(r schema.GroupVersionResource) cache.SharedIndexInformer {
		return factory.ForResource(r).Informer()
	}
	o.Federation, o.Zone, o.TTL = "fed", "Example.com", 1
	watched := 3 // what clusters offer follows from these
	if provider != nil {
		o.Providers = append([]NamedProvider{{Name: "memory", Provider: provider, Local: true}}, o.Providers...)
		watched = 5
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	done, led := make(chan error), make(chan struct{})
	go func() { done <- c.Run(ctx) }()
	go func() { defer close(led); c.Lead(ctx) }()
	t.Cleanup(func() {
		stop()
		if provider != nil && provider.gate != nil {
			close(provider.gate)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		<-led
		factory.Shutdown()
	})
	w := &stage{T: t, client: client, provider: provider, controller: c}
	// The fake client's watches do not show earlier changes.
	w.eventually(func() bool { return w.watches() == watched }, func() any { return w.watches() }, watched)
	return w
}

func (w *stage) watches() (n int) {
	for _, action := range w.client.Actions() {
		if action.GetVerb() == "watch" {
			n++
		}
	}
	return n
}

func cluster(name string, ready corev1.ConditionStatus, zone, region string) *unstructured.Unstructured {
	return toUnstructured("federation/v1beta1", "Cluster", &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: v1beta1.ClusterStatus{Zones: []string{zone}, Region: region,
			Conditions: []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: ready}}},
	})
}

// service has an address in each cluster; "" means no ready endpoint. A value that is no address is a host name.
func service(name string, addresses map[string]string) *unstructured.Unstructured {
	in := v1beta1.ServiceIngresses{}
	for c, address := range addresses {
		item := v1beta1.ClusterServiceIngress{Cluster: c}
		if _, err := netip.ParseAddr(address); err == nil {
			item.Items = []corev1.LoadBalancerIngress{{IP: address}}
		} else if address != "" {
			item.Items = []corev1.LoadBalancerIngress{{Hostname: address}}
		}
		in.Items = append(in.Items, item)
	}
	value, _ := json.Marshal(in)
	return toUnstructured("v1", "Service", &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{v1beta1.ServiceIngressesAnnotation: string(value)}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
	})
}

func toUnstructured(apiVersion, kind string, obj any) *unstructured.Unstructured {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{Object: m}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	return u
}

func (w *stage) put(u *unstructured.Unstructured) {
	w.Helper()
	var err error
	if u.GetKind() == "Cluster" {
		_, err = w.client.Resource(v1beta1.ClustersResource).Update(context.Background(), u, metav1.UpdateOptions{})
	} else {
		_, err = w.client.Resource(servicesResource).Namespace("default").Update(context.Background(), u, metav1.UpdateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// becomes waits until the zone is as wanted.
func (w *stage) becomes(want ...string) {
	w.Helper()
	if want == nil {
		want = []string{}
	}
	w.eventually(func() bool { return slices.Equal(w.provider.names(), want) }, func() any { return w.provider.names() }, want)
}

// wants reports whether the controller wants an address in the zone.
func (w *stage) wants(address string) bool {
	w.controller.world.mu.Lock()
	defer w.controller.world.mu.Unlock()
	return slices.ContainsFunc(w.controller.world.records.all(), func(s dnsprovider.RRSet) bool { return slices.Contains(s.Rdata, address) })
}

func (w *stage) eventually(ok func() bool, got func() any, want any) {
	w.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("got %q, want %q", got(), want)
		}
	}
}

func twoClusters() []runtime.Object {
	return []runtime.Object{cluster("a", corev1.ConditionTrue, "z1", "east"), cluster("b", corev1.ConditionTrue, "z2", "east"),
		service("web", map[string]string{"a": "192.0.2.1", "b": "192.0.2.2"})}
}

var whole = []string{"web.east A 192.0.2.1 192.0.2.2", "web A 192.0.2.1 192.0.2.2", "web.z1.east A 192.0.2.1", "web.z2.east A 192.0.2.2"}
var withoutA = []string{"web.east A 192.0.2.2", "web A 192.0.2.2", "web.z1.east CNAME web.east", "web.z2.east A 192.0.2.2"}

func TestFollowsTheWorld(t *testing.T) {
	w := start(t, &memory{}, nil, twoClusters()...)
	w.becomes(whole...)
	w.put(cluster("a", corev1.ConditionFalse, "z1", "east"))
	w.becomes(withoutA...)
	w.put(cluster("a", corev1.ConditionTrue, "z1", "east"))
	w.becomes(whole...)
	w.put(service("web", map[string]string{"a": "", "b": "192.0.2.2"}))
	w.becomes(withoutA...)
	if err := w.client.Resource(v1beta1.ClustersResource).Delete(context.Background(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes("web.east A 192.0.2.2", "web A 192.0.2.2", "web.z2.east A 192.0.2.2")
	if err := w.client.Resource(servicesResource).Namespace("default").Delete(context.Background(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes()
}

func TestADrainedClusterLeavesAndComesBack(t *testing.T) {
	w := start(t, &memory{}, nil, twoClusters()...)
	w.becomes(whole...)
	drained := cluster("a", corev1.ConditionTrue, "z1", "east")
	if err := unstructured.SetNestedField(drained.Object, int64(0), "spec", "dnsWeight"); err != nil {
		t.Fatal(err)
	}
	w.put(drained)
	w.becomes(withoutA...)
	w.put(cluster("a", corev1.ConditionTrue, "z1", "east"))
	w.becomes(whole...)
}

func TestClusterThatJoinsLaterIsSeen(t *testing.T) {
	w := start(t, &memory{}, nil, service("web", map[string]string{"a": "192.0.2.1"}))
	w.eventually(func() bool { return w.provider.callCount() == 1 }, func() any { return w.provider.callCount() }, 1)
	if _, err := w.client.Resource(v1beta1.ClustersResource).Create(context.Background(), cluster("a", corev1.ConditionTrue, "z1", "east"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes("web.east A 192.0.2.1", "web A 192.0.2.1", "web.z1.east A 192.0.2.1")
}

// A Service has names at the place of each joined cluster, even where it does not run.
func TestAClusterWithoutTheServiceHasItsNames(t *testing.T) {
	w := start(t, &memory{}, nil, twoClusters()...)
	w.becomes(whole...)
	clusters := w.client.Resource(v1beta1.ClustersResource)
	if _, err := clusters.Create(t.Context(), cluster("c", corev1.ConditionTrue, "z1", "west"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes(whole[0], whole[1], "web.west CNAME web", whole[2], "web.z1.west CNAME web.west", whole[3])
	w.put(cluster("c", corev1.ConditionFalse, "z9", "west"))
	w.becomes(whole[0], whole[1], "web.west CNAME web", whole[2], whole[3], "web.z9.west CNAME web.west")
	if err := clusters.Delete(t.Context(), "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes(whole...)
}

func TestServiceLeavesWhenItsDeletionBegins(t *testing.T) {
	w := start(t, &memory{}, nil, twoClusters()...)
	w.becomes(whole...)
	going := service("web", map[string]string{"a": "192.0.2.1", "b": "192.0.2.2"})
	now := metav1.Now()
	going.SetDeletionTimestamp(&now)
	going.SetFinalizers([]string{v1beta1.DeleteFromClustersFinalizer})
	w.put(going)
	w.becomes()
}

func TestUnchangedWorldMakesNoCall(t *testing.T) {
	w := start(t, &memory{}, nil, twoClusters()...)
	w.becomes(whole...)
	same := service("web", map[string]string{"a": "192.0.2.1", "b": "192.0.2.2"})
	same.SetLabels(map[string]string{"touched": "yes"})
	w.put(same)
	probed := cluster("a", corev1.ConditionTrue, "z1", "east")
	probed.SetLabels(map[string]string{"touched": "yes"})
	w.put(probed)
	w.put(service("web", map[string]string{"a": "", "b": "192.0.2.2"})) // comes after the two above
	w.becomes(withoutA...)
	if n := w.provider.callCount(); n != 2 {
		t.Errorf("%d calls, want 2: the first, and that of the last change", n)
	}
}

func TestFirstPassMakesTheZoneRight(t *testing.T) {
	left := func(name, data string) dnsprovider.RRSet {
		set, err := dnsprovider.New(name, dnsprovider.A, 15, data)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	w := start(t, &memory{sets: []dnsprovider.RRSet{
		left("gone.default.fed.svc.example.com", "192.0.2.9"), left("web.default.fed.svc.example.com", "192.0.2.9"),
		left("web.default.other.svc.example.com", "192.0.2.8"), left("www.example.com", "192.0.2.7"),
	}}, nil, twoClusters()...)
	w.becomes(append(slices.Clone(whole), "web.default.other.svc A 192.0.2.8", "www A 192.0.2.7")...)
}

func TestFirstPassCallsTheProviderThoughThereIsNothing(t *testing.T) {
	w := start(t, &memory{}, nil)
	w.eventually(func() bool { return w.provider.callCount() == 1 }, func() any { return w.provider.callCount() }, 1)
}

func TestFailedCallIsRepeatedFromWhatTheZoneHas(t *testing.T) {
	w := start(t, &memory{}, nil, twoClusters()...)
	w.becomes(whole...)
	w.provider.mu.Lock()
	w.provider.fails = 2
	w.provider.sets = w.provider.sets[1:] // a record is removed by hand: found at the next read of the zone
	w.provider.mu.Unlock()
	w.put(cluster("a", corev1.ConditionFalse, "z1", "east"))
	w.becomes(withoutA...)
}

func TestChangesWhileTheProviderIsBusyGoTogether(t *testing.T) {
	provider := &memory{gate: make(chan struct{})}
	w := start(t, provider, nil, twoClusters()...)
	provider.gate <- struct{}{}
	w.becomes(whole...)
	w.put(service("web", map[string]string{"a": "192.0.2.11", "b": "192.0.2.2"}))
	w.eventually(func() bool { return provider.waits.Load() == 2 }, func() any { return provider.waits.Load() }, 2)
	for _, address := range []string{"192.0.2.12", "192.0.2.13", "192.0.2.14"} {
		w.put(service("web", map[string]string{"a": address, "b": "192.0.2.2"}))
	}
	w.eventually(func() bool { return w.wants("192.0.2.14") }, func() any { return "an earlier address" }, "192.0.2.14")
	provider.gate <- struct{}{}
	provider.gate <- struct{}{}
	w.becomes("web.east A 192.0.2.14 192.0.2.2", "web A 192.0.2.14 192.0.2.2", "web.z1.east A 192.0.2.14", "web.z2.east A 192.0.2.2")
	if n := provider.callCount(); n > 3 {
		t.Errorf("%d calls, want 3 at most", n)
	}
}

func TestUnreadableAnnotationKeepsTheRecords(t *testing.T) {
	w := start(t, &memory{}, nil, twoClusters()...)
	w.becomes(whole...)
	broken := service("web", nil)
	broken.SetAnnotations(map[string]string{v1beta1.ServiceIngressesAnnotation: "{"})
	w.put(broken)
	if _, err := w.client.Resource(servicesResource).Namespace("default").Create(context.Background(), service("api", map[string]string{"a": "192.0.2.5"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes(append([]string{"api.east A 192.0.2.5", "api A 192.0.2.5", "api.z1.east A 192.0.2.5", "api.z2.east CNAME api.east"}, whole...)...)
}

// book resolves from a list that can be changed.
type book struct {
	mu    sync.Mutex
	hosts map[string]string
}

func (b *book) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hosts[host] == "" {
		return nil, errors.New("no such host")
	}
	return []netip.Addr{netip.MustParseAddr(b.hosts[host])}, nil
}

func (b *book) set(hosts map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hosts = hosts
}

func TestHostNamesAreLookedUpAgain(t *testing.T) {
	resolver := &book{hosts: map[string]string{"one.test.": "192.0.2.1", "two.test.": "192.0.2.2"}}
	w := start(t, &memory{}, resolver, cluster("a", corev1.ConditionTrue, "z1", "east"), cluster("b", corev1.ConditionTrue, "z2", "east"),
		service("web", map[string]string{"a": "one.test", "b": "two.test"}))
	zones := []string{"web.z1.east CNAME one.test.", "web.z2.east CNAME two.test."}
	w.becomes(append([]string{"web.east A 192.0.2.1 192.0.2.2", "web A 192.0.2.1 192.0.2.2"}, zones...)...)
	resolver.set(map[string]string{"one.test.": "192.0.2.9"}) // the lookup of two.test. fails now: its address stays
	w.becomes(append([]string{"web.east A 192.0.2.2 192.0.2.9", "web A 192.0.2.2 192.0.2.9"}, zones...)...)
}

func TestNewControllerRefuses(t *testing.T) {
	for _, o := range []Options{{Federation: "a.b", Zone: zone}, {Federation: "", Zone: zone}, {Federation: "fed", Zone: "a..b"}} {
		if _, err := New(o); err == nil {
			t.Errorf("federation %q, zone %q: no error", o.Federation, o.Zone)
		}
	}
}

// ingress has a host, and an address in each cluster.
func ingress(name, host string, made int64, addresses map[string]string) *unstructured.Unstructured {
	u := service(name, addresses)
	u.SetAPIVersion("networking.k8s.io/v1")
	u.SetKind("Ingress")
	u.SetCreationTimestamp(metav1.Unix(made, 0))
	u.Object["spec"] = map[string]any{"rules": []any{map[string]any{"host": host}}}
	return u
}

func (w *stage) create(r schema.GroupVersionResource, u *unstructured.Unstructured) {
	w.Helper()
	if _, err := w.client.Resource(r).Namespace("default").Create(context.Background(), u, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func TestHostsOfIngresses(t *testing.T) {
	w := start(t, &memory{}, nil, cluster("a", corev1.ConditionTrue, "z1", "east"), cluster("b", corev1.ConditionTrue, "z2", "east"),
		ingress("late", "shop.example.com", 2, map[string]string{"b": "192.0.2.2"}))
	w.becomes("shop A 192.0.2.2")
	w.create(ingressesResource, ingress("front", "shop.example.com", 1, map[string]string{"a": "192.0.2.1"}))
	w.becomes("shop A 192.0.2.1")
	w.put(cluster("a", corev1.ConditionFalse, "z1", "east"))
	w.becomes("shop A 192.0.2.1") // nothing else serves: stale is better than none
	if err := w.client.Resource(ingressesResource).Namespace("default").Delete(context.Background(), "front", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes("shop A 192.0.2.2")
}

func TestSettingsOfPoliciesAndAnnotations(t *testing.T) {
	w := start(t, &memory{}, nil, twoClusters()...)
	w.becomes(whole...)
	policy := toUnstructured("federation/v1beta1", "PlacementPolicy", &v1beta1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "dns"},
		Spec: v1beta1.PlacementPolicySpec{
			ResourceSelectors: []v1beta1.ResourceSelector{{APIVersion: "v1", Kind: "Service"}},
			DNS:               &v1beta1.DNSSettings{Strategy: v1beta1.DNSFailover, Clusters: map[string]v1beta1.DNSClusterSettings{"a": {Priority: 1}}},
		},
	})
	w.create(v1beta1.PoliciesResource, policy)
	w.becomes("web.east A 192.0.2.2", "web A 192.0.2.2", "web.z1.east A 192.0.2.1", "web.z2.east A 192.0.2.2")
	own := service("web", map[string]string{"a": "192.0.2.1", "b": "192.0.2.2"})
	annotations := own.GetAnnotations()
	annotations[v1beta1.DNSAnnotation] = `{"hosts":["www.example.com"]}`
	own.SetAnnotations(annotations)
	w.put(own)
	w.becomes(append([]string{whole[0], whole[1], whole[2], whole[3]}, "www A 192.0.2.1 192.0.2.2")...)
	w.put(service("web", map[string]string{"a": "192.0.2.1", "b": "192.0.2.2"}))
	w.becomes("web.east A 192.0.2.2", "web A 192.0.2.2", "web.z1.east A 192.0.2.1", "web.z2.east A 192.0.2.2")
	if err := w.client.Resource(v1beta1.PoliciesResource).Namespace("default").Delete(context.Background(), "dns", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes(whole...)
}

// Offers reports all Services first, and then those that change; whether or not anybody wants names.
func TestOffersFollowTheWorld(t *testing.T) {
	t.Run("with names", func(t *testing.T) { offersFollowTheWorld(t, &memory{}) })
	t.Run("alone", func(t *testing.T) { offersFollowTheWorld(t, nil) })
}

func offersFollowTheWorld(t *testing.T, provider *memory) {
	told := make(chan map[string][]plan.Offer, 100)
	w := startWith(t, provider, Options{Offers: func(some map[string][]plan.Offer) { told <- some }}, twoClusters()...)
	becomes := func(want string) {
		t.Helper()
		var got string
		for deadline := time.After(10 * time.Second); got != want; {
			select {
			case some := <-told:
				offers, there := some["default/web"]
				got = fmt.Sprint(there, offers == nil)
				for _, o := range offers {
					got += fmt.Sprintf(" %s %s rank %d", o.Cluster, o.Addresses, o.Rank)
				}
			case <-deadline:
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
	becomes("true false a [192.0.2.1] rank 0 b [192.0.2.2] rank 0")
	w.put(cluster("a", corev1.ConditionFalse, "z1", "east"))
	becomes("true false a [192.0.2.1] rank 3 b [192.0.2.2] rank 0")
	w.put(service("web", map[string]string{"a": "192.0.2.1", "b": ""}))
	becomes("true false a [192.0.2.1] rank 3")
	unreported := service("web", nil)
	unreported.SetAnnotations(nil)
	w.put(unreported)
	becomes("true false a [] rank 3 b [] rank 0")
	if _, err := w.client.Resource(v1beta1.ClustersResource).Create(t.Context(), cluster("c", corev1.ConditionTrue, "z3", "west"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	becomes("true false a [] rank 3 b [] rank 0 c [] rank 0")
	w.put(service("web", nil))
	becomes("true false")
	if err := w.client.Resource(servicesResource).Namespace("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	becomes("true true")
}

// TestOffersOfPodsFollowTheClusters: of a Service without load balancers each cluster offers pods, as it stands itself.
func TestOffersOfPodsFollowTheClusters(t *testing.T) {
	told := make(chan map[string][]plan.Offer, 100)
	plain := service("plain", nil)
	if err := unstructured.SetNestedField(plain.Object, "ClusterIP", "spec", "type"); err != nil {
		t.Fatal(err)
	}
	w := startWith(t, &memory{}, Options{Offers: func(some map[string][]plan.Offer) { told <- some }}, append(twoClusters(), plain)...)
	becomes := func(want string) {
		t.Helper()
		var got string
		for deadline := time.After(10 * time.Second); got != want; {
			select {
			case some := <-told:
				got = ""
				for _, o := range some["default/plain"] {
					got += fmt.Sprintf("%s rank %d weight %d network %q %v; ", o.Cluster, o.Rank, o.Weight, o.Network, o.ByPods)
				}
			case <-deadline:
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
	becomes(`a rank 0 weight 100 network "" true; b rank 0 weight 100 network "" true; `)
	lost := cluster("a", corev1.ConditionFalse, "z1", "east")
	if err := unstructured.SetNestedField(lost.Object, "n", "spec", "network"); err != nil {
		t.Fatal(err)
	}
	w.put(lost)
	becomes(`a rank 3 weight 100 network "n" true; b rank 0 weight 100 network "" true; `)
	weighted := plain.DeepCopy()
	weighted.SetAnnotations(map[string]string{v1beta1.DNSAnnotation: `{"strategy":"Weighted","clusters":{"b":{"weight":7}}}`})
	w.put(weighted)
	becomes(`a rank 3 weight 100 network "n" true; b rank 0 weight 7 network "" true; `)
}
