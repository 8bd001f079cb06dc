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
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/http2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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
	for _, how := range []string{"settings", "endless-health", "endless-lists", "bomb-lists", "drip", "long-errors", "redirects", "garbage", "malformed", "lies"} {
		t.Run(how, func(t *testing.T) {
			service := ""
			if how == "lies" {
				service = liedAbout(t)
			}
			joinHostile(t, how)
			is := besideFigures(t, how)
			t.Logf("%-15s changes in the others: p50 %s p99 %s (quiet: p50 %s p99 %s); memory %d MiB (quiet: %d MiB)", how,
				is.p50, is.p99, before.p50, before.p99, is.rss>>20, before.rss>>20)
			if grown := is.rss - before.rss; grown > hostileRSS {
				t.Errorf("the federation's memory has grown by %d MiB, want at most %d", grown>>20, hostileRSS>>20)
			}
			if service != "" {
				liesLeadNowhere(t, service)
			}
		})
	}
}

// knocks counts who connects to where the lies lead.
var knocks atomic.Int64

// liedAbout makes a Service that serves in each member, with a host and with checks at a port that is open at 127.0.0.1.
func liedAbout(t *testing.T) string {
	t.Helper()
	const name = "lied-about"
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = here.Close() })
	go func() {
		for c, err := here.Accept(); err == nil; c, err = here.Accept() {
			knocks.Add(1)
			_ = c.Close()
		}
	}()
	everywhere(t, name)
	settings := fmt.Sprintf(`{"hosts":["%s.%s"],"healthCheck":{"type":"TCP","port":%d,"periodSeconds":1,"timeoutSeconds":1}}`, name, s.env["DNS_ZONE"], here.Addr().(*net.TCPAddr).Port)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1beta1.DNSAnnotation: settings}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.fed.client.CoreV1().Services(ns).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// liesLeadNowhere: what the lying member says of its load balancer is known, and none of it is in any name's answer, in a slice of
// another member, or asked by a check.
func liesLeadNowhere(t *testing.T, name string) {
	t.Helper()
	eventually(t, 60*time.Second, func() string {
		service, err := s.fed.client.CoreV1().Services(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(service.Status.Conditions, v1beta1.ConditionDNSPublished)
		if c == nil || !strings.Contains(c.Message, "hostile-lies: load balancer address 127.0.0.1 is not used") {
			return fmt.Sprintf("condition %+v, annotations %v: want that the lies are refused", c, service.Annotations)
		}
		return ""
	})
	base := strings.Join([]string{name, ns, s.env["FEDERATION_NAME"], "svc"}, ".")
	asked := []string{name + "." + s.env["DNS_ZONE"], base + "." + s.env["DNS_ZONE"]}
	for place := range places(t) {
		asked = append(asked, base+"."+place+"."+s.env["DNS_ZONE"])
	}
	for begin := time.Now(); time.Since(begin) < 5*time.Second; time.Sleep(100 * time.Millisecond) {
		for _, host := range asked {
			for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
				if rcode, got := s.lookup(t, host, kind); rcode != "NOERROR" || slices.ContainsFunc(got, isALie) {
					t.Fatalf("%s answers %s %v", host, rcode, got)
				}
			}
		}
	}
	for _, member := range names {
		if _, known := slicesOf(t, member, name); slices.ContainsFunc(known, func(text string) bool {
			_, addresses, _ := strings.Cut(strings.TrimSuffix(text, " ready"), "=")
			return slices.ContainsFunc(strings.Split(addresses, ","), isALie)
		}) {
			t.Errorf("%s has slices with %q", member, known)
		}
	}
	failing, err := s.fed.client.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(t.Context(), v1beta1.DNSHealthChecksConfigMap, metav1.GetOptions{})
	if err != nil || strings.Contains(fmt.Sprint(failing.Data), "127.0.0.1") || strings.Contains(fmt.Sprint(failing.Data), "localhost") {
		t.Errorf("checks have been made at %v (%v)", failing.Data, err)
	}
	if n := knocks.Load(); n > 0 {
		t.Errorf("a port of 127.0.0.1 was connected to %d times", n)
	}
}

// places are the zones and regions of the clusters, as they are in names.
func places(t *testing.T) map[string]bool {
	t.Helper()
	list, err := s.fed.dyn.Resource(v1beta1.ClustersResource).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, c := range list.Items {
		region, _, _ := unstructured.NestedString(c.Object, "status", "region")
		zones, _, _ := unstructured.NestedStringSlice(c.Object, "status", "zones")
		if all[region] = true; region == "" {
			t.Fatalf("Cluster %s has no region", c.GetName())
		}
		for _, zone := range zones {
			all[strings.TrimPrefix(zone, region+"-")+"."+region] = true
		}
	}
	return all
}

// isALie reports whether an answer leads to whoever asks, to the link, or nowhere.
func isALie(answer string) bool {
	addr, err := netip.ParseAddr(answer)
	return strings.Contains(answer, "localhost") || err == nil && v1beta1.RefuseAddress(addr) != nil
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
	answers atomic.Int64
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
			if r.In.Method != http.MethodGet { // the real member has objects of its own Cluster
				query := r.Out.URL.Query()
				query.Set("dryRun", metav1.DryRunAll)
				r.Out.URL.RawQuery = query.Encode()
			}
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
	if h.how == "malformed" && h.answers.Add(1)%100 == 50 {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader("\x00{"), r.Body), r.Body}
		r.ContentLength = -1
		r.Header.Del("Content-Length")
		return nil
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") || !own && h.how != "lies" {
		return nil
	}
	if r.Request.URL.Query().Get("watch") != "" {
		if h.how == "lies" {
			r.Body = lies(r.Body)
		}
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

// lies is a watch with a lie in each event.
func lies(watch io.ReadCloser) io.ReadCloser {
	from, to := io.Pipe()
	go func() {
		defer func() { _ = watch.Close() }()
		for events, event := json.NewDecoder(watch), map[string]any(nil); ; {
			err := events.Decode(&event)
			if err == nil {
				event["object"] = lie(event["object"], "")
				err = json.NewEncoder(to).Encode(event)
			}
			if event = nil; err != nil {
				to.CloseWithError(err)
				return
			}
		}
	}()
	return from
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
			case "ingress":
				v[k] = []any{map[string]any{"ip": "127.0.0.1"}, map[string]any{"ip": "::ffff:127.0.0.1"}, map[string]any{"ip": "169.254.169.254"},
					map[string]any{"ip": "0.0.0.0"}, map[string]any{"hostname": "localhost"}, map[string]any{"hostname": "db.localhost"}}
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
