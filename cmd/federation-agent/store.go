package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/retry"
)

// storeTimeout bounds a request for the Secret.
const storeTimeout = 10 * time.Second

// secretStore keeps the agent's key and certificate in a Secret of the cluster, which is there: all agents of a cluster share them.
type secretStore struct {
	ctx     context.Context // of the process: certificate.Store has none
	secrets typedcorev1.SecretInterface
	name    string
}

// Current implements certificate.Store.
func (s *secretStore) Current() (*tls.Certificate, error) {
	ctx, cancel := context.WithTimeout(s.ctx, storeTimeout)
	defer cancel()
	secret, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("--cert-secret: %w", err)
	}
	if len(secret.Data[corev1.TLSCertKey]) == 0 {
		noKey := certificate.NoCertKeyError("the Secret " + s.name + " has no certificate yet")
		return nil, &noKey
	}
	return parsePair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
}

// Update implements certificate.Store.
func (s *secretStore) Update(certPEM, keyPEM []byte) (*tls.Certificate, error) {
	pair, err := parsePair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, storeTimeout)
	defer cancel()
	return pair, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		secret, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		secret.Data = map[string][]byte{corev1.TLSCertKey: certPEM, corev1.TLSPrivateKeyKey: keyPEM}
		_, err = s.secrets.Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
}

func parsePair(certPEM, keyPEM []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0])
	return &pair, err
}
