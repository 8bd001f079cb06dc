package http1

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// answer writes the answer to a request. It is an http.ResponseWriter with all that an http.ResponseController asks for.
type answer struct {
	conn    *conn
	request *http.Request
	header  http.Header
	// mu is held while the head begins, and while the client is asked for the body.
	mu    sync.Mutex
	began bool
	// left is how much of the body is to be written; below 0: that is not known.
	left int64
	// bodyless: none may be. chunked: it is in chunks. closes: the connection ends behind it.
	bodyless, chunked, closes bool
	hijacked                  bool
}

func (a *answer) reset(r *http.Request) {
	clear(a.header)
	a.request, a.began, a.left, a.bodyless, a.chunked, a.closes, a.hijacked = r, false, -1, false, false, r.Close, false
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. An interim status (1xx) is sent at once, with the headers there are.
func (a *answer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.began || a.hijacked {
		return
	}
	interim := status >= 100 && status < 200 && status != http.StatusSwitchingProtocols
	if interim && a.request.ProtoMinor == 0 {
		return // HTTP/1.0 knows none
	}
	w := a.conn.w
	writeStatusLine(w, status)
	if interim {
		a.writeFields(a.header)
		_, _ = w.WriteString("\r\n")
		_ = w.Flush() // a failure shows with the next write
		return
	}
	a.began = true
	a.frame(status)
	a.writeFields(a.header)
	if a.header["Date"] == nil {
		writeDate(w)
	}
	switch {
	case a.closes:
		_, _ = w.WriteString("Connection: close\r\n")
	case a.request.ProtoMinor == 0:
		_, _ = w.WriteString("Connection: keep-alive\r\n")
	}
	if a.chunked {
		_, _ = w.WriteString("Transfer-Encoding: chunked\r\n")
		if names := a.header["Trailer"]; len(names) > 0 {
			_, _ = w.WriteString("Trailer: " + safeValue(strings.Join(names, ", ")) + "\r\n")
		}
	}
	_, _ = w.WriteString("\r\n")
}

// frame decides which headers say where the answer ends.
func (a *answer) frame(status int) {
	a.closes = a.closes || httpguts.HeaderValuesContainsToken(a.header["Connection"], "close") || a.conn.server.closing.Load()
	a.bodyless = a.request.Method == http.MethodHead || status < 200 || status == http.StatusNoContent || status == http.StatusNotModified
	if lengths := a.header["Content-Length"]; len(lengths) == 1 && isDigits(lengths[0]) && len(lengths[0]) <= maxDigits && status != http.StatusNoContent {
		a.left, _ = strconv.ParseInt(lengths[0], 10, 64) // of digits that fit
	} else {
		delete(a.header, "Content-Length")
		a.chunked = !a.bodyless && a.request.ProtoMinor == 1
		a.closes = a.closes || !a.bodyless && !a.chunked
	}
}

func writeStatusLine(w *bufio.Writer, status int) {
	if status == http.StatusOK {
		_, _ = w.WriteString("HTTP/1.1 200 OK\r\n") // of nearly all; Flush has the error, here and below
		return
	}
	text := http.StatusText(status)
	if text == "" {
		text = "status code " + strconv.Itoa(status)
	}
	_, _ = w.WriteString("HTTP/1.1 " + strconv.Itoa(status) + " " + text + "\r\n")
}

func writeDate(w *bufio.Writer) {
	_, _ = w.WriteString("Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n")
}

// writeFields writes headers but those that the connection has for itself, and those that cannot be written.
func (a *answer) writeFields(of http.Header) {
	w := a.conn.w
	for name, values := range of {
		switch name {
		case "Connection", "Transfer-Encoding", "Trailer":
			continue
		}
		if !httpguts.ValidHeaderFieldName(name) {
			continue // http.TrailerPrefix among them
		}
		for _, value := range values {
			_, _ = w.WriteString(name)
			_, _ = w.WriteString(": ")
			_, _ = w.WriteString(safeValue(value))
			_, _ = w.WriteString("\r\n")
		}
	}
}

var lineEnds = strings.NewReplacer("\r", " ", "\n", " ")

// safeValue has a header's value end with it.
func safeValue(value string) string {
	if strings.ContainsAny(value, "\r\n") {
		return lineEnds.Replace(value)
	}
	return value
}

// goOn asks the client for the body, if the answer has not begun.
func (a *answer) goOn() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.began && !a.hijacked {
		_, _ = a.conn.w.WriteString("HTTP/1.1 100 Continue\r\n\r\n")
		_ = a.conn.w.Flush() // a failure shows with the next write
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if a.hijacked {
		return 0, http.ErrHijacked
	}
	if !a.began {
		a.WriteHeader(http.StatusOK)
	}
	switch {
	case a.bodyless && a.request.Method == http.MethodHead, len(p) == 0:
		return len(p), nil
	case a.bodyless:
		return 0, http.ErrBodyNotAllowed
	}
	w := a.conn.w
	if a.chunked {
		_, _ = w.WriteString(strconv.FormatInt(int64(len(p)), 16) + "\r\n")
		n, _ := w.Write(p)
		_, err := w.WriteString("\r\n") // a bufio.Writer keeps its first error
		return n, err
	}
	if a.left >= 0 {
		if int64(len(p)) > a.left {
			return 0, http.ErrContentLength
		}
		a.left -= int64(len(p))
	}
	return w.Write(p)
}

// FlushError sends what was written.
func (a *answer) FlushError() error {
	if a.hijacked {
		return http.ErrHijacked
	}
	if !a.began {
		a.WriteHeader(http.StatusOK)
	}
	return a.conn.w.Flush()
}

// errShort is for a handler that wrote less than it said.
var errShort = errors.New("the answer is shorter than its Content-Length")

// finish sends the rest.
func (a *answer) finish() error {
	if !a.began {
		a.header.Set("Content-Length", "0")
		a.WriteHeader(http.StatusOK)
	}
	if a.chunked {
		_, _ = a.conn.w.WriteString("0\r\n")
		a.writeFields(a.trailers())
		_, _ = a.conn.w.WriteString("\r\n")
	}
	if err := a.conn.w.Flush(); err != nil {
		return err
	}
	if a.left > 0 && !a.bodyless {
		return errShort
	}
	return nil
}

// trailers returns those headers that were announced as trailers, or have http.TrailerPrefix.
func (a *answer) trailers() http.Header {
	var all http.Header
	add := func(name string, values []string) {
		if name = http.CanonicalHeaderKey(name); len(values) == 0 || !httpguts.ValidTrailerHeader(name) {
			return
		}
		if all == nil {
			all = http.Header{}
		}
		all[name] = values
	}
	for _, names := range a.header["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			add(name, a.header[name])
		}
	}
	for name, values := range a.header {
		if rest, is := strings.CutPrefix(name, http.TrailerPrefix); is {
			add(rest, values)
		}
	}
	return all
}

// Hijack implements http.Hijacker.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hijacked {
		return nil, nil, http.ErrHijacked
	}
	a.conn.unwatch()
	a.hijacked = true
	return a.conn.Conn, bufio.NewReadWriter(a.conn.r, a.conn.w), a.conn.w.Flush()
}

// EnableFullDuplex is for http.ResponseController: it is always so.
func (a *answer) EnableFullDuplex() error { return nil }

// SetReadDeadline is for http.ResponseController.
func (a *answer) SetReadDeadline(t time.Time) error { return a.conn.SetReadDeadline(t) }

// SetWriteDeadline is for http.ResponseController.
func (a *answer) SetWriteDeadline(t time.Time) error { return a.conn.setWriteDeadline(t) }
