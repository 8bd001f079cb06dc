package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/join"
)

// hostileRSS is what the federation's process may grow by beside one hostile member: its default limits, and as much again for what
// the garbage collector has not seen yet.
const hostileRSS = 2 << 30

// TestAHostileMemberHurtsNobody joins a member that does everything wrong, one thing after another: changes still arrive in the
// other members, names are answered, and memory is bounded. It prints the figures.
func TestAHostileMemberHurtsNobody(t *testing.T) {
	applyConfigMap(t, "beside-the-hostile")
	copies(t, "beside-the-hostile", names...)
	before := besideFigures(t, "quiet")
	for _, how := range []string{"settings", "endless-health", "endless-lists", "bomb-lists", "drip", "long-errors", "redirects", "garbage", "lies"} {
		t.Run(how, func(t *testing.T) {
			joinHostile(t, how)
			is := besideFigures(t, how)
			t.Logf("%-15s changes in the others: p50 %s p99 %s (quiet: p50 %s p99 %s); memory %d MiB (quiet: %d MiB)", how,
				is.p50, is.p99, before.p50, before.p99, is.rss>>20, before.rss>>20)
			if grown := is.rss - before.rss; grown > hostileRSS {
				t.Errorf("the federation's memory has grown by %d MiB, want at most %d", grown>>20, hostileRSS>>20)
			}
		})
	}
}

type beside struct {
	p50, p99 time.Duration
	rss      int64 // the most
}

// besideFigures changes a ConfigMap for 5 s, or HOSTILE_SECONDS, and measures how long each change takes to the members that are
// not hostile.
func besideFigures(t *testing.T, value string) (b beside) {
	t.Helper()
	var took []time.Duration
	lasts := time.Duration(fromEnv("HOSTILE_SECONDS", 5)) * time.Second
	for n, begin := 0, time.Now(); time.Since(begin) < lasts; n++ {
		text := value + "-" + strconv.Itoa(n)
		change(t, s.fed, "beside-the-hostile", text)
		took = append(took, data(t, "beside-the-hostile", text, names...))
		b.rss = max(b.rss, federationRSS(t))
		time.Sleep(50 * time.Millisecond)
	}
	slices.Sort(took)
	return beside{took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond), b.rss}
}

func federationRSS(t *testing.T) int64 {
	t.Helper()
	pid, err := os.ReadFile(filepath.Join(s.dir, "federation.pid"))
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "statm"))
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(status), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}

// joinHostile makes a Cluster of a server that is hostile in one way, until the end of the test.
func joinHostile(t *testing.T, how string) {
	t.Helper()
	h := newHostile(t, how)
	name := "hostile-" + how
	like, err := s.fed.dyn.Resource(v1beta1.ClustersResource).Get(t.Context(), beyond, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	credential, err := s.fed.client.CoreV1().Secrets(v1beta1.FederationNamespace).Get(t.Context(), join.SecretName(beyond), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: join.SecretName(name)}, Data: map[string][]byte{"token": credential.Data["token"], "ca.crt": h.ca}}
	if _, err := s.fed.client.CoreV1().Secrets(v1beta1.FederationNamespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error {
		return s.fed.client.CoreV1().Secrets(v1beta1.FederationNamespace).Delete(ctx, secret.Name, background)
	})
	cluster := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	cluster.SetGroupVersionKind(like.GroupVersionKind())
	cluster.SetName(name)
	for field, value := range map[string]any{
		"serverAddressByClientCIDRs": []any{map[string]any{"clientCIDR": "0.0.0.0/0", "serverAddress": h.address}},
		"secretRef":                  map[string]any{"name": secret.Name},
	} {
		if err := unstructured.SetNestedField(cluster.Object, value, "spec", field); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.fed.dyn.Resource(v1beta1.ClustersResource).Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error {
		return s.fed.dyn.Resource(v1beta1.ClustersResource).Delete(ctx, name, background)
	})
	eventually(t, 30*time.Second, func() string {
		if h.asked() == 0 {
			return "the federation has not asked the hostile member anything"
		}
		return ""
	})
}

// hostile is a server before a real member, which passes on what it does not spoil.
type hostile struct {
	how     string
	address string
	ca      []byte
	connect chan struct{} // one for each connection
	pass    *httputil.ReverseProxy
}

func (h *hostile) asked() int { return len(h.connect) }

func newHostile(t *testing.T, how string) *hostile {
	t.Helper()
	h := &hostile{how: how, connect: make(chan struct{}, 1<<20)}
	target, err := url.Parse(s.members[beyond].config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(s.members[beyond].config))
	if err != nil {
		t.Fatal(err)
	}
	h.pass = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Accept-Encoding") // so that answers can be spoiled
			r.Out.Header.Set("Accept", "application/json")
		},
		Transport: transport, ModifyResponse: h.spoil, FlushInterval: -1, ErrorLog: nil,
	}
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = nil
	server.Listener = &hostileListener{server.Listener, h, server}
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		_ = server.Listener.Close()
	})
	h.address = server.Listener.Addr().String()
	h.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return h
}

// hostileListener counts connections, and takes those over that are to be spoiled below HTTP.
type hostileListener struct {
	net.Listener
	*hostile
	server *httptest.Server
}

func (l *hostileListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.connect <- struct{}{}
		if l.how != "settings" {
			return c, nil
		}
		go l.badSettings(c)
	}
}

// badSettings speaks HTTP/2 and says that it takes frames of no bytes.
func (l *hostileListener) badSettings(c net.Conn) {
	defer c.Close()
	speaks := tls.Server(c, &tls.Config{Certificates: l.server.TLS.Certificates, NextProtos: []string{http2.NextProtoTLS}, MinVersion: tls.VersionTLS12})
	if speaks.Handshake() != nil || http2.NewFramer(speaks, nil).WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 0}) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, speaks)
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	list := r.Method == http.MethodGet && strings.Count(r.URL.Path, "/") > 2 && r.URL.Query().Get("watch") == ""
	switch {
	case h.how == "endless-health" && !list, h.how == "endless-lists" && list:
		w.Header().Set("Content-Type", "application/json")
		endless(w, `{"kind":"PodList","apiVersion":"v1","items":[`, `{"metadata":{"name":"x","namespace":"default"}},`)
	case h.how == "bomb-lists" && list:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		endless(z, `{"kind":"PodList","apiVersion":"v1","items":[`, `{"metadata":{"name":"x","namespace":"default"}},`)
	case h.how == "drip":
		drip(w, r)
	case h.how == "long-errors" && r.Method != http.MethodGet:
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, strings.Repeat("\x1b[31mno ", 3<<20/8))
	case h.how == "redirects":
		http.Redirect(w, r, s.fed.config.Host+"/api/v1/namespaces/federation-system/secrets", http.StatusTemporaryRedirect)
	case h.how == "garbage" && list:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(bytes.Repeat([]byte(`{"items":[[[[{"\u0000":1e999999`), 1<<16))
	default:
		h.pass.ServeHTTP(w, r)
	}
}

// endless writes until the reader has enough.
func endless(w io.Writer, first, then string) {
	text := []byte(first)
	for block := bytes.Repeat([]byte(then), 1000); ; text = block {
		if _, err := w.Write(text); err != nil {
			return
		}
	}
}

// drip answers a byte a second.
func drip(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		if _, err := w.Write([]byte(" ")); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		time.Sleep(time.Second)
	}
}

// spoil changes a real answer. It is another cluster than the one behind it, and it may lie.
func (h *hostile) spoil(r *http.Response) error {
	own := r.Request.URL.Path == "/api/v1/namespaces/"+metav1.NamespaceSystem
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") || !own && h.how != "lies" || r.Request.URL.Query().Get("watch") != "" {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var answer any
	if err := json.Unmarshal(body, &answer); err == nil {
		if top, ok := answer.(map[string]any); ok && own {
			_ = unstructured.SetNestedField(top, "hostile-"+h.how, "metadata", "uid")
		} else {
			answer = lie(answer, "")
		}
		if body, err = json.Marshal(answer); err != nil {
			return err
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// lie replaces what a member says of itself: texts by long ones that no terminal should see, numbers by the largest, addresses by
// those of others.
func lie(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			switch k {
			case "apiVersion", "kind", "name", "namespace", "uid", "resourceVersion", "groupVersion", "version", "singularName", "verbs", "preferredVersion", "categories":
			case "ip":
				v[k] = "127.0.0.1"
			case "hostname":
				v[k] = "localhost"
			default:
				v[k] = lie(inner, k)
			}
		}
		return v
	case []any:
		for n := range v {
			v[n] = lie(v[n], key)
		}
		return v
	case float64:
		return math.MaxInt32
	case string:
		if key == "message" || key == "reason" {
			return strings.Repeat("\x1b]0;owned\a", 10_000)
		}
		return v
	}
	return v
}
