package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"federation/controllers/loadbalancer/plan"
)

// maxHello bounds what a client may send until it has named a host by TLS, in bytes. With keys for post-quantum cryptography it is some 2 KiB.
const maxHello = 16 << 10

// clientHello is what a client has said at the beginning of TLS.
type clientHello struct {
	text []byte
	// early: data comes with it, which must not be sent twice.
	early bool
}

// helloConn notes what a client sends until it is known whether its TLS ends here. crypto/tls reads it, so that there is one reading of it.
type helloConn struct {
	net.Conn
	clientHello
	// host and to are set if TLS is passed on; endsHere: it is not.
	host     string
	to       *plan.Route
	endsHere bool
}

var errHelloTooLarge = errors.New("the client says too much before it names a host")

// Read notes what it reads.
func (c *helloConn) Read(p []byte) (int, error) {
	if c.endsHere {
		return c.Conn.Read(p)
	}
	n, err := c.Conn.Read(p[:min(len(p), maxHello-len(c.text))])
	if c.text = append(c.text, p[:n]...); len(c.text) == maxHello {
		return n, errHelloTooLarge
	}
	return n, err
}

// Write leaves out what crypto/tls says about a handshake that goes on elsewhere.
func (c *helloConn) Write(p []byte) (int, error) {
	if c.to != nil {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// errPassedOn ends a handshake that goes on in a cluster.
var errPassedOn = errors.New("TLS is passed on")

// earlyData is the extension of a ClientHello that data follows (RFC 8446, section 4.2.10).
const earlyData = 42

// passOrEnd looks at what a client has said, and ends the handshake if an Ingress has TLS for its host passed on.
func (p *Proxy) passOrEnd(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	c, ok := hello.Conn.(*helloConn)
	if !ok {
		return nil, nil
	}
	c.host = strings.ToLower(hello.ServerName)
	route, passed := p.Table().PassedOn(c.host)
	if !passed {
		c.endsHere, c.text = true, nil
		return nil, nil
	}
	c.to, c.early = &route, slices.Contains(hello.Extensions, earlyData)
	return nil, errPassedOn
}

// passOn passes a TLS connection on until it ends.
func (s *Server) passOn(c net.Conn, hello *helloConn) {
	one := s.proxy.tunnels.begin()
	defer s.proxy.tunnels.end(one)
	defer func() { _ = c.Close() }() // what was sent has been sent
	one.set(c)
	_ = c.SetDeadline(time.Time{}) // fails only for what is closed
	if client, from, ok := clientConn(c); ok {
		n := &streamRecord{began: time.Now(), client: from, pool: hello.to.Pool, host: hello.host, ingress: hello.to.Ingress}
		s.proxy.passStream(client, n, &hello.clientHello, s.idle)
	}
}

// greeting is a TLS connection whose cluster has got the client's hello, and has not answered.
type greeting struct {
	server *countedConn
	began  int64
	lost   atomic.Bool
}

func (x *greeting) since() int64 { return x.began }

func (x *greeting) abandon() {
	x.lost.Store(true)
	_ = x.server.SetDeadline(time.Unix(1, 0)) // fails only for what is closed
}

// greet sends a client's hello to the target, and the first that comes back to the client. An error says that nothing came back; then it closes the
// connection. That is not counted against the target: clients may say what nobody answers.
func (t *target) greet(server *countedConn, client *boundedConn, hello *clientHello, n *streamRecord) error {
	x := &greeting{server: server, began: t.proxy.clock()}
	_ = server.SetDeadline(time.Now().Add(headTimeout)) // fails only for what is closed
	t.await(x)
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	size := 0
	_, err := server.Write(hello.text)
	if err == nil {
		size, err = server.Read(buffer[:])
	}
	t.awaitNoMore(x, size > 0)
	if size > 0 {
		n.sent = int64(len(hello.text))
		_ = client.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only for what is closed
		sent, _ := client.Write(buffer[:size])                    // if the client is gone, the copy that follows says so
		n.received = int64(sent)
		return nil
	}
	_ = server.Close() // it is given up
	switch {
	case x.lost.Load():
		return errLost
	case errors.Is(err, io.EOF):
		return errors.New("the cluster closed the connection without an answer")
	}
	return err
}
