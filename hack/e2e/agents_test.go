package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
	"federation/clusterregistry/join"
	"federation/clusterregistry/tunnel"
	"federation/hack/forward"
)

// inspects returns what asks a federation, all the time until what it returns is called, for something of a member; each time over a new connection to the
// member's agent. That returns how many answers came, and what failed.
func inspects(fed cluster, member string) (stop func() (answers int64, failed []string)) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var mu sync.Mutex
	var answered atomic.Int64
	var bad []string
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := inspect(ctx, fed, member); err == nil {
					answered.Add(1)
				} else if ctx.Err() == nil {
					mu.Lock()
					bad = append(bad, time.Now().Format("15:04:05.000 ")+err.Error())
					mu.Unlock()
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return func() (int64, []string) {
		cancel()
		wg.Wait()
		return answered.Load(), bad
	}
}

// inspect asks a federation for a namespace of a member.
func inspect(ctx context.Context, fed cluster, member string) error {
	_, err := fed.client.Discovery().RESTClient().Get().AbsPath("/apis/federation/v1beta1/clusters", member, "inspect/api/v1/namespaces", ns).DoRaw(ctx)
	return err
}

// untilReached waits until a federation reaches a member.
func untilReached(t *testing.T, fed cluster, member string) time.Duration {
	t.Helper()
	return eventually(t, 60*time.Second, func() string { return errText(inspect(t.Context(), fed, member)) })
}

// onlyInPullMode leaves a test that takes minutes to make e2e-pull; TestPull has the way of an agent in all runs.
func onlyInPullMode(t *testing.T) {
	t.Helper()
	if !pullMode {
		t.Skip("make e2e-pull runs it")
	}
}

// TestAnAgentRenewsItsCertificate: an agent whose certificate is about to expire gets another one, and no request fails meanwhile, nor when the old one has expired.
func TestAnAgentRenewsItsCertificate(t *testing.T) {
	onlyInPullMode(t)
	a := pull(t, beyond)
	untilReached(t, s.fed, beyond)
	a.stop()
	const lasts = 30 * time.Second
	expires := time.Now().Add(lasts)
	serial := a.shorten(t, expires)
	a.start(t)
	untilReached(t, s.fed, beyond)
	stop := inspects(s.fed, beyond)
	renewed := eventually(t, 2*lasts, func() string {
		if c, _ := a.certificate(t); c.SerialNumber.Cmp(serial) == 0 {
			return "the certificate is not renewed"
		}
		return ""
	})
	time.Sleep(time.Until(expires) + 5*time.Second)
	answers, bad := stop()
	t.Logf("renewed after %.1f s of %v; %d requests, %d failed", renewed.Seconds(), lasts, answers, len(bad))
	if answers == 0 || len(bad) > 0 {
		t.Errorf("%d answers; failed: %q", answers, bad)
	}
}

// certificate is that of an agent, and the file that it is in.
func (a *agent) certificate(t *testing.T) (c *x509.Certificate, file string) {
	t.Helper()
	file, err := filepath.EvalSymlinks(filepath.Join(a.dir, "certificate", "federation-agent-current.pem"))
	if err != nil {
		t.Fatal(err)
	}
	certs, err := cert.CertsFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return certs[0], file
}

// shorten replaces the certificate of an agent by one for the same key that expires then, and returns its serial number.
func (a *agent) shorten(t *testing.T, expires time.Time) *big.Int {
	t.Helper()
	was, file := a.certificate(t)
	both, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(both)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	files := pki.FilesIn(filepath.Join(s.dir, "federation"))
	ca, err := tls.LoadX509KeyPair(files.CA, files.CAKey)
	if err != nil {
		t.Fatal(err)
	}
	serial := big.NewInt(time.Now().UnixNano())
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, RawSubject: was.RawSubject, NotBefore: time.Now().Add(-time.Second), NotAfter: expires, KeyUsage: was.KeyUsage, ExtKeyUsage: was.ExtKeyUsage,
	}, ca.Leaf, was.PublicKey, ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), keyPEM...), 0o600); err != nil {
		t.Fatal(err)
	}
	return serial
}

// TestAgentsAtEachProcess: the agent of a member is connected to each of two processes of a federation. One of them is killed, and the other goes on as if nothing had been; when the
// first is back, the agent is back there.
func TestAgentsAtEachProcess(t *testing.T) {
	onlyInPullMode(t)
	const member = "west-a"
	p := &pair{name: "agents", dir: filepath.Join(s.dir, "agents")}
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	p.etcd = startEtcd(t, p.dir)
	t.Cleanup(func() { p.end(t) })
	p.start(t, "serve")
	p.joinAgent(t, member)
	for i, h := range p.halves {
		t.Logf("process %d reaches the member through its agent, %.1f s after that was started", i, untilReached(t, h.fed, member).Seconds())
	}
	leads := p.leader(t)
	other := p.halves[1-leads].fed
	condition := func() string {
		u, err := other.dyn.Resource(v1beta1.ClustersResource).Get(t.Context(), member, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Ready" {
				return fmt.Sprint(c["status"], c["lastTransitionTime"])
			}
		}
		return "none"
	}
	eventually(t, 30*time.Second, func() string {
		if is := condition(); !strings.HasPrefix(is, "True") {
			return "Ready is " + is
		}
		return ""
	})
	was, stop := condition(), inspects(other, member)
	p.halves[leads].controllers.kill(t)
	time.Sleep(10 * time.Second) // the other one takes over
	if answers, bad := stop(); answers == 0 || len(bad) > 0 {
		t.Errorf("%d answers; failed: %q", answers, bad)
	} else {
		t.Logf("%d requests by way of the other process while one was killed, none failed", answers)
	}
	if is := condition(); !strings.HasPrefix(is, "True") || is != was {
		t.Errorf("Ready was %s, and is %s", was, is)
	}
	p.halves[leads].controllers = p.halves[leads].run()
	eventually(t, 60*time.Second, func() string {
		_, err := p.halves[leads].fed.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return errText(err)
	})
	t.Logf("the one that was killed reaches the member again %.1f s after it was ready", untilReached(t, p.halves[leads].fed, member).Seconds())
}

// joinAgent makes a member of another federation one of this too, whose agent connects to both processes, until the test ends.
func (p *pair) joinAgent(t *testing.T, member string) {
	t.Helper()
	kubeconfig := filepath.Join(s.dir, "members", member, "kubeconfig")
	plugin := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(filepath.Join(s.root, "_output", "bin", "kubectl-federation"), append(args, "--kubeconfig", p.halves[0].kubeconfig())...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	plugin("join", member, "--member-kubeconfig", kubeconfig, "--pull")
	t.Cleanup(func() { plugin("unjoin", member, "--member-kubeconfig", kubeconfig, "--yes") })
	bootstrap := filepath.Join(p.dir, "bootstrap")
	if err := os.WriteFile(bootstrap, []byte(plugin("token", "create", member)), 0o600); err != nil {
		t.Fatal(err)
	}
	uid, err := join.FederationUID(t.Context(), p.halves[0].fed.client)
	if err != nil {
		t.Fatal(err)
	}
	a := startProcess(t, "federation-agent", p.name+"-agent", "--cluster="+member, "--bootstrap-kubeconfig="+bootstrap, "--kubeconfig="+kubeconfig, "--cert-dir="+filepath.Join(p.dir, "certificate"),
		"--account="+v1beta1.FederationNamespace+"/"+join.AccountName(uid), "--server="+p.halves[0].fed.config.Host, "--server="+p.halves[1].fed.config.Host)
	t.Cleanup(func() { a.kill(t) })
}

// comebackLimit is how soon all of many agents are to be connected to a federation that is back.
const comebackLimit = 5 * time.Second

// TestAHundredAgentsComeBack: a federation that a hundred agents are connected to is killed and started again.
func TestAHundredAgentsComeBack(t *testing.T) {
	onlyInPullMode(t)
	const n = 100
	p := &pair{name: "hundred", dir: filepath.Join(s.dir, "hundred")}
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(t) })
	h := &half{dataDir: filepath.Join(p.dir, "0"), dns: "127.0.0.1:" + freePort(t)}
	port := freePort(t)
	h.run = func() *process {
		return p.process(t, p.name, "serve", "--data-dir="+h.dataDir, "--secure-port="+port, "--name=ha", "--dns-zone=ha.test", "--dns-bind-address="+h.dns)
	}
	p.startHalf(t, h, "serve")
	came := make([]atomic.Int64, n)                                                // when each connected the last time
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{})) // which says nothing
	var agents sync.WaitGroup
	t.Cleanup(func() { cancel(); agents.Wait() })
	for i := range n {
		o := h.lightAgent(t, fmt.Sprintf("light-%d", i))
		o.Observe = func(_ string, err error) {
			if err == nil {
				came[i].Store(time.Now().UnixNano())
			}
		}
		agents.Go(func() { _ = tunnel.RunAgent(ctx, o) }) // until the test ends
	}
	untilCame(t, came, time.Time{})
	for range 3 {
		h.controllers.kill(t)
		killed := time.Now()
		time.Sleep(5 * time.Second) // all have noticed, and try
		h.controllers = h.run()
		var back time.Time
		eventually(t, time.Minute, func() string {
			_, err := h.fed.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
			back = time.Now()
			return errText(err)
		})
		took := untilCame(t, came, killed).Sub(back)
		t.Logf("%d agents were connected %.1f s after the federation was ready, %.1f s after it was killed", n, max(0, took.Seconds()), back.Add(took).Sub(killed).Seconds())
		atMost(t, "all agents are connected again after", took, comebackLimit)
	}
}

// untilCame waits until all agents have connected since then, and returns when the last one did.
func untilCame(t *testing.T, came []atomic.Int64, since time.Time) (last time.Time) {
	t.Helper()
	eventually(t, time.Minute, func() string {
		count := 0
		last = time.Time{}
		for i := range came {
			if at := time.Unix(0, came[i].Load()); at.After(since) {
				count++
				if at.After(last) {
					last = at
				}
			}
		}
		if count < len(came) {
			return fmt.Sprintf("%d of %d agents are connected", count, len(came))
		}
		return ""
	})
	return last
}

// lightAgent makes a Cluster at a federation, and returns what makes an agent of it, without a cluster behind: its API answers that it is not healthy.
func (h *half) lightAgent(t *testing.T, name string) tunnel.AgentOptions {
	t.Helper()
	made, err := h.fed.dyn.Resource(v1beta1.ClustersResource).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster", "metadata": map[string]any{"name": name}, "spec": map[string]any{"connection": string(v1beta1.ConnectionPull)},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	subject := pkix.Name{CommonName: v1beta1.AgentUserName(name), Organization: []string{v1beta1.AgentsGroup}}
	signed, err := pki.FilesIn(h.dataDir).SignClient(&x509.CertificateRequest{Subject: subject, PublicKey: key.Public()}, string(made.GetUID()), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(signed, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(h.fed.config.CAData)
	return tunnel.AgentOptions{
		Servers: []string{h.fed.config.Host}, Cluster: name, Version: "light",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no cluster", http.StatusServiceUnavailable)
		}),
		TLS: func() (*tls.Config, error) {
			return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
		},
	}
}

// TestAnAgentIsBackSoon drops every packet between an agent and the federation for a time, CUT_SECONDS=3600 of them at the end, and takes the time until the cluster is
// known to be lost, and until it is ready when packets pass again.
func TestAnAgentIsBackSoon(t *testing.T) {
	onlyInPullMode(t)
	port := freePort(t)
	fed, _ := strconv.Atoi(s.fed.config.Host[strings.LastIndex(s.fed.config.Host, ":")+1:])
	table := "federation_cut_" + port
	nft(t, fmt.Sprintf("add table inet %[1]s; add chain inet %[1]s way { type nat hook output priority -100; }; add rule inet %[1]s way tcp dport %[2]s redirect to :%[3]d; "+
		"add chain inet %[1]s cut { type filter hook output priority 0; }", table, port, fed))
	t.Cleanup(func() { nft(t, "delete table inet "+table) })
	pull(t, beyond, "--server=https://127.0.0.1:"+port)
	untilReached(t, s.fed, beyond)
	clusterReady(t, beyond, corev1.ConditionTrue)
	lasts := []time.Duration{7 * time.Second, 12300 * time.Millisecond, 13900 * time.Millisecond, 15100 * time.Millisecond, 25700 * time.Millisecond}
	lasts = append(lasts, time.Duration(fromEnv("CUT_SECONDS", 60))*time.Second)
	for _, last := range lasts {
		nft(t, fmt.Sprintf("add rule inet %s cut meta l4proto tcp ct original proto-dst %s counter drop", table, port))
		cut := time.Now()
		lost := clusterReady(t, beyond, corev1.ConditionFalse)
		time.Sleep(last - time.Since(cut))
		nft(t, fmt.Sprintf("flush chain inet %s cut", table))
		back := clusterReady(t, beyond, corev1.ConditionTrue)
		t.Logf("cut for %v: lost after %.1f s, ready %.1f s after the path was back", last, lost.Seconds(), back.Seconds())
	}
}

// TestAnAgentBehindASilentProxy: a proxy on the agent's way keeps all connections open, takes new ones, and drops what goes one way, the other, or both. The cluster is known to be
// lost as soon as without it, and is back as soon.
func TestAnAgentBehindASilentProxy(t *testing.T) {
	onlyInPullMode(t)
	fed, err := url.Parse(s.fed.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	proxy := forward.NewSilentProxy(l, fed.Host)
	pull(t, beyond, "--server=https://"+l.Addr().String())
	untilReached(t, s.fed, beyond)
	clusterReady(t, beyond, corev1.ConditionTrue)
	for what, drop := range map[string]struct{ fromAgent, toAgent bool }{"what comes from the agent": {true, false}, "what goes to the agent": {false, true}, "both": {true, true}} {
		for _, last := range []time.Duration{5 * time.Second, 17300 * time.Millisecond} {
			time.Sleep(2 * time.Second) // it is in use again
			proxy.Drop(drop.fromAgent, drop.toAgent)
			cut := time.Now()
			lost := clusterReady(t, beyond, corev1.ConditionFalse)
			time.Sleep(last - time.Since(cut))
			proxy.Drop(false, false)
			back := clusterReady(t, beyond, corev1.ConditionTrue)
			t.Logf("%s is dropped for %v: lost after %.1f s, ready %.1f s after it was over", what, last, lost.Seconds(), back.Seconds())
			atMost(t, "that it is lost is noticed after", lost, 5*time.Second)
			atMost(t, "it is ready again after", back, 3*time.Second)
		}
	}
}

func nft(t *testing.T, rules string) {
	t.Helper()
	if out, err := exec.Command("nft", rules).CombinedOutput(); err != nil {
		t.Fatalf("nft %s: %v: %s", rules, err, out)
	}
}

// TestJoiningTwiceIsNoFalseSuccess: right after a join, another one with an address at which nobody answers does not take what was found of the first for its own.
func TestJoiningTwiceIsNoFalseSuccess(t *testing.T) {
	if pullMode {
		t.Skip("a member in pull mode has no address")
	}
	t.Cleanup(func() { joinAgain(t, beyond) })
	for range 5 {
		if out, err := joinMember(t, beyond, "--timeout=0"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if out, err := joinMember(t, beyond, "--address=127.0.0.1:1", "--timeout=6s"); err == nil || strings.Contains(out, "is ready\n") {
			t.Errorf("where nobody answers: %v: %s", err, out)
		}
	}
}
