package http1

import (
	"bufio"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func parsed(text string) (*http.Request, error) {
	head, err := readHead(bufio.NewReaderSize(strings.NewReader(text), 16), nil, 1<<10)
	if err != nil {
		return nil, err
	}
	r := &http.Request{Header: http.Header{}, URL: &url.URL{}}
	if fault := parseHead(string(head), r); fault != nil {
		return nil, fault
	}
	return r, nil
}

func TestHeadsAreReadInOneWay(t *testing.T) {
	const begin = "POST /a HTTP/1.1\r\nHost: www.test\r\n"
	for name, c := range map[string]struct {
		text   string
		status int // 0: it is taken
	}{
		"a plain one":                             {begin + "\r\n", 0},
		"values with spaces around, and none":     {begin + "A:\r\nB: \t x y \t\r\n\r\n", 0},
		"a length":                                {begin + "content-length: 12\r\n\r\n", 0},
		"chunks":                                  {begin + "Transfer-Encoding: Chunked\r\nTrailer: X-Sum, X-Two\r\n\r\n", 0},
		"HTTP/1.0 without a host":                 {"GET / HTTP/1.0\r\n\r\n", 0},
		"a line that ends by one byte":            {begin + "A: b\n\r\n", 400},
		"an empty line that ends by one byte":     {begin + "\n", 400},
		"an empty line first":                     {"\r\n" + begin + "\r\n", 400},
		"a carriage return in a line":             {begin + "A: b\rC: d\r\n\r\n", 400},
		"a tab in the first line":                 {"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"two spaces in the first line":            {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"a space behind the version":              {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
		"HTTP/1.2":                                {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
		"a folded line":                           {begin + "A: b\r\n c\r\n\r\n", 400},
		"a space before the colon":                {begin + "A : b\r\n\r\n", 400},
		"no name":                                 {begin + ": b\r\n\r\n", 400},
		"two hosts that are equal":                {begin + "Host: www.test\r\n\r\n", 400},
		"two lengths that are equal":              {begin + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
		"a length with a comma":                   {begin + "Content-Length: 1,1\r\n\r\n", 400},
		"an empty length":                         {begin + "Content-Length:\r\n\r\n", 400},
		"a length beyond what counts":             {begin + "Content-Length: 9999999999999999999\r\n\r\n", 400},
		"a length and chunks":                     {begin + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
		"chunks in HTTP/1.0":                      {"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
		"chunks with more":                        {begin + "Transfer-Encoding: chunked, chunked\r\n\r\n", 501},
		"chunks twice":                            {begin + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
		"identity":                                {begin + "Transfer-Encoding: identity\r\n\r\n", 501},
		"a trailer that says where a body ends":   {begin + "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n", 400},
		"a trailer that is no name":               {begin + "Transfer-Encoding: chunked\r\nTrailer: a b\r\n\r\n", 400},
		"a head that is too large, in one line":   {begin + "A: " + strings.Repeat("b", 1<<10), 431},
		"a head that is too large, in many lines": {begin + strings.Repeat("A: b\r\n", 1<<9) + "\r\n", 431},
	} {
		_, err := parsed(c.text)
		status, fault := 0, (*Fault)(nil)
		if errors.As(err, &fault) {
			status = fault.Status
		}
		if status != c.status {
			t.Errorf("%s: %d (%v), want %d", name, status, err, c.status)
		}
	}
}

// FuzzParseHead: what is taken, net/http takes too, and reads the same from it.
func FuzzParseHead(f *testing.F) {
	f.Add("GET /a%20b?c=d HTTP/1.1\r\nHost: www.test\r\nA: 1\r\na: 2\r\nConnection: x, close\r\n\r\n")
	f.Add("POST http://other.test/ HTTP/1.0\r\nHost: www.test\r\nContent-Length: 012\r\nConnection: keep-alive\r\n\r\n")
	f.Add("PUT * HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\ntrailer: b\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		own, err := parsed(text)
		if err != nil || own.Method == http.MethodConnect {
			return
		}
		head, _, _ := strings.Cut(text, "\r\n\r\n")
		other, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head + "\r\n\r\n")))
		if err != nil {
			t.Fatalf("%q is taken, and net/http says %v", text, err)
		}
		delete(other.Header, "Content-Length")
		delete(other.Header, "Trailer") // where there are no chunks
		if len(own.Trailer) == 0 {
			own.Trailer = nil // net/http takes those of requests without chunks, too
			other.Trailer = nil
		}
		if own.Method != other.Method || own.RequestURI != other.RequestURI || *own.URL != *other.URL || own.Host != other.Host || own.Proto != other.Proto ||
			own.ContentLength != other.ContentLength || !slices.Equal(own.TransferEncoding, other.TransferEncoding) || own.Close != other.Close ||
			!maps.EqualFunc(own.Trailer, other.Trailer, slices.Equal) || !maps.EqualFunc(own.Header, other.Header, slices.Equal) {
			t.Fatalf("%q:\n%+v, net/http:\n%+v", text, own, other)
		}
	})
}
