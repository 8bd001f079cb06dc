package clusterregistry

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/util/connrotation"

	"federation/apiserver/apis/federation/v1beta1"
)

// barrier is what a drill puts between this process and a member: nothing passes while it is up. The zero value is down.
type barrier struct {
	mu    sync.Mutex
	as    v1beta1.IsolationMode // "": it is down
	down  chan struct{}         // closed when it goes down; nil while it is
	conns map[*barredConn]struct{}
}

// set puts the barrier up or, with "", down, and reports whether that is another state than before. What was on its way when it went up does not
// pass when it goes down: those connections end.
func (b *barrier) set(as v1beta1.IsolationMode) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if as == b.as {
		return false
	}
	if b.as = as; as == "" {
		close(b.down)
		b.down = nil
	} else if b.down == nil {
		b.down = make(chan struct{})
	}
	for c := range b.conns {
		c.block(as)
	}
	return true
}

func (b *barrier) state() (as v1beta1.IsolationMode, down <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.as, b.down
}

// wrapDialer returns a dialer that the barrier stops.
func (b *barrier) wrapDialer(dial connrotation.DialFunc) connrotation.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		for {
			switch as, down := b.state(); as {
			case "":
				conn, err := dial(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return b.wrapConn(conn), nil
			case v1beta1.IsolateRefused:
				return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
			default:
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(dialTimeout):
					return nil, &net.OpError{Op: "dial", Net: network, Err: os.ErrDeadlineExceeded}
				case <-down:
				}
			}
		}
	}
}

func (b *barrier) wrapConn(conn net.Conn) net.Conn {
	c := &barredConn{Conn: conn, barrier: b, ended: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conns == nil {
		b.conns = map[*barredConn]struct{}{}
	}
	b.conns[c] = struct{}{}
	if b.as != "" { // it went up while this was dialled
		c.block(b.as)
	}
	return c
}

// barredConn is a connection that the barrier stops.
type barredConn struct {
	net.Conn
	barrier *barrier

	barred atomic.Bool
	once   sync.Once
	ended  chan struct{}
}

var errCut = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}

// block has the connection say nothing and hear nothing, or end.
func (c *barredConn) block(as v1beta1.IsolationMode) {
	if as == v1beta1.IsolateSilent {
		c.barred.Store(true)
	} else {
		c.end()
	}
}

func (c *barredConn) end() {
	c.once.Do(func() {
		close(c.ended)
		_ = c.Conn.Close() // it is given up
	})
}

// Read implements net.Conn. What comes while the connection is barred is lost.
func (c *barredConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		switch {
		case c.hasEnded():
			return 0, errCut
		case !c.barred.Load():
			return n, err
		case errors.Is(err, os.ErrDeadlineExceeded):
			return 0, err
		case err != nil: // nobody hears that the other side has hung up
			<-c.ended
			return 0, errCut
		}
	}
}

func (c *barredConn) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Write implements net.Conn. What is sent while the connection is barred is lost without an error.
func (c *barredConn) Write(b []byte) (int, error) {
	if c.barred.Load() && !c.hasEnded() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *barredConn) Close() error {
	c.barrier.mu.Lock()
	delete(c.barrier.conns, c)
	c.barrier.mu.Unlock()
	c.end()
	return nil
}
