package authoritative

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider/contain"
)

// conns counts the connections that are open.
type conns struct {
	lock sync.Mutex
	// most is how many there may be, each how many of one network.
	most, each int
	open       int
	networks   map[uint64]int
}

// acquire reports whether a client may open another connection; if so, release must follow.
func (c *conns) acquire(client netip.Addr) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.open >= c.most || c.networks[clientNetwork(client)] >= c.each {
		return false
	}
	c.open++
	c.networks[clientNetwork(client)]++
	return true
}

func (c *conns) release(client netip.Addr) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.open--
	if c.networks[clientNetwork(client)]--; c.networks[clientNetwork(client)] == 0 {
		delete(c.networks, clientNetwork(client))
	}
}

// tcpServer answers over TCP and TLS.
type tcpServer struct {
	answering *answering
	conns     conns
	counters  *counters
}

func newTCPServer(a *answering, c *counters) *tcpServer {
	return &tcpServer{answering: a, counters: c, conns: conns{most: a.MaxConns, each: a.MaxConnsPerNetwork, networks: map[uint64]int{}}}
}

// serve accepts connections until the listener is closed, within the limits.
func (s *tcpServer) serve(ctx context.Context, listener net.Listener, running *sync.WaitGroup) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			if waitAfterError(ctx, err) {
				continue
			}
			return
		}
		client := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		if !s.conns.acquire(client) {
			conn.Close()
			continue
		}
		running.Go(func() {
			defer s.conns.release(client)
			_ = contain.Call("tcp", func() error { s.serveConn(ctx, conn, client); return nil }) // the connection is closed
		})
	}
}

// stream answers the messages of one connection. Answers to messages that came together leave
// together (RFC 7766, section 6.2.1.1).
type stream struct {
	in        *bufio.Reader
	out       *bufio.Writer
	responder responder
	from      origin
	zone      *zone
}

// workspaces have room for a message with its length before it, and then for the answer. A
// connection has one only while it answers.
var workspaces = sync.Pool{New: func() any { return new([2 + dns.MaxMsgSize]byte) }}

// serveConn answers the messages of one connection in turn, until the client leaves, is silent for too long, or sends a
// message that gets no answer.
func (s *tcpServer) serveConn(ctx context.Context, conn net.Conn, client netip.Addr) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	t := &stream{in: bufio.NewReader(conn), out: bufio.NewWriter(conn), from: origin{client: client}, zone: s.answering.zone}
	t.responder.service, t.responder.counters = &s.answering.service, s.counters
	t.responder.special = s.answering.signedMessage(conn, t.out)
	for {
		if conn.SetDeadline(time.Now().Add(s.answering.IdleTimeout)) != nil {
			return
		}
		if _, err := t.in.Peek(2); err != nil || !t.answerBuffered() || t.out.Flush() != nil {
			return
		}
	}
}

// answerBuffered answers the first message, and those that are there already.
func (t *stream) answerBuffered() bool {
	space := workspaces.Get().(*[2 + dns.MaxMsgSize]byte)
	defer workspaces.Put(space)
	t.responder.second = uint32(time.Now().Unix())
	for {
		message, err := readMessage(t.in, space[2:])
		if err != nil {
			return false
		}
		reply := t.responder.guarded(t.zone.current.Load(), message, t.from)
		if reply == nil {
			return false
		}
		if _, err := t.out.Write(binary.BigEndian.AppendUint16(t.out.AvailableBuffer(), uint16(len(reply)))); err != nil {
			return false
		}
		if _, err := t.out.Write(reply); err != nil {
			return false
		}
		if t.in.Buffered() < 2 {
			return true
		}
	}
}

// readMessage reads a message, which has its length before it (RFC 1035, section 4.2.2), into buf.
func readMessage(from io.Reader, buf []byte) ([]byte, error) {
	if _, err := io.ReadFull(from, buf[:2]); err != nil {
		return nil, err
	}
	message := buf[:binary.BigEndian.Uint16(buf)]
	_, err := io.ReadFull(from, message)
	return message, err
}
