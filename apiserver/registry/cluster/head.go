package cluster

import (
	"bytes"
	"errors"
	"net"
	"time"
)

const (
	// maxHead is how many bytes the header may have by which a member answers a request for an upgrade.
	maxHead = 64 << 10
	// headWithin is how long it may take.
	headWithin = 30 * time.Second
)

var errHead = errors.New("the header of the member's answer is longer than 64 KiB")

// headConn bounds what is read of a connection until the end of the first header: what reads it has no limit of its own.
type headConn struct {
	net.Conn
	left int    // how many bytes may still come; -1: the header has ended
	last []byte // of what came, at most three bytes
}

// boundHead returns a connection whose first header is bounded, in bytes and time.
func boundHead(conn net.Conn) net.Conn {
	_ = conn.SetReadDeadline(time.Now().Add(headWithin)) // an error means that it has ended, which who reads finds
	return &headConn{Conn: conn, left: maxHead}
}

// Read implements net.Conn.
func (c *headConn) Read(p []byte) (int, error) {
	switch {
	case c.left < 0:
		return c.Conn.Read(p)
	case c.left == 0:
		return 0, errHead
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	seen := append(c.last, p[:n]...)
	if bytes.Contains(seen, []byte("\r\n\r\n")) {
		c.left, c.last = -1, nil
		return n, errors.Join(err, c.SetReadDeadline(time.Time{}))
	}
	c.last = bytes.Clone(seen[max(0, len(seen)-3):])
	return n, err
}
