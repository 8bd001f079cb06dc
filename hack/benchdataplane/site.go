package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"federation/hack/forward"
	"federation/nodeagent/nettest"
)

const endpointPort = 8080

// site is a node without rules, with a pod that connects, one that accepts and one that refuses.
type site struct {
	*nettest.Node
	client    *nettest.Host
	accepting netip.AddrPort // the address of the pod that accepts
	ends      *stage
}

// stage stands in for a test, of which nettest wants one: it ends what was begun, and its failures are panics.
type stage struct {
	testing.TB
	ends []func()
}

func (s *stage) Helper()                        {}
func (s *stage) Cleanup(f func())               { s.ends = append(s.ends, f) }
func (s *stage) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }
func (s *stage) Skip(a ...any)                  { panic(fmt.Sprint(a...)) }

func (s *stage) end() {
	for i := len(s.ends) - 1; i >= 0; i-- {
		s.ends[i]()
	}
}

// newSite makes a site whose node reaches the API server.
func newSite(c *cluster) (s *site, err error) {
	ends := &stage{}
	defer func() {
		if problem := recover(); problem != nil {
			ends.end()
			err = fmt.Errorf("making the network: %v", problem)
		}
	}()
	node := nettest.New(ends).Nodes[0]
	s = &site{Node: node, client: node.Pod(ends, "client"), ends: ends}
	accepting, refusing := node.Pod(ends, "accepting"), node.Pod(ends, "refusing")
	s.accepting = netip.AddrPortFrom(accepting.V4, endpointPort)
	for h, addrs := range map[*nettest.Host]netip.Prefix{accepting: acceptingPods, refusing: refusingPods} {
		node.Route(ends, addrs, h.V4)
		if err := h.Do(func() error { return ownRange(addrs) }); err != nil {
			panic(err)
		}
	}
	if err := accepting.Do(func() error { return s.listen(fmt.Sprintf(":%d", endpointPort), func(c net.Conn) { c.Close() }) }); err != nil {
		panic(err)
	}
	if err := node.Do(func() error { return s.listen(c.host, func(in net.Conn) { forward.Conn(in, c.host) }) }); err != nil {
		panic(err)
	}
	return s, nil
}

// ownRange makes all addresses of a range the host's.
func ownRange(p netip.Prefix) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	dst, err := netlink.ParseIPNet(p.String())
	if err != nil {
		return err
	}
	return netlink.RouteReplace(&netlink.Route{Dst: dst, LinkIndex: lo.Attrs().Index, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST})
}

// listen serves connections until the site ends.
func (s *site) listen(address string, serve func(net.Conn)) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s.ends.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go serve(in)
		}
	}()
	return nil
}

// outcome is what a connect() came to.
type outcome int

const (
	silence outcome = iota
	accepted
	refused
)

// connect makes a connection from the thread's namespace, for at most 20 ms, and says how long that took.
func connect(to netip.AddrPort) (outcome, time.Duration, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return silence, 0, err
	}
	defer func() { _ = unix.Close(fd) }() // by a reset: nothing was sent
	patience := unix.NsecToTimeval(int64(20 * time.Millisecond))
	if err := errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience),
		unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})); err != nil {
		return silence, 0, err
	}
	begun := time.Now()
	switch err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); {
	case err == nil:
		return accepted, time.Since(begun), nil
	case errors.Is(err, unix.ECONNREFUSED):
		return refused, time.Since(begun), nil
	case errors.Is(err, unix.EINPROGRESS), errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR),
		errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ETIMEDOUT):
		return silence, time.Since(begun), nil
	default:
		return silence, 0, fmt.Errorf("connecting to %v: %w", to, err)
	}
}
