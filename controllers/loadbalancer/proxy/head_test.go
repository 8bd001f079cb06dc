package proxy

import (
	"bufio"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// FuzzPlainAnswer reads answers in both ways: whatever a cluster sends, what plainAnswer takes is what http.ReadResponse would have read.
func FuzzPlainAnswer(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Type: text/plain\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nConnection: close\r\n\r\nabcrest",
		"HTTP/1.1 200\r\nContent-Length: 9\r\n\r\nshort",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nEmpty:\r\n\r\n",
		"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nFolded: a\r\n b\r\nContent-Length: 1\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 1\r\n\r\na",
		"HTTP/1.1 200 OK\nContent-Length: 1\n\na\r\n\r\n",
		"HTTP/1.1 200 \n\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
		"200 OK\r\nContent-Length: 1\r\n\r\na",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
	} {
		f.Add(text, http.MethodGet)
	}
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", http.MethodHead)
	f.Fuzz(func(t *testing.T, text, method string) {
		request := &http.Request{Method: method}
		c := &conn{r: bufio.NewReader(strings.NewReader(text))}
		got := c.plainAnswer(&outgoing{Request: request}, &exchange{})
		if got == nil {
			return
		}
		want, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), request)
		if err != nil {
			t.Fatalf("taken, but http.ReadResponse says: %v", err)
		}
		delete(got.Header, "Connection") // http.ReadResponse has deleted it if it says close
		delete(want.Header, "Connection")
		if got.StatusCode != want.StatusCode || got.ContentLength != want.ContentLength || got.Close != want.Close || len(want.TransferEncoding) > 0 || len(want.Trailer) > 0 ||
			!maps.EqualFunc(got.Header, want.Header, slices.Equal) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		body, failed := io.ReadAll(got.Body)
		wanted, wantFailed := io.ReadAll(want.Body)
		if string(body) != string(wanted) || failed != wantFailed {
			t.Fatalf("body: got %q and %v, want %q and %v", body, failed, wanted, wantFailed)
		}
	})
}

// TestPlainAnswersAreTaken holds that the way past http.ReadResponse is used: it is the fast one.
func TestPlainAnswersAreTaken(t *testing.T) {
	c := &conn{r: bufio.NewReader(strings.NewReader("HTTP/1.1 200 OK\r\nServer: x\r\nDate: Fri, 27 Nov 2026 12:00:00 GMT\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"))}
	for _, want := range []struct {
		status int
		body   string
	}{{200, "hi"}, {503, ""}} {
		answer := c.plainAnswer(&outgoing{Request: &http.Request{Method: http.MethodGet}}, &exchange{})
		if answer == nil {
			t.Fatal("not taken")
		}
		if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != want.status || string(body) != want.body {
			t.Fatalf("%d %q, %v, want %+v", answer.StatusCode, body, err, want)
		}
	}
}
