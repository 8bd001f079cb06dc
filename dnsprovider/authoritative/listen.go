package authoritative

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// sockets are what the server listens on: UDP and TCP at the same port.
type sockets struct {
	// udp share the packets among them (SO_REUSEPORT), a socket for each thread.
	udp []*net.UDPConn
	// streams are those for TCP and, if asked for, TLS.
	streams []net.Listener
}

// listen opens UDP and TCP at the same port. With port 0 the port that UDP got may be taken for
// TCP: then it tries another.
func listen(o *Options) (sockets, error) {
	if o.TLSListen != "" && o.TLSConfig == nil {
		return sockets{}, fmt.Errorf("DNS server on %q (TLS): no certificate", o.TLSListen)
	}
	for attempt := 0; ; attempt++ {
		s, err := listenOnce(o.Listen, o.Threads)
		if err == nil && o.TLSListen != "" {
			err = s.listenTLS(o)
		}
		if err == nil {
			return s, nil
		}
		s.close()
		if _, port, _ := net.SplitHostPort(o.Listen); port != "0" || attempt == 9 {
			return sockets{}, err
		}
	}
}

func (s *sockets) listenTLS(o *Options) error {
	config := o.TLSConfig.Clone()
	config.NextProtos = []string{"dot"} // RFC 7858, section 3.2, as registered
	listener, err := tls.Listen("tcp", o.TLSListen, config)
	if err != nil {
		return fmt.Errorf("DNS server cannot listen on %q (TLS): %w", o.TLSListen, err)
	}
	s.streams = append(s.streams, listener)
	return nil
}

// listenOnce returns what it has opened, with an error too.
func listenOnce(address string, threads int) (s sockets, err error) {
	host, _, _ := net.SplitHostPort(address)
	for range threads {
		udp, err := listenUDP(address)
		if err != nil {
			return s, fmt.Errorf("DNS server cannot listen on %q (UDP): %w", address, err)
		}
		s.udp = append(s.udp, udp)
		// What follows takes the port of the first.
		address = net.JoinHostPort(host, fmt.Sprint(udp.LocalAddr().(*net.UDPAddr).Port))
	}
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return s, fmt.Errorf("DNS server cannot listen on %q (TCP): %w", address, err)
	}
	s.streams = append(s.streams, tcp)
	return s, nil
}

// listenUDP opens one of the sockets that share the port.
func listenUDP(address string) (*net.UDPConn, error) {
	share := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return onSocket(c, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	}}
	packets, err := share.ListenPacket(context.Background(), "udp", address)
	if err != nil {
		return nil, err
	}
	udp := packets.(*net.UDPConn)
	if !udp.LocalAddr().(*net.UDPAddr).IP.IsUnspecified() {
		return udp, nil
	}
	raw, err := udp.SyscallConn()
	if err == nil {
		err = onSocket(raw, askDestination)
	}
	if err != nil {
		udp.Close()
		return nil, err
	}
	return udp, nil
}

func onSocket(c syscall.RawConn, do func(fd int) error) (err error) {
	failed := c.Control(func(fd uintptr) { err = do(int(fd)) })
	return errors.Join(failed, err)
}

// close makes everything that reads from the sockets return.
func (s sockets) close() {
	for _, u := range s.udp {
		u.Close()
	}
	for _, listener := range s.streams {
		listener.Close()
	}
}
