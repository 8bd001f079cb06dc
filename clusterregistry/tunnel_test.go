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
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hub.Park(w, r, uidOfEast) }))
	t.Cleanup(front.Close)
	handler, err := tunnel.NewForwarder(&rest.Config{Host: m.URL, BearerToken: "good", TLSClientConfig: rest.TLSClientConfig{CAData: m.ca()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(front.Certificate())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- tunnel.RunAgent(ctx, tunnel.AgentOptions{
			Servers: []string{front.URL}, Cluster: "east", Version: "v1", Handler: handler,
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

// A member whose agent connects to us is used as any other, without an address or a credential of it, and is lost when its agent is.
func TestAMemberWithAnAgent(t *testing.T) {
	hub, east := tunnel.NewHub("process-1"), newFakeMember(t)
	f := newFleetWith(t, func(o *Options) { o.Tunnel = hub })
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "federation/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": "east", "uid": string(uidOfEast)}, "spec": map[string]any{"connection": "Pull"},
	}}
	if _, err := f.clusters.Resource(v1beta1.ClustersResource).Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
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
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "federation/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": "east", "uid": string(uidOfEast)}, "spec": map[string]any{"connection": "Pull"},
	}}
	if _, err := f.clusters.Resource(v1beta1.ClustersResource).Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventuallyReady("east", "ClusterMisconfigured")
}
