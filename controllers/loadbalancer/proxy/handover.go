package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// handOver is a listener whose connections are handed to it.
type handOver struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newHandOver(l net.Listener) *handOver {
	h := &handOver{Listener: l, conns: make(chan net.Conn), closed: make(chan struct{})}
	h.close = sync.OnceFunc(func() { close(h.closed) })
	return h
}

// Accept returns the next connection.
func (l *handOver) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close leaves the listener below as it is.
func (l *handOver) Close() error {
	l.close()
	return nil
}

// pass hands a connection to Accept, and closes it after Close.
func (l *handOver) pass(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.closed:
		_ = c.Close() // it came too late
	}
}

// shake does a handshake, for which a client has as long as for the head of a request.
func shake(c net.Conn, config *tls.Config) (*tls.Conn, error) {
	c.RemoteAddr()                                       // reads the PROXY header, if there is one, which has a time of its own
	_ = c.SetDeadline(time.Now().Add(readHeaderTimeout)) // fails only for what is closed
	t := tls.Server(c, config)
	if err := t.HandshakeContext(context.Background()); err != nil {
		if not := (tls.RecordHeaderError{}); errors.As(err, &not) && slices.Contains(plainRequests, string(not.RecordHeader[:])) {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\nTLS is spoken here\n") // it may be gone
		}
		return nil, err
	}
	return t, c.SetDeadline(time.Time{})
}

// plainRequests are how requests begin that somebody sends without TLS.
var plainRequests = []string{"GET /", "HEAD ", "POST ", "PUT /", "OPTIO"}

// http2Protocol is the name of HTTP/2 in handshakes of TLS.
const http2Protocol = "h2"
