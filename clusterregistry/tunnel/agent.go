package tunnel

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"federation/controllers/supervisor"
)

const (
	// DefaultReady is how many connections an agent keeps ready at each process of the federation.
	DefaultReady = 2
	// connectTimeout bounds one try to connect: a path that comes back is found again soon.
	connectTimeout = 2 * time.Second
	// pause is how long to wait after a failure, at least half of it and at most one and a half times: agents do not come all at once.
	pause = time.Second
	// defaultQuiet is that of AgentOptions: the federation checks the health of a member more often than that.
	defaultQuiet = 20 * time.Second
)

// AgentOptions configure an agent.
type AgentOptions struct {
	// Servers are the URLs of the processes of the federation, as https://fed-1:6443: connections are kept ready at each.
	Servers []string
	// Cluster is the name of the member's Cluster.
	Cluster string
	// TLS returns how to connect: whom to trust, and the certificate of the agent at that moment.
	TLS func() (*tls.Config, error)
	// Handler serves what comes: see NewForwarder.
	Handler http.Handler
	// Ready is how many connections are kept ready at each server. 0: DefaultReady.
	Ready int
	// Quiet is how long a server may say nothing at all on any connection until those that are ready are replaced: something on the way, as a proxy, may
	// have forgotten them without a word, and answers the kernel's keep-alives itself. 0: 20 seconds.
	Quiet time.Duration
	// Version is what the agent says that it is.
	Version string
	// Observe, where it is not nil, is told of each try to connect: nil for one that succeeded.
	Observe func(server string, err error)
}

// CheckServer returns an error with server in it unless that is a URL at which an agent can reach the federation.
func CheckServer(server string) error {
	if u, err := url.Parse(server); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q: must be a URL, as https://fed.example.com:6443", server)
	}
	return nil
}

// RunAgent keeps connections ready at the federation, and serves what comes on them, until ctx is done.
func RunAgent(ctx context.Context, o AgentOptions) error {
	o.Ready, o.Quiet = cmp.Or(o.Ready, DefaultReady), cmp.Or(o.Quiet, defaultQuiet)
	for _, s := range o.Servers {
		if err := CheckServer(s); err != nil {
			return fmt.Errorf("server %w", err)
		}
	}
	if len(o.Servers) == 0 {
		return errors.New("servers: at least one is needed")
	}
	a := &agent{AgentOptions: o, accepted: make(chan net.Conn)}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: o.Handler, Protocols: protocols, BaseContext: func(net.Listener) context.Context { return ctx }}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range o.Servers {
		heard := &lastHeard{}
		for range o.Ready {
			wg.Go(supervisor.Kept(ctx, "tunnel", func(ctx context.Context) { a.keepReady(ctx, s, heard) }))
		}
	}
	end := context.AfterFunc(ctx, func() { _ = server.Close() }) // all connections end
	defer end()
	err := server.Serve(&listener{ctx, a.accepted})
	cancel()
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

type agent struct {
	AgentOptions
	accepted chan net.Conn
}

// keepReady keeps one connection ready at a server until ctx is done. heard is when the server said something the last time, on any connection.
func (a *agent) keepReady(ctx context.Context, server string, heard *lastHeard) {
	var last string // what was logged
	for ctx.Err() == nil {
		conn, err := a.connect(ctx, server, heard)
		if a.Observe != nil && ctx.Err() == nil {
			a.Observe(server, err)
		}
		if err != nil {
			if ctx.Err() == nil && err.Error() != last {
				last = err.Error()
				klog.FromContext(ctx).Error(err, "Cannot connect to the federation; will go on trying", "server", server)
			}
			waitBeforeRetry(ctx)
			continue
		}
		if last != "" {
			last = ""
			klog.FromContext(ctx).Info("Connected to the federation again", "server", server)
		}
		select {
		case a.accepted <- conn:
		case <-ctx.Done():
			_ = conn.Close() // nobody serves it
			return
		}
		conn.waitUntilTaken(ctx, a.Quiet)
	}
}

// waitUntilTaken waits until the federation uses a connection, or it is closed and some time has passed; a silent one is closed.
func (c *agentConn) waitUntilTaken(ctx context.Context, quiet time.Duration) {
	look := time.NewTicker(quiet / 4)
	defer look.Stop()
	for {
		select {
		case <-c.used:
			return
		case <-c.closed:
			waitBeforeRetry(ctx)
			return
		case <-ctx.Done():
			return
		case <-look.C:
			if c.heard.isQuiet(quiet) {
				_ = c.Close() // nobody uses it
			}
		}
	}
}

// lastHeard is when a server said something the last time.
type lastHeard struct{ at atomic.Int64 }

func (h *lastHeard) now() { h.at.Store(time.Now().UnixNano()) }

func (h *lastHeard) isQuiet(after time.Duration) bool {
	return time.Since(time.Unix(0, h.at.Load())) > after
}

// waitBeforeRetry waits some time around pause.
func waitBeforeRetry(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pause/2 + rand.N(pause)):
	}
}

// connect connects to a server, and returns the connection when the server has taken it.
func (a *agent) connect(ctx context.Context, server string, heard *lastHeard) (*agentConn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, fmt.Errorf("no answer within %v", connectTimeout))
	defer cancel()
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	config, err := a.TLS()
	if err != nil {
		return nil, err
	}
	config = config.Clone()
	config.ServerName, config.NextProtos = cmp.Or(config.ServerName, u.Hostname()), []string{"http/1.1"}
	raw, err := dialThroughProxy(ctx, u)
	if err != nil {
		return nil, err
	}
	end := context.AfterFunc(ctx, func() { _ = raw.Close() }) // whoever waits on it sees that
	conn := tls.Client(raw, config)
	read, err := a.upgrade(ctx, conn, u)
	if !end() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = raw.Close() // it is given up
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	keepAlive(raw)
	heard.now()
	return &agentConn{Conn: conn, read: read, heard: heard, used: make(chan struct{}), closed: make(chan struct{})}, nil
}

// upgrade asks the server to take the connection. What it returns has what the server sent since.
func (a *agent) upgrade(ctx context.Context, conn *tls.Conn, server *url.URL) (*bufio.Reader, error) {
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.JoinPath("apis/federation/v1beta1/clusters", a.Cluster, "connect").String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", Protocol)
	r.Header.Set(VersionHeader, a.Version)
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	read := bufio.NewReader(conn)
	answer, err := http.ReadResponse(read, r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		defer func() { _ = answer.Body.Close() }() // the connection ends
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return nil, fmt.Errorf("%s: %s", answer.Status, said)
	}
	return read, nil
}

// dialThroughProxy connects to the host of a URL, through the proxy that the environment names for it (HTTPS_PROXY, NO_PROXY), if any.
func dialThroughProxy(ctx context.Context, u *url.URL) (net.Conn, error) {
	through, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443"))
	if through == nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if through.Scheme != "http" {
		return nil, fmt.Errorf("HTTPS_PROXY %q: must be an http URL", through.Redacted())
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(through.Hostname(), cmp.Or(through.Port(), "80")))
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", through.Redacted(), err)
	}
	if err := askProxy(ctx, conn, through, address); err != nil {
		_ = conn.Close() // it is given up
		return nil, fmt.Errorf("proxy %s: %w", through.Redacted(), err)
	}
	return conn, nil
}

// askProxy has a proxy connect to an address. The other side speaks only when it is spoken to: nothing of it is read here.
func askProxy(ctx context.Context, conn net.Conn, through *url.URL, address string) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // whoever waits on it sees that
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if u := through.User; u != nil {
		password, _ := u.Password()
		r.SetBasicAuth(u.Username(), password)
		r.Header["Proxy-Authorization"] = r.Header["Authorization"]
		r.Header.Del("Authorization")
	}
	if err := r.Write(conn); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), r)
	if err != nil {
		return err
	}
	_ = answer.Body.Close() // after CONNECT there is none
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// agentConn is a connection that the federation uses when it sends the first byte. It hides that there is TLS below, of which the server of HTTP inside
// knows nothing.
type agentConn struct {
	net.Conn
	read   *bufio.Reader
	heard  *lastHeard
	first  sync.Once
	used   chan struct{}
	last   sync.Once
	closed chan struct{}
}

// Read implements net.Conn.
func (c *agentConn) Read(b []byte) (int, error) {
	n, err := c.read.Read(b)
	if n > 0 {
		c.heard.now()
		c.first.Do(func() { close(c.used) })
	}
	return n, err
}

// Close implements net.Conn.
func (c *agentConn) Close() error {
	c.last.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// listener hands the connections of an agent to an http.Server.
type listener struct {
	ctx   context.Context
	conns <-chan net.Conn
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (*listener) Close() error { return nil }

// Addr implements net.Listener.
func (*listener) Addr() net.Addr { return &net.TCPAddr{} }
