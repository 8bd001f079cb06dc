package limits

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
)

// Answers are decompressed here, and not by the transport, which does not say how much was sent. Lists of objects that are all but equal
// become 20 to 70 times as short; what is more than mostTimes as long as its compressed form was made to be.
const (
	mostTimes   = 200
	alwaysTaken = 1 << 20 // bytes
)

// wantsCompressed is the request that asks for a compressed answer, if it reads and did not say what it wants: API servers compress large answers only,
// and what is answered to a write is one object.
func wantsCompressed(r *http.Request) *http.Request {
	if r.Header.Get("Accept-Encoding") != "" || r.Header.Get("Range") != "" || r.Header.Get("Upgrade") != "" || r.Method != http.MethodGet {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set("Accept-Encoding", "gzip")
	return r
}

// decompress makes an answer look as if it had not been compressed. Who asked for an encoding gets it as it comes.
func (m *Meter) decompress(response *http.Response) {
	if response.Header.Get("Content-Encoding") != "gzip" || response.Request.Header.Get("Accept-Encoding") != "" {
		return
	}
	response.Header.Del("Content-Encoding")
	response.Header.Del("Content-Length")
	response.ContentLength, response.Uncompressed = -1, true
	response.Body = &compressed{body: response.Body, meter: m}
}

// compressed reads a body that is compressed.
type compressed struct {
	body  io.ReadCloser
	meter *Meter
	zip   *gzip.Reader // nil: nothing has been read yet
	err   error
	sent  int64 // bytes, and how many came of them
	made  int64
}

// Read implements io.Reader.
func (c *compressed) Read(p []byte) (int, error) {
	if c.zip == nil && c.err == nil {
		c.zip, c.err = gzip.NewReader(sentBytes{c})
	}
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.zip.Read(p)
	if c.made += int64(n); c.made > alwaysTaken && c.made > mostTimes*c.sent {
		c.err = c.meter.exceed(fmt.Sprintf("an answer is more than %d times as long as its compressed form", mostTimes), 0)
		return 0, c.err
	}
	return n, err
}

// Close implements io.Closer.
func (c *compressed) Close() error { return c.body.Close() }

// sentBytes counts what is read of the body as it was sent.
type sentBytes struct{ *compressed }

// Read implements io.Reader.
func (s sentBytes) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	s.sent += int64(n)
	return n, err
}
