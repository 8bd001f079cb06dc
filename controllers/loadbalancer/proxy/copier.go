package proxy

import (
	"io"
	"sync"
)

const (
	// pieceSize is that of what is copied by hand. A source that fills it has much to send.
	pieceSize = 16 << 10
	// burst is how much is then left to the kernel, before it is looked again.
	burst = 4 << 20
)

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// copier copies from a connection to another one: small pieces by hand, which costs less than splice for them, and much by splice. While it waits for the source
// it holds neither a buffer nor a pipe, for most connections are silent most of the time.
type copier struct {
	to, from *directConn
	// take reads a piece, as from wants it.
	take  func(fd uintptr) bool
	piece *[pieceSize]byte // nil while it waits
}

func newCopier(to, from *directConn) *copier {
	c := &copier{to: to, from: from}
	c.take = c.read
	return c
}

// read reads what is there, and reports whether that is something, or the end.
func (c *copier) read(fd uintptr) bool {
	c.piece = pieces.Get().(*[pieceSize]byte)
	c.from.in.p = c.piece[:]
	came := c.from.in.read(fd)
	if c.from.in.p = nil; !came {
		c.release()
	}
	return came
}

func (c *copier) release() {
	pieces.Put(c.piece)
	c.piece = nil
}

// copy copies until the source ends, which is no error. moved is called after each piece.
func (c *copier) copy(moved func()) (sum int64, err error) {
	for {
		n, err := c.copyPiece()
		if sum += int64(n); n > 0 {
			moved()
		}
		if err != nil || n == 0 {
			return sum, err
		}
		if n < pieceSize {
			continue
		}
		much, err := c.to.ReadFrom(&io.LimitedReader{R: c.from.TCPConn, N: burst})
		if sum += much; much > 0 {
			moved()
		}
		if err != nil {
			return sum, err
		}
	}
}

// copyPiece copies what is there; nothing at the end of the source.
func (c *copier) copyPiece() (n int, err error) {
	if err := c.from.raw.Read(c.take); err != nil {
		return 0, err
	}
	defer c.release()
	if n, err = c.from.result(&c.from.in, "read"); n == 0 {
		return 0, err
	}
	return c.to.Write(c.piece[:n])
}
