package proxy

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// directConn is a connection whose reads and writes do not tell Go's scheduler that they enter the kernel. They never wait there, as its sockets do not block:
// the scheduler would only hand the processor on, and wake a thread for it, each time that the machine is busy. Like other connections it takes one reader
// and one writer at a time.
type directConn struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out transfer
}

func newDirectConn(c *net.TCPConn) directConn {
	raw, err := c.SyscallConn()
	if err != nil {
		panic(err) // only nil has none
	}
	return directConn{TCPConn: c, raw: raw}
}

// transfer is a read or a write under way.
type transfer struct {
	p     []byte
	n     int
	errno syscall.Errno
	// try does what can be done at once, and reports whether nothing is to be waited for.
	try func(fd uintptr) bool
}

// call calls the system, which must not wait, with what is left, and returns how much it has done.
func (t *transfer) call(trap, fd uintptr) int {
	for {
		n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(&t.p[t.n])), uintptr(len(t.p)-t.n))
		if t.errno = errno; errno == 0 {
			return int(n)
		}
		if errno != syscall.EINTR {
			return 0
		}
	}
}

func (t *transfer) read(fd uintptr) bool {
	t.n = 0
	t.n = t.call(syscall.SYS_READ, fd)
	return t.errno != syscall.EAGAIN
}

func (t *transfer) write(fd uintptr) bool {
	for t.n < len(t.p) {
		t.n += t.call(syscall.SYS_WRITE, fd)
		if t.errno != 0 {
			return t.errno != syscall.EAGAIN
		}
	}
	return true
}

// result returns how much was transferred, and why no more was.
func (c *directConn) result(t *transfer, call string) (int, error) {
	if t.errno == 0 {
		return t.n, nil
	}
	return t.n, &net.OpError{Op: call, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(call, t.errno)}
}

// Read implements net.Conn.
func (c *directConn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	t := &c.in
	if t.try == nil {
		t.try = t.read
	}
	t.p = p
	err = c.raw.Read(t.try)
	if t.p = nil; err != nil {
		return 0, err
	}
	if n, err = c.result(t, "read"); n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (c *directConn) Write(p []byte) (int, error) {
	t := &c.out
	if t.try == nil {
		t.try = t.write
	}
	t.p, t.n, t.errno = p, 0, 0
	err := c.raw.Write(t.try)
	if t.p = nil; err != nil {
		return t.n, err
	}
	return c.result(t, "write")
}
