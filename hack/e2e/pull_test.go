package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/join"
)

// agent is the agent of a member whose connection is Pull.
type agent struct {
	dir  string
	args []string
	cmd  *exec.Cmd
}

// pullMode has the stack's members be in pull mode, for all tests: their agents connect to the federation, and a packet filter drops what it sends to them.
var pullMode = os.Getenv("E2E_PULL") != ""

// neverConnected returns an error if the federation has tried to connect to a member in pull mode.
func (s *stack) neverConnected() error {
	out, err := exec.Command("nft", "list", "table", "inet", s.env["PULL_FILTER"]).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "counter packets 0 bytes 0 drop") {
		return fmt.Errorf("the federation has tried to connect to members in pull mode: %v\n%s", err, out)
	}
	return nil
}

// pull has a member join again, as one that nobody can connect to, until the test ends, and runs an agent of it, with more flags.
func pull(t *testing.T, name string, flags ...string) *agent {
	t.Helper()
	kubeconfig := filepath.Join(s.dir, "members", name, "kubeconfig")
	if out, err := s.plugin(t, "join", name, "--member-kubeconfig", kubeconfig, "--pull"); err != nil || !strings.Contains(out, "now run its agent") {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { joinAgain(t, name) })
	if pullMode {
		s.signal(t, syscall.SIGKILL, "members", name, "agent", "pid")
	}
	a := &agent{dir: t.TempDir()}
	bootstrap := filepath.Join(a.dir, "bootstrap")
	token, err := s.plugin(t, "token", "create", name)
	if err != nil {
		t.Fatalf("%v: %s", err, token)
	}
	if err := os.WriteFile(bootstrap, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	uid, err := join.FederationUID(t.Context(), s.fed.client)
	if err != nil {
		t.Fatal(err)
	}
	a.args = []string{
		"--cluster", name, "--bootstrap-kubeconfig", bootstrap, "--kubeconfig", kubeconfig, "--account", v1beta1.FederationNamespace + "/" + join.AccountName(uid),
		"--cert-dir", filepath.Join(a.dir, "certificate"),
	}
	a.args = append(a.args, flags...)
	a.start(t)
	t.Cleanup(func() { a.stop() })
	return a
}

func (a *agent) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(a.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	a.cmd = exec.CommandContext(context.Background(), filepath.Join(s.root, "_output", "bin", "federation-agent"), a.args...)
	a.cmd.Stdout, a.cmd.Stderr = log, log
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func (a *agent) stop() {
	_ = a.cmd.Process.Kill() // it may have ended
	_ = a.cmd.Wait()
}

// TestPull: a member whose agent connects to the federation is used as any other. The federation has no credential of it, the bootstrap token of its agent is good once; whoever runs it can have the
// federation only read; and when the agent is cut off, dies, or the federation does, all is as with other members.
func TestPull(t *testing.T) {
	a := pull(t, "east-b")
	t.Logf("ready %s after the agent was started", clusterReady(t, "east-b", corev1.ConditionTrue))
	noSecret(t, "east-b")
	sets := s.fed.client.AppsV1().ReplicaSets(ns)
	if _, err := sets.Create(t.Context(), replicaSet("pulled", 4, map[string]string{v1beta1.ReplicaSetPreferencesAnnotation: `{"clusters":{"east-b":{"weight":1}}}`}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return sets.Delete(ctx, "pulled", background) })
	eventually(t, 30*time.Second, func() string {
		if _, err := s.members["east-b"].client.AppsV1().ReplicaSets(ns).Get(t.Context(), "pulled", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	replicasOf(t, "pulled", 4, "east-b")
	eventually(t, 30*time.Second, func() string {
		if out, err := s.kubectl(t, "", "get", "pods", "-l", "app=pulled"); err != nil || strings.Count(out, ".east-b") != 4 {
			return fmt.Sprintf("pods through the agent: %v %s", err, out)
		}
		return ""
	})
	onlyItsOwn(t, a)
	goodOnce(t, a)
	onlyReads(t)

	a.signal(t, syscall.SIGSTOP)
	t.Logf("an agent that says nothing is noticed after %s", clusterReady(t, "east-b", corev1.ConditionFalse))
	a.signal(t, syscall.SIGCONT)
	t.Logf("ready %s after it went on", clusterReady(t, "east-b", corev1.ConditionTrue))
	a.stop()
	t.Logf("an agent that dies is noticed after %s", clusterReady(t, "east-b", corev1.ConditionFalse))
	a.start(t)
	t.Logf("ready %s after another was started, which has the certificate", clusterReady(t, "east-b", corev1.ConditionTrue))
	s.signal(t, syscall.SIGKILL, "federation.pid")
	if err := s.up(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() string { // the condition is from before
		if out, err := s.kubectl(t, "", "get", "pods", "-l", "app=pulled"); err != nil || strings.Count(out, ".east-b") != 4 {
			return fmt.Sprintf("after the federation was killed: %v %s", err, out)
		}
		return ""
	})
	replicasOf(t, "pulled", 4, "east-b")
}

func (a *agent) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := a.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// noSecret fails if the federation has a Secret for a member.
func noSecret(t *testing.T, name string) {
	t.Helper()
	secrets, err := s.fed.client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if strings.Contains(secret.Name, name) {
			t.Errorf("the federation has the Secret %s/%s", secret.Namespace, secret.Name)
		}
	}
}

// onlyItsOwn: the certificate of an agent lets it connect for its own cluster, and do nothing else.
func onlyItsOwn(t *testing.T, a *agent) {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(a.dir, "certificate", "federation-agent-current.pem"))
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(s.fed.config)
	config.CertData, config.KeyData = pem, pem
	config.NextProtos = []string{"http/1.1"}
	if _, err := tls.X509KeyPair(pem, pem); err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"/apis/federation/v1beta1/clusters/east-a/connect": http.StatusForbidden,
		"/apis/federation/v1beta1/clusters/east-b/connect": http.StatusUpgradeRequired, // it may
		"/api/v1/namespaces":                http.StatusForbidden,
		"/apis/federation/v1beta1/clusters": http.StatusForbidden,
	} {
		answer, err := client.Post(config.Host+path, "application/json", bytes.NewReader([]byte("{}")))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // its status is enough
		if answer.StatusCode != want {
			t.Errorf("POST %s as the agent: %s %s, want %d", path, answer.Status, body, want)
		}
	}
}

// goodOnce: with the bootstrap token that an agent has used nobody gets a certificate, for this cluster or another. One that has not been used is for its own cluster only, and for one certificate; who asks for more is
// told why not.
func goodOnce(t *testing.T, a *agent) {
	t.Helper()
	const own, other = "east-b", "elsewhere"
	clusters := s.fed.dyn.Resource(v1beta1.ClustersResource)
	if _, err := clusters.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster", "metadata": map[string]any{"name": other}, "spec": map[string]any{"connection": string(v1beta1.ConnectionPull)},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := clusters.Delete(t.Context(), other, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	used, err := os.ReadFile(filepath.Join(a.dir, "bootstrap"))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(token []byte, cluster string) {
		t.Helper()
		got := certified(t, token, cluster) // for ten seconds the API may know a token that is gone
		if got != "Unauthorized" && !strings.Contains(got, "has been used: make another one") && !strings.Contains(got, `is not for the cluster "`+cluster+`"`) {
			t.Errorf("a token of %s, used, gets for %s: %q", own, cluster, got)
		}
	}
	refused(used, own)
	refused(used, other)
	text, err := s.plugin(t, "token", "create", own)
	if err != nil {
		t.Fatal(err, text)
	}
	fresh := []byte(text)
	if got := certified(t, fresh, other); !strings.Contains(got, `is not for the cluster "`+other+`"`) {
		t.Errorf("a token of %s gets for %s: %q", own, other, got)
	}
	if got := certified(t, fresh, own); got != "" {
		t.Errorf("a token of %s, not used yet, gets for it: %s", own, got)
	}
	refused(fresh, own)
	refused(fresh, other)
	took := eventually(t, 30*time.Second, func() string {
		if got := certified(t, fresh, other); got != "Unauthorized" {
			return "a token that has been used gets: " + got
		}
		return ""
	})
	t.Logf("the API knows a token no more %.1f s after it was used", took.Seconds())
	saysSo(t, a, other)
}

// saysSo: an agent that is given the token of another one, for another cluster, says what to do.
func saysSo(t *testing.T, a *agent, cluster string) {
	t.Helper()
	b := &agent{dir: t.TempDir(), args: slices.Clone(a.args)}
	b.args = append(b.args, "--cluster", cluster, "--cert-dir", filepath.Join(b.dir, "certificate"))
	b.start(t)
	defer b.stop()
	eventually(t, 30*time.Second, func() string {
		said, err := os.ReadFile(filepath.Join(b.dir, "log"))
		if err != nil || !strings.Contains(string(said), "kubectl federation token create "+cluster) {
			return fmt.Sprintf("%v: the agent says\n%s", err, said)
		}
		return ""
	})
}

// certified asks for the certificate of a cluster's agent with a bootstrap kubeconfig, and returns why none was signed; "": one was.
func certified(t *testing.T, bootstrap []byte, cluster string) string {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	subject := pkix.Name{CommonName: v1beta1.AgentUserName(cluster), Organization: []string{v1beta1.AgentsGroup}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := client.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "once-"}, Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: v1beta1.AgentSigner,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		}}, metav1.CreateOptions{})
	if err != nil {
		return err.Error()
	}
	why := ""
	eventually(t, 30*time.Second, func() string {
		is, err := s.fed.client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), asked.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, c := range is.Status.Conditions {
			if c.Type != certificatesv1.CertificateApproved {
				why = c.Message
				return ""
			}
		}
		if len(is.Status.Certificate) == 0 {
			return fmt.Sprintf("nothing becomes of %s: %+v", asked.Name, is.Status)
		}
		return ""
	})
	return why
}

// onlyReads: while the agent is paused, nothing of the federation arrives, and then it does.
func onlyReads(t *testing.T) {
	t.Helper()
	maps := s.members["east-b"].client.CoreV1().ConfigMaps(v1beta1.FederationNamespace)
	paused := func(value string) {
		t.Helper()
		if _, err := maps.Patch(t.Context(), "federation-agent", "application/apply-patch+yaml", []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: federation-agent}, data: {paused: "`+value+`"}}`),
			metav1.PatchOptions{FieldManager: "administrator", Force: new(true)}); err != nil {
			t.Fatal(err)
		}
	}
	paused("true")
	time.Sleep(time.Second) // the agent hears of it
	sets := s.fed.client.AppsV1().ReplicaSets(ns)
	if _, err := sets.Patch(t.Context(), "pulled", "application/merge-patch+json", []byte(`{"spec":{"replicas":6}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() string {
		events, err := s.kubectl(t, "", "get", "events", "--field-selector=involvedObject.name=pulled")
		if err != nil || !strings.Contains(events, "have paused the federation's agent") {
			return fmt.Sprintf("%v: %s", err, events)
		}
		return ""
	})
	if is := replicasIn(t, "east-b", "pulled"); is != 4 {
		t.Errorf("%d replicas, while the agent only reads; want 4", is)
	}
	paused("false")
	replicasOf(t, "pulled", 6, "east-b")
	if _, err := sets.Patch(t.Context(), "pulled", "application/merge-patch+json", []byte(`{"spec":{"replicas":4}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	replicasOf(t, "pulled", 4, "east-b")
}
