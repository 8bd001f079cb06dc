package tunnel

import (
	"bufio"
	"cmp"
	"context"
	crand "crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"federation/controllers/supervisor"
)

const (
	// DefaultReady is how many connections an agent keeps ready at each process of the federation.
	DefaultReady = 2
	// connectTimeout bounds one try to connect.
	connectTimeout = 3 * time.Second
	// connectRetry is about how long to wait for a try until another one begins beside it: a path that comes back is found again soon, and yet a slow
	// federation is waited for.
	connectRetry = time.Second
	// pause is how long to wait after a failure, at least half of it and at most one and a half times: agents do not come all at once.
	pause = time.Second
	// defaultQuiet is that of AgentOptions: the federation checks the health of a member each second.
	defaultQuiet = 2500 * time.Millisecond
	// mostDoubts is how often Quiet is doubled at most.
	mostDoubts = 3
	// pingAfter is for how many times Quiet a used connection of HTTP/2 may be silent until it is asked whether the federation is there, and how long that may take.
	pingAfter = 12
	// idleTimeout is how long a used connection of HTTP/1.1 may wait for the next request. The federation ends it sooner.
	idleTimeout = 3 * time.Minute
)

var (
	// errNoAnswer is that of a try to connect that was given up.
	errNoAnswer = fmt.Errorf("no answer within %v", connectTimeout)
	// errLate is said of one beside which another begins.
	errLate = fmt.Errorf("no answer within %v", connectRetry)
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
	// Quiet is how long a server may say nothing at all on any connection until those that are ready are in doubt: something on the way, as a proxy, may
	// have forgotten them without a word, and answers the kernel's keep-alives itself. Others are made then, and replace them when they are there; a server
	// that is only slow loses nothing, and is given twice the time each time until it says something. 0: 2.5 seconds.
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
	a := &agent{AgentOptions: o, id: crand.Text(), accepted: make(chan net.Conn)}
	server := a.httpServer(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for _, url := range o.Servers {
		s := newServer(url)
		wg.Go(supervisor.Kept(ctx, "tunnel", func(ctx context.Context) { s.watch(ctx, o.Quiet) }))
		for range o.Ready {
			wg.Go(supervisor.Kept(ctx, "tunnel", func(ctx context.Context) { a.keepReady(ctx, s) }))
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
	id       string // no other has it
	accepted chan net.Conn
}

// httpServer serves what comes on the connections. It ends those that were used on which the federation is not found any more.
func (a *agent) httpServer(ctx context.Context) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: a.Handler, Protocols: protocols, BaseContext: func(net.Listener) context.Context { return ctx },
		IdleTimeout: idleTimeout, HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter * a.Quiet, PingTimeout: pingAfter * a.Quiet},
	}
}

// keepReady keeps one connection ready at a server until ctx is done.
func (a *agent) keepReady(ctx context.Context, s *server) {
	var doubtful *agentConn // ready as far as we know
	said := ""
	for ctx.Err() == nil {
		conn, err := a.connectSoon(ctx, s, func(err error) { a.say(ctx, s, err, &said) })
		if doubtful != nil && answered(err) {
			doubtful.closeUnlessUsed()
			doubtful = nil
		}
		a.say(ctx, s, err, &said)
		if err != nil {
			waitBeforeRetry(ctx)
			continue
		}
		select {
		case a.accepted <- conn:
		case <-ctx.Done():
			_ = conn.Close() // nobody serves it
			return
		}
		if conn.waitUntilReplaced(ctx) {
			doubtful = conn
		}
	}
}

// waitUntilReplaced waits until a connection that is ready needs one in its place: it is used, was closed a while ago, or the server is in doubt, which it reports.
func (c *agentConn) waitUntilReplaced(ctx context.Context) (doubtful bool) {
	doubted := c.server.wait()
	defer c.server.waiting.Add(-1)
	select {
	case <-c.used:
	case <-c.closed:
		waitBeforeRetry(ctx)
	case <-doubted:
		return true
	case <-ctx.Done():
	}
	return false
}

// say tells the observer how a try to connect went, and logs it unless it is what was said before.
func (a *agent) say(ctx context.Context, s *server, err error, before *string) {
	if ctx.Err() != nil {
		return
	}
	if a.Observe != nil {
		a.Observe(s.url, err)
	}
	switch {
	case err == nil && *before != "":
		*before = ""
		klog.FromContext(ctx).Info("Connected to the federation again", "server", s.url)
	case err != nil && err.Error() != *before:
		*before = err.Error()
		klog.FromContext(ctx).Error(err, "Cannot connect to the federation; will go on trying", "server", s.url)
	}
}

// connectSoon connects to a server. While no attempt has been answered, it calls late and starts another one in parallel. It returns the first that is answered.
func (a *agent) connectSoon(ctx context.Context, s *server, late func(error)) (*agentConn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the other tries end
	type outcome struct {
		conn *agentConn
		err  error
	}
	outcomes := make(chan outcome)
	begin := func() {
		go func() {
			var conn *agentConn
			err := supervisor.Protect(ctx, "tunnel", func() (err error) { conn, err = a.connect(ctx, s); return err })
			select {
			case outcomes <- outcome{conn, err}:
			case <-ctx.Done():
				if conn != nil {
					_ = conn.Close() // another one was first
				}
			}
		}()
	}
	begin()
	for {
		select {
		case o := <-outcomes:
			if !errors.Is(o.err, errNoAnswer) {
				return o.conn, o.err
			}
		case <-time.After(connectRetry*4/5 + rand.N(connectRetry*2/5)):
			late(errLate)
			begin()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// waitBeforeRetry waits some time around pause.
func waitBeforeRetry(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pause/2 + rand.N(pause)):
	}
}

// connect connects to a server, and returns the connection when the server has taken it.
func (a *agent) connect(ctx context.Context, s *server) (*agentConn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, errNoAnswer)
	defer cancel()
	u, err := url.Parse(s.url)
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
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
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
	s.connected()
	return &agentConn{Conn: conn, read: read, server: s, used: make(chan struct{}), closed: make(chan struct{})}, nil
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
	r.Header.Set(AgentHeader, a.id)
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
		return nil, refusal(fmt.Sprintf("%s: %s", answer.Status, said))
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
	server *server
	first  sync.Once
	used   chan struct{}
	last   sync.Once
	closed chan struct{}
}

// Read implements net.Conn.
func (c *agentConn) Read(b []byte) (int, error) {
	n, err := c.read.Read(b)
	if n > 0 {
		c.server.said()
		c.first.Do(func() { close(c.used) })
	}
	return n, err
}

// Close implements net.Conn.
func (c *agentConn) Close() error {
	c.last.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// closeUnlessUsed closes a connection that the federation has not used.
func (c *agentConn) closeUnlessUsed() {
	select {
	case <-c.used:
	default:
		_ = c.Close() // nobody uses it
	}
}

// refusal is what a federation answers that does not take a connection.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

// answered reports whether the federation answered a try to connect.
func answered(err error) bool { return err == nil || errors.As(err, new(refusal)) }

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
