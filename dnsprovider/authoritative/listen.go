package authoritative

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// pause is how long we wait after an error of a socket that may pass, such as no file left.
const pause = 10 * time.Millisecond

// listen opens UDP and TCP at the same port. With port 0 the port that UDP got may be taken for
// TCP: then it tries another.
func listen(address string) (*net.UDPConn, *net.TCPListener, error) {
	for attempt := 0; ; attempt++ {
		udp, tcp, err := listenOnce(address)
		_, port, _ := net.SplitHostPort(address)
		if err == nil || port != "0" || attempt == 9 {
			return udp, tcp, err
		}
	}
}

func listenOnce(address string) (*net.UDPConn, *net.TCPListener, error) {
	packet, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("DNS server cannot listen on %q (UDP): %w", address, err)
	}
	udp := packet.(*net.UDPConn)
	local := udp.LocalAddr().(*net.UDPAddr)
	if local.IP.IsUnspecified() {
		if err := keepDestination(udp); err != nil {
			udp.Close()
			return nil, nil, fmt.Errorf("DNS server on %q: %w", address, err)
		}
	}
	host, _, _ := net.SplitHostPort(address)
	tcp, err := net.Listen("tcp", net.JoinHostPort(host, fmt.Sprint(local.Port)))
	if err != nil {
		udp.Close()
		return nil, nil, fmt.Errorf("DNS server cannot listen on %q (TCP): %w", address, err)
	}
	return udp, tcp.(*net.TCPListener), nil
}

// keepDestination makes the socket tell to which of the host's addresses a packet came, so that the
// answer can come from it. One of the two families is enough.
func keepDestination(udp *net.UDPConn) error {
	err6 := ipv6.NewPacketConn(udp).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	err4 := ipv4.NewPacketConn(udp).SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true)
	if err6 != nil && err4 != nil {
		return errors.Join(err6, err4)
	}
	return nil
}

// startUDP answers packets in as many goroutines as there are processors: memory is bounded, and
// what is too much the kernel drops.
func (s *Server) startUDP(ctx context.Context, running *sync.WaitGroup) {
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() { s.serveUDP(ctx) })
	}
}

func (s *Server) serveUDP(ctx context.Context) {
	message, buf := make([]byte, dns.MaxMsgSize), make([]byte, dns.MaxMsgSize)
	for {
		n, session, err := dns.ReadFromSessionUDP(s.udp, message)
		if err != nil {
			if wait(ctx, err) {
				continue
			}
			return
		}
		if reply := s.handle(message[:n], buf, true); reply != nil {
			// A client that cannot be reached asks again, or not.
			_, _ = dns.WriteToSessionUDP(s.udp, reply, session)
		}
	}
}

// wait tells whether to go on after an error of a socket, and waits a little if so.
func wait(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return false
	}
	time.Sleep(pause)
	return true
}

// handle is respond, but no message can take the process down, with everything else that is in it.
func (s *Server) handle(message, buf []byte, udp bool) (reply []byte) {
	defer func() {
		if broken := recover(); broken != nil {
			slog.Error("DNS message broke the server", "error", broken, "message", fmt.Sprintf("%x", message), "stack", string(debug.Stack()))
			reply = nil
		}
	}()
	return respond(s.current.Load(), message, buf, udp)
}

// serveTCP takes connections until the listener is closed, and no more at a time than are allowed.
func (s *Server) serveTCP(ctx context.Context, running *sync.WaitGroup) {
	slots := make(chan struct{}, s.options.MaxConns)
	for {
		conn, err := s.tcp.Accept()
		if err != nil {
			if wait(ctx, err) {
				continue
			}
			return
		}
		select {
		case slots <- struct{}{}:
			running.Go(func() {
				defer func() { <-slots }()
				s.serveConn(ctx, conn)
			})
		default:
			conn.Close()
		}
	}
}

// serveConn answers the messages of one connection in turn, until the client leaves, is silent for
// too long, or sends what gets no answer.
func (s *Server) serveConn(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for {
		if conn.SetDeadline(time.Now().Add(s.options.IdleTimeout)) != nil {
			return
		}
		message, err := readMessage(conn)
		if err != nil {
			return
		}
		reply := s.handle(message, nil, false)
		if reply == nil {
			return
		}
		framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)
		if _, err := conn.Write(framed); err != nil {
			return
		}
	}
}

// readMessage reads a message with its length before it (RFC 1035, section 4.2.2).
func readMessage(conn io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	message := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(conn, message)
	return message, err
}
