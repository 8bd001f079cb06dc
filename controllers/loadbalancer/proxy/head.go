package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"federation/controllers/supervisor"
)

// watchedConn is a connection by HTTP/1 whose heads of requests are looked at as they are read: net/http takes Content-Length out of a request
// that has Transfer-Encoding besides, and Transfer-Encoding out of one of HTTP/1.0, so nobody could tell later. Two servers that go by one of them
// each see the next request begin at different places, so such requests are refused (RFC 9112, section 6.1).
type watchedConn struct {
	net.Conn
	mu   sync.Mutex
	head headScan
}

// Read looks at what is read.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	c.head.scan(p[:n])
	c.mu.Unlock()
	return n, err
}

// CloseWrite ends what is sent, if the connection can.
func (c *watchedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// watchedConnKey is where the context of a request has its connection.
type watchedConnKey struct{}

func withWatchedConn(ctx context.Context, c net.Conn) context.Context {
	switch c := c.(type) {
	case *watchedConn:
		return context.WithValue(ctx, watchedConnKey{}, c)
	case *watchedTLS:
		return context.WithValue(ctx, watchedConnKey{}, &c.watchedConn)
	}
	return ctx
}

// framingOf returns what was seen of the head of a request by HTTP/1. It is called once for each, as it begins.
func framingOf(r *http.Request) framing {
	c, ok := r.Context().Value(watchedConnKey{}).(*watchedConn)
	if !ok {
		return framing{} // of HTTP/2 by TLS, which has no such headers between two neighbours
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head.next(r.ContentLength)
}

// framing is which headers the head of a request has that say where its body ends.
type framing struct {
	length, coding bool
	// unknown: it is not known where in what was read the request begins.
	unknown bool
}

const lengthHeader, codingHeader = "content-length:", "transfer-encoding:"

// headScan looks for these in the heads of requests. It does not read bodies in chunks, so it loses its place after one, and where clients send
// requests before they have the answer.
type headScan struct {
	// skip is how much of a body is to come before the next head.
	skip int64
	// line has the beginning of the current line of a head, size is how long the line is so far.
	line [len(codingHeader)]byte
	size int
	seen framing
	// ended: the head has ended, and beyond is how much came after it.
	ended  bool
	beyond int64
}

// scan takes in what was read.
func (s *headScan) scan(p []byte) {
	over := int(min(s.skip, int64(len(p))))
	s.skip -= int64(over)
	p = p[over:]
	for len(p) > 0 && !s.ended && !s.seen.unknown {
		line, rest, whole := bytes.Cut(p, []byte{'\n'})
		if s.size < len(s.line) {
			copy(s.line[s.size:], line)
		}
		s.size += len(line)
		if p = rest; whole {
			s.endLine()
		}
	}
	s.beyond += int64(len(p))
}

func (s *headScan) endLine() {
	begins := func(with string) bool {
		return s.size >= len(with) && bytes.EqualFold(s.line[:len(with)], []byte(with))
	}
	switch {
	case s.size == 0 || s.size == 1 && s.line[0] == '\r':
		s.ended = true
	case begins(lengthHeader):
		s.seen.length = true
	case begins(codingHeader):
		s.seen.coding = true
	}
	s.size = 0
}

// next returns what was seen of the request whose head has just been read, and goes on to the one behind its body. A length below 0 is not known.
func (s *headScan) next(body int64) framing {
	if s.seen.unknown || !s.ended {
		s.seen = framing{unknown: true}
		return s.seen
	}
	seen := s.seen
	*s = headScan{skip: max(0, body-s.beyond), seen: framing{unknown: body < s.beyond}}
	return seen
}

// watchedTLS is a watchedConn by TLS. net/http asks it for the state.
type watchedTLS struct {
	watchedConn
	state tls.ConnectionState
}

// ConnectionState is that of TLS.
func (c *watchedTLS) ConnectionState() tls.ConnectionState { return c.state }

// handshakes is a listener that does the handshakes of TLS, so that what net/http then reads by HTTP/1.1 can be looked at.
type handshakes struct {
	net.Listener
	config *tls.Config
	done   chan handshake
	closed chan struct{}
	close  func()
}

type handshake struct {
	conn net.Conn
	err  error
}

func newHandshakes(l net.Listener, config *tls.Config) *handshakes {
	h := &handshakes{Listener: l, config: config, done: make(chan handshake), closed: make(chan struct{})}
	h.close = sync.OnceFunc(func() { close(h.closed) })
	return h
}

// Accept returns the next connection whose handshake is done.
func (l *handshakes) Accept() (net.Conn, error) {
	select {
	case h := <-l.done:
		return h.conn, h.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends handshakes, too.
func (l *handshakes) Close() error {
	l.close()
	return l.Listener.Close()
}

// run accepts connections until Close.
func (l *handshakes) run() {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if !l.pass(handshake{err: err}) || errors.Is(err, net.ErrClosed) {
				return
			}
			continue // net/http waits, and asks again
		}
		go func() {
			err := supervisor.Protect(context.Background(), "loadbalancer", func() error {
				secure, err := l.shake(c)
				if err == nil && !l.pass(handshake{conn: secure}) {
					err = net.ErrClosed
				}
				return err
			})
			if err != nil {
				_ = c.Close() // it is given up
			}
		}()
	}
}

// pass hands over to Accept; false after Close.
func (l *handshakes) pass(h handshake) bool {
	select {
	case l.done <- h:
		return true
	case <-l.closed:
		return false
	}
}

// shake does a handshake, for which a client has as long as for the head of a request.
func (l *handshakes) shake(c net.Conn) (net.Conn, error) {
	c.RemoteAddr()                                       // reads the PROXY header, if there is one, which has a time of its own
	_ = c.SetDeadline(time.Now().Add(readHeaderTimeout)) // fails only for what is closed
	t := tls.Server(c, l.config)
	if err := t.HandshakeContext(context.Background()); err != nil {
		if not := (tls.RecordHeaderError{}); errors.As(err, &not) && slices.Contains(plainRequests, string(not.RecordHeader[:])) {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\nTLS is spoken here\n") // it may be gone
		}
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	if state := t.ConnectionState(); state.NegotiatedProtocol != http2Protocol {
		return &watchedTLS{watchedConn{Conn: t}, state}, nil
	}
	return t, nil
}

// plainRequests are how requests begin that somebody sends without TLS.
var plainRequests = []string{"GET /", "HEAD ", "POST ", "PUT /", "OPTIO"}

// http2Protocol is the name of HTTP/2 in handshakes of TLS.
const http2Protocol = "h2"
