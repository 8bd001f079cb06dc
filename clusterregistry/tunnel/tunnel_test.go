package tunnel

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// cluster is the UID of the member in these tests.
const cluster types.UID = "11111111-2222-3333-4444-555555555555"

// federation is a server of the federation with a Hub: whoever comes is taken for the agent of cluster.
type federation struct {
	*httptest.Server
	hub  *Hub
	gate atomic.Pointer[chan struct{}] // who comes waits until it is closed; nil: nobody waits
	mu   sync.Mutex
	all  []net.Conn // that came
}

func newFederation(t *testing.T, listen string) *federation {
	f := &federation{hub: NewHub("process-1")}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/federation/v1beta1/clusters/east-a/connect" || r.Method != http.MethodPost {
			http.Error(w, r.Method+" "+r.URL.Path, http.StatusNotFound)
			return
		}
		if gate := f.gate.Load(); gate != nil {
			<-*gate
		}
		f.hub.Park(w, r, cluster)
	}))
	if listen != "" {
		l, err := net.Listen("tcp", listen)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Listener.Close() // another is used
		f.Listener = l
	}
	f.Config.ConnState = func(c net.Conn, s http.ConnState) {
		if s == http.StateNew {
			f.mu.Lock()
			f.all = append(f.all, c)
			f.mu.Unlock()
		}
	}
	f.StartTLS()
	t.Cleanup(f.stop)
	return f
}

// stop ends the server and all connections, as a process that is killed.
func (f *federation) stop() {
	f.Close()
	f.hub.Forget(cluster)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.all {
		_ = c.Close() // the test is over for it
	}
}

func (f *federation) options() AgentOptions {
	roots := x509.NewCertPool()
	roots.AddCert(f.Certificate())
	return AgentOptions{
		Servers: []string{f.URL}, Cluster: "east-a", Version: "v9.9.9",
		TLS: func() (*tls.Config, error) {
			return &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}, nil
		},
	}
}

// api is the API server of a member: it answers what it was asked, with what token.
func newAPI(t *testing.T) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/watch":
			for i := range 3 {
				fmt.Fprintf(w, "event %d\n", i)
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
			<-r.Context().Done()
		case "/echo":
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
			_, _ = io.Copy(conn, buf)
		default:
			fmt.Fprintf(w, "%s %s as %q for %q from %q", r.Method, r.URL, r.Header.Get("Authorization"), r.Header.Get("Impersonate-User"), r.Header.Get("X-Forwarded-For"))
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// startAgent runs an agent between the two until the test ends, or stop is called, and waits until it is connected.
func startAgent(t *testing.T, f *federation, api *httptest.Server, change func(*AgentOptions)) (stop func()) {
	config := &rest.Config{Host: api.URL, BearerToken: "of-the-member"}
	config.CAData = pemOf(api.Certificate())
	handler, err := NewForwarder(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := f.options()
	o.Handler = handler
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- RunAgent(ctx, o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	awaitAgent(t, f, true)
	return stop
}

func awaitAgent(t *testing.T, f *federation, connected bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, is := f.hub.Agent(cluster); is == connected {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the agent should be connected: %t", connected)
		}
	}
}

// client is one of the federation's, through the agent: over HTTP/2, or HTTP/1.1.
func (f *federation) client(http2 bool) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(http2)
	protocols.SetHTTP1(!http2)
	return &http.Client{Transport: &http.Transport{
		Protocols: protocols, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return f.hub.Dial(ctx, cluster) },
	}}
}

func get(t *testing.T, c *http.Client, path string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://member"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer of-the-federation")
	r.Header.Set("Impersonate-User", "jane")
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d over HTTP/%d: %s", answer.StatusCode, answer.ProtoMajor, body)
}

// Requests reach the member with the agent's token, never with one of the federation, by both versions of HTTP.
func TestTunnel(t *testing.T) {
	f := newFederation(t, "")
	startAgent(t, f, newAPI(t), nil)
	for _, http2 := range []bool{true, false} {
		want := fmt.Sprintf(`200 over HTTP/%d: GET /api/v1/pods?limit=1 as "Bearer of-the-member" for "jane" from ""`, map[bool]int{true: 2, false: 1}[http2])
		if got := get(t, f.client(http2), "/api/v1/pods?limit=1"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if version, ok := f.hub.Agent(cluster); !ok || version != "v9.9.9" {
		t.Errorf("%q %t", version, ok)
	}
}

// Events of a watch come one by one.
func TestTunnelWatch(t *testing.T) {
	f := newFederation(t, "")
	startAgent(t, f, newAPI(t), nil)
	answer, err := f.client(true).Get("http://member/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for i := range 3 {
		if !lines.Scan() || lines.Text() != fmt.Sprintf("event %d", i) {
			t.Fatalf("event %d: %q, %v", i, lines.Text(), lines.Err())
		}
	}
}

// session begins what sends back all that comes, over an upgraded connection, as exec does.
func (f *federation) session(t *testing.T) io.ReadWriteCloser {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://member/echo", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "SPDY/3.1")
	answer, err := f.client(false).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() }) // the test is over for it
	stream, ok := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !ok {
		t.Fatal(answer.Status)
	}
	return stream
}

// echo fails unless a session sends a word back.
func echo(t *testing.T, session io.ReadWriter, word string) {
	t.Helper()
	back := make([]byte, len(word))
	if _, err := io.WriteString(session, word); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(session, back); err != nil || string(back) != word {
		t.Fatalf("%q came back as %q: %v", word, back, err)
	}
}

// A connection can be upgraded, as for exec.
func TestTunnelUpgrade(t *testing.T) {
	f := newFederation(t, "")
	startAgent(t, f, newAPI(t), nil)
	session := f.session(t)
	echo(t, session, "one\n")
	echo(t, session, "two\n")
}

// Many connections at once are all served, though only some are ready.
func TestTunnelManyAtOnce(t *testing.T) {
	f := newFederation(t, "")
	startAgent(t, f, newAPI(t), nil)
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range 40 {
		wg.Go(func() {
			answer, err := f.client(false).Get("http://member/")
			if err != nil {
				t.Log(err)
				failed.Add(1)
				return
			}
			_ = answer.Body.Close() // its status is enough
		})
	}
	if wg.Wait(); failed.Load() > 0 {
		t.Errorf("%d of 40 failed", failed.Load())
	}
}

// Where no agent is connected, nobody waits.
func TestHubWithoutAgent(t *testing.T) {
	f := newFederation(t, "")
	begin := time.Now()
	if _, err := f.hub.Dial(t.Context(), cluster); !errors.Is(err, ErrNoAgent) || time.Since(begin) > refill/2 {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	stop := startAgent(t, f, newAPI(t), nil)
	if _, err := f.hub.Dial(t.Context(), "another"); !errors.Is(err, ErrNoAgent) {
		t.Errorf("another member: %v", err)
	}
	stop()
	awaitAgent(t, f, false)
	if _, err := f.hub.Dial(t.Context(), cluster); !errors.Is(err, ErrNoAgent) {
		t.Errorf("after the agent ended: %v", err)
	}
}

// An agent that is slow to replace a connection is connected as long as others are in use.
func TestHubWaitsForASlowAgent(t *testing.T) {
	f := newFederation(t, "")
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	startAgent(t, f, newAPI(t), func(o *AgentOptions) { o.Ready = 1 })
	f.gate.Store(&gate)
	used, err := f.hub.Dial(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := used.Write([]byte("G")); err != nil { // the agent hears that it is used, and connects again
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		conn, err := f.hub.Dial(t.Context(), cluster)
		if err == nil {
			err = conn.Close()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("with one connection in use and none ready: %v", err)
	case <-time.After(refill + refill/2):
	}
	open()
	if err := <-got; err != nil {
		t.Errorf("when the agent has come: %v", err)
	}
	if err := used.Close(); err != nil {
		t.Error(err)
	}
}

// A connection that ends without an answer takes along those that were ready before it: the same has become of them.
func TestHubEndsWhatWasReadyBefore(t *testing.T) {
	f := newFederation(t, "")
	startAgent(t, f, newAPI(t), func(o *AgentOptions) { o.Ready = 2 })
	for f.hub.count(cluster) < 2 {
		time.Sleep(time.Millisecond)
	}
	f.hub.mu.Lock()
	before := f.hub.members[cluster].ready[0]
	f.hub.mu.Unlock()
	conn, err := f.hub.Dial(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-before.done:
	case <-time.After(20 * time.Second):
		t.Error("the connection that was ready before is kept")
	}
	awaitAgent(t, f, true)
}

// An agent that hears nothing replaces what it keeps ready.
func TestAgentReplacesSilentConnections(t *testing.T) {
	f := newFederation(t, "")
	var tries atomic.Int64
	startAgent(t, f, newAPI(t), func(o *AgentOptions) {
		o.Ready, o.Quiet, o.Observe = 1, 100*time.Millisecond, func(string, error) { tries.Add(1) }
	})
	for deadline := time.Now().Add(20 * time.Second); tries.Load() < 3; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections", tries.Load())
		}
	}
}

// A Cluster that leaves takes what is ready along.
func TestHubForget(t *testing.T) {
	f := newFederation(t, "")
	startAgent(t, f, newAPI(t), func(o *AgentOptions) { o.Ready = 1 })
	f.hub.mu.Lock()
	c := f.hub.members[cluster].ready[0]
	f.hub.mu.Unlock()
	f.hub.Forget(cluster)
	<-c.done
	if !c.gone {
		t.Error("the connection is still there")
	}
}

// The agent finds a federation that was killed and started again.
func TestAgentComesBack(t *testing.T) {
	f := newFederation(t, "")
	address, api := f.Listener.Addr().String(), newAPI(t)
	var errs atomic.Int64
	startAgent(t, f, api, func(o *AgentOptions) {
		o.Observe = func(_ string, err error) {
			if err != nil {
				errs.Add(1)
			}
		}
	})
	f.stop()
	for deadline := time.Now().Add(20 * time.Second); errs.Load() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the agent did not notice")
		}
	}
	again := newFederation(t, address)
	awaitAgent(t, again, true)
	if got := get(t, again.client(true), "/"); !strings.HasPrefix(got, "200 over HTTP/2") {
		t.Error(got)
	}
}

// What is no agent is refused, and so is one that says something unasked, or keeps too many connections.
func TestHubRefuses(t *testing.T) {
	f := newFederation(t, "")
	for want, upgrade := range map[int]string{http.StatusUpgradeRequired: "websocket", http.StatusSwitchingProtocols: Protocol} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL+"/apis/federation/v1beta1/clusters/east-a/connect", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", upgrade)
		answer, err := f.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != want {
			t.Errorf("Upgrade %s: %s, want %d", upgrade, answer.Status, want)
		}
		if want != http.StatusSwitchingProtocols {
			continue
		}
		if _, err := answer.Body.(io.Writer).Write([]byte("unasked")); err != nil {
			t.Fatal(err)
		}
		if _, err := answer.Body.Read(make([]byte, 1)); err == nil {
			t.Error("who speaks unasked is listened to")
		}
	}
	greedy := f.options()
	greedy.Ready, greedy.Handler = MostReady+3, http.NotFoundHandler()
	var refused atomic.Int64
	greedy.Observe = func(_ string, err error) {
		if err != nil && strings.Contains(err.Error(), "429") {
			refused.Add(1)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = RunAgent(ctx, greedy) }()
	for deadline := time.Now().Add(20 * time.Second); refused.Load() < 3 || f.hub.count(cluster) > MostReady; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d are refused, %d are ready", refused.Load(), f.hub.count(cluster))
		}
	}
}

// An agent whose way out is a proxy goes through it.
func TestAgentThroughAProxy(t *testing.T) {
	f := newFederation(t, "")
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.Host + " " + r.Header.Get("Proxy-Authorization"))
		there, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, here); _ = there.Close() }()
		_, _ = io.Copy(here, there)
		_ = here.Close()
	}))
	defer proxy.Close()
	u, err := http.NewRequest(http.MethodGet, "http://jane:secret@"+proxy.Listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", proxy.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := askProxy(t.Context(), conn, u.URL, f.Listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	config, err := f.options().TLS()
	if err != nil {
		t.Fatal(err)
	}
	if err := tls.Client(conn, config).HandshakeContext(t.Context()); err != nil {
		t.Errorf("TLS through the proxy: %v", err)
	}
	if want := "CONNECT " + f.Listener.Addr().String() + " Basic amFuZTpzZWNyZXQ="; asked.Load() != want {
		t.Errorf("the proxy was asked %q, want %q", asked.Load(), want)
	}
}

// While paused, the forwarder lets nothing pass that could change something.
func TestForwarderPaused(t *testing.T) {
	api := newAPI(t)
	config := &rest.Config{Host: api.URL, BearerToken: "of-the-member"}
	config.CAData = pemOf(api.Certificate())
	var paused atomic.Bool
	handler, err := NewForwarder(config, paused.Load)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		method, path, upgrade string
		whilePaused           int
	}{
		{"GET", "/api/v1/pods", "", 200},
		{"HEAD", "/api/v1/pods", "", 200},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", 200},
		{"POST", "/api/v1/namespaces", "", 403},
		{"PATCH", "/api/v1/namespaces/a", "", 403},
		{"PUT", "/api/v1/namespaces/a", "", 403},
		{"DELETE", "/api/v1/namespaces/a", "", 403},
		{"GET", "/api/v1/namespaces/a/pods/b/exec", "websocket", 403},
		{"GET", "/api/v1/namespaces/a/services/b/proxy/delete?all", "", 403},
		{"GET", "/api/v1/namespaces/a/pods/b/proxy", "", 403},
	} {
		for _, is := range []bool{false, true} {
			paused.Store(is)
			r := httptest.NewRequest(tc.method, tc.path, nil)
			if tc.upgrade != "" && is {
				r.Header.Set("Upgrade", tc.upgrade)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if want := map[bool]int{false: 200, true: tc.whilePaused}[is]; w.Code != want {
				t.Errorf("%s %s, paused %t: %d, want %d", tc.method, tc.path, is, w.Code, want)
			}
			if w.Code == 403 && !strings.Contains(w.Body.String(), `"reason":"Forbidden"`) {
				t.Errorf("%s %s: %s", tc.method, tc.path, w.Body)
			}
		}
	}
}

// What could change something and is under way ends when the agent is paused; a watch goes on.
func TestForwarderEndsWhatIsUnderWay(t *testing.T) {
	api := newAPI(t)
	config := &rest.Config{Host: api.URL}
	config.CAData = pemOf(api.Certificate())
	var paused atomic.Bool
	handler, err := NewForwarder(config, paused.Load)
	if err != nil {
		t.Fatal(err)
	}
	under := httptest.NewServer(handler)
	t.Cleanup(func() { under.CloseClientConnections(); under.Close() })
	open := func(method string) *bufio.Reader {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, under.URL+"/watch", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		body := bufio.NewReader(answer.Body)
		if line, err := body.ReadString('\n'); err != nil {
			t.Fatal(line, err)
		}
		return body
	}
	watch, change := open(http.MethodGet), open(http.MethodPost)
	paused.Store(true)
	if all, err := io.ReadAll(change); err == nil && strings.Count(string(all), "event") != 2 {
		t.Errorf("a request that may change something goes on: %q, %v", all, err)
	}
	if line, err := watch.ReadString('\n'); err != nil {
		t.Errorf("a watch ended: %q, %v", line, err)
	}
}

// The agent gives no tokens away: with one, the federation could do without it.
func TestForwarderRefusesTokens(t *testing.T) {
	api := newAPI(t)
	config := &rest.Config{Host: api.URL + "/k8s/clusters/east"}
	config.CAData = pemOf(api.Certificate())
	handler, err := NewForwarder(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"/api/v1/namespaces/federation-system/serviceaccounts/federation/token": 403, "/api/v1/namespaces/a/serviceaccounts/b/token/": 403,
		"/api/v1/namespaces/a/serviceaccounts": 200, "/api/v1/namespaces/token/configmaps": 200,
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
		if w.Code != want || want == 200 && !strings.HasPrefix(w.Body.String(), "POST /k8s/clusters/east"+path+" ") {
			t.Errorf("%s: %d, %s; want %d, below the path of the API server", path, w.Code, w.Body, want)
		}
	}
}

// Faulty options are named.
func TestRunAgentRefusesOptions(t *testing.T) {
	for _, servers := range [][]string{nil, {"http://fed:6443"}, {"fed:6443"}} {
		if err := RunAgent(t.Context(), AgentOptions{Servers: servers}); err == nil {
			t.Errorf("servers %q are taken", servers)
		}
	}
}
func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
