package proxy

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"federation/controllers/loadbalancer/http1"
)

// maxKeptHeaders bounds the headers for which a connection to a cluster keeps room.
const maxKeptHeaders = 64

// plainAnswer returns the answer whose head has come as nearly all do: whole, with the length of its body, and without anything that two readers could take
// for two things. It is what http.ReadResponse would return, which has to read all others: then plainAnswer returns nil, and has taken nothing. The headers
// are the connection's until its next answer, the rest is the exchange's.
func (c *conn) plainAnswer(out *outgoing, x *exchange) *http.Response {
	if out.Method == http.MethodHead {
		return nil
	}
	if _, err := c.r.Peek(1); err != nil {
		return nil // http.ReadResponse says which
	}
	come, _ := c.r.Peek(c.r.Buffered())
	size := bytes.Index(come, []byte("\r\n\r\n"))
	if size < 0 {
		return nil
	}
	line, fields, _ := strings.Cut(string(come[:size+2]), "\r\n")
	status, is := strings.CutPrefix(line, "HTTP/1.1 ")
	digits, _, _ := strings.Cut(status, " ")
	code, err := strconv.Atoi(digits)
	if !is || !httpguts.ValidHeaderFieldValue(status) || err != nil || len(digits) != 3 || code < 200 || code == http.StatusNoContent || code == http.StatusNotModified {
		return nil
	}
	if c.header == nil || len(c.header) > maxKeptHeaders {
		c.header = http.Header{}
	}
	if clear(c.header); !parsePlainFields(fields, c.header) {
		return nil
	}
	length := c.header["Content-Length"]
	if len(length) != 1 {
		return nil
	}
	left, err := strconv.ParseUint(length[0], 10, 63)
	if err != nil {
		return nil
	}
	_, _ = c.r.Discard(size + 4) // it is there
	x.plain = plainBody{http1.Counted{R: c.r, Left: int64(left)}}
	x.answer = http.Response{Status: status, StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: c.header, ContentLength: int64(left), Body: &x.plain, Request: out.Request,
		Close: httpguts.HeaderValuesContainsToken(c.header["Connection"], "close")}
	return &x.answer
}

// parsePlainFields fills in the lines of a head, each of which ends by CRLF. It reports whether they are plain.
func parsePlainFields(text string, header http.Header) bool {
	plain := true
	fault := http1.ParseFields(text, header, func(name, _ string) bool {
		plain = plain && name != "Transfer-Encoding" && name != "Trailer" && name != "Pragma"
		return !plain
	})
	return fault == nil && plain
}

// plainBody is a body of which so much is left.
type plainBody struct{ http1.Counted }

// Close implements io.Closer. What is left ends the connection.
func (*plainBody) Close() error { return nil }
