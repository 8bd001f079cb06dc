package nettest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Answer is what a server of the rig says.
type Answer struct {
	Server string     // its name
	Client netip.Addr // where it saw the request come from
}

// patience bounds what waits for packets that may never come.
const patience = 5 * time.Second

// ServeHTTP has the host answer HTTP at a port, in both families, until the test ends.
func (h *Host) ServeHTTP(t testing.TB, port uint16) {
	t.Helper()
	var l net.Listener
	must(t, "listening", h.Do(func() (err error) {
		l, err = net.Listen("tcp", fmt.Sprintf(":%d", port))
		return err
	}))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, h.answer(netip.MustParseAddrPort(r.RemoteAddr)))
	})}
	go func() { _ = server.Serve(l) }() // its error is that it was closed
	t.Cleanup(func() { _ = server.Close() })
}

// ServeUDP has the host answer each datagram to a port, in both families, until the test ends.
func (h *Host) ServeUDP(t testing.TB, port uint16) {
	t.Helper()
	for _, addr := range []netip.Addr{h.V4, h.V6} { // a socket each: the answer must come from the address that was asked
		var c *net.UDPConn
		must(t, "listening", h.Do(func() (err error) {
			c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, port)))
			return err
		}))
		go func() {
			for b := make([]byte, 64); ; {
				_, from, err := c.ReadFromUDPAddrPort(b)
				if err != nil {
					return
				}
				_, _ = c.WriteToUDPAddrPort([]byte(h.answer(from)), from)
			}
		}()
		t.Cleanup(func() { c.Close() })
	}
}

func (h *Host) answer(from netip.AddrPort) string { return h.Name + " " + from.Addr().Unmap().String() }

func parseAnswer(b []byte) (Answer, error) {
	name, client, _ := strings.Cut(string(b), " ")
	addr, err := netip.ParseAddr(client)
	return Answer{name, addr}, err
}

// Get asks an HTTP server over a new connection.
func (h *Host) Get(to netip.AddrPort) (Answer, error) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return h.Dial(to) },
	}}
	defer client.CloseIdleConnections()
	return get(client, to)
}

// Stay opens an HTTP connection, which ends with the test, and returns a function that asks over it: never over another
// one.
func (h *Host) Stay(t testing.TB, to netip.AddrPort) (ask func() (Answer, error)) {
	t.Helper()
	c, err := h.Dial(to)
	must(t, "connecting to "+to.String(), err)
	t.Cleanup(func() { _ = c.Close() })
	first := make(chan net.Conn, 1)
	first <- c
	client := &http.Client{Timeout: patience, Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case c := <-first:
				return c, nil
			default:
				return nil, errors.New("the connection is closed")
			}
		},
	}}
	return func() (Answer, error) { return get(client, to) }
}

func get(client *http.Client, to netip.AddrPort) (Answer, error) {
	response, err := client.Get("http://" + to.String())
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(response.Body, 256))
	if err != nil {
		return Answer{}, err
	}
	return parseAnswer(b)
}

// Dial opens a TCP connection.
func (h *Host) Dial(to netip.AddrPort) (c net.Conn, err error) {
	err = h.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", to.String(), patience)
		return err
	})
	return c, err
}

// Refused reports whether a blocking connect() is refused before the kernel retransmits its SYN, which it does after a
// second. For any other outcome it returns an error that says what happened instead.
func (h *Host) Refused(to netip.AddrPort) error {
	return h.Do(func() error {
		domain, sockaddr := sockaddr(to)
		fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		limit := unix.NsecToTimeval(int64(900 * time.Millisecond))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
			return err
		}
		err = unix.EINTR
		for err == unix.EINTR { // Go's scheduler interrupts; the kernel continues with the same connection
			err = unix.Connect(fd, sockaddr)
		}
		switch {
		case errors.Is(err, unix.ECONNREFUSED):
			return nil
		case err == nil:
			return fmt.Errorf("%s: connected to %s, which should be refused", h.Name, to)
		default:
			return fmt.Errorf("%s: not refused by %s at once: %w", h.Name, to, err)
		}
	})
}

func sockaddr(a netip.AddrPort) (int, unix.Sockaddr) {
	if a.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// Flow is datagrams between one port of a host and one address.
type Flow struct{ c net.Conn }

// Flow opens a UDP flow, which ends with the test.
func (h *Host) Flow(t testing.TB, to netip.AddrPort) *Flow {
	t.Helper()
	var c net.Conn
	must(t, "UDP socket", h.Do(func() (err error) {
		c, err = net.Dial("udp", to.String())
		return err
	}))
	t.Cleanup(func() { c.Close() })
	return &Flow{c}
}

// Ask sends one datagram and waits for the answer. A refusal is syscall.ECONNREFUSED; silence is os.ErrDeadlineExceeded.
func (f *Flow) Ask() (Answer, error) {
	if err := f.c.SetDeadline(time.Now().Add(patience / 5)); err != nil {
		return Answer{}, err
	}
	_, err := f.c.Write([]byte("who"))
	if errors.Is(err, unix.ECONNREFUSED) { // that was what came back to an earlier datagram
		_, err = f.c.Write([]byte("who"))
	}
	if err != nil {
		return Answer{}, err
	}
	b := make([]byte, 256)
	n, err := f.c.Read(b)
	if err != nil {
		return Answer{}, err
	}
	return parseAnswer(b[:n])
}
