package servicedns

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"federation/apiserver/apis/federation/v1beta1"
)

// balancers starts load balancers at 127.0.0.1, 127.0.0.2 and so on, all at one port. The status of each can be set.
func balancers(t *testing.T, n int) (port string, status []atomic.Int32) {
	t.Helper()
	status = make([]atomic.Int32, n)
	port = "0"
	for i := range n {
		listener, err := net.Listen("tcp", net.JoinHostPort([]string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}[i], port))
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ = net.SplitHostPort(listener.Addr().String())
		status[i].Store(http.StatusOK)
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(int(status[i].Load()))
		})}}
		server.Start()
		t.Cleanup(server.Close)
	}
	return port, status
}

// none refuses no address: the load balancers of these tests are on this machine.
func none(netip.Addr) error { return nil }

// One load balancer of three fails and its addresses leave; two of three fail, and all stay; the state survives a
// restart; a load balancer recovers.
func TestChecksOfLoadBalancers(t *testing.T) {
	port, status := balancers(t, 3)
	web := service("web", map[string]string{"a": "127.0.0.1", "b": "127.0.0.2", "c": "127.0.0.3"})
	annotations := web.GetAnnotations()
	annotations[v1beta1.DNSAnnotation] = `{"healthCheck":{"type":"HTTP","port":` + port + `,"periodSeconds":1,"failureThreshold":1,"successThreshold":1}}`
	web.SetAnnotations(annotations)
	objects := func() []runtime.Object {
		return []runtime.Object{web.DeepCopy(), cluster("a", corev1.ConditionTrue, "z1", "east"), cluster("b", corev1.ConditionTrue, "z2", "east"), cluster("c", corev1.ConditionTrue, "z3", "east")}
	}
	all := []string{"web.east A 127.0.0.1 127.0.0.2 127.0.0.3", "web A 127.0.0.1 127.0.0.2 127.0.0.3", "web.z1.east A 127.0.0.1", "web.z2.east A 127.0.0.2", "web.z3.east A 127.0.0.3"}
	without := []string{"web.east A 127.0.0.2 127.0.0.3", "web A 127.0.0.2 127.0.0.3", "web.z1.east CNAME web.east", "web.z2.east A 127.0.0.2", "web.z3.east A 127.0.0.3"}

	kube := fake.NewClientset()
	maps := kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace)
	t.Run("one fails, and comes back", func(t *testing.T) {
		w := startWith(t, &memory{}, Options{Kube: kube, Refuse: none}, objects()...)
		w.becomes(all...)
		status[0].Store(http.StatusServiceUnavailable)
		w.becomes(without...)
		status[1].Store(http.StatusServiceUnavailable) // two of three: the federation may be at fault
		w.becomes(all...)
		status[1].Store(http.StatusOK)
		w.becomes(without...)
		status[0].Store(http.StatusOK)
		w.becomes(all...)
		status[0].Store(http.StatusServiceUnavailable)
		w.becomes(without...)
	})
	t.Run("after a restart it is known", func(t *testing.T) {
		m := &memory{}
		w := startWith(t, m, Options{Kube: kube, Refuse: none}, objects()...)
		w.becomes(without...)
		if first := m.first(); strings.Contains(first, "127.0.0.1") {
			t.Errorf("the dead address was given out: %s", first)
		}
	})
	t.Run("what is edited by hand is put right", func(t *testing.T) {
		w := startWith(t, &memory{}, Options{Kube: kube, Refuse: none}, objects()...)
		w.becomes(without...)
		if err := maps.Delete(context.Background(), v1beta1.DNSHealthChecksConfigMap, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually(func() bool {
			m, err := maps.Get(context.Background(), v1beta1.DNSHealthChecksConfigMap, metav1.GetOptions{})
			return err == nil && strings.Contains(m.Data[v1beta1.DNSHealthChecksFailing], "status 503")
		}, func() any { return "no ConfigMap" }, "one")
		w.becomes(without...)
	})
}

// If no object asks for a check, nothing is checked or written.
func TestWithoutChecksNothingIsWritten(t *testing.T) {
	client := fake.NewClientset()
	w := startWith(t, &memory{}, Options{Kube: client}, twoClusters()...)
	w.becomes(whole...)
	time.Sleep(2 * writePause) // longer than the delay of a write
	for _, action := range client.Actions() {
		if verb := action.GetVerb(); verb != "list" && verb != "watch" {
			t.Errorf("%s", verb)
		}
	}
}
