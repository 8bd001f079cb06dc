package proxy

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"federation/controllers/supervisor"
)

const (
	// maxLogged bounds what waits to be written in bytes; lines beyond that are lost, and counted.
	maxLogged = 4 << 20
	// maxText bounds one text of a line in bytes.
	maxText = 1024
	// writeLogEvery is the time between two writes.
	writeLogEvery = 100 * time.Millisecond
)

// accessLog writes lines of JSON in a goroutine of its own: whoever reads them slowly delays no request.
type accessLog struct {
	out  io.Writer
	wake supervisor.Wake
	mu   sync.Mutex
	text []byte
	lost int
}

func newAccessLog(out io.Writer) *accessLog {
	return &accessLog{out: out, wake: supervisor.NewWake()}
}

// add adds the line of a request or connection.
func (l *accessLog) add(appendTo func([]byte) []byte) {
	l.mu.Lock()
	if len(l.text) > maxLogged {
		l.lost++
	} else {
		l.text = appendTo(l.text)
	}
	l.mu.Unlock()
	l.wake.Signal()
}

// run writes lines until ctx ends, and then what is left.
func (l *accessLog) run(ctx context.Context) {
	var spare []byte
	for {
		ended := false
		select {
		case <-ctx.Done():
			ended = true
		case <-l.wake:
			select { // so that a write has many lines
			case <-ctx.Done():
				ended = true
			case <-time.After(writeLogEvery):
			}
		}
		l.mu.Lock()
		text, lost := l.text, l.lost
		l.text, l.lost = spare[:0], 0
		l.mu.Unlock()
		if lost > 0 {
			text = append(text, `{"lost":`+strconv.Itoa(lost)+"}\n"...)
		}
		_, _ = l.out.Write(text) // there is nowhere to say that the log cannot be written
		spare = text
		if ended {
			return
		}
	}
}

// appendLine formats a request as one line of JSON.
func appendLine(b []byte, r *http.Request, n *record) []byte {
	b = append(b, `{"time":"`...)
	b = n.began.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, `","client":"`...)
	b = n.client.AppendTo(b)
	b = append(b, '"')
	for _, f := range [...]struct{ name, value string }{
		{"method", r.Method}, {"host", n.host}, {"uri", r.RequestURI}, {"protocol", r.Proto}, {"userAgent", r.UserAgent()}, {"ingress", n.ingress}, {"cluster", n.cluster}, {"reason", n.why},
	} {
		if f.value != "" {
			b = append(append(b, `,"`+f.name+`":`...), '"')
			b = append(appendText(b, f.value), '"')
		}
	}
	if n.target.IsValid() {
		b = append(n.target.AppendTo(append(b, `,"target":"`...)), '"')
	}
	b = strconv.AppendInt(append(b, `,"status":`...), int64(n.status), 10)
	b = strconv.AppendInt(append(b, `,"bytes":`...), n.bytes, 10)
	b = strconv.AppendInt(append(b, `,"tries":`...), int64(n.tries), 10)
	b = strconv.AppendFloat(append(b, `,"seconds":`...), time.Since(n.began).Seconds(), 'f', 6, 64)
	return append(b, "}\n"...)
}

// appendStream formats a connection as one line of JSON.
func appendStream(b []byte, n *streamRecord) []byte {
	b = append(b, `{"time":"`...)
	b = n.began.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(n.client.Addr().AppendTo(append(b, `","client":"`...)), '"')
	for _, f := range [...]struct{ name, value string }{{"host", n.host}, {"ingress", n.ingress}, {"service", n.service()}, {"cluster", n.cluster}, {"result", n.result}, {"reason", n.why}} {
		if f.value != "" {
			b = append(append(b, `,"`+f.name+`":"`...), appendText(nil, f.value)...)
			b = append(b, '"')
		}
	}
	b = strconv.AppendInt(append(b, `,"port":`...), int64(n.pool.Port), 10)
	if n.target.IsValid() {
		b = append(n.target.AppendTo(append(b, `,"target":"`...)), '"')
	}
	b = strconv.AppendInt(append(b, `,"bytesSent":`...), n.sent, 10)
	b = strconv.AppendInt(append(b, `,"bytes":`...), n.received, 10)
	b = strconv.AppendInt(append(b, `,"tries":`...), int64(n.tries), 10)
	b = strconv.AppendFloat(append(b, `,"seconds":`...), time.Since(n.began).Seconds(), 'f', 6, 64)
	return append(b, "}\n"...)
}

// appendText appends a text as inside of a string of JSON. It cuts what is too long.
func appendText(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	for i, c := range text {
		switch {
		case i >= maxText:
			return append(b, "…"...)
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c < ' ' || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return b
}
