package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"federation/controllers/loadbalancer/plan"
	"federation/controllers/supervisor"
)

const (
	// maxStreamTries bounds the clusters that a connection is tried at, each for dialTimeout.
	maxStreamTries = 5
	// keepAliveAfter is how old a connection is before the cluster is asked whether it still has it: shorter ones are spared that.
	keepAliveAfter = 15 * time.Second
	// windows is how many times within the idle timeout it is looked whether something has moved.
	windows = 4
	// listenAgain is the time between two tries to listen at a port that somebody else has.
	listenAgain = 10 * time.Second
)

// StreamOptions say how connections to the ports of Services are taken.
type StreamOptions struct {
	// Host is the address to listen at; empty: all.
	Host string
	// ProxyProtocol, MaxConnections and MaxOfClient are as in ListenOptions. The bounds hold for all ports together.
	ProxyProtocol               bool
	MaxConnections, MaxOfClient int
	// IdleTimeout ends a connection on which nothing moves for that long.
	IdleTimeout time.Duration
}

// Streams takes connections to the ports of Services, and passes them on as they are. Make it with ServeStreams.
type Streams struct {
	StreamOptions
	proxy  *Proxy
	bounds *bounds

	mu     sync.Mutex
	closed bool
	ports  map[uint16]*streamListener
	// failed are the ports that somebody else has, and why.
	failed map[uint16]string
	tried  time.Time
	// accepting ends when nothing is accepted any more.
	accepting sync.WaitGroup
}

// streamListener is a port of a Service.
type streamListener struct {
	net.Listener
	// pool is replaced when another Service gets the port.
	pool atomic.Pointer[plan.PoolID]
}

// ServeStreams listens at the ports that the table has for Services, from now on, until Shutdown.
func (p *Proxy) ServeStreams(o StreamOptions) *Streams {
	s := &Streams{StreamOptions: o, proxy: p, bounds: newBounds(p, o.MaxConnections, o.MaxOfClient), ports: map[uint16]*streamListener{}, failed: map[uint16]string{}}
	p.streams.Store(s)
	s.listenAll()
	return s
}

// listenAll opens and closes sockets, so that they are those that the table has.
func (s *Streams) listenAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.tried = time.Now()
	want := map[uint16]bool{}
	for _, l := range s.proxy.Table().Listeners() {
		if l.Pool.UDP {
			continue // an edge in the kernel serves these
		}
		want[l.Port] = true
		if open := s.ports[l.Port]; open != nil {
			open.pool.Store(&l.Pool)
		} else {
			s.listen(l)
		}
	}
	for port, l := range s.ports {
		if !want[port] {
			_ = l.Close() // nothing is left to do
			delete(s.ports, port)
		}
	}
	for port := range s.failed {
		if !want[port] {
			delete(s.failed, port)
		}
	}
}

// listen begins to listen at a port, if it can. The caller holds the lock.
func (s *Streams) listen(at plan.Listener) {
	listener, err := listenTCP(context.Background(), net.JoinHostPort(s.Host, strconv.Itoa(int(at.Port))))
	if err != nil {
		if s.failed[at.Port] != err.Error() {
			klog.ErrorS(err, "Cannot listen at the port of a Service, will retry", "port", at.Port)
		}
		s.failed[at.Port] = err.Error()
		return
	}
	delete(s.failed, at.Port)
	l := &streamListener{Listener: &boundedListener{Listener: listener, bounds: s.bounds, proxyProtocol: s.ProxyProtocol}}
	l.pool.Store(&at.Pool)
	s.ports[at.Port] = l
	s.accepting.Go(func() {
		_ = supervisor.Protect(context.Background(), "loadbalancer", func() error { s.accept(l); return nil }) // it has logged a panic
	})
}

// retry listens again at ports that somebody else had.
func (s *Streams) retry() {
	s.mu.Lock()
	due := len(s.failed) > 0 && time.Since(s.tried) > listenAgain
	s.mu.Unlock()
	if due {
		s.listenAll()
	}
}

// Shutdown takes no more connections, and waits for those that are open until ctx ends; then it closes them.
func (s *Streams) Shutdown(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	for _, l := range s.ports {
		_ = l.Close() // nothing is left to do
	}
	s.mu.Unlock()
	s.accepting.Wait() // what was accepted counts from then on
	s.proxy.tunnels.wait(ctx)
}

func (s *Streams) accept(l *streamListener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause) // too many files are open, or so
			continue
		}
		one := s.proxy.tunnels.begin() // before anybody waits for the last
		go func() {
			defer s.proxy.tunnels.end(one)
			defer func() { _ = c.Close() }() // what was sent has been sent
			one.set(c)
			_ = supervisor.Protect(context.Background(), "loadbalancer", func() error { s.serve(c, *l.pool.Load()); return nil }) // it has logged a panic
		}()
	}
}

// streamRecord is what is known of a connection, for metrics and the access log.
type streamRecord struct {
	began  time.Time
	client netip.AddrPort
	pool   plan.PoolID
	// host and ingress are those by which TLS is passed on.
	host, ingress string
	cluster       string
	target        netip.AddrPort
	sent          int64 // from the client
	received      int64 // from the cluster
	tries         int
	result        string
	why           string
}

// service is its namespace/name; empty if the backend does not exist.
func (n *streamRecord) service() string {
	if n.pool.IsZero() {
		return ""
	}
	return n.pool.Key()
}

// Results of connections.
const (
	streamEnded       = "ended"       // both sides have ended it
	streamBroken      = "broken"      // one side broke it off, or the other was silent for too long
	streamLost        = "lost"        // the cluster began to fail its checks
	streamUnreachable = "unreachable" // no cluster took it
)

// serve passes a connection to the port of a Service on until it ends.
func (s *Streams) serve(c net.Conn, id plan.PoolID) {
	if client, from, ok := clientConn(c); ok { // or it said nothing that can be believed, as a scanner
		s.proxy.passStream(client, &streamRecord{began: time.Now(), client: from, pool: id}, nil, s.IdleTimeout)
	}
}

// passStream passes a connection on until it ends. hello is what the client has said already; nil: nothing.
func (p *Proxy) passStream(client *boundedConn, n *streamRecord, hello *clientHello, idle time.Duration) {
	defer observeStream(n, p.log)
	server, t, err := p.connect(client, n, hello)
	if err != nil {
		n.result, n.why = streamUnreachable, err.Error()
		_ = client.SetLinger(0) // so that the client does not take it for an answer
		return
	}
	x := &stream{client: &client.directConn, server: server, idle: idle, proxy: p}
	t.addStream(x)
	defer t.removeStream(x)
	x.pass(n)
}

// clientConn returns the socket of a client, whose PROXY header has been read if there is to be one, and who the client is.
func clientConn(c net.Conn) (client *boundedConn, from netip.AddrPort, ok bool) {
	if tcp, is := c.RemoteAddr().(*net.TCPAddr); is { // reads the header
		from = unmapped(tcp.AddrPort())
	}
	switch c := c.(type) {
	case *boundedConn:
		return c, from, true
	case *proxiedConn:
		return c.boundedConn, from, c.err == nil
	}
	return nil, from, false
}

// errNoCluster is why a connection is closed at once.
var errNoCluster = errors.New("no cluster has an address that serves")

// connect connects to a cluster, or to the next one if that takes no connection. Nothing of the client's has been sent before, so no try is too much. If
// the client has said hello, one cluster more is tried when the first that got it does not answer.
func (p *Proxy) connect(client *boundedConn, n *streamRecord, hello *clientHello) (*countedConn, *target, error) {
	o, ok := p.pools.get(n.pool)
	if !ok {
		return nil, nil, errNoCluster
	}
	last, greeted := errNoCluster, 0
	o.budget.earn()
	var tried []*target
	for n.tries < maxStreamTries && (greeted == 0 || greeted == 1 && !hello.early) {
		t := o.pick(tried)
		if t == nil || greeted > 0 && !o.budget.spend() {
			break
		}
		if n.tries > 0 {
			retries.WithLabelValues(n.cluster, t.Cluster).Inc()
		}
		tried = append(tried, t)
		n.tries++
		n.cluster, n.target = t.Cluster, t.Address
		server, err := t.openStream(client, n.client)
		if err == nil && hello != nil {
			greeted++
			err = t.greet(server, client, hello, n)
		}
		if err == nil {
			return server, t, nil
		}
		last = err
		p.pools.refresh(&o)
	}
	return nil, nil, last
}

// openStream connects to the target, and names the client where that is wanted.
func (t *target) openStream(client *boundedConn, from netip.AddrPort) (*countedConn, error) {
	t.used.Store(t.proxy.clock())
	server, err := t.dialCounted(context.Background(), -1) // it has a timeout
	if err == nil && t.proxyProtocol {
		to, _ := client.LocalAddr().(*net.TCPAddr)
		if err = (endpoints{from, unmapped(to.AddrPort())}).name(server); err != nil {
			_ = server.Close() // it is given up
		}
	}
	if !errors.Is(err, errTooMany) {
		t.delivered(err, 0)
	}
	if err != nil {
		return nil, err
	}
	return server, nil
}

func (t *target) addStream(x *stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams == nil {
		t.streams = map[*stream]struct{}{}
	}
	t.streams[x] = struct{}{}
}

func (t *target) removeStream(x *stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.streams, x)
}

// endStreams ends the connections to the target, so that clients begin new ones.
func (t *target) endStreams() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for x := range t.streams {
		x.lost.Store(true)
		x.abort()
	}
}

// stream is a connection that is passed on.
type stream struct {
	proxy  *Proxy
	client *directConn
	server *countedConn
	idle   time.Duration
	// moved is when something last moved, either way, in nanoseconds of the proxy's clock.
	moved atomic.Int64
	// ended counts the ways that have ended.
	ended atomic.Int32
	// lost: the target began to fail. silent: nothing moved for too long. broken: one side broke it off.
	lost, silent, broken atomic.Bool
}

// pass copies both ways until both have ended.
func (x *stream) pass(n *streamRecord) {
	x.moved.Store(x.proxy.clock())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if supervisor.Protect(context.Background(), "loadbalancer", func() error { n.sent += x.copy(&x.server.directConn, x.client); return nil }) != nil {
			x.abort()
		}
	}()
	n.received += x.copy(x.client, &x.server.directConn)
	<-done
	_ = x.server.Close() // both ways have ended
	switch n.result = streamEnded; {
	case x.lost.Load():
		n.result, n.why = streamLost, "the cluster began to fail its checks"
	case x.silent.Load():
		n.result, n.why = streamBroken, "nothing moved for "+x.idle.String()
	case x.broken.Load():
		n.result, n.why = streamBroken, "the client or the cluster broke it off"
	}
}

// copy copies one way until the source ends, and then ends that way, unless the other one has ended: then both sides are about to be closed. It returns how much it was.
// The deadline for reading ends a copy only between two pieces: nothing is lost when it goes on. That for writing is for whom nothing can be sent to.
func (x *stream) copy(to, from *directConn) (sum int64) {
	c := newCopier(to, from)
	for window := min(x.idle/windows, keepAliveAfter); ; window = x.idle / windows {
		began := time.Now()
		_ = from.SetReadDeadline(began.Add(window)) // fails only for what is closed
		_ = to.SetWriteDeadline(began.Add(x.idle))
		n, err := c.copy(func() { x.moved.Store(x.proxy.clock()) })
		sum += n
		switch {
		case err == nil:
			if x.ended.Add(1) == 1 {
				_ = to.CloseWrite() // the other side may be gone
			}
			return sum
		case !isTimeout(err):
			x.broken.Store(true)
			x.abort()
			return sum
		case time.Since(began) >= x.idle || x.proxy.clock()-x.moved.Load() >= int64(x.idle):
			x.silent.Store(true)
			x.abort()
			return sum
		}
		_ = x.server.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true}) // fails only for what is closed
	}
}

// abort resets both sides, so that neither takes what it got for the whole.
func (x *stream) abort() {
	_ = x.client.SetLinger(0) // fails only for what is closed
	_ = x.server.SetLinger(0)
	_ = x.client.Close() // it is counted until the handler closes it
	_ = x.server.Close()
}

// unmapped is an address without IPv4 inside of IPv6.
func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
