package clusterregistry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"federation/clusterregistry/credential"
	"federation/clusterregistry/health"
	"federation/clusterregistry/limits"
	"federation/controllers/supervisor"
)

// link is the wire to one member. It lasts as long as address and credential stay the same; a new
// token is no new link.
type link struct {
	config *rest.Config
	client *http.Client // for all but checks: HTTP/2, no timeout, because it watches
	probe  *http.Client // for checks: HTTP/1.1, so that a check that times out takes its connection along
	dialer *connrotation.Dialer
	meter  *limits.Meter // of all that the member sends; nil: it is not limited
	token  atomic.Value  // string
	uid    atomic.Value  // string: of the cluster, once it has been read
	heard  atomic.Int64  // when the member last sent a byte, in nanoseconds since the epoch
	broken func()        // called when a connection or watch ends
	behind *http.Client  // for checks behind the barrier of a drill
	carry  carrier       // nil: connections of its own
	tunnel bool          // they go through an agent, without TLS of their own

	credentialRead supervisor.Wake // has one where the Secret was read again
}

// carrier makes what carries requests to the member, see Options.Transport.
type carrier func(pastIsolation bool, heard func()) http.RoundTripper

// dialTimeout is how long it may take to reach a member.
const dialTimeout = 10 * time.Second

// newLink returns a link by config, whose Dial, where it is not nil, connects to an agent.
func newLink(config *rest.Config, token string, meter *limits.Meter, barrier *barrier, carry carrier, broken func()) (*link, error) {
	l := &link{config: rest.CopyConfig(config), meter: meter, broken: broken, carry: carry, tunnel: config.Dial != nil, credentialRead: supervisor.NewWake()}
	l.config.QPS, l.config.UserAgent = -1, UserAgent // members protect themselves by priority and fairness
	l.token.Store(token)
	direct := config.Dial
	if direct == nil {
		direct = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext
	}
	dial := barrier.wrapDialer(direct)
	l.dialer = connrotation.NewDialer(l.listen(dial, broken))
	var err error
	if l.client, err = l.newClient(l.dialer.DialContext, nil, false); err != nil {
		return nil, err
	}
	if l.probe, err = l.newClient(l.listen(dial, nil), []string{"http/1.1"}, false); err != nil {
		return nil, err
	}
	l.behind, err = l.newClient(direct, []string{"http/1.1"}, true)
	return l, err
}

// quiet is how long a connection may be silent before it is asked whether it is still there, and how long it
// has for the answer. Something on the way may have forgotten it, of which neither side is told: watches
// on it would be silent until the kernel gives up. Health checks don't notice, for their connection is another.
const quiet = 5 * time.Second

func (l *link) newClient(dial connrotation.DialFunc, protocols []string, pastIsolation bool) (*http.Client, error) {
	var rt http.RoundTripper
	if l.carry != nil {
		rt = l.carry(pastIsolation, l.hear)
	} else {
		t, err := l.newTransport(dial, protocols)
		if err != nil {
			return nil, err
		}
		rt = l.meter.Transport(t)
	}
	rt, err := rest.HTTPWrappersForConfig(l.config, rt)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport:     credential.Wrap(rt, func() string { return l.token.Load().(string) }),
		CheckRedirect: refuseRedirect,
	}, nil
}

func (l *link) hear() { l.heard.Store(time.Now().UnixNano()) }

// newTransport makes a transport itself: those that client-go makes for a dialer are never freed.
func (l *link) newTransport(dial connrotation.DialFunc, protocols []string) (*http.Transport, error) {
	tlsConfig, err := rest.TLSConfigFor(l.config)
	if err != nil {
		return nil, err
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t := &http.Transport{
		TLSClientConfig: tlsConfig, DialContext: dial, Proxy: l.config.Proxy,
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: quiet, PingTimeout: quiet},
	}
	if l.tunnel { // there is TLS below already
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(protocols != nil)
		t.Protocols.SetUnencryptedHTTP2(protocols == nil)
		return t, nil
	}
	if protocols == nil {
		return utilnet.SetTransportDefaults(t), nil
	}
	tlsConfig.NextProtos, t.TLSNextProto = protocols, map[string]func(string, *tls.Conn) http.RoundTripper{}
	return t, nil
}

// refuseRedirect leaves a redirect to whoever asked, as an answer with an unexpected status. To follow one would send
// our requests, with the credential, wherever the member says: into the network of the control plane, or in plain text.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// close ends all connections; requests on them fail at once. The link can be used again.
func (l *link) close() {
	l.dialer.CloseAll()
	utilnet.CloseIdleConnectionsFor(l.client.Transport)
	utilnet.CloseIdleConnectionsFor(l.probe.Transport)
	utilnet.CloseIdleConnectionsFor(l.behind.Transport)
}

// checkBehind asks the member whether it is there, past the barrier of a drill. It takes no longer than timeout, and keeps no connection.
func (l *link) checkBehind(ctx context.Context, timeout time.Duration) (answers bool) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer utilnet.CloseIdleConnectionsFor(l.behind.Transport)
	_, _, err := l.get(ctx, l.behind, "/healthz")
	return err == nil || isNotTrusted(err)
}

// checkHealth asks the member whether it is well. It takes no longer than timeout. One that fails takes along every
// connection that checks could use: what cut one may have cut all, and the next check is to find out by itself.
func (l *link) checkHealth(ctx context.Context, timeout time.Duration) health.Evidence {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	begin := time.Now()
	status, body, err := l.get(ctx, l.probe, "/healthz")
	if err != nil {
		utilnet.CloseIdleConnectionsFor(l.probe.Transport)
	}
	switch {
	case err != nil && ctx.Err() != nil && l.heard.Load() > begin.UnixNano():
		return health.Evidence{Answer: health.Slow, Detail: noAnswer(timeout)}
	case err != nil && ctx.Err() != nil:
		return health.Evidence{Answer: health.Unreachable, Detail: noAnswer(timeout)}
	case isNotTrusted(err):
		return health.Evidence{Answer: health.NotTrusted, Detail: failureCause(err)}
	case err != nil:
		return health.Evidence{Answer: health.Unreachable, Detail: failureCause(err)}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return health.Evidence{Answer: health.CredentialRejected, Detail: fmt.Sprintf("%d %s", status, http.StatusText(status))}
	case status == http.StatusOK && body == "ok":
		return health.Evidence{Answer: health.Healthy}
	default:
		return health.Evidence{Answer: health.Unhealthy, Detail: failedChecks(status, body)}
	}
}

func isNotTrusted(err error) bool {
	var cert *tls.CertificateVerificationError
	return errors.As(err, &cert)
}

// get returns the status and the first few kilobytes of the body of a GET.
func (l *link) get(ctx context.Context, by *http.Client, path string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.config.Host+path, nil)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("User-Agent", UserAgent) // here, or the request is copied to set it
	resp, err := by.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }() // a body that was read needs no more
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<10))
	return resp.StatusCode, string(body), err
}

func noAnswer(timeout time.Duration) string { return fmt.Sprintf("no answer within %v", timeout) }

// failedChecks names the checks that failed: the lines that begin with "[-]".
func failedChecks(status int, body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if name, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ = strings.Cut(name, " ")
			failed = append(failed, name)
		}
	}
	if len(failed) == 0 {
		return fmt.Sprintf("%d %s", status, http.StatusText(status))
	}
	if more := len(failed) - 3; more > 0 {
		failed = append(failed[:3], fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d, failed: %s", status, strings.Join(failed, ", "))
}

// failureCause returns the cause of a failed request without what differs each time, such as the port dialled from.
func failureCause(err error) string {
	var errno syscall.Errno
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &dns):
		return "lookup of " + dns.Name + ": " + dns.Err
	case errors.As(err, &cert):
		return cert.Err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed"
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

// listen returns a dialer whose connections note when they are heard of, and tell when they end.
func (l *link) listen(dial connrotation.DialFunc, ended func()) connrotation.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &listenedConn{Conn: conn, heard: l.hear, ended: ended}, nil
	}
}

type listenedConn struct {
	net.Conn
	heard func()
	ended func()
}

// Read implements net.Conn.
func (c *listenedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard()
	}
	return n, err
}

// Close implements net.Conn.
func (c *listenedConn) Close() error {
	if c.ended != nil {
		c.ended()
	}
	return c.Conn.Close()
}
