package loadbalancer

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"federation/controllers/supervisor"
)

const (
	// readEvery is how often certificates are read again.
	readEvery = time.Minute
	// readTimeout bounds the read of one, readers how many are read at once.
	readTimeout, readers = 10 * time.Second, 8
)

// secrets reads the Secrets with certificates. It may get each one that an Ingress of the class names, and list none (ADR 164).
type secrets struct {
	kube    kubernetes.Interface
	changed func()
	due     supervisor.Wake

	mu     sync.Mutex
	wanted map[string]bool
	// known are by namespace/name; one whose read failed keeps what it had.
	known map[string]certificate
	// usable are those of known that could be read. It is made when it is asked for, and nobody changes it then.
	usable map[string]*tls.Certificate
	// read: all that were wanted have been read, or refused, once.
	read bool
}

// certificate is a Secret as it was read.
type certificate struct {
	version string
	tls     *tls.Certificate
	err     string
}

func newSecrets(kube kubernetes.Interface, changed func()) *secrets {
	return &secrets{kube: kube, changed: changed, due: supervisor.NewWake(), known: map[string]certificate{}}
}

// want sets which are read. The certificates of others are forgotten.
func (s *secrets) want(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = make(map[string]bool, len(names))
	for _, name := range names {
		s.wanted[name] = true
	}
	s.read, s.usable = len(names) == 0, nil
	maps.DeleteFunc(s.known, func(name string, _ certificate) bool { return !s.wanted[name] })
	s.due.Signal()
}

// haveBeenRead reports whether all that are wanted have been read once.
func (s *secrets) haveBeenRead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read || len(s.wanted) == 0
}

// certificates returns those that could be read. Nobody changes the map.
func (s *secrets) certificates() map[string]*tls.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.usable == nil {
		s.usable = make(map[string]*tls.Certificate, len(s.known))
		for name, c := range s.known {
			if c.tls != nil {
				s.usable[name] = c.tls
			}
		}
	}
	return s.usable
}

// run reads what is wanted, new ones at once and all each minute, until ctx ends.
func (s *secrets) run(ctx context.Context) {
	ticks := time.NewTicker(readEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.due:
			s.readAll(ctx, true)
		case <-ticks.C:
			s.readAll(ctx, false)
		}
	}
}

// readAll reads all, or those that are not known.
func (s *secrets) readAll(ctx context.Context, unknown bool) {
	s.mu.Lock()
	var names []string
	for name := range s.wanted {
		if _, known := s.known[name]; !known || !unknown {
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	var reading sync.WaitGroup
	slots := make(chan struct{}, readers)
	for _, name := range names {
		slots <- struct{}{}
		reading.Go(func() {
			defer func() { <-slots }()
			_ = supervisor.Protect(ctx, "loadbalancer", func() error { s.readOne(ctx, name); return nil }) // it is read again with the next round
		})
	}
	reading.Wait()
	s.mu.Lock()
	s.read = true
	s.mu.Unlock()
	s.changed()
}

// readOne reads one Secret.
func (s *secrets) readOne(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	namespace, own, _ := strings.Cut(name, "/")
	secret, err := s.kube.CoreV1().Secrets(namespace).Get(ctx, own, metav1.GetOptions{})
	s.mu.Lock()
	was := s.known[name]
	s.mu.Unlock()
	is := certificate{tls: was.tls, version: was.version}
	if err == nil && (secret.ResourceVersion != was.version || was.tls == nil) {
		is.version = secret.ResourceVersion
		if is.tls, err = parseCertificate(secret); err != nil {
			is.tls = was.tls // the one before may be valid still
		}
	}
	if err != nil {
		is.err = err.Error()
	}
	if is.err != was.err && is.err != "" && ctx.Err() == nil {
		klog.ErrorS(err, "Cannot read the certificate of an Ingress", "secret", name, "before", was.tls != nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted[name] {
		s.known[name] = is
		if is.tls != was.tls {
			s.usable = nil
		}
	}
}

// parseCertificate parses a Secret of the type kubernetes.io/tls.
func parseCertificate(s *corev1.Secret) (*tls.Certificate, error) {
	if s.Type != corev1.SecretTypeTLS {
		return nil, fmt.Errorf("type %q: must be %s", s.Type, corev1.SecretTypeTLS)
	}
	c, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, err // it tells nothing of the key
	}
	return &c, nil
}
