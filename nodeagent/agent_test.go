package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"federation/nodeagent/ruleset"
)

// record is a Writer that records its calls: "sync 2" for a Sync of two Ports, "write 1" for a change of one.
type record struct {
	mu    sync.Mutex
	said  []string
	fail  int // how many of the next calls fail
	pause time.Duration
	begun []string // what was said when the agent said that it had started
}

func (r *record) started() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = append(r.begun, strings.Join(r.said, ", "))
}

func (r *record) note(format string, args ...any) error {
	time.Sleep(r.pause) // of the synctest bubble
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail > 0 {
		r.fail--
		return errors.New("the kernel is out of order")
	}
	r.said = append(r.said, fmt.Sprintf(format, args...))
	return nil
}

func (r *record) Sync(_ context.Context, _ *ruleset.Node, ports []*ruleset.Port) error {
	return r.note("sync %d", len(ports))
}

func (r *record) Write(_ context.Context, _ *ruleset.Node, changes []ruleset.PortChange) error {
	return r.note("write %d", len(changes))
}

func (r *record) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.said = nil }()
	return strings.Join(r.said, ", ")
}

func service(name, ip string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ServiceSpec{
		ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}}}
}

func slice(service string, addresses ...string) *discoveryv1.EndpointSlice {
	port, name, here := int32(8080), "", "n1"
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}}}
	s.Namespace, s.Name, s.Labels = "default", service+"-1", map[string]string{discoveryv1.LabelServiceName: service}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, NodeName: &here})
	}
	return s
}

// run runs an agent for a client's objects while do runs, in a bubble of time.
func run(t *testing.T, c *fake.Clientset, r *record, do func(a *Agent)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		a, err := New(Config{Services: all(c, c.CoreV1().Services("").List, c.CoreV1().Services("").Watch),
			EndpointSlices: all(c, c.DiscoveryV1().EndpointSlices("").List, c.DiscoveryV1().EndpointSlices("").Watch),
			Nodes:          all(c, c.CoreV1().Nodes().List, c.CoreV1().Nodes().Watch), NodeName: "n1", Writer: r, Started: r.started,
			Leases: all(c, c.CoordinationV1().Leases("").List, c.CoordinationV1().Leases("").Watch), Blackhole: r.blackhole, Node: func(n *corev1.Node) (ruleset.Node, error) {
				out := ruleset.Node{Name: "n1"}
				if n != nil {
					out.Zone = n.Labels[corev1.LabelTopologyZone]
				}
				return out, nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		settle()
		do(a)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		settle()
	})
}

// all lists and watches everything of one kind that a client has.
func all[L runtime.Object](c *fake.Clientset, list func(context.Context, metav1.ListOptions) (L, error),
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) },
		WatchFuncWithContext: watch,
	}, c)
}

// settle lets everything happen that happens within a minute.
func settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

func TestTheFirstThingIsAllThenOnlyChanges(t *testing.T) {
	c, r := fake.NewClientset(service("a", "10.0.0.1"), service("b", "10.0.0.2"), slice("a", "10.1.0.1")), &record{}
	run(t, c, r, func(*Agent) {
		if got := r.take(); got != "sync 2" {
			t.Errorf("at the start: %s", got)
		}
		ctx := context.Background()
		_, _ = c.DiscoveryV1().EndpointSlices("default").Update(ctx, slice("a", "10.1.0.2"), metav1.UpdateOptions{})
		settle()
		if got := r.take(); got != "write 1" {
			t.Errorf("an endpoint changed: %s", got)
		}
		same := slice("a", "10.1.0.2")
		same.Labels["irrelevant"] = "yes"
		_, _ = c.DiscoveryV1().EndpointSlices("default").Update(ctx, same, metav1.UpdateOptions{})
		settle()
		if got := r.take(); got != "" {
			t.Errorf("nothing changed: %s", got)
		}
		_ = c.CoreV1().Services("default").Delete(ctx, "a", metav1.DeleteOptions{})
		settle()
		if got := r.take(); got != "write 1" {
			t.Errorf("a Service went: %s", got)
		}
	})
	if got := fmt.Sprint(r.begun); got != "[sync 2]" {
		t.Errorf("it said that it had started after %s", got)
	}
}

func TestWhatComesDuringAWriteGoesIntoTheNext(t *testing.T) {
	c, r := fake.NewClientset(), &record{pause: 100 * time.Millisecond}
	run(t, c, r, func(*Agent) {
		r.take()
		for i := range 10 {
			_, _ = c.CoreV1().Services("default").Create(context.Background(), service(fmt.Sprint("s", i), fmt.Sprint("10.0.0.", i)), metav1.CreateOptions{})
			time.Sleep(10 * time.Millisecond)
		}
		settle()
		if got := r.take(); got != "write 1, write 9" {
			t.Error(got)
		}
	})
}

func TestAfterAFailedOrLostWriteTheKernelIsLookedAt(t *testing.T) {
	c, r := fake.NewClientset(service("a", "10.0.0.1")), &record{}
	run(t, c, r, func(a *Agent) {
		r.take()
		r.fail = 2
		_, _ = c.CoreV1().Services("default").Create(context.Background(), service("b", "10.0.0.2"), metav1.CreateOptions{})
		settle()
		if got := r.take(); got != "sync 2" {
			t.Errorf("after failures: %s", got)
		}
		a.resync()
		settle()
		if got := r.take(); got != "sync 2" {
			t.Errorf("after a foreign flush: %s", got)
		}
	})
}

func TestAnotherZoneOfTheNodeIsAnotherRuleset(t *testing.T) {
	c, r := fake.NewClientset(service("a", "10.0.0.1")), &record{}
	run(t, c, r, func(*Agent) {
		r.take()
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelTopologyZone: "za"}}}
		_, _ = c.CoreV1().Nodes().Create(context.Background(), n, metav1.CreateOptions{})
		settle()
		if got := r.take(); got != "sync 1" {
			t.Error(got)
		}
	})
}

// A load balancer checks the health check node port: it gets the number of ready endpoints on this node.
func TestHealthCheckNodePorts(t *testing.T) {
	h := newHealth()
	k := ruleset.Key{Namespace: "default", Name: "web"}
	node := ruleset.Node{Name: "n1"}
	s := service("web", "10.0.0.1")
	s.Spec.Type, s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = corev1.ServiceTypeLoadBalancer, "Local", 39517
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.1"}}
	for _, c := range []struct {
		endpoints []string
		status    int
	}{{nil, 503}, {[]string{"10.1.0.1", "10.1.0.2"}, 200}, {nil, 503}} {
		ports, _ := ruleset.Build(&node, s, []*discoveryv1.EndpointSlice{slice("web", c.endpoints...)})
		h.set(map[ruleset.Key]healthCheck{k: checkOf(ports)})
		answer, err := http.Get("http://127.0.0.1:39517/")
		if err != nil {
			t.Fatal(err)
		}
		var body struct{ LocalEndpoints int }
		if err := json.NewDecoder(answer.Body).Decode(&body); err != nil || answer.StatusCode != c.status || body.LocalEndpoints != len(c.endpoints) {
			t.Errorf("%v: status %d, %+v, %v", c.endpoints, answer.StatusCode, body, err)
		}
		if got := answer.Header.Get("X-Load-Balancing-Endpoint-Weight"); got != fmt.Sprint(len(c.endpoints)) {
			t.Errorf("weight %s for %v", got, c.endpoints)
		}
	}
	h.set(map[ruleset.Key]healthCheck{k: {}})
	if _, err := http.Get("http://127.0.0.1:39517/"); err == nil {
		t.Error("the Service is gone, its port answers")
	}
}

// Before the first rules are there the agent is healthy, as kube-proxy is, and not ready.
func TestReadyWhenAllHasBeenWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth()
		says := func(what string, healthz, readyz int) {
			t.Helper()
			healthy, ready := httptest.NewRecorder(), httptest.NewRecorder()
			h.ServeHTTP(healthy, nil)
			h.Ready(ready, nil)
			if healthy.Code != healthz || ready.Code != readyz {
				t.Errorf("%s: /healthz %d, /readyz %d, want %d, %d", what, healthy.Code, ready.Code, healthz, readyz)
			}
		}
		says("at first", 200, 503)
		h.queued()
		says("something is to be written", 200, 503)
		h.written()
		says("it is", 200, 200)
		h.queued()
		says("something changes", 200, 200)
		time.Sleep(late + time.Second)
		says("it waits too long", 503, 503)
	})
}

func TestUnhealthyWhenAChangeWaitsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth()
		h.queued()
		time.Sleep(late - time.Second)
		if !h.healthy() {
			t.Error("unhealthy before its time")
		}
		time.Sleep(2 * time.Second)
		if h.healthy() {
			t.Error("healthy, though a change waits")
		}
		if h.written(); !h.healthy() {
			t.Error("unhealthy after the write")
		}
	})
}
