package views

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"federation/clusterregistry/credential"
)

// link is how one member is reached with the federation's account. It is HTTP/1.1, so that a request that gets no answer takes its connection
// along: the next one dials again.
type link struct {
	cluster     string
	uid         types.UID
	fingerprint string
	reading     budget
	readAt      atomic.Int64 // when the credential was read, in nanoseconds since the epoch
	config      *rest.Config
	transport   *http.Transport
	client      *http.Client
	core        rest.Interface
	metrics     rest.Interface
	token       atomic.Value // string
}

func newLink(cluster string, config *rest.Config, token string) (*link, error) {
	l := &link{cluster: cluster, config: config, reading: budget{most: maxReadingEach}}
	config.QPS, config.UserAgent = -1, "federation-views"
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	l.token.Store(token)
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	tlsConfig.NextProtos = []string{"http/1.1"}
	dial := config.Dial // through an agent
	if dial == nil {
		dial = (&net.Dialer{Timeout: patience}).DialContext
	}
	l.transport = &http.Transport{
		DisableCompression: true, // the meter does it
		TLSClientConfig:    tlsConfig, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		DialContext: dial, TLSHandshakeTimeout: patience,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	rt, err := rest.HTTPWrappersForConfig(config, bounded{l.transport, &l.reading})
	if err != nil {
		return nil, err
	}
	l.client = &http.Client{
		Transport:     credential.Wrap(rt, func() string { return l.token.Load().(string) }),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would take our credential elsewhere
	}
	if l.core, err = l.clientFor("/api", corev1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	l.metrics, err = l.clientFor("/apis", metricsv1beta1.SchemeGroupVersion)
	return l, err
}

// clientFor returns a client for one version of a group.
func (l *link) clientFor(path string, version schema.GroupVersion) (rest.Interface, error) {
	config := rest.CopyConfig(l.config)
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = path, &version, legacyscheme.Codecs.WithoutConversion()
	return rest.RESTClientForConfigAndClient(config, l.client)
}

// clientOfKind returns the client for a kind.
func (l *link) clientOfKind(k *kind) rest.Interface {
	if k.resource.Group == metricsv1beta1.GroupName {
		return l.metrics
	}
	return l.core
}

func (l *link) close() { utilnet.CloseIdleConnectionsFor(l.transport) }
