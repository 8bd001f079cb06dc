package clusterregistry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/tunnel"
)

// uidOfEast is the UID of the Cluster in these tests.
const uidOfEast types.UID = "uid-of-east"

// runAgent runs the agent of a member until the test ends, or what it returns is called.
func runAgent(t *testing.T, hub *tunnel.Hub, m *fakeMember) (stop func()) {
	return runAgentBy(t, hub, m, func(address string) string { return address }, nil)
}

// runAgentBy is runAgent by an address that leads to that of the hub, with what observes its tries to connect.
func runAgentBy(t *testing.T, hub *tunnel.Hub, m *fakeMember, way func(address string) string, observe func(string, error)) (stop func()) {
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hub.Park(w, r, uidOfEast) }))
	t.Cleanup(front.Close)
	handler, err := tunnel.NewForwarder(&rest.Config{Host: m.URL, BearerToken: "good", TLSClientConfig: rest.TLSClientConfig{CAData: m.ca()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(front.Certificate())
	ctx, cancel := context.WithCancel(t.Context())
	ended, server := make(chan error, 1), "https://"+way(front.Listener.Addr().String())
	go func() {
		ended <- tunnel.RunAgent(ctx, tunnel.AgentOptions{
			Servers: []string{server}, Cluster: "east", Version: "v1", Handler: handler, Observe: observe,
			TLS: func() (*tls.Config, error) { return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil },
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// createPulled creates the Cluster of a member whose agent connects.
func (f *fleet) createPulled() {
	f.t.Helper()
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "federation/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": "east", "uid": string(uidOfEast)}, "spec": map[string]any{"connection": "Pull"},
	}}
	if _, err := f.clusters.Resource(v1beta1.ClustersResource).Create(f.t.Context(), cluster, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// A member whose agent connects to us is used as any other, without an address or a credential of it, and is lost when its agent is.
func TestAMemberWithAnAgent(t *testing.T) {
	hub, east := tunnel.NewHub("process-1"), newFakeMember(t)
	f := newFleetWith(t, func(o *Options) { o.Tunnel = hub })
	f.createPulled()
	connected := func(status corev1.ConditionStatus) {
		t.Helper()
		f.eventually("AgentConnected "+string(status), func() bool {
			c := f.cluster("east").Condition(v1beta1.ClusterAgentConnected)
			return c != nil && c.Status == status
		})
	}
	f.eventuallyReady("east", v1beta1.ReasonClusterNotReachable)
	connected(corev1.ConditionFalse)
	if c := f.cluster("east").Condition(v1beta1.ClusterReady); !strings.Contains(c.Message, tunnel.ErrNoAgent.Error()) {
		t.Errorf("the message does not say why: %s", c.Message)
	}
	for range 2 { // the second time it comes back
		stop := runAgent(t, hub, east)
		f.eventuallyReady("east", v1beta1.ReasonClusterReady)
		connected(corev1.ConditionTrue)
		f.member("east")
		stop()
		f.eventuallyReady("east", v1beta1.ReasonClusterNotReachable)
		connected(corev1.ConditionFalse)
	}
}

// A process that takes no agents says so.
func TestAMemberWithAnAgentElsewhere(t *testing.T) {
	f := newFleetWith(t, func(*Options) {})
	f.createPulled()
	f.eventuallyReady("east", "ClusterMisconfigured")
}
