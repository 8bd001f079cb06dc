package servertest

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"federation/apiserver/etcd"
	"federation/apiserver/pki"
)

func TestDataDirectoryHeldByAnotherProcess(t *testing.T) {
	_, err := build(options(shared.dataDir))
	wantOneLine(t, err, shared.dataDir, fmt.Sprintf("pid %d", os.Getpid()))
}

// unready is the shared server's readiness report when all but lookUnready was done.
var unready string

func lookUnready(ctx context.Context, loopback *restclient.Config) error {
	client, err := kubernetes.NewForConfig(loopback)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		text, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "").Do(ctx).Raw()
		unready = string(text)
		return err == nil || strings.Count(unready, "[-]") == 1, nil
	})
}

func TestItIsReadyWhenWhatGoesBeforeIsDone(t *testing.T) {
	if !strings.Contains(unready, "[-]poststarthook/federation-before-ready") {
		t.Errorf("it was ready, or not for that reason:\n%s", unready)
	}
}

func TestPortInUse(t *testing.T) {
	o := options(t.TempDir())
	o.SecurePort = shared.port(t)
	_, err := build(o)
	wantOneLine(t, err, fmt.Sprintf("127.0.0.1:%d", o.SecurePort), "in use")
}

func wantOneLine(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("it started")
	}
	for _, part := range append(parts, "") {
		if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q, want one line with %q", err, part)
		}
	}
}

func TestSecretsAreEncryptedInEtcd(t *testing.T) {
	newSecret(t, shared, "hidden")
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(shared.dataDir, "etcd.sock")}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answer, err := client.Get(t.Context(), "/registry/secrets/default/hidden")
	if err != nil || len(answer.Kvs) != 1 {
		t.Fatalf("%d secrets, %v", len(answer.Kvs), err)
	}
	if value := answer.Kvs[0].Value; bytes.Contains(value, []byte("plain text")) || !bytes.HasPrefix(value, []byte("k8s:enc:secretbox:")) {
		t.Errorf("stored as %q", value)
	}
}

// TestItEndsWhileSomebodyWatches checks that watches end at a shutdown, and do not delay it by the minute that requests
// have.
func TestItEndsWhileSomebodyWatches(t *testing.T) {
	r, err := start(options(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		watch, err := r.kube.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Stop()
	}
	ended := make(chan error, 1)
	go func() { ended <- r.stop() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(45 * time.Second): // it was 61 s
		t.Error("it does not end while somebody watches")
		<-ended
	}
}

func newSecret(t *testing.T, r *running, name string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"k": "plain text"}}
	if _, err := r.kube.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestRestartKeepsDataAndCertificatesAndDamageIsNamed(t *testing.T) {
	dir := t.TempDir()
	first, err := start(options(dir))
	if err != nil {
		t.Fatal(err)
	}
	newSecret(t, first, "kept")
	if err := first.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	second, err := start(options(dir))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.admin.CAData, second.admin.CAData) || !bytes.Equal(first.admin.KeyData, second.admin.KeyData) {
		t.Error("the certificates changed")
	}
	secret, err := second.kube.CoreV1().Secrets("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || string(secret.Data["k"]) != "plain text" {
		t.Errorf("the secret is %v, %v", secret, err)
	}
	if err := second.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	for _, name := range []string{"pki", "admin.kubeconfig"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = build(options(dir))
	wantOneLine(t, err, "other keys")
	db := filepath.Join(dir, "etcd", "member", "snap", "db")
	if err := os.Truncate(db, 20<<10); err != nil {
		t.Fatal(err)
	}
	_, err = build(options(dir))
	wantOneLine(t, err, db, "damaged")
}

func TestDatabaseThatIsNone(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "etcd", "member", "snap", "db")
	if err := os.MkdirAll(filepath.Dir(db), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(db, bytes.Repeat([]byte("x"), 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := build(options(dir))
	wantOneLine(t, err, db, "damaged")
}

func TestExternalEtcd(t *testing.T) {
	server, x := externalEtcd(t)
	o := options(t.TempDir())
	o.Etcd = x
	r, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.stop()
	newSecret(t, r, "outside")
	found, err := server.Server.Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte("/registry/secrets/default/outside")})
	if err != nil || found.Count != 1 {
		t.Errorf("%v in the external etcd, %v", found, err)
	}
	published := func(ctx context.Context) (bool, error) {
		_, err := r.kube.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil, nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, published); err != nil {
		t.Errorf("housekeeping does not work under its Lease: %v", err)
	}
	if _, err := os.Stat(filepath.Join(o.DataDir, "etcd")); !os.IsNotExist(err) {
		t.Errorf("there is an embedded etcd too: %v", err)
	}
	stranger := options(t.TempDir())
	stranger.Etcd = x
	_, err = build(stranger)
	wantOneLine(t, err, x.Servers[0], "other keys", "copy that folder")
	wantNoKeys(t, stranger.DataDir)
}

// wantNoKeys fails if a refused start left keys behind, which somebody could take for the federation's.
func wantNoKeys(t *testing.T, dataDir string) {
	t.Helper()
	if pki.Exists(dataDir) {
		t.Errorf("a start that was refused left keys in %s", dataDir)
	}
}

func TestExternalEtcdOutOfReach(t *testing.T) {
	t.Parallel()
	o := options(t.TempDir())
	o.Etcd.Servers = []string{"https://127.0.0.1:1", "https://127.0.0.1:2"}
	began := time.Now()
	_, err := build(o)
	wantOneLine(t, err, "https://127.0.0.1:1", "https://127.0.0.1:2", "cannot be reached")
	wantNoKeys(t, o.DataDir)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s to say so", took)
	}
}

// externalEtcd runs an etcd that requires client certificates. pki makes those as well as ours.
func externalEtcd(t *testing.T) (*embed.Etcd, etcd.External) {
	t.Helper()
	files, err := pki.Ensure(t.TempDir(), pki.Request{Server: "https://unused", Hosts: []string{"127.0.0.1"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := embed.NewConfig()
	c.Dir = t.TempDir()
	c.ListenClientUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
	c.ListenPeerUrls = nil
	c.ClientTLSInfo = transport.TLSInfo{CertFile: files.ServingCert, KeyFile: files.ServingKey, TrustedCAFile: files.CA, ClientCertAuth: true}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	server, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	address := "https://" + server.Clients[0].Addr().String()
	return server, etcd.External{Servers: []string{address}, CAFile: files.CA, CertFile: files.AdminCert, KeyFile: files.AdminKey}
}
