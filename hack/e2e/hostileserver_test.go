package e2e

import (
	"bytes"
	"compress/gzip"
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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// hostileEnv is the environment of the process that is a hostile member: how it is hostile, the kubeconfig file of the member behind it, and where
// it redirects to.
const (
	hostileHow      = "HOSTILE_HOW"
	hostileBehind   = "HOSTILE_BEHIND"
	hostileRedirect = "HOSTILE_REDIRECT"
)

// hostileSays is the first line of its output. The second is "asked", and comes with the first connection.
type hostileSays struct {
	Address string
	CA      []byte
}

// serveHostile is the whole of that process. It ends when its input does.
func serveHostile(how string) error {
	h, server, err := newHostile(how)
	if err != nil {
		return err
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := json.NewEncoder(os.Stdout).Encode(hostileSays{server.Listener.Addr().String(), ca}); err != nil {
		return err
	}
	close(h.said)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// hostile is a server before a real member, which passes on what it does not spoil.
type hostile struct {
	how     string
	said    chan struct{} // closed when the first line is written
	first   sync.Once
	answers atomic.Int64
	pass    *httputil.ReverseProxy
}

func newHostile(how string) (*hostile, *httptest.Server, error) {
	h := &hostile{how: how, said: make(chan struct{})}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(hostileBehind))
	if err != nil {
		return nil, nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, nil, err
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, nil, err
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
	return h, server, nil
}

// hostileListener says when it is first connected to, and takes those connections over that are to be spoiled below HTTP.
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
		l.first.Do(func() {
			<-l.said
			fmt.Println("asked")
		})
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
		for part, block := bomb(); ; part = block { // gzip files behind each other are one
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	case h.how == "drip":
		drip(w, r)
	case h.how == "long-errors" && r.Method != http.MethodGet:
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, strings.Repeat("\x1b[31mno ", 3<<20/8))
	case h.how == "redirects":
		http.Redirect(w, r, os.Getenv(hostileRedirect)+"/api/v1/namespaces/federation-system/secrets", http.StatusTemporaryRedirect)
	case h.how == "garbage" && list:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(bytes.Repeat([]byte(`{"items":[[[[{"\u0000":1e999999`), 1<<16))
	default:
		h.pass.ServeHTTP(w, r)
	}
}

// bomb is the beginning of a list, and 64 MiB of what follows in a few kilobytes. They are made once: what costs time is to be the
// federation's part.
var bomb = sync.OnceValues(func() (first, then []byte) {
	zip := func(text string, times int) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(bytes.Repeat([]byte(text), times))
		_ = z.Close()
		return b.Bytes()
	}
	return zip(`{"kind":"PodList","apiVersion":"v1","items":[`, 1), zip(`{"metadata":{"name":"x","namespace":"default"}},`, 64<<20/48)
})

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
