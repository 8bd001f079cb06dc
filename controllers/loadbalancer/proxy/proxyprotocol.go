package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// proxySignature begins a header of PROXY protocol version 2, as HAProxy's proxy-protocol.txt, section 2.2, defines it.
const proxySignature = "\r\n\r\n\x00\r\nQUIT\n"

// maxProxyHeader bounds the addresses and what comes with them in bytes.
const maxProxyHeader = 4096

// proxyTimeout is how long the header may take.
const proxyTimeout = 5 * time.Second

// readProxyHeader reads the header and returns the client's address; none for a connection of the peer itself (LOCAL), or of a family
// without addresses.
func readProxyHeader(r io.Reader) (client netip.AddrPort, err error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return client, err
	}
	if string(head[:12]) != proxySignature {
		return client, errors.New("the connection does not begin with a header of PROXY protocol v2")
	}
	size := int(binary.BigEndian.Uint16(head[14:]))
	if head[12]>>4 != 2 || head[12]&0xf > 1 || size > maxProxyHeader {
		return client, fmt.Errorf("PROXY header: version and command %#x, %d bytes: must be version 2, LOCAL or PROXY, and at most %d", head[12], size, maxProxyHeader)
	}
	rest := make([]byte, size)
	if _, err := io.ReadFull(r, rest); err != nil {
		return client, err
	}
	const tcp4, tcp6 = 0x11, 0x21
	switch {
	case head[12]&0xf == 0:
		return client, nil
	case head[13] == tcp4 && size >= 12:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(rest[:4])), binary.BigEndian.Uint16(rest[8:])), nil
	case head[13] == tcp6 && size >= 36:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(rest[:16])).Unmap(), binary.BigEndian.Uint16(rest[32:])), nil
	case head[13] == 0:
		return client, nil
	}
	return client, fmt.Errorf("PROXY header: family %#x with %d bytes: must be TCP over IPv4 or IPv6", head[13], size)
}

// endpoints are those of a client's connection: the client's, and the one that it connected to.
type endpoints struct{ client, at netip.AddrPort }

// appendHeader appends the header that names them.
func (e endpoints) appendHeader(b []byte) []byte {
	const proxied, tcp4, tcp6 = 0x21, 0x11, 0x21
	b = append(b, proxySignature...)
	if e.client.Addr().Is4() && e.at.Addr().Is4() {
		from, to := e.client.Addr().As4(), e.at.Addr().As4()
		b = append(b, proxied, tcp4, 0, 12)
		b = append(append(b, from[:]...), to[:]...)
	} else {
		from, to := e.client.Addr().As16(), e.at.Addr().As16()
		b = append(b, proxied, tcp6, 0, 36)
		b = append(append(b, from[:]...), to[:]...)
	}
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, e.client.Port()), e.at.Port())
}

// endpointsOf returns those of the connection that a request came by.
func endpointsOf(r *http.Request) (e endpoints) {
	if client, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		e.client = unmapped(client)
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		e.at = unmapped(at.AddrPort())
	}
	return e
}

// name writes the header at the beginning of a connection to a cluster.
func (e endpoints) name(server net.Conn) error {
	_ = server.SetWriteDeadline(time.Now().Add(dialTimeout)) // fails only for what is closed
	_, err := server.Write(e.appendHeader(nil))
	_ = server.SetWriteDeadline(time.Time{})
	return err
}

// localProxyHeader begins a connection of our own, as a check.
const localProxyHeader = proxySignature + "\x20\x00\x00\x00"

// proxiedConn is a connection that begins with a PROXY header, which is read with the first use of it.
type proxiedConn struct {
	*boundedConn
	trusted func(netip.Addr) bool
	once    sync.Once
	client  net.Addr
	err     error
}

func (c *proxiedConn) readHeader() {
	c.client = c.boundedConn.RemoteAddr()
	if peer := addrOf(c.client); !c.trusted(peer) {
		c.err = fmt.Errorf("peer %s may not say whose connection it is", peer)
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(proxyTimeout)) // fails only for what is closed
	client, err := readProxyHeader(c.TCPConn)
	_ = c.SetReadDeadline(time.Time{})
	if c.err = err; client.IsValid() {
		c.client = net.TCPAddrFromAddrPort(client)
	}
}

// RemoteAddr is the client's. net/http asks for it in the goroutine of the connection, before it reads.
func (c *proxiedConn) RemoteAddr() net.Addr {
	c.once.Do(c.readHeader)
	return c.client
}

// Read fails after a header that is not valid.
func (c *proxiedConn) Read(p []byte) (int, error) {
	if c.once.Do(c.readHeader); c.err != nil {
		return 0, c.err
	}
	return c.boundedConn.Read(p)
}
