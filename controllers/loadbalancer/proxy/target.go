package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unique"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
)

const (
	// maxIdle bounds the idle connections to a target, maxOpen all of them.
	maxIdle, maxOpen = 128, 4096
	// idleTimeout is how long a connection may be idle. Servers commonly close theirs after 60 s or more. It is less than headTimeout, so
	// that the deadline of the request before is no matter.
	idleTimeout = 30 * time.Second
	// dialTimeout bounds the handshake of TCP. It is enough for the other side of the earth, and for a lost packet in the region.
	dialTimeout = time.Second
)

// targetKey identifies a target with how it is spoken to and checked: pools that agree on that share its connections and health.
type targetKey struct {
	plan.Target
	plan.Protocol
	// check is that of the Service's settings; of the zero value: any answer will do.
	check unique.Handle[v1beta1.DNSHealthCheck]
	// proxyProtocol: connections begin with a header of PROXY protocol v2.
	proxyProtocol bool
	// serverName is what checks of connections by TLS ask for.
	serverName string
	// checkPort is the port of TCP by which a target of datagrams is checked; 0: it is not.
	checkPort uint16
}

// target is a load balancer of a cluster.
type target struct {
	targetKey
	proxy *Proxy
	// transport is for other protocols than HTTP/1.1 in the clear.
	transport *http.Transport
	// transports are in its place where connections begin with a PROXY header: one for each client's connection, the one used last at the end.
	transports []*clientTransport
	// open counts connections.
	open atomic.Int64
	// used and heard are when a request was last sent, and when an answer last began, in nanoseconds of the proxy's clock.
	used, heard atomic.Int64

	// pools counts those that have it. The proxy's lock guards it.
	pools int

	mu   sync.Mutex
	idle []*conn
	// waiting has the requests, and TLS connections that are passed on, that no answer has come to. Like streams, it is made when it is needed: there are many targets.
	waiting map[waiter]struct{}
	// streams has the connections that are passed on to it.
	streams map[*stream]struct{}
	health
}

func newTarget(p *Proxy, key targetKey) *target {
	t := &target{targetKey: key, proxy: p}
	if (key.Protocol == plan.H2C || key.Protocol == plan.HTTPS) && !key.proxyProtocol {
		t.transport = t.newTransport(nil)
	}
	return t
}

// newTransport makes a transport whose connections begin with a PROXY header for a client's connection; nil: with none.
func (t *target) newTransport(of *endpoints) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(t.Protocol == plan.H2C)
	protocols.SetHTTP1(t.Protocol == plan.HTTPS)
	protocols.SetHTTP2(t.Protocol == plan.HTTPS)
	return &http.Transport{
		Protocols: protocols, DisableCompression: true, MaxIdleConnsPerHost: maxIdle, MaxIdleConns: maxOpen / 2, IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: maxResponseHead,
		TLSHandshakeTimeout: 5 * time.Second, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: t.proxy.Roots},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := t.dialCounted(ctx, 0)
			if err == nil && of != nil {
				if err = of.name(c); err != nil {
					_ = c.Close() // it is given up
				}
			}
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		HTTP2: &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 2 * time.Second},
	}
}

// clientTransport is for the requests of one client's connection. http.Transport may give a request any connection that it has, also one that it opened for
// another request.
type clientTransport struct {
	*http.Transport
	of   endpoints
	used time.Time
}

// transportFor returns the transport for a request. There are at most maxIdle of them; requests under way by one that is dropped go on.
func (t *target) transportFor(out *outgoing) *http.Transport {
	if t.transport != nil {
		return t.transport
	}
	of, dropped := endpointsOf(out.Request), (*clientTransport)(nil)
	t.mu.Lock()
	var c *clientTransport
	if n := slices.IndexFunc(t.transports, func(c *clientTransport) bool { return c.of == of }); n >= 0 {
		c = t.transports[n]
		t.transports = slices.Delete(t.transports, n, n+1)
	} else {
		c = &clientTransport{Transport: t.newTransport(&of), of: of}
		if len(t.transports) == maxIdle {
			dropped = t.transports[0]
			t.transports = slices.Delete(t.transports, 0, 1)
		}
	}
	c.used = time.Now()
	t.transports = append(t.transports, c)
	t.mu.Unlock()
	if dropped != nil {
		dropped.CloseIdleConnections()
	}
	return c.Transport
}

// takeTransports removes the transports that were not used for too long, or all, and returns them. The caller holds the lock.
func (t *target) takeTransports(all bool) (old []*clientTransport) {
	for len(t.transports) > 0 && (all || time.Since(t.transports[0].used) >= idleTimeout) {
		old = append(old, t.transports[0])
		t.transports = slices.Delete(t.transports, 0, 1)
	}
	return old
}

// waiter is what waits for a target's answer.
type waiter interface {
	// since is when it began to wait, in nanoseconds of the proxy's clock.
	since() int64
	// abandon ends the wait. The caller holds the target's lock, so that it is not late.
	abandon()
}

// await registers what begins to wait.
func (t *target) await(x waiter) {
	t.used.Store(x.since())
	t.mu.Lock()
	if t.waiting == nil {
		t.waiting = map[waiter]struct{}{}
	}
	t.waiting[x] = struct{}{}
	t.mu.Unlock()
}

// awaitNoMore takes it from those that wait. heard: an answer has come.
func (t *target) awaitNoMore(x waiter, heard bool) {
	if heard {
		t.heard.Store(t.proxy.clock())
	}
	t.mu.Lock()
	delete(t.waiting, x)
	t.mu.Unlock()
}

// errTooMany is why a target gets no more requests for now.
var errTooMany = errors.New("too many connections to it")

// dial opens a connection; keepAlive is as in net.Dialer. It refuses addresses that no load balancer can have, and those of this machine.
func (t *target) dial(ctx context.Context, keepAlive time.Duration) (*net.TCPConn, error) {
	if err := t.proxy.Refuse(t.Address.Addr()); err != nil {
		return nil, err
	}
	at := t.Address
	if t.checkPort != 0 {
		at = netip.AddrPortFrom(at.Addr(), t.checkPort)
	}
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	c, err := d.DialContext(ctx, "tcp", at.String())
	if err == nil {
		if err = t.proxy.pools.refuseOwn(c, t.Address.Addr()); err != nil {
			_ = c.Close() // nothing has been sent
		}
	}
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil // a net.Dialer makes no other for tcp
}

// dialCounted opens a connection that counts as open until it is closed, whatever it is used for: http.Transport would not count those whose
// protocol was switched, and would count for each name of a host.
func (t *target) dialCounted(ctx context.Context, keepAlive time.Duration) (*countedConn, error) {
	if t.open.Add(1) > maxOpen {
		t.open.Add(-1)
		return nil, errTooMany
	}
	c, err := t.dial(ctx, keepAlive)
	if err != nil {
		t.open.Add(-1)
		return nil, err
	}
	return &countedConn{directConn: newDirectConn(c), release: sync.OnceFunc(func() { t.open.Add(-1) })}, nil
}

// countedConn is a connection to a target.
type countedConn struct {
	directConn
	release func()
}

// Close counts the connection no more.
func (c *countedConn) Close() error {
	c.release()
	return c.TCPConn.Close()
}

// get returns an idle connection for these endpoints that is still open, or nil. certain asks for a look whether the other side has closed it.
func (t *target) get(of endpoints, certain bool) *conn {
	for {
		t.mu.Lock()
		n := len(t.idle) - 1
		for n >= 0 && t.idle[n].of != of {
			n--
		}
		if n < 0 {
			t.mu.Unlock()
			return nil
		}
		c := t.idle[n]
		t.idle = slices.Delete(t.idle, n, n+1)
		t.mu.Unlock()
		since := time.Since(c.idleSince)
		if since < idleTimeout && (!certain && since < time.Second || c.isOpen()) {
			c.reused = true
			return c
		}
		c.close()
	}
}

// put keeps a connection for other requests.
func (t *target) put(c *conn) {
	c.idleSince = time.Now()
	spare := c
	t.mu.Lock()
	if !t.failing && !t.gone {
		spare = nil
		if len(t.idle) == maxIdle { // the oldest may be of a client that is gone
			spare = t.idle[0]
			t.idle = slices.Delete(t.idle, 0, 1)
		}
		t.idle = append(t.idle, c)
	}
	t.mu.Unlock()
	if spare != nil {
		spare.close()
	}
}

// closeIdle closes the connections that have been idle for too long, or all.
func (t *target) closeIdle(all bool) {
	var old []*conn
	t.mu.Lock()
	keep := t.idle[:0]
	for _, c := range t.idle {
		if all || time.Since(c.idleSince) >= idleTimeout {
			old = append(old, c)
		} else {
			keep = append(keep, c)
		}
	}
	clear(t.idle[len(keep):])
	t.idle = keep
	transports := t.takeTransports(all)
	t.mu.Unlock()
	for _, c := range transports {
		c.CloseIdleConnections()
	}
	for _, c := range old {
		c.close()
	}
	if t.transport != nil && all {
		t.transport.CloseIdleConnections()
	}
}

// isOpen reports whether the other side has neither closed the connection nor sent anything that nobody asked for.
func (c *conn) isOpen() bool {
	raw, err := c.tcp.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	if raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = errors.Is(err, syscall.EAGAIN)
		return true
	}) != nil {
		return false
	}
	return open && c.r.Buffered() == 0
}
