package servicedns

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/servicedns/plan"
	"federation/dnsprovider"
)

// office is a federation with a leading controller, in the time of a synctest bubble, and a provider that others write
// to.
type office struct {
	*testing.T
	api      *memapi.API
	client   *memapi.Client
	recorder *record.FakeRecorder
	writes   atomic.Int32
	provider *memory
	kube     *fake.Clientset
}

func newOffice(t *testing.T, objects ...*unstructured.Unstructured) *office {
	w := emptyOffice(t)
	for _, u := range objects {
		w.put(u)
	}
	w.start()
	return w
}

func emptyOffice(t *testing.T) *office {
	w := &office{T: t, recorder: record.NewFakeRecorder(100), provider: &memory{}, api: memapi.New(memapi.Options{Resources: []memapi.Resource{
		{GroupVersionResource: v1beta1.ClustersResource, Kind: "Cluster", Status: true},
		{GroupVersionResource: v1beta1.PoliciesResource, Kind: "PlacementPolicy", Namespaced: true},
		{GroupVersionResource: v1beta1.DNSNameGrantsResource, Kind: "DNSNameGrant"},
		{GroupVersionResource: servicesResource, Kind: "Service", Namespaced: true, Status: true},
		{GroupVersionResource: ingressesResource, Kind: "Ingress", Namespaced: true, Status: true},
	}})}
	w.client = w.api.Client("user", nil)
	return w
}

// start runs a controller until the test ends or the returned function is called.
func (w *office) start() (end func()) {
	ours := w.api.Client("dns", func(_ context.Context, q memapi.Request, do func() error) error {
		if q.Writes() {
			w.writes.Add(1)
		}
		return do()
	})
	factory := dynamicinformer.NewDynamicSharedInformerFactory(ours, 0)
	o := Options{
		Informers: func(r schema.GroupVersionResource) cache.SharedIndexInformer {
			return factory.ForResource(r).Informer()
		},
		Federation: "fed", Zone: zone, Client: ours, Recorder: w.recorder,
		Providers: []NamedProvider{{Name: "built-in", Provider: &memory{}, Local: true}, {Name: "outside", Provider: w.provider}},
	}
	if w.kube != nil {
		o.Kube = w.kube
	}
	c, err := New(o)
	if err != nil {
		w.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.Context())
	factory.Start(ctx.Done())
	ran, led := make(chan error), make(chan struct{})
	go func() { ran <- c.Run(ctx) }()
	go func() { defer close(led); c.Lead(ctx) }()
	end = sync.OnceFunc(func() {
		stop()
		if err := <-ran; err != nil {
			w.Error(err)
		}
		<-led
		factory.Shutdown()
	})
	w.Cleanup(end)
	w.wait(time.Second)
	return end
}

func (w *office) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *office) resource(u *unstructured.Unstructured) schema.GroupVersionResource {
	return map[string]schema.GroupVersionResource{"Cluster": v1beta1.ClustersResource, "DNSNameGrant": v1beta1.DNSNameGrantsResource, "Service": servicesResource, "Ingress": ingressesResource}[u.GetKind()]
}

// put creates or updates an object, without the parts of its status that others own.
func (w *office) put(u *unstructured.Unstructured) {
	w.Helper()
	r := w.client.Resource(w.resource(u)).Namespace(u.GetNamespace())
	u = u.DeepCopy()
	if old := w.api.Get(w.resource(u), u.GetNamespace(), u.GetName()); old == nil {
		if _, err := r.Create(context.Background(), u, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	} else if u.SetResourceVersion(old.GetResourceVersion()); u.GetKind() != "Cluster" {
		if _, err := r.Update(context.Background(), u, metav1.UpdateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	if u.GetKind() == "Cluster" {
		u.SetResourceVersion("")
		u.SetManagedFields(nil)
		if _, err := r.ApplyStatus(context.Background(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "registry", Force: true}); err != nil {
			w.Fatal(err)
		}
	}
	synctest.Wait()
}

// says checks a condition: "STATUS REASON" and words of its message; "" means no condition.
func (w *office) says(r schema.GroupVersionResource, namespace, name, want string, words ...string) {
	w.Helper()
	synctest.Wait()
	got, message := "", ""
	if c, _ := ownCondition(w.api.Get(r, namespace, name)).(map[string]any); c != nil {
		got, message = fmt.Sprint(c["status"], " ", c["reason"]), fmt.Sprint(c["message"])
	}
	if got != want {
		w.Errorf("%s: %q (%s), want %q", name, got, message, want)
	}
	for _, part := range words {
		if !strings.Contains(message, part) {
			w.Errorf("%s: %q, want %q in it", name, message, part)
		}
	}
}

func (w *office) service(want string, words ...string) {
	w.Helper()
	w.says(servicesResource, "default", "web", want, words...)
}

func (w *office) cluster(name, want string, words ...string) {
	w.Helper()
	w.says(v1beta1.ClustersResource, "", name, want, words...)
}

// wrote checks the number of writes since the last call.
func (w *office) wrote(want int32) {
	w.Helper()
	synctest.Wait()
	if got := w.writes.Swap(0); got != want {
		w.Errorf("%d writes, want %d", got, want)
	}
}

// place returns a cluster with zone and region labels, or without.
func place(name string, ready corev1.ConditionStatus, zone, region string) *unstructured.Unstructured {
	u := cluster(name, ready, zone, region)
	if zone == "" {
		unstructured.RemoveNestedField(u.Object, "status", "zones")
	}
	if err := unstructured.SetNestedField(u.Object, "v1.36.0", "status", "kubernetesVersion"); err != nil {
		panic(err)
	}
	return u
}

func settings(u *unstructured.Unstructured, text string) *unstructured.Unstructured {
	annotations := u.GetAnnotations()
	annotations[v1beta1.DNSAnnotation] = text
	u.SetAnnotations(annotations)
	return u
}

func TestAServiceSaysHowItStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service("web", map[string]string{"a": "192.0.2.1", "b": "192.0.2.2"})
		w := newOffice(t, place("a", "True", "z1", "east"), place("b", "True", "z2", "east"), web)
		w.service("True Published", "its names are in DNS")
		w.wrote(1)
		w.wait(time.Hour)
		w.wrote(0) // nothing has changed

		w.put(place("a", "False", "z1", "east"))
		w.service("True Published") // others serve
		w.wrote(0)
		w.put(place("b", "False", "z2", "east"))
		w.service("True FailStatic", "cluster a: no other cluster serves: the addresses stay")
		w.wrote(1)
		w.put(place("a", "True", "z1", "east"))
		w.put(place("b", "True", "z2", "east"))
		w.service("True Published")

		w.put(service("web", map[string]string{"a": "", "b": ""}))
		w.service("False NoHealthyClusters", "web.default.fed.svc.example.com.: no cluster serves")
		w.put(settings(service("web", map[string]string{"a": "192.0.2.1"}), `{"hosts":["shop.example.com"]}`))
		w.service("True Published")
		w.writes.Store(0)

		// A removed condition comes back. An object without names in DNS gets none.
		u := w.api.Get(servicesResource, "default", "web").DeepCopy()
		unstructured.RemoveNestedField(u.Object, "status", "conditions")
		if _, err := w.client.Resource(servicesResource).Namespace("default").UpdateStatus(t.Context(), u, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.service("True Published")
		w.wrote(1)
		internal := service("web", nil)
		internal.SetAnnotations(nil)
		w.put(internal)
		w.service("")
		w.wrote(1)
	})
}

func TestAClusterSaysWhichNamesItLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newOffice(t, place("a", "True", "", ""), place("b", "True", "z2", "east"), service("web", map[string]string{"a": "192.0.2.1", "b": "192.0.2.2"}))
		w.cluster("a", "True TopologyLabelsMissing", "no label topology.kubernetes.io/region")
		w.cluster("b", "")
		w.service("True TopologyLabelsMissing", "cluster a: the cluster has no region: it counts for the global name only")
		w.wrote(2)
		w.put(place("a", "True", "", "west"))
		w.cluster("a", "True TopologyLabelsMissing", "no label topology.kubernetes.io/zone")
		w.put(place("a", "True", "z1", "west"))
		w.cluster("a", "")
		w.service("True Published")

		long := strings.Repeat("z", 64)
		w.put(place("a", "True", long, "west"))
		w.cluster("a", "True NameInvalid", "Service default/web", long, "1 to 63")
		w.service("False NameInvalid", "cluster a: no name of the zone")
		if names := w.provider.names(); len(names) != 4 { // the others continue
			t.Errorf("names %q", names)
		}
		w.put(place("a", "True", "z1", "west"))
		w.cluster("a", "")
		w.service("True Published")
	})
}

func TestAServiceSaysThatAProviderIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newOffice(t, place("a", "True", "z1", "east"), service("web", map[string]string{"a": "192.0.2.1"}), service("other", map[string]string{"a": "192.0.2.9"}))
		w.service("True Published")
		w.provider.mu.Lock()
		w.provider.fails = 1000
		w.provider.mu.Unlock()
		w.put(service("web", map[string]string{"a": "192.0.2.3"}))
		w.service("True Published") // not yet
		w.writes.Store(0)
		w.wait(time.Minute)
		w.service("False ProviderOutOfSync", "provider outside: it does not have the change of", "federation-system/federation-dns-providers")
		w.says(servicesResource, "default", "other", "True Published") // nothing of it is missing
		w.wait(time.Hour)
		w.wrote(1)
		w.provider.mu.Lock()
		w.provider.fails = 0
		w.provider.mu.Unlock()
		w.wait(time.Minute)
		w.service("True Published")
		w.wrote(1)
	})
}

// A new leader does not report that all is well at a provider it has not read yet.
func TestThatAProviderIsBehindOutlivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyOffice(t)
		w.put(place("a", "True", "z1", "east"))
		w.put(service("web", map[string]string{"a": "192.0.2.1"}))
		end := w.start()
		fail := func(times int) {
			w.provider.mu.Lock()
			defer w.provider.mu.Unlock()
			w.provider.fails = times
		}
		fail(1000)
		w.put(service("web", map[string]string{"a": "192.0.2.3"}))
		w.wait(time.Minute)
		w.service("False ProviderOutOfSync")
		end()
		w.writes.Store(0)
		w.start()
		w.wait(time.Minute)
		w.service("False ProviderOutOfSync")
		w.wrote(0)
		fail(0)
		w.wait(time.Minute)
		w.service("True Published")
		w.wrote(1)
	})
}

func TestAServiceSaysThatOthersHaveItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newOffice(t, place("a", "True", "z1", "east"), service("web", map[string]string{"a": "192.0.2.1"}))
		w.provider.mu.Lock()
		w.provider.sets = append(w.provider.sets, set(t, "shop", dnsprovider.A, "198.51.100.1"))
		w.provider.mu.Unlock()
		w.put(settings(service("web", map[string]string{"a": "192.0.2.1"}), `{"hosts":["shop.example.com"]}`))
		w.wait(time.Second)
		w.service("False ProviderOutOfSync", "provider outside: others have records at shop.example.com.")
	})
}

// An Ingress has no conditions, so events report changes.
func TestAnIngressTellsByEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ingress := func(name, host string) *unstructured.Unstructured {
			u := service(name, map[string]string{"a": "192.0.2.1"})
			u.SetAPIVersion("networking.k8s.io/v1")
			u.SetKind("Ingress")
			u.Object["spec"] = map[string]any{"rules": []any{map[string]any{"host": host}}}
			delete(u.Object, "status")
			return u
		}
		w := newOffice(t, place("a", "True", "z1", "east"), ingress("front", "shop.example.com"))
		w.wait(time.Minute)
		w.put(ingress("late", "shop.example.com"))
		w.wait(time.Minute)
		event := func(want string) {
			t.Helper()
			select {
			case got := <-w.recorder.Events:
				if !strings.Contains(got, want) || want == "" {
					t.Errorf("event %q, want %q", got, want)
				}
			default:
				if want != "" {
					t.Errorf("no event, want %q", want)
				}
			}
		}
		event("Warning DNSHostConflict host shop.example.com has no records of this object: Ingress default/front has it, which is older")
		event("")
		if err := w.client.Resource(ingressesResource).Namespace("default").Delete(t.Context(), "front", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.wait(time.Minute)
		event("Normal DNSPublished its names are in DNS")
		event("")
		w.wrote(0)
	})
}

// A failed write is retried.
func TestAConditionThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stores{objects: map[string]cache.SharedIndexInformer{}}
		api := memapi.New(memapi.Options{Resources: []memapi.Resource{{GroupVersionResource: servicesResource, Kind: "Service", Namespaced: true, Status: true}}})
		web := service("web", nil)
		if _, err := api.Client("user", nil).Resource(servicesResource).Namespace("default").Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		fails := 2
		client := api.Client("dns", func(_ context.Context, q memapi.Request, do func() error) error {
			if q.Writes() && fails > 0 {
				fails--
				return errors.New("the API is away")
			}
			return do()
		})
		s.objects["Service"] = dynamicinformer.NewFilteredDynamicInformer(client, servicesResource, "default", 0, cache.Indexers{}, nil).Informer()
		if err := s.objects["Service"].GetStore().Add(api.Get(servicesResource, "default", "web")); err != nil {
			t.Fatal(err)
		}
		c := newConditions(Options{Client: client, Recorder: record.NewFakeRecorder(1)}, &s)
		c.setProvider(ProviderState{Provider: "outside", Objects: map[string]plan.Reason{"Service default/web": {Code: plan.ProviderOutOfSync, Message: "it is away"}}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); c.runLeader(ctx) }()
		synctest.Wait()
		c.handlePlanned()
		time.Sleep(time.Minute)
		synctest.Wait()
		if is := publishedOf(api.Get(servicesResource, "default", "web")); is == nil || is.Message != "provider outside: it is away" || fails != 0 {
			t.Errorf("condition %+v, %d failures left", is, fails)
		}
		stop()
		<-done
	})
}
