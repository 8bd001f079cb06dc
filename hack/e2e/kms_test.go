package e2e

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kms/pkg/service"
)

// vault is the service behind a KMS v2 plugin: what has the key, which no other process has.
type vault struct{ cipher.AEAD }

func newVault(t *testing.T) vault {
	t.Helper()
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	return vault{aead}
}

func (v vault) Status(context.Context) (*service.StatusResponse, error) {
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: "key-1"}, nil
}

func (v vault) Encrypt(_ context.Context, _ string, plain []byte) (*service.EncryptResponse, error) {
	nonce := make([]byte, v.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return &service.EncryptResponse{Ciphertext: v.Seal(nonce, nonce, plain, nil), KeyID: "key-1"}, nil
}

func (v vault) Decrypt(_ context.Context, _ string, r *service.DecryptRequest) ([]byte, error) {
	if n := v.NonceSize(); r.KeyID == "key-1" && len(r.Ciphertext) > n {
		return v.Open(nil, r.Ciphertext[:n], r.Ciphertext[n:], nil)
	}
	return nil, errors.New("not of this key")
}

// plugin serves a vault on a Unix socket until the returned function is called.
func (v vault) plugin(t *testing.T, socket string) (end func()) {
	t.Helper()
	server, ended := service.NewGRPCService(socket, 10*time.Second, v), make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	eventually(t, 10*time.Second, func() string {
		_, err := os.Stat(socket)
		return errText(err)
	})
	return func() {
		server.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// encryption writes an EncryptionConfiguration of Secrets with these providers.
func encryption(t *testing.T, dir string, providers ...string) string {
	t.Helper()
	path := filepath.Join(dir, "encryption.yaml")
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n" + strings.Join(providers, "")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSecretsAreEncryptedByAKMS goes the way of docs/operations.md with a real plugin: from the key of the first start to a KMS, and away from that key. Then
// the plugin is away: the process says so, names it, and serves when it is back.
func TestSecretsAreEncryptedByAKMS(t *testing.T) {
	dir, err := os.MkdirTemp("", "kms") // the path of a socket is a short one
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &pair{name: "kms", dir: dir}
	t.Cleanup(func() { p.end(t) })
	h := &half{dataDir: filepath.Join(dir, "data"), dns: "127.0.0.1:" + freePort(t)}
	log := filepath.Join(s.dir, "logs", "kms.log")
	if err := os.RemoveAll(log); err != nil {
		t.Fatal(err)
	}
	var flags []string
	h.run = func() *process {
		return p.process(t, "kms", append([]string{"serve", "--data-dir=" + h.dataDir, "--secure-port=" + freePort(t), "--name=kms", "--dns-zone=kms.test", "--dns-bind-address=" + h.dns}, flags...)...)
	}
	restart := func(more ...string) {
		t.Helper()
		p.end(t)
		p.processes, flags = nil, more
		h.controllers = h.run()
	}
	p.startHalf(t, h, "serve")
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}, StringData: map[string]string{"k": "plain text"}}
	}
	if _, err := h.fed.client.CoreV1().Secrets(ns).Create(t.Context(), secret("before"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.storedAs(t, h, "before", "k8s:enc:secretbox:")

	v, socket := newVault(t), filepath.Join(dir, "kms.sock")
	end := v.plugin(t, socket)
	kms := fmt.Sprintf("  - kms: {apiVersion: v2, name: vault, endpoint: \"unix://%s\", timeout: 3s}\n", socket)
	own, err := os.ReadFile(filepath.Join(h.dataDir, "pki", "encryption.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, was, found := strings.Cut(string(own), "providers:\n")
	if !found {
		t.Fatalf("pki/encryption.yaml has no providers:\n%s", own)
	}
	restart("--encryption-provider-config=" + encryption(t, dir, kms, was))
	h.ready(t)
	p.reads(t, h, "before")
	if _, err := h.fed.client.CoreV1().Secrets(ns).Create(t.Context(), secret("after"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.storedAs(t, h, "after", "k8s:enc:kms:v2:vault:")
	all, err := h.fed.client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all.Items {
		if _, err := h.fed.client.CoreV1().Secrets(one.Namespace).Update(t.Context(), &one, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p.storedAs(t, h, "before", "k8s:enc:kms:v2:vault:")

	restart("--encryption-provider-config=" + encryption(t, dir, kms)) // the key of before is needed no more
	h.ready(t)
	p.reads(t, h, "before")
	p.reads(t, h, "after")

	end() // what runs has its key
	if _, err := h.fed.client.CoreV1().Secrets(ns).Create(t.Context(), secret("without"), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	p.reads(t, h, "after")
	restart(flags...)
	eventually(t, 30*time.Second, func() string {
		content, err := os.ReadFile(log)
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, "Not ready yet") && strings.Contains(line, "kms-providers") && strings.Contains(line, socket+": connect: no such file") {
				return ""
			}
		}
		return fmt.Sprintf("%v; it does not say which plugin is away:\n%s", err, content)
	})
	defer v.plugin(t, socket)()
	h.ready(t)
	for _, name := range []string{"before", "after", "without"} {
		p.reads(t, h, name)
	}
}

// ready returns when the API is.
func (h *half) ready(t *testing.T) {
	t.Helper()
	took := eventually(t, time.Minute, func() string {
		fed, err := connect(h.kubeconfig())
		if err != nil {
			return err.Error()
		}
		h.fed = fed
		_, err = fed.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return errText(err)
	})
	t.Logf("ready after %s", took)
}

// storedAs looks into the process's etcd.
func (p *pair) storedAs(t *testing.T, h *half, name, prefix string) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(h.dataDir, "etcd.sock")}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answer, err := client.Get(t.Context(), "/registry/secrets/"+ns+"/"+name)
	if err != nil || len(answer.Kvs) != 1 {
		t.Fatalf("%s: %v, %v", name, answer, err)
	}
	if value := answer.Kvs[0].Value; bytes.Contains(value, []byte("plain text")) || !bytes.HasPrefix(value, []byte(prefix)) {
		t.Errorf("%s is stored as %q, want %s… and no word of it", name, value, prefix)
	}
}

func (p *pair) reads(t *testing.T, h *half, name string) {
	t.Helper()
	secret, err := h.fed.client.CoreV1().Secrets(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || string(secret.Data["k"]) != "plain text" {
		t.Errorf("%s is read as %v, %v", name, secret, err)
	}
}
