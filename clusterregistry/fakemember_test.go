package clusterregistry

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"federation/clusterregistry/credential"
)

// fakeMember is a fake of a member's API behind real TLS and real sockets. It knows only the paths
// that the registry uses. It can be frozen, as SIGSTOP does: it takes connections and says nothing.
type fakeMember struct {
	*httptest.Server
	gate     *gate // of all connections, until forget
	listener *gatedListener

	mu      sync.Mutex
	token   string // the one that it accepts
	sick    bool
	forbids string                // a path that it does not let anybody see
	fails   string                // a path that it cannot answer at
	meet    func()                // if set, called before a question for the version is answered
	endless bool                  // its watches never end to send
	flood   bool                  // nor does its list of nodes
	renewed time.Time             // when the Lease of its node was; zero: there is none
	agents  *coordinationv1.Lease // of its node agents; nil: there is none
	uid     string                // of its namespace kube-system; "": it has none
	mints   string                // the token that it gives out
	bound   []string              // Secrets that tokens are bound to, oldest first; such tokens are good as long as theirs is there
	order   map[string]int        // of all that there were
	tokens  int                   // given out that are bound
	longest time.Duration         // that a token may be asked to last; 0: any
	queries []string              // of lists and watches
	open    bool                  // no fences refuse what the federation does not manage
}

func newFakeMember(t *testing.T) *fakeMember {
	m := &fakeMember{token: "good", gate: &gate{}, order: map[string]int{}}
	m.Server = httptest.NewUnstartedServer(m)
	m.EnableHTTP2 = true
	m.listener = &gatedListener{Listener: m.Listener, gate: m.gate}
	m.Listener = m.listener
	m.StartTLS()
	t.Cleanup(func() {
		m.gate.set(false)
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

func (m *fakeMember) address() string { return strings.TrimPrefix(m.URL, "https://") }

func (m *fakeMember) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.Certificate().Raw})
}

func (m *fakeMember) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// seen returns the queries that contain the given text.
func (m *fakeMember) seen(text string) (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.queries {
		if strings.Contains(q, text) {
			out = append(out, q)
		}
	}
	return out
}

func (m *fakeMember) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	meet := m.meet
	if r.URL.Path == "/version" && meet != nil {
		m.mu.Unlock()
		meet()
		m.mu.Lock()
	}
	sick, mints, renewed := m.sick, m.mints, m.renewed
	authorized := m.accepts(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	endless, flood, uid := m.endless, m.flood, m.uid
	forbidden, fails := r.URL.Path == m.forbids, r.URL.Path == m.fails
	m.queries = append(m.queries, r.URL.Path+"?"+r.URL.RawQuery)
	m.mu.Unlock()
	if !authorized {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch {
	case forbidden:
		w.WriteHeader(http.StatusForbidden)
	case fails:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/healthz" && sick:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "[+]ping ok\n[-]etcd failed: reason withheld\nhealthz check failed\n")
	case r.URL.Path == "/healthz":
		fmt.Fprint(w, "ok")
	case r.URL.Path == "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
	case r.URL.Path == "/api/v1/nodes" && flood:
		answer(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[`)
		for _, err := io.WriteString(w, "{}"); err == nil; {
			_, err = io.WriteString(w, strings.Repeat(` ,{"metadata":{"name":"n"}}`, 1000))
		}
	case r.URL.Path == "/api/v1/nodes":
		answer(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[
			{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"n1","labels":{"topology.kubernetes.io/zone":"a","topology.kubernetes.io/region":"east"}}},
			{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"n2"}}]}`)
	case r.URL.Path == kubeSystemPath && uid != "":
		answer(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"`+uid+`"}}`)
	case r.URL.Path == agentsPath:
		m.serveAgents(w, r)
	case r.URL.Path == leasesPath:
		answer(w, leases(renewed))
	case r.URL.Query().Get("watch") != "" && endless:
		answer(w, "")
		endlessly(w, r)
	case r.URL.Path == "/api/v1/configmaps" && r.URL.Query().Get("watch") != "":
		answer(w, `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"default","name":"c","managedFields":[{"manager":"x"}]}}}
			{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case strings.HasSuffix(r.URL.Path, "/namespaces/federation-system/configmaps") && r.URL.Query().Get("dryRun") == "All" && r.Method == http.MethodPost:
		m.mu.Lock()
		defer m.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(map[bool]int{false: http.StatusUnprocessableEntity, true: http.StatusCreated}[m.open])
		fmt.Fprint(w, map[bool]string{false: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"ValidatingAdmissionPolicy 'f' with binding 'f' denied request: no"}`,
			true: `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"federation-fence-test"}}`}[m.open])
	case strings.HasPrefix(r.URL.Path, secretsPath):
		m.serveSecrets(w, r)
	case strings.HasSuffix(r.URL.Path, "/serviceaccounts/federation"):
		answer(w, `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"federation","ownerReferences":[{"apiVersion":"v1","kind":"ClusterRole","name":"r","uid":"u"}]}}`)
	case strings.HasSuffix(r.URL.Path, "/serviceaccounts/federation/token"):
		if mints == "" {
			mints = m.mint(r)
		}
		if mints == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "status": map[string]any{"token": mints}})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

const kubeSystemPath = "/api/v1/namespaces/kube-system"

const secretsPath = "/api/v1/namespaces/federation-system/secrets"

// accepts reports whether a token is good. It is called with mu held.
func (m *fakeMember) accepts(token string) bool {
	t, _ := credential.ParseToken(token)
	return token == m.token || t.Secret != "" && slices.Contains(m.bound, t.Secret)
}

// mint gives out a token that is bound to the Secret that the request names, and no two that are alike; "" where it is to last too long.
func (m *fakeMember) mint(r *http.Request) string {
	var asked authenticationv1.TokenRequest
	read(r, &asked)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.longest > 0 && time.Duration(*asked.Spec.ExpirationSeconds)*time.Second > m.longest {
		return ""
	}
	m.tokens++
	begin := time.Now().Add(time.Duration(m.tokens) * time.Second)
	return boundToken(begin, begin.Add(time.Duration(*asked.Spec.ExpirationSeconds)*time.Second), asked.Spec.BoundObjectRef.Name)
}

// read reads what a client sent, as JSON or protobuf.
func read(r *http.Request, into runtime.Object) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, into)
	}
	if err != nil {
		panic(err)
	}
}

func (m *fakeMember) serveSecrets(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	item := func(i int) string {
		return fmt.Sprintf(`{"kind":"Secret","apiVersion":"v1","metadata":{"namespace":"federation-system","name":%q,"uid":%q,"resourceVersion":"%d"}}`, m.bound[i], "uid-"+m.bound[i], m.order[m.bound[i]])
	}
	switch r.Method {
	case http.MethodPost:
		var s corev1.Secret
		read(r, &s)
		m.bound, m.order[s.Name] = append(m.bound, s.Name), len(m.order)+1
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, item(len(m.bound)-1))
	case http.MethodDelete:
		m.bound = slices.DeleteFunc(m.bound, func(name string) bool { return strings.HasSuffix(r.URL.Path, "/"+name) })
		answer(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	default:
		items := make([]string, len(m.bound))
		for i := range m.bound {
			items[i] = item(i)
		}
		answer(w, `{"kind":"SecretList","apiVersion":"v1","items":[`+strings.Join(items, ",")+`]}`)
	}
}

const agentsPath = "/apis/coordination.k8s.io/v1/namespaces/federation-system/leases/failover-drill"

// serveAgents reads or writes the Lease of the node agents.
func (m *fakeMember) serveAgents(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.agents == nil:
		w.WriteHeader(http.StatusNotFound)
		return
	case r.Method == http.MethodPut:
		m.agents = &coordinationv1.Lease{}
		read(r, m.agents)
	}
	is := m.agents.DeepCopy()
	is.APIVersion, is.Kind = "coordination.k8s.io/v1", "Lease"
	body, _ := json.Marshal(is) // a Lease
	answer(w, string(body))
}

// heldBy is who holds the Lease of the node agents, and when that was renewed.
func (m *fakeMember) heldBy() (holder string, renewed time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agents.Spec.HolderIdentity != nil {
		holder, renewed = *m.agents.Spec.HolderIdentity, m.agents.Spec.RenewTime.Time
	}
	return holder, renewed
}

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

func leases(renewed time.Time) string {
	item := ""
	if !renewed.IsZero() {
		item = fmt.Sprintf(`{"metadata":{"name":"n1"},"spec":{"renewTime":%q}}`, renewed.UTC().Format("2006-01-02T15:04:05.000000Z"))
	}
	return `{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[` + item + `]}`
}

func answer(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, body)
}

// serviceAccountToken is what a member would give out, without a signature.
func serviceAccountToken(issued, expires time.Time) string {
	return boundToken(issued, expires, "")
}

func boundToken(issued, expires time.Time, secret string) string {
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:federation-system:federation","iat":%d,"exp":%d,"kubernetes.io":{"secret":{"name":%q}}}`, issued.Unix(), expires.Unix(), secret)
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s"
}

// gate, when shut, holds up all that is read and written.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // nil when open
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && g.shut == nil:
		g.shut = make(chan struct{})
	case !shut && g.shut != nil:
		close(g.shut)
		g.shut = nil
	}
}

func (g *gate) pass() {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
}

type gatedListener struct {
	net.Listener
	mu   sync.Mutex
	gate *gate // of the next connection
}

func (l *gatedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	l.mu.Lock()
	defer l.mu.Unlock()
	return &gatedConn{c, l.gate}, err
}

// forget leaves all connections that there are silent, as something on the way does that has forgotten them. New ones
// work.
func (m *fakeMember) forget() {
	m.listener.mu.Lock()
	defer m.listener.mu.Unlock()
	m.gate.set(true)
	m.listener.gate = &gate{}
}

type gatedConn struct {
	net.Conn
	gate *gate
}

func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.gate.pass()
	return n, err
}

func (c *gatedConn) Write(b []byte) (int, error) {
	c.gate.pass()
	return c.Conn.Write(b)
}
