package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
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
	x.plain = plainBody{c, int64(left)}
	x.answer = http.Response{Status: status, StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: c.header, ContentLength: int64(left), Body: &x.plain, Request: out.Request,
		Close: httpguts.HeaderValuesContainsToken(c.header["Connection"], "close")}
	return &x.answer
}

// parsePlainFields fills in the lines of a head, each of which ends by CRLF. It reports whether they are plain.
func parsePlainFields(text string, header http.Header) bool {
	values := make([]string, 0, strings.Count(text, "\r\n"))
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\r\n")
		name, value, is := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !is || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return false
		}
		switch name = http.CanonicalHeaderKey(name); {
		case name == "Transfer-Encoding" || name == "Trailer" || name == "Pragma":
			return false
		case header[name] != nil:
			header[name] = append(header[name], value)
		default:
			values = append(values, value) // each header's values are a part of one slice, with room for no others
			n := len(values)
			header[name] = values[n-1 : n : n]
		}
	}
	return true
}

// plainBody is a body of which so much is left.
type plainBody struct {
	conn *conn
	left int64
}

// Read implements io.Reader.
func (b *plainBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.conn.r.Read(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); b.left == 0 {
		return n, io.EOF
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close implements io.Closer. What is left ends the connection.
func (*plainBody) Close() error { return nil }
