package dnskeys

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/dnsprovider/dnssec"
)

const zone = "example.test."

func newKey(t *testing.T) []byte {
	t.Helper()
	key, err := dnssec.NewKey(dnssec.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// runs keeps a zone signed until the test ends. The result points to the last signer.
func runs(ctx context.Context, secrets typedcorev1.SecretInterface, make bool) (last *atomic.Pointer[dnssec.Signer]) {
	last = &atomic.Pointer[dnssec.Signer]{}
	go func() {
		_ = Options{Secrets: secrets, Zone: zone, Make: make, Use: func(s *dnssec.Signer) error { last.Store(s); return nil }}.Run(ctx)
	}()
	return last
}

func TestAllServersUseOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		secrets := fake.NewClientset().CoreV1().Secrets(v1beta1.FederationNamespace)
		reader := runs(ctx, secrets, false)
		synctest.Wait()
		if reader.Load() != nil {
			t.Fatal("a key is used before there is one")
		}
		first, second := runs(ctx, secrets, true), runs(ctx, secrets, true)
		time.Sleep(2 * readEvery)
		synctest.Wait()
		if first.Load() == nil || second.Load() == nil || reader.Load() == nil {
			t.Fatal("not all have a key")
		}
		if want := first.Load().Key.Tag(); second.Load().Key.Tag() != want || reader.Load().Key.Tag() != want {
			t.Errorf("keys %d, %d and %d are used: want one", want, second.Load().Key.Tag(), reader.Load().Key.Tag())
		}
	})
}

func TestKeysAreRolledAndNeverLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		secrets := fake.NewClientset().CoreV1().Secrets(v1beta1.FederationNamespace)
		used := runs(ctx, secrets, true)
		synctest.Wait()
		old := used.Load().Key.Tag()
		become := func(data map[string][]byte) {
			secret, err := secrets.Get(ctx, v1beta1.DNSKeysSecret, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			secret.Data = data
			if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * readEvery)
			synctest.Wait()
		}
		secret, err := secrets.Get(ctx, v1beta1.DNSKeysSecret, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		become(map[string][]byte{signing: secret.Data[signing], "next.pem": newKey(t)})
		if used.Load().Key.Tag() != old || len(used.Load().More) != 1 {
			t.Errorf("key %d signs and %d more are published, want %d and one", used.Load().Key.Tag(), len(used.Load().More), old)
		}
		become(map[string][]byte{signing: []byte("broken")})
		if used.Load().Key.Tag() != old {
			t.Errorf("a key that cannot be read was taken for one")
		}
	})
}

func TestReadRefuses(t *testing.T) {
	same := newKey(t)
	for want, data := range map[string]map[string][]byte{
		"signing.pem is missing": {"next.pem": newKey(t)},
		"next.pem: DNSSEC key":   {signing: newKey(t), "next.pem": []byte("secret text")},
		"has the tag":            {signing: same, "same.pem": same},
	} {
		if _, err := Read(zone, &corev1.Secret{Data: data}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret text") {
			t.Errorf("error %v, want one with %q and without the key", err, want)
		}
	}
}
