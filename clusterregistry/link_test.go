package clusterregistry

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"federation/clusterregistry/health"
	"federation/clusterregistry/wire"
)

// TestALostConnectionCostsOneHealthCheck: several connections that checks could use are cut at once. Were the next check to
// use another one of them, it would be a second failure of one event, and the cluster would be marked.
func TestALostConnectionCostsOneHealthCheck(t *testing.T) {
	east := newFakeMember(t)
	l, err := newLink(&rest.Config{Host: east.URL, TLSClientConfig: rest.TLSClientConfig{CAData: east.ca()}}, "good", nil, &barrier{}, nil, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	var together, done sync.WaitGroup
	together.Add(3)
	east.set(func() { east.meet = func() { together.Done(); together.Wait() } })
	for range 3 {
		done.Go(func() {
			if _, _, err := l.get(t.Context(), l.probe, "/version"); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	east.forget()
	var answers []health.Answer
	for range 2 {
		answers = append(answers, l.checkHealth(t.Context(), 500*time.Millisecond).Answer)
	}
	if answers[0] != health.Unreachable || answers[1] != health.Healthy {
		t.Errorf("answers %v: want one failure", answers)
	}
}

// A member that redirects us learns nothing more than it knows, and sends us nowhere: neither probes nor the clients of
// controllers follow.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var followed []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		followed = append(followed, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	hostile := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer hostile.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hostile.Certificate().Raw})
	l, err := newLink(&rest.Config{Host: hostile.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, "good", nil, &barrier{}, nil, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if got := l.checkHealth(t.Context(), time.Second); got.Answer != health.Unhealthy {
		t.Errorf("the probe found %v, want unhealthy", got)
	}
	m, err := newMember(t.Context(), "hostile", "f", l)
	if err != nil {
		t.Fatal(err)
	}
	maps := m.Dynamic.Resource(configMaps).Namespace("default")
	if _, err := maps.Get(t.Context(), "c", metav1.GetOptions{}); err == nil {
		t.Error("a redirected read succeeds")
	}
	if err := maps.Delete(t.Context(), "c", metav1.DeleteOptions{}); err == nil {
		t.Error("a redirected delete succeeds")
	}
	if got, err := m.Dynamic.(*wire.Client).Apply(t.Context(), configMaps, types.NamespacedName{Namespace: "default", Name: "c"}, []byte("{}"), metav1.PatchOptions{}); err == nil {
		t.Errorf("a redirected apply returns %v", got)
	}
	if len(followed) > 0 {
		t.Errorf("sent elsewhere: %q", followed)
	}
}

// A client through something else uses the member's connections and credential, and what it does not let through does not get there.
func TestThrough(t *testing.T) {
	var got []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.Header.Get("Authorization"))
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`, http.StatusNotFound)
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	l, err := newLink(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, "good", nil, &barrier{}, nil, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	m, err := newMember(t.Context(), "east", "f", l)
	if err != nil {
		t.Fatal(err)
	}
	open, closed := true, errors.New("closed")
	client, err := m.Through(func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if !open {
				return nil, closed
			}
			return rt.RoundTrip(r)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	remove := func(c dynamic.Interface) error {
		return c.Resource(configMaps).Namespace("default").Delete(t.Context(), "c", metav1.DeleteOptions{})
	}
	if err := remove(client); !apierrors.IsNotFound(err) {
		t.Errorf("open: %v", err)
	}
	open = false
	if err := remove(client); !errors.Is(err, closed) {
		t.Errorf("closed: %v", err)
	}
	if err := remove(m.Dynamic); !apierrors.IsNotFound(err) {
		t.Errorf("the member's own client: %v", err)
	}
	if want := []string{"DELETE Bearer good", "DELETE Bearer good"}; !slices.Equal(got, want) {
		t.Errorf("arrived: %q, want %q", got, want)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
