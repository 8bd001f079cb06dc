package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/keyutil"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/tunnel"
	"federation/cmd/internal/process"
)

// run connects the cluster until ctx is done.
func (o *options) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	process.LimitMemory()
	federation, err := clientcmd.BuildConfigFromFlags("", o.bootstrap)
	if err != nil {
		return fmt.Errorf("--bootstrap-kubeconfig %q: %w", o.bootstrap, err)
	}
	if err := tunnel.CheckServer(federation.Host); err != nil {
		return fmt.Errorf("--bootstrap-kubeconfig %q: server %w", o.bootstrap, err)
	}
	own, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig) // of the pod, without a file
	if err != nil {
		return fmt.Errorf("--kubeconfig %q: %w", o.kubeconfig, err)
	}
	own.QPS = -1 // the cluster has priority and fairness
	certificates, err := o.keepCertificate(ctx, federation, own)
	if err != nil {
		return err
	}
	paused, err := o.followPaused(ctx, own)
	if err != nil {
		return err
	}
	account, err := o.accountConfig(ctx, own)
	if err != nil {
		return err
	}
	handler, err := tunnel.NewForwarder(account, paused)
	if err != nil {
		return err
	}
	trust, err := trustedBy(federation)
	if err != nil {
		return fmt.Errorf("--bootstrap-kubeconfig %q: %w", o.bootstrap, err)
	}
	servers := o.servers
	if len(servers) == 0 {
		servers = []string{federation.Host}
	}
	var failed atomic.Pointer[error]
	return process.RunWithMetrics(ctx, o.metrics, func() error {
		if err := failed.Load(); err != nil {
			return *err
		}
		return nil
	}, func(ctx context.Context) error {
		return tunnel.RunAgent(ctx, tunnel.AgentOptions{
			Servers: servers, Cluster: o.cluster, Handler: handler, Ready: o.ready, Version: version,
			TLS: func() (*tls.Config, error) { return withCertificate(trust, certificates.Current()) },
			Observe: func(_ string, err error) {
				if failed.Store(nil); err != nil {
					failed.Store(&err)
				}
			},
		})
	})
}

// trustedBy returns which servers a kubeconfig trusts, without its credentials.
func trustedBy(config *rest.Config) (*tls.Config, error) {
	trust, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData, CAFile: config.CAFile, ServerName: config.ServerName}})
	if err == nil && trust == nil {
		trust = &tls.Config{MinVersion: tls.VersionTLS12} // what the system trusts
	}
	return trust, err
}

// withCertificate returns how to connect with a certificate.
func withCertificate(trust *tls.Config, c *tls.Certificate) (*tls.Config, error) {
	if c == nil {
		return nil, errors.New("the agent has no certificate yet")
	}
	config := trust.Clone()
	config.Certificates = []tls.Certificate{*c}
	return config, nil
}

// keepCertificate gets a certificate with the bootstrap token, unless there is one, and renews it in time until ctx is done.
func (o *options) keepCertificate(ctx context.Context, federation, own *rest.Config) (certificate.Manager, error) {
	store, err := o.store(ctx, own)
	if err != nil {
		return nil, err
	}
	m, err := certificate.NewManager(&certificate.Config{
		Name: "agent", Ctx: &ctx, SignerName: v1beta1.AgentSigner, CertificateStore: store,
		Template: &x509.CertificateRequest{Subject: pkix.Name{CommonName: v1beta1.AgentUserName(o.cluster), Organization: []string{v1beta1.AgentsGroup}}},
		Usages:   []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		ClientsetFn: func(current *tls.Certificate) (kubernetes.Interface, error) {
			config := rest.CopyConfig(federation)
			config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return withToken{rt, o.cluster} })
			if current == nil { // another agent of the cluster may have one by now
				current, _ = store.Current()
			}
			if current != nil && time.Now().Before(current.Leaf.NotAfter) {
				config = rest.AnonymousClientConfig(federation)
				var err error
				if config.CertData, config.KeyData, err = pemOf(current); err != nil {
					return nil, err
				}
			}
			return kubernetes.NewForConfig(config)
		},
	})
	if err != nil {
		return nil, err
	}
	m.Start()
	context.AfterFunc(ctx, m.Stop)
	return m, nil
}

// withToken sends requests with a bootstrap token. One that is not known is an error that says what to do.
type withToken struct {
	http.RoundTripper
	cluster string
}

// RoundTrip implements http.RoundTripper.
func (w withToken) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := w.RoundTripper.RoundTrip(request)
	if err == nil && answer.StatusCode == http.StatusUnauthorized {
		_ = answer.Body.Close() // its status is enough
		return nil, fmt.Errorf("the federation does not know the bootstrap token: it has been used, or has expired; make another one: kubectl federation token create %s", w.cluster)
	}
	return answer, err
}

// store returns where key and certificate are kept.
func (o *options) store(ctx context.Context, own *rest.Config) (certificate.Store, error) {
	if o.certSecret != "" {
		kube, err := kubernetes.NewForConfig(own)
		if err != nil {
			return nil, err
		}
		namespace, name, _ := strings.Cut(o.certSecret, "/")
		return &secretStore{ctx, kube.CoreV1().Secrets(namespace), name}, nil
	}
	if err := os.MkdirAll(o.certDir, 0o700); err != nil {
		return nil, fmt.Errorf("--cert-dir %q: %w", o.certDir, err)
	}
	store, err := certificate.NewFileStore("federation-agent", o.certDir, o.certDir, "", "")
	if err != nil {
		return nil, fmt.Errorf("--cert-dir %q: %w", o.certDir, err)
	}
	return store, nil
}

// pausedTimeout is how long the ConfigMap that pauses the agent may take to be read, before anything is forwarded.
const pausedTimeout = time.Minute

// followPaused follows the ConfigMap that pauses the agent. As long as it cannot be read, it holds what was known last.
func (o *options) followPaused(ctx context.Context, own *rest.Config) (func() bool, error) {
	kube, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(o.configMap, "/")
	informer := coreinformers.NewFilteredConfigMapInformer(kube, namespace, 0, cache.Indexers{}, func(l *metav1.ListOptions) {
		l.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	})
	go informer.RunWithContext(ctx)
	within, cancel := context.WithTimeout(ctx, pausedTimeout)
	defer cancel()
	if !cache.WaitForCacheSync(within.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("--config-map %q: cannot be read for %s: the agent must be allowed to list and watch it", o.configMap, pausedTimeout)
	}
	return func() bool {
		obj, exists, err := informer.GetStore().GetByKey(namespace + "/" + name)
		return err == nil && exists && obj.(*corev1.ConfigMap).Data["paused"] == "true"
	}, nil
}

// pemOf returns a certificate and its key in PEM.
func pemOf(c *tls.Certificate) (certPEM, keyPEM []byte, err error) {
	for _, der := range c.Certificate {
		certPEM = append(certPEM, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})...)
	}
	keyPEM, err = keyutil.MarshalPrivateKeyToPEM(c.PrivateKey)
	return certPEM, keyPEM, err
}
