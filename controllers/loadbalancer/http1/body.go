package http1

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
)

// body is the body of a request. Reading it may go on beside writing the answer.
type body struct {
	conn    *conn
	request *http.Request
	// counted is set where its length is known, chunks where it is not.
	counted Counted
	chunks  io.Reader
	// expected: the client sends it once it is asked for it.
	expected bool
	// ended: all of it has been read. failed: no more of the connection can be read.
	ended, failed atomic.Bool
}

// newBody returns the body of a request, or nil if it has none.
func (c *conn) newBody(r *http.Request, expected bool) *body {
	if r.ContentLength == 0 {
		return nil
	}
	b := &body{conn: c, request: r, counted: Counted{c.r, r.ContentLength}, expected: expected}
	if r.ContentLength < 0 {
		b.chunks = httputil.NewChunkedReader(c.r)
	}
	return b
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	if b.ended.Load() {
		return 0, io.EOF
	}
	if b.failed.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	if b.expected {
		b.expected = false
		b.conn.answer.goOn()
	}
	if b.chunks != nil {
		n, err = b.readChunks(p)
	} else {
		n, err = b.counted.Read(p)
		b.ended.Store(b.counted.Left == 0)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed.Store(true)
	}
	return n, err
}

func (b *body) readChunks(p []byte) (int, error) {
	n, err := b.chunks.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	text, err := readHead(b.conn.r, nil, b.conn.server.MaxHead)
	if errors.Is(err, io.EOF) {
		return n, io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, err
	}
	if fault := parseTrailers(string(text), b.request.Trailer); fault != nil {
		return n, fault
	}
	b.ended.Store(true)
	return n, io.EOF
}

// Close implements io.Closer. What has not been read ends the connection.
func (b *body) Close() error { return nil }

// Counted reads a body of a known length.
type Counted struct {
	R io.Reader
	// Left is how many bytes are to come.
	Left int64
}

// Read implements io.Reader. io.EOF comes with the last bytes; io.ErrUnexpectedEOF if R ends before them.
func (c *Counted) Read(p []byte) (int, error) {
	if c.Left == 0 {
		return 0, io.EOF
	}
	n, err := c.R.Read(p[:min(int64(len(p)), c.Left)])
	if c.Left -= int64(n); c.Left == 0 {
		return n, io.EOF
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// readHead appends lines until an empty one, without that, to what it returns. Each line ends by CRLF; together they have at most as many bytes.
func readHead(r *bufio.Reader, text []byte, most int) ([]byte, error) {
	for begin := 0; ; {
		piece, err := r.ReadSlice('\n')
		text = append(text, piece...)
		if len(text) > most {
			return text, &Fault{http.StatusRequestHeaderFieldsTooLarge, "the head is too large"}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return text, err
		}
		end := len(text) - 2
		if end < begin || text[end] != '\r' {
			return text, badRequest("each line of the head must end by CRLF")
		}
		if end == begin {
			return text[:begin], nil
		}
		begin = len(text)
	}
}
