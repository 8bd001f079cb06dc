package http1

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"federation/controllers/supervisor"
)

// Server serves connections. Its fields are not changed once it does.
type Server struct {
	// Handler answers requests. The contexts of requests end when their client leaves. It may not use a request, but its context, once it has returned: the
	// next request of the connection is at the same place.
	Handler http.Handler
	// HTTP2 takes connections that begin with HTTP/2's preface, which it reads again. Nil: they are refused.
	HTTP2 func(net.Conn)
	// MaxHead bounds the head of a request in bytes.
	MaxHead int
	// HeadTimeout is how long a head may take, IdleTimeout how long none may come.
	HeadTimeout, IdleTimeout time.Duration

	// closing: Shutdown was called.
	closing atomic.Bool
	mu      sync.Mutex
	open    map[*conn]struct{}
}

const (
	// watchAfter is how long a request takes before its client is watched for leaving.
	watchAfter = 50 * time.Millisecond
	// newFor is how long a connection without a request is taken for one whose request is on its way.
	newFor = 5 * time.Second
	// lingerFor and lingerBytes bound what is read of a client that has got its last answer: a connection closed before all that came is read can
	// cost the client the answer.
	lingerFor, lingerBytes = 500 * time.Millisecond, 256 << 10
	// shutdownPeriod is how often Shutdown looks.
	shutdownPeriod = 10 * time.Millisecond
	// deadlineStep is by how much a later deadline must be later to be set.
	deadlineStep = time.Second
	// keptHead and keptHeaders bound what an idle connection keeps of its last request and answer: bytes, and headers.
	keptHead, keptHeaders = 4 << 10, 64
)

// states of a connection: only an idle one may be closed.
const (
	idle int32 = iota
	active
	closed
)

// conn is a connection of a client.
type conn struct {
	net.Conn
	server *Server
	r      *bufio.Reader
	w      *bufio.Writer // nil without a request
	since  time.Time
	state  atomic.Int32
	// served: it has had a request.
	served atomic.Bool
	// base is a request with what all of the connection have; request and target are the one under way, and its path and query.
	base    *http.Request
	request http.Request
	target  url.URL
	leave   context.CancelFunc
	header  http.Header
	answer  answer
	head    []byte
	// written is the deadline of writes, awaited that of the wait for a request, unless readMoved.
	written, awaited time.Time
	readMoved        atomic.Bool

	// watch fires when a request has taken a while.
	watch *time.Timer
	mu    sync.Mutex
	// body is that of the request under way; handling: there is one. watching is closed when the client is not watched any more.
	body     *body
	handling bool
	watching chan struct{}
}

var readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}
var writers = sync.Pool{New: func() any { return bufio.NewWriter(nil) }}

// ServeConn serves a connection until it ends, and closes it. secure is its state if it is one of TLS, whose handshake is done.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn, secure *tls.ConnectionState) {
	c := &conn{Conn: nc, server: s, since: time.Now(), header: http.Header{}}
	if !s.track(c) {
		_ = nc.Close() // it came too late
		return
	}
	defer s.forget(c)
	ctx, c.leave = context.WithCancel(context.WithValue(ctx, http.LocalAddrContextKey, nc.LocalAddr())) // as net/http's server has it
	defer c.leave()
	c.base = (&http.Request{RemoteAddr: nc.RemoteAddr().String(), TLS: secure}).WithContext(ctx)
	c.r = readers.Get().(*bufio.Reader)
	c.r.Reset(nc)
	c.answer = answer{conn: c, header: http.Header{}}
	if c.serve() {
		return // somebody else has it now, with its buffers
	}
	_ = nc.Close() // it may be closed
	c.r.Reset(nil)
	readers.Put(c.r)
	c.release()
}

// release gives up what an idle connection does not need.
func (c *conn) release() {
	if c.w != nil {
		c.w.Reset(nil)
		writers.Put(c.w)
		c.w = nil
	}
	if cap(c.head) > keptHead {
		c.head = nil
	}
	if len(c.header) > keptHeaders {
		c.header = http.Header{}
	}
	if len(c.answer.header) > keptHeaders {
		c.answer.header = http.Header{}
	}
}

func (s *Server) track(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	if s.open == nil {
		s.open = map[*conn]struct{}{}
	}
	s.open[c] = struct{}{}
	return true
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// Shutdown closes idle connections, has the others end with their answers, and waits for them until ctx ends. Connections that handlers have
// hijacked are not waited for.
func (s *Server) Shutdown(ctx context.Context) error {
	s.closing.Store(true)
	tick := time.NewTicker(shutdownPeriod)
	defer tick.Stop()
	for s.closeIdle() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// closeIdle closes connections without a request, and returns how many are left.
func (s *Server) closeIdle() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		if (c.served.Load() || time.Since(c.since) > newFor) && c.state.CompareAndSwap(idle, closed) {
			_ = c.Close() // its goroutine ends with the read
		}
	}
	return len(s.open)
}

// Close closes all connections.
func (s *Server) Close() error {
	s.closing.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close() // it is given up
	}
	return nil
}

// serve serves requests until the connection is to be closed, or somebody else has it.
func (c *conn) serve() (away bool) {
	for first := true; ; first = false {
		if !c.awaitRequest(first) {
			return false
		}
		if first && c.base.TLS == nil {
			if other, err := c.isHTTP2(); err != nil || other && c.server.HTTP2 == nil {
				return false
			} else if other {
				c.server.HTTP2(&replayedConn{c.Conn, c.r})
				return true
			}
		}
		r, err := c.readRequest()
		c.w = writers.Get().(*bufio.Writer)
		c.w.Reset(c.Conn)
		if err != nil {
			if fault := (*Fault)(nil); errors.As(err, &fault) {
				c.refuse(fault)
			}
			return false
		}
		again := c.handle(r)
		if c.answer.hijacked {
			return true
		}
		c.served.Store(true)
		c.release()
		if !again || !c.state.CompareAndSwap(active, idle) {
			return false
		}
	}
}

// awaitRequest waits for the first byte of a request.
func (c *conn) awaitRequest(first bool) bool {
	if c.r.Buffered() == 0 {
		wait := c.server.IdleTimeout
		if first {
			wait = c.server.HeadTimeout
		}
		if until := time.Now().Add(wait); c.readMoved.Swap(false) || c.awaited.IsZero() || until.Sub(c.awaited) > deadlineStep {
			c.awaited = until
			_ = c.Conn.SetReadDeadline(until) // fails only for what is closed
		}
		if _, err := c.r.Peek(1); err != nil {
			return false
		}
	}
	return c.state.CompareAndSwap(idle, active)
}

// preface begins a connection by HTTP/2, as far as no request of HTTP/1 can.
const preface = "PRI * HTTP/2.0\r\n"

// isHTTP2 reports whether the connection begins with HTTP/2's preface.
func (c *conn) isHTTP2() (bool, error) {
	if begin, _ := c.r.Peek(1); len(begin) == 0 || begin[0] != preface[0] {
		return false, nil
	}
	_ = c.SetReadDeadline(time.Now().Add(c.server.HeadTimeout)) // fails only for what is closed
	for n := 2; n <= len(preface); n++ {
		if begin, err := c.r.Peek(n); err != nil || begin[n-1] != preface[n-1] {
			return false, err
		}
	}
	return true, nil
}

// replayedConn is a connection of which a part was read.
type replayedConn struct {
	net.Conn
	r *bufio.Reader
}

// Read reads that part first.
func (c *replayedConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// readRequest reads the head of a request.
func (c *conn) readRequest() (*http.Request, error) {
	if here, _ := c.r.Peek(c.r.Buffered()); !bytes.Contains(here, []byte("\r\n\r\n")) {
		_ = c.SetReadDeadline(time.Now().Add(c.server.HeadTimeout)) // fails only for what is closed
	}
	head, err := readHead(c.r, c.head[:0], c.server.MaxHead)
	if c.head = head; err != nil {
		return nil, err
	}
	clear(c.header)
	r := &c.request
	*r, c.target = *c.base, url.URL{}
	r.Header, r.Body, r.URL = c.header, http.NoBody, &c.target
	if fault := parseHead(string(head), r); fault != nil {
		return nil, fault
	}
	expects := r.Header["Expect"]
	if len(expects) > 1 || len(expects) == 1 && !strings.EqualFold(expects[0], "100-continue") {
		return nil, &Fault{http.StatusExpectationFailed, "Expect: must be 100-continue"}
	}
	b := c.newBody(r, len(expects) == 1 && r.ProtoMinor == 1)
	if b != nil {
		r.Body = b
	}
	c.mu.Lock()
	c.body = b
	c.mu.Unlock()
	return r, nil
}

// refuse answers a request that is none.
func (c *conn) refuse(fault *Fault) {
	text := fault.Why + "\n"
	_ = c.setWriteDeadline(time.Now().Add(c.server.HeadTimeout)) // fails only for what is closed
	writeStatusLine(c.w, fault.Status)
	writeDate(c.w)
	_, _ = c.w.WriteString("Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(text)) + "\r\n\r\n" + text)
	if c.w.Flush() == nil {
		c.linger()
	}
}

// handle has a request answered, and reports whether another may follow.
func (c *conn) handle(r *http.Request) (again bool) {
	c.answer.reset(r)
	c.rewatch()
	whole := c.call(r)
	c.unwatch()
	if c.answer.hijacked || !whole {
		return false
	}
	if c.written.IsZero() {
		_ = c.setWriteDeadline(time.Now().Add(c.server.IdleTimeout)) // fails only for what is closed
	}
	if c.answer.finish() != nil {
		return false
	}
	if c.answer.closes || c.body != nil && !c.body.ended.Load() || c.server.closing.Load() && c.r.Buffered() == 0 {
		c.linger()
		return false
	}
	return true
}

// call calls the handler, and reports whether its answer is whole.
func (c *conn) call(r *http.Request) (whole bool) {
	defer func() {
		if fault := recover(); fault != nil && fault != http.ErrAbortHandler {
			panic(fault)
		}
	}()
	c.server.Handler.ServeHTTP(&c.answer, r)
	return true
}

// linger ends what is sent, and reads for a while what still comes.
func (c *conn) linger() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(lingerFor)) // fails only for what is closed
	_, _ = io.CopyN(io.Discard, c.r, lingerBytes)    // what comes is nobody's
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.readMoved.Store(true)
	return c.Conn.SetReadDeadline(t)
}

// setWriteDeadline leaves a deadline as it is that is only a little earlier.
func (c *conn) setWriteDeadline(t time.Time) error {
	if !t.IsZero() && !c.written.IsZero() && !t.Before(c.written) && t.Sub(c.written) < deadlineStep {
		return nil
	}
	c.written = t
	return c.SetWriteDeadline(t)
}

// rewatch has the client be watched if the request takes long.
func (c *conn) rewatch() {
	c.mu.Lock()
	c.handling = true
	c.mu.Unlock()
	if c.watch == nil {
		c.watch = time.AfterFunc(watchAfter, c.watchClient)
	} else {
		c.watch.Reset(watchAfter)
	}
}

// watchClient waits for the client to leave, once its body has been read. It runs in the timer's goroutine.
func (c *conn) watchClient() {
	c.mu.Lock()
	if !c.handling || c.watching != nil {
		c.mu.Unlock()
		return
	}
	if c.body != nil && !c.body.ended.Load() {
		if !c.body.failed.Load() {
			c.watch.Reset(watchAfter)
		}
		c.mu.Unlock()
		return
	}
	done := make(chan struct{})
	c.watching = done
	_ = c.SetReadDeadline(time.Time{}) // fails only for what is closed
	c.mu.Unlock()
	defer close(done)
	_ = supervisor.Protect(c.base.Context(), "loadbalancer", func() error { // a panic has been logged
		if _, err := c.r.Peek(1); err != nil && !isTimeout(err) {
			c.leave()
		}
		return nil
	})
}

// unwatch ends that, and waits until nobody but the caller reads.
func (c *conn) unwatch() {
	c.watch.Stop()
	c.mu.Lock()
	c.handling = false
	watching := c.watching
	c.watching = nil
	if watching != nil {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // fails only for what is closed
	}
	c.mu.Unlock()
	if watching != nil {
		<-watching
		_ = c.SetReadDeadline(time.Time{}) // fails only for what is closed
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
