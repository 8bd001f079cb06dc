package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"federation/controllers/loadbalancer/http1"
	"federation/controllers/supervisor"
)

// Limits of clients.
const (
	maxHeader         = 16 << 10
	readHeaderTimeout = 10 * time.Second
	keepAliveTimeout  = 75 * time.Second
	maxStreams        = 128
	acceptPause       = 50 * time.Millisecond
)

// Server takes requests at one address. Make it with Listen.
type Server struct {
	proxy    *Proxy
	listener net.Listener
	// config is nil without TLS.
	config *tls.Config
	// one serves HTTP/1, and two HTTP/2, on what comes by streams.
	one     *http1.Server
	two     *http.Server
	streams *handOver
	// idle is as in ListenOptions.
	idle time.Duration
}

// ListenOptions say how a Server listens.
type ListenOptions struct {
	// Address is HOST:PORT.
	Address string
	// TLS with the certificates of hosts, and HTTP/2.
	TLS bool
	// ProxyProtocol: each connection begins with a header of PROXY protocol v2, from a trusted peer.
	ProxyProtocol bool
	// MaxConnections bounds the connections, MaxOfClient those of one address (of IPv6: one /64).
	MaxConnections, MaxOfClient int
	// IdleTimeout ends a TLS connection that is passed on, on which nothing moves for that long. Default: an hour.
	IdleTimeout time.Duration
}

// Listen listens with SO_REUSEPORT, so that a new process can listen before the old one ends.
func (p *Proxy) Listen(ctx context.Context, o ListenOptions) (*Server, error) {
	listener, err := listenTCP(ctx, o.Address)
	if err != nil {
		return nil, err
	}
	s := &Server{proxy: p, idle: cmp.Or(o.IdleTimeout, time.Hour), listener: &boundedListener{Listener: listener, bounds: newBounds(p, o.MaxConnections, o.MaxOfClient), proxyProtocol: o.ProxyProtocol}}
	s.streams = newHandOver(listener)
	s.one = &http1.Server{Handler: p, HTTP2: s.streams.pass, MaxHead: maxHeader, HeadTimeout: readHeaderTimeout, IdleTimeout: keepAliveTimeout}
	protocols := &http.Protocols{}
	protocols.SetHTTP2(o.TLS)
	protocols.SetUnencryptedHTTP2(!o.TLS)
	s.two = &http.Server{
		Handler: p, Protocols: protocols, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: keepAliveTimeout, MaxHeaderBytes: maxHeader,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: keepAliveTimeout, WriteByteTimeout: writeTimeout},
		ErrorLog: log.New(discard{}, "", 0), // what clients do wrong is theirs
	}
	if o.TLS {
		s.config = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: p.passOrEnd, GetCertificate: p.certificate, NextProtos: []string{http2Protocol, "http/1.1"}}
		s.two.TLSConfig = s.config.Clone() // net/http changes its own
	}
	return s, nil
}

// listenTCP listens with SO_REUSEPORT. Connections have the listener's settings of keep-alives, so that they need not be set for each.
func listenTCP(ctx context.Context, address string) (net.Listener, error) {
	config := net.ListenConfig{KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error {
		var errs []error
		failed := c.Control(func(fd uintptr) {
			for _, o := range listenerOptions {
				errs = append(errs, unix.SetsockoptInt(int(fd), o.level, o.name, o.value))
			}
		})
		return errors.Join(append(errs, failed)...)
	}}
	config.SetMultipathTCP(false) // of whose connections the kernel splices none
	return config.Listen(ctx, "tcp", address)
}

// listenerOptions are those of sockets. Keep-alives are as net has them.
var listenerOptions = []struct{ level, name, value int }{
	{unix.SOL_SOCKET, unix.SO_REUSEPORT, 1}, {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
	{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15}, {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9},
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Addr is where it listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve takes requests until Shutdown.
func (s *Server) Serve() error {
	ctx := context.Background() // connections outlive Serve
	go func() {
		if supervisor.Protect(ctx, "loadbalancer", func() error { return s.two.Serve(s.streams) }) != nil {
			_ = s.listener.Close() // which ends Serve
		}
	}()
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			time.Sleep(acceptPause) // too many files are open, or so
			continue
		}
		go func() {
			if supervisor.Protect(ctx, "loadbalancer", func() error { return s.serveConn(ctx, c) }) != nil {
				_ = c.Close() // it is given up
			}
		}()
	}
}

// serveConn serves a connection until it ends, or hands it over.
func (s *Server) serveConn(ctx context.Context, c net.Conn) error {
	if s.config == nil {
		s.one.ServeConn(ctx, c, nil)
		return nil
	}
	hello := &helloConn{Conn: c}
	secure, err := shake(hello, s.config)
	if errors.Is(err, errPassedOn) {
		s.passOn(c, hello)
		return nil
	}
	if err != nil {
		return err
	}
	if state := secure.ConnectionState(); state.NegotiatedProtocol != http2Protocol {
		s.one.ServeConn(ctx, secure, &state)
	} else {
		s.streams.pass(secure)
	}
	return nil
}

// Drain has clients close their connections, each with its next answer. New ones are still taken.
func (p *Proxy) Drain() { p.draining.Store(true) }

// Shutdown takes no more connections, and waits for requests and for connections that have switched protocols until ctx ends; then it closes them.
func (s *Server) Shutdown(ctx context.Context) error {
	_ = s.listener.Close() // it may be closed
	var wait sync.WaitGroup
	var err1 error
	wait.Go(func() { err1 = supervisor.Protect(ctx, "loadbalancer", func() error { return s.one.Shutdown(ctx) }) })
	err2 := s.two.Shutdown(ctx)
	wait.Wait()
	s.proxy.tunnels.wait(ctx)
	if err1 != nil || err2 != nil {
		return s.Close()
	}
	return nil
}

// Close closes all connections that have not switched protocols.
func (s *Server) Close() error {
	_ = s.listener.Close() // it may be closed
	_ = s.one.Close()      // has no error
	return s.two.Close()
}

// errNoCertificate is for a client that names another server.
var errNoCertificate = errors.New("no certificate is for this server name")

// certificate returns that of the host which a client names.
func (p *Proxy) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	r := p.routing.Load()
	if h := r.table.Host(strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))); h != nil && h.Secret != "" {
		if c := r.certs[h.Secret]; c != nil {
			return c, nil
		}
	}
	return nil, errNoCertificate
}

// boundedListener bounds connections, of all and of each client.
type boundedListener struct {
	net.Listener
	bounds        *bounds
	proxyProtocol bool
}

// Accept closes connections that are too many.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client := clientOf(addrOf(c.RemoteAddr()))
		if !l.bounds.take(client) {
			refused.Inc()
			_ = c.Close() // it gets nothing
			continue
		}
		bounded := &boundedConn{directConn: newDirectConn(c.(*net.TCPConn)), release: sync.OnceFunc(func() { l.bounds.release(client) })} // it listens to tcp
		if l.proxyProtocol {
			return &proxiedConn{boundedConn: bounded, trusted: l.bounds.trusted}, nil
		}
		return bounded, nil
	}
}

// clientOf is whom connections are counted for.
func clientOf(a netip.Addr) netip.Addr {
	if a.Is6() {
		if n, err := a.Prefix(64); err == nil {
			return n.Addr()
		}
	}
	return a
}

// bounds count the open connections of one listener, or of several.
type bounds struct {
	trusted       func(netip.Addr) bool
	all, ofClient int
	mu            sync.Mutex
	open          int
	of            map[netip.Addr]int
}

func newBounds(p *Proxy, all, ofClient int) *bounds {
	return &bounds{trusted: p.isTrusted, all: all, ofClient: ofClient, of: map[netip.Addr]int{}}
}

func (b *bounds) take(client netip.Addr) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open >= b.all || b.of[client] >= b.ofClient && !b.trusted(client) {
		return false
	}
	b.open++
	b.of[client]++
	connections.Inc()
	return true
}

func (b *bounds) release(client netip.Addr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open--
	if b.of[client]--; b.of[client] == 0 {
		delete(b.of, client)
	}
	connections.Dec()
}

type boundedConn struct {
	directConn
	release func()
}

// Close counts the connection no more.
func (c *boundedConn) Close() error {
	c.release()
	return c.TCPConn.Close()
}
