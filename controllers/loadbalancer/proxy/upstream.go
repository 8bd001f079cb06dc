package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"federation/controllers/loadbalancer/plan"
	"federation/controllers/supervisor"
)

const (
	// maxResponseHead bounds the head of an answer in bytes, maxInterim the interim answers (1xx) before it.
	maxResponseHead, maxInterim = 64 << 10, 5
	// headTimeout is how long an answer may take to begin, bodyTimeout how long nothing may come of its body.
	headTimeout, bodyTimeout = time.Minute, 5 * time.Minute
)

// conn is a connection to a target by HTTP/1.1.
type conn struct {
	tcp    *countedConn
	target *target
	r      *bufio.Reader
	w      *bufio.Writer
	// header is of the last plain answer.
	header http.Header
	// of is the client's connection that it is for, where it begins with a PROXY header; zero: it is for any.
	of endpoints
	// headLeft is how much more of the head of an answer may come; negative: it is not limited, as a body is read.
	headLeft  int
	reused    bool
	idleSince time.Time
	closed    atomic.Bool
}

// Read limits the head of an answer.
func (c *conn) Read(p []byte) (int, error) {
	if c.headLeft == 0 {
		return 0, errHeadTooLarge
	}
	if c.headLeft > 0 && len(p) > c.headLeft {
		p = p[:c.headLeft]
	}
	n, err := c.tcp.Read(p)
	if c.headLeft > 0 {
		c.headLeft -= n
	}
	return n, err
}

var errHeadTooLarge = fmt.Errorf("the head of its answer has more than %d bytes", maxResponseHead)

func (c *conn) close() {
	if !c.closed.Swap(true) {
		_ = c.tcp.Close() // it is given up
	}
}

// connect returns an idle connection, or a new one.
func (t *target) connect(out *outgoing, fresh bool) (*conn, error) {
	of := endpoints{}
	if t.proxyProtocol {
		of = endpointsOf(out.Request)
	}
	if !fresh {
		if c := t.get(of, !out.repeatable); c != nil {
			return c, nil
		}
	}
	counted, err := t.dialCounted(out.Context(), 0)
	if err != nil {
		return nil, err
	}
	c := &conn{tcp: counted, target: t, of: of}
	c.r, c.w = bufio.NewReaderSize(c, 4<<10), bufio.NewWriterSize(c.tcp, 4<<10)
	if t.proxyProtocol {
		_, _ = c.w.Write(of.appendHeader(nil)) // it goes with the head of the request
	}
	return c, nil
}

// exchange is one request that is sent to a target, and its answer.
type exchange struct {
	target *target
	conn   *conn
	// cancel ends an exchange by http.Transport.
	cancel context.CancelFunc
	// switched is the connection of http.Transport after the cluster has switched protocols.
	switched io.ReadWriteCloser
	// began is when it began to wait, in nanoseconds of the proxy's clock.
	began int64
	// lost: the target began to fail while the exchange waited.
	lost atomic.Bool
	// unsent: nothing of it has reached the target, so it may be sent elsewhere whatever it is.
	unsent bool
	// body is closed when nobody reads the client's body any more; nil without one. bodyFailed: not all of it was sent.
	body       chan struct{}
	bodyFailed atomic.Bool
	// answered: the head of the answer has come.
	answered atomic.Bool
	// answer and plain are a plain answer and its body, answerBody is what the client gets to read of any.
	answer     http.Response
	plain      plainBody
	answerBody answerBody
}

func (x *exchange) since() int64 { return x.began }

func (x *exchange) abandon() {
	x.lost.Store(true)
	if x.conn != nil {
		_ = x.conn.tcp.SetDeadline(time.Unix(1, 0)) // fails only for what is closed
	}
	if x.cancel != nil {
		x.cancel()
	}
}

var errLost = errors.New("it failed its checks while an answer was waited for")

// begin registers an exchange as waiting.
func (x *exchange) begin() {
	x.began = x.target.proxy.clock()
	x.target.await(x)
}

// end takes it from those that wait.
func (x *exchange) end(heard bool) { x.target.awaitNoMore(x, heard) }

// send sends a request and returns the answer, whose body the caller closes. An error leaves x.unsent and x.lost to be looked at.
func (x *exchange) send(out *outgoing) (*http.Response, error) {
	if x.target.Protocol != plan.HTTP {
		return x.sendByTransport(out)
	}
	answer, err := x.sendOnce(out, false)
	if err != nil && x.conn != nil && x.conn.reused && out.repeatable && !x.lost.Load() && out.Context().Err() == nil && !isTimeout(err) {
		answer, err = x.sendOnce(out, true) // the other side closes idle connections when it likes
	}
	return answer, err
}

func (x *exchange) sendOnce(out *outgoing, fresh bool) (answer *http.Response, err error) {
	x.unsent = true
	if x.conn, err = x.target.connect(out, fresh); err != nil {
		x.conn = nil
		return nil, err
	}
	c := x.conn
	x.begin()
	stop := context.AfterFunc(out.Context(), func() { _ = c.tcp.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if x.end(err == nil); err == nil && x.lost.Load() {
			answer, err = nil, errLost // its deadline may have passed
		}
		if err != nil {
			stop()
			c.close()
			x.waitForBody(out)
			if x.lost.Load() {
				err = errLost
			}
		}
	}()
	_ = c.tcp.SetDeadline(time.Now().Add(headTimeout)) // fails only for what is closed, which the write will say
	if x.lost.Load() {
		return nil, errLost
	}
	c.headLeft = maxResponseHead
	out.writeHead(c.w)
	x.unsent = false
	if out.hasBody {
		x.sendBody(out)
	} else if err = c.w.Flush(); err != nil {
		return nil, err
	}
	if answer, err = c.readAnswer(out, x); err != nil {
		return nil, err
	}
	c.headLeft = -1
	x.answered.Store(true)
	x.answerBody = answerBody{ReadCloser: answer.Body, exchange: x, out: out, stop: stop, reusable: !answer.Close && answer.StatusCode != http.StatusSwitchingProtocols}
	answer.Body = &x.answerBody
	return answer, nil
}

// readAnswer reads the head of the answer, and passes interim ones on.
func (c *conn) readAnswer(out *outgoing, x *exchange) (*http.Response, error) {
	if answer := c.plainAnswer(out, x); answer != nil {
		return answer, nil
	}
	for interim := 0; ; interim++ {
		answer, err := http.ReadResponse(c.r, out.Request)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode >= 200 || answer.StatusCode == http.StatusSwitchingProtocols {
			return answer, nil
		}
		if interim == maxInterim {
			return nil, fmt.Errorf("more than %d interim answers", maxInterim)
		}
		if answer.StatusCode == http.StatusEarlyHints {
			out.earlyHints(answer.Header)
		}
	}
}

// sendBody sends the client's body in a goroutine of its own: the answer may begin, or end, before all of it is sent.
func (x *exchange) sendBody(out *outgoing) {
	done := make(chan struct{})
	x.body = done
	c := x.conn
	go func() {
		defer close(done)
		var err error
		fault := supervisor.Protect(out.Context(), "loadbalancer", func() error { err = out.writeBody(c.w, x.extend); return nil })
		x.bodyFailed.Store(fault != nil || err != nil)
		if fault != nil || err != nil && out.isClientError(err) {
			c.close() // what was sent must not look whole; of other errors the answer tells, or its absence
		}
	}()
}

// extend gives the cluster more time, because the client has sent more.
func (x *exchange) extend() {
	until := time.Now().Add(headTimeout)
	_ = x.conn.tcp.SetWriteDeadline(until) // fails only for what is closed, which the write will say
	if !x.answered.Load() {
		_ = x.conn.tcp.SetReadDeadline(until)
	}
	if x.lost.Load() {
		_ = x.conn.tcp.SetDeadline(time.Unix(1, 0))
	}
}

// waitForBody has the goroutine that reads the client's body end: nobody may read it after the handler.
func (x *exchange) waitForBody(out *outgoing) {
	if x.body == nil {
		return
	}
	select {
	case <-x.body:
		return
	default:
	}
	said := out.clientError.Load()
	out.stopReading()
	<-x.body
	x.body = nil
	out.clientError.Store(said) // that it could not be read to its end is our doing
}

// answerBody gives its connection back once it was read to its end.
type answerBody struct {
	io.ReadCloser
	exchange *exchange
	out      *outgoing
	stop     func() bool
	reusable bool
	atEnd    bool
}

func (b *answerBody) Read(p []byte) (int, error) {
	c := b.exchange.conn
	if c.r.Buffered() == 0 {
		_ = c.tcp.SetReadDeadline(time.Now().Add(bodyTimeout)) // fails only for what is closed
	}
	n, err := b.ReadCloser.Read(p)
	b.atEnd = b.atEnd || errors.Is(err, io.EOF)
	return n, err
}

// buffered reports whether more has come already.
func (b *answerBody) buffered() bool { return b.exchange.conn.r.Buffered() > 0 }

func (b *answerBody) Close() error {
	c := b.exchange.conn
	sent := true
	if b.exchange.body != nil {
		select {
		case <-b.exchange.body:
			sent = !b.exchange.bodyFailed.Load()
		default:
			sent = false
		}
	}
	if b.stop() && b.reusable && b.atEnd && sent && c.r.Buffered() == 0 && !c.closed.Load() {
		b.exchange.target.put(c)
		return nil
	}
	c.close()
	b.exchange.waitForBody(b.out)
	return nil
}

// sendByTransport sends by HTTP/2 or TLS.
func (x *exchange) sendByTransport(out *outgoing) (*http.Response, error) {
	ctx, cancel := context.WithCancel(out.Context())
	x.cancel = cancel
	head := time.AfterFunc(headTimeout, cancel)
	x.begin()
	answer, err := x.target.transportFor(out).RoundTrip(out.request(ctx, x.target))
	x.end(err == nil)
	head.Stop()
	if err != nil {
		cancel()
		x.unsent = isDialError(err) || errors.Is(err, errTooMany)
		if x.lost.Load() {
			err = errLost
		}
		return nil, err
	}
	if answer.StatusCode == http.StatusSwitchingProtocols {
		x.switched, _ = answer.Body.(io.ReadWriteCloser)
	}
	answer.Body = &transportBody{answer.Body, cancel}
	return answer, nil
}

// upgraded is a connection to a cluster that has switched protocols.
type upgraded struct {
	io.Reader
	io.Writer
	closeWrite, close func()
}

// upgraded returns the connection after the cluster has switched protocols; nil if it cannot have.
func (x *exchange) upgraded() *upgraded {
	if c := x.conn; c != nil {
		_ = c.tcp.SetDeadline(time.Time{}) // fails only for what is closed
		return &upgraded{c.r, c.tcp, func() { _ = c.tcp.CloseWrite() }, c.close}
	}
	if c := x.switched; c != nil {
		end := func() { _ = c.Close() }
		half, ok := c.(interface{ CloseWrite() error })
		if !ok {
			return &upgraded{c, c, end, end}
		}
		return &upgraded{c, c, func() { _ = half.CloseWrite() }, end}
	}
	return nil
}

// isTheClusters reports whether an error is the cluster's in any case. http.Transport has others that a client can make: names for which a cluster has no
// certificate, or refuses the handshake, and heads or trailers for which it resets the stream or closes the connection, that of others, too. A cluster
// that is not well fails its checks besides.
func (x *exchange) isTheClusters(err error) bool {
	var name x509.HostnameError
	var certificate *tls.CertificateVerificationError
	if x.target.Protocol == plan.HTTP || isDialError(err) || isTimeout(err) || errors.Is(err, context.Canceled) { // the client is there, so it was the timeout
		return true
	}
	return errors.As(err, &certificate) && !errors.As(err, &name)
}

// isDialError reports whether there was no connection.
func isDialError(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

type transportBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *transportBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// outgoing is a client's request as it is sent to clusters.
type outgoing struct {
	*http.Request
	// uri is the path and query as the client sent them.
	uri string
	// forwarded are headers of ours, in pairs of name and value.
	forwarded [10]string
	// dropped are the headers, beside the usual ones, that end here.
	dropped map[string]bool
	// upgrade is the protocol that the client wants instead of HTTP; empty for none.
	upgrade string
	// hasBody and repeatable: a GET, HEAD or OPTIONS without a body.
	hasBody, repeatable bool
	body                *clientBody // nil without one
	writer              http.ResponseWriter
	clientError         atomic.Pointer[error]
	// exchanges are those with the clusters that are tried.
	exchanges [maxTries]exchange
}

// writeHead writes the request's head by HTTP/1.1. net/http has checked names and values of headers, and check the rest.
func (o *outgoing) writeHead(w *bufio.Writer) {
	put := func(parts ...string) {
		for _, part := range parts {
			_, _ = w.WriteString(part) // Flush has the error
		}
	}
	put(o.Method, " ", o.uri, " HTTP/1.1\r\nHost: ", o.Host, "\r\n")
	for name, values := range o.Header {
		if o.drops(name) {
			continue
		}
		for _, value := range values {
			put(name, ": ", value, "\r\n")
		}
	}
	for i := 0; i < len(o.forwarded); i += 2 {
		put(o.forwarded[i], ": ", o.forwarded[i+1], "\r\n")
	}
	switch {
	case o.upgrade != "":
		put("Connection: Upgrade\r\nUpgrade: ", o.upgrade, "\r\n")
	case o.hasBody && o.ContentLength < 0:
		put("Transfer-Encoding: chunked\r\n")
	case o.hasBody || o.Method == http.MethodPost || o.Method == http.MethodPut || o.Method == http.MethodPatch:
		put("Content-Length: ", strconv.FormatInt(max(o.ContentLength, 0), 10), "\r\n")
	}
	put("\r\n")
}

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// writeBody writes the client's body, chunked if its length is not known. A body that is too short is an error.
// more is called after each piece.
func (o *outgoing) writeBody(w *bufio.Writer, more func()) error {
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	chunked, sent := o.ContentLength < 0, int64(0)
	for {
		n, err := o.Body.Read(buffer[:])
		if n > 0 {
			if chunked {
				_, _ = fmt.Fprintf(w, "%x\r\n", n) // the flush has the error
			}
			_, _ = w.Write(buffer[:n])
			if chunked {
				_, _ = w.WriteString("\r\n")
			}
			if failed := w.Flush(); failed != nil {
				return failed
			}
			sent += int64(n)
			more()
		}
		switch {
		case errors.Is(err, io.EOF) && !chunked && sent != o.ContentLength:
			err = io.ErrUnexpectedEOF
			fallthrough
		case err != nil && !errors.Is(err, io.EOF):
			o.clientError.Store(&err)
			return err
		case err != nil:
			if chunked {
				_, _ = w.WriteString("0\r\n\r\n")
			}
			return w.Flush()
		}
	}
}

// isClientError reports whether an error came from reading the client's body.
func (o *outgoing) isClientError(err error) bool {
	client := o.clientError.Load()
	return client != nil && errors.Is(err, *client)
}

// stopReading has a read of the client's body end. Its connection cannot be used for another request.
func (o *outgoing) stopReading() {
	o.writer.Header().Set("Connection", "close")
	_ = http.NewResponseController(o.writer).SetReadDeadline(time.Unix(1, 0)) // net/http can always do that
}

// earlyHints passes an interim answer on.
func (o *outgoing) earlyHints(h http.Header) {
	if links := h["Link"]; len(links) > 0 {
		o.writer.Header()["Link"] = links
		o.writer.WriteHeader(http.StatusEarlyHints)
		o.writer.Header().Del("Link")
	}
}

// webSocket is the only upgrade for which http.Transport stays with HTTP/1.1.
const webSocket = "websocket"

// request returns the request for http.Transport.
func (o *outgoing) request(ctx context.Context, t *target) *http.Request {
	r := &http.Request{
		Method: o.Method, Host: o.Host, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: o.ContentLength,
		URL: &url.URL{Scheme: "http", Host: t.Address.String(), Opaque: o.uri},
	}
	if t.Protocol == plan.HTTPS {
		r.URL.Scheme, r.URL.Host = "https", hostName(o.Host) // without its port, which would be another pool of connections; whose name the certificate must have; dial knows the address
	}
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.URL.Opaque = o.URL.Path, o.URL.RawPath, o.URL.RawQuery, ""
	if o.hasBody {
		r.Body, r.Trailer = o.Body, o.Trailer
	}
	for name, values := range o.Header {
		if !o.drops(name) {
			r.Header[name] = values
		}
	}
	if te := o.Header["Te"]; len(te) == 1 && te[0] == "trailers" {
		r.Header["Te"] = te // gRPC wants it
	}
	for i := 0; i < len(o.forwarded); i += 2 {
		r.Header.Set(o.forwarded[i], o.forwarded[i+1])
	}
	if t.Protocol == plan.HTTPS && len(o.upgrade) == len(webSocket) && strings.EqualFold(o.upgrade, webSocket) { // in ASCII
		r.Header["Connection"], r.Header["Upgrade"] = []string{"Upgrade"}, []string{webSocket}
	}
	return r.WithContext(ctx)
}
