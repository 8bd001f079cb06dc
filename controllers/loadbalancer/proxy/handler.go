package proxy

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"federation/controllers/loadbalancer/plan"
	"federation/controllers/supervisor"
)

// maxTries bounds how many clusters a request is sent to: those of which none took it.
const maxTries = 3

// writeTimeout is how long a client may take for a piece of an answer, readTimeout for a piece of its body.
const writeTimeout, readTimeout = time.Minute, time.Minute

// record is what is noted of a request.
type record struct {
	began         time.Time
	client        netip.Addr
	host, ingress string
	cluster       string
	target        netip.AddrPort
	status        int
	bytes         int64
	tries         int
	why           string
	tunnel        *tunnelled // nil: the protocol was not switched
}

// ServeHTTP sends a request to a cluster, and its answer back.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := record{began: time.Now(), client: peerOf(r)}
	defer func() {
		observeRequest(&n)
		if p.log != nil {
			p.log.add(func(b []byte) []byte { return appendLine(b, r, &n) })
		}
		p.tunnels.end(n.tunnel)
		if fault := recover(); fault == http.ErrAbortHandler {
			panic(fault) // closes the connection, or the stream
		} else if fault != nil {
			klog.ErrorS(nil, "A request made the proxy panic", "panic", fault, "stack", string(debug.Stack()))
			panic(http.ErrAbortHandler)
		}
	}()
	p.serve(w, r, &n)
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, n *record) {
	if r.ProtoMajor == 1 && p.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	if r.ContentLength != 0 { // whoever answers first: what is left of the body is read to its end
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout))
	}
	no := func(status int, why string) {
		if r.ContentLength != 0 && r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close") // rather than wait for a body that nobody wants
		}
		refuse(w, n, status, why)
	}
	host, bad := checkRequest(r)
	if bad != nil {
		w.Header().Set("Connection", "close")
		no(bad.status, bad.why)
		return
	}
	n.host = host
	if passes(r.Header) >= maxPasses {
		no(http.StatusLoopDetected, "the request goes in a circle: it has come through load balancers too often")
		return
	}
	routing := p.routing.Load()
	h := routing.table.Host(host)
	if h == nil {
		no(http.StatusNotFound, "no Ingress has this host")
		return
	}
	if r.TLS != nil && !routing.sameCertificate(r.TLS.ServerName, h) {
		no(http.StatusMisdirectedRequest, "the connection was opened for another host")
		return
	}
	route, ok := h.Match(r.URL.Path)
	if !ok {
		no(http.StatusNotFound, "no path of the host's Ingresses matches")
		return
	}
	n.ingress = route.Ingress
	to, ok := p.pools.get(route.Pool)
	if !ok {
		no(http.StatusServiceUnavailable, "the Ingress' backend does not exist")
		return
	}
	out := outgoings.Get().(*outgoing)
	out.prepare(w, r, n.client, host, p.isTrusted(n.client))
	p.forward(to, out, n)
	if !out.hasBody { // whoever reads a body may still be about to say how that ended
		*out = outgoing{}
		outgoings.Put(out)
	}
}

var outgoings = sync.Pool{New: func() any { return new(outgoing) }}

// sameCertificate reports whether a connection for a server name may ask for a host.
func (r *routing) sameCertificate(serverName string, h *plan.Host) bool {
	own := r.table.Host(strings.ToLower(serverName))
	return own == h || own != nil && own.Secret == h.Secret
}

// peerOf is who the request's connection is from.
func peerOf(r *http.Request) netip.Addr {
	a, _ := netip.ParseAddrPort(r.RemoteAddr)
	return a.Addr().Unmap()
}

// prepare fills in, from its zero value, a client's request for clusters. trusted: what the client says of those before it counts.
func (o *outgoing) prepare(w http.ResponseWriter, r *http.Request, client netip.Addr, host string, trusted bool) {
	o.Request, o.uri, o.dropped, o.upgrade, o.writer = r, r.RequestURI, connectionHeaders(r.Header), upgradeOf(r.Header), w
	o.hasBody = r.ContentLength != 0 && r.Body != http.NoBody
	if !strings.HasPrefix(o.uri, "/") {
		o.uri = r.URL.RequestURI() // it came with scheme and host
	}
	o.repeatable = !o.hasBody && o.upgrade == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions)
	if o.hasBody {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex() // HTTP/2 has it anyway
		o.body = &clientBody{ReadCloser: r.Body, control: control, left: r.ContentLength, out: o}
		own := *r // the server closes what is its own
		own.Body, o.Request = o.body, &own
	}
	proto, address := "http", client.String()
	if r.TLS != nil {
		proto = "https"
	}
	forwardedFor, forwarded := address, ""
	if trusted {
		forwardedFor = joined(r.Header["X-Forwarded-For"], forwardedFor)
		if forwarded = strings.Join(r.Header["Forwarded"], ", "); forwarded != "" {
			forwarded += ", "
		}
		if said := r.Header["X-Forwarded-Proto"]; len(said) == 1 && (said[0] == "http" || said[0] == "https") {
			proto = said[0]
		}
	}
	node := address
	if client.Is6() {
		node = `"[` + address + `]"`
	}
	if strings.HasPrefix(host, "[") || strings.Contains(r.Host, ":") {
		host = `"` + r.Host + `"`
	}
	o.forwarded = [...]string{"X-Forwarded-For", forwardedFor, "X-Forwarded-Proto", proto, "X-Forwarded-Host", r.Host, "CDN-Loop", joined(r.Header[loopHeader], loopID), "Forwarded", forwarded + "for=" + node + ";host=" + host + ";proto=" + proto}
}

func joined(before []string, last string) string {
	if len(before) == 0 {
		return last
	}
	return strings.Join(before, ", ") + ", " + last
}

// clientBody gives a client more time with each piece that it sends.
type clientBody struct {
	io.ReadCloser
	control *http.ResponseController
	left    int64 // bytes that are to come; negative: that is not known
	ended   atomic.Bool
	out     *outgoing
}

func (b *clientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && err == nil {
		_ = b.control.SetReadDeadline(time.Now().Add(readTimeout)) // net/http can always do that
	}
	if known := b.left >= 0; known {
		b.left = max(0, b.left-int64(n))
	}
	switch {
	case errors.Is(err, io.EOF) || b.left == 0:
		b.ended.Store(true)
	case err != nil:
		b.out.clientError.Store(&err)
	}
	return n, err
}

// Close implements io.Closer. A transport that could not even connect closes the body, which another cluster is then to get.
func (*clientBody) Close() error { return nil }

// closeAfterAnswer has a connection end whose client still sends: nobody reads that, and it must not pass for the next request.
func (o *outgoing) closeAfterAnswer() {
	if o.body != nil && !o.body.ended.Load() && o.ProtoMajor == 1 {
		o.writer.Header().Set("Connection", "close")
	}
}

// forward sends the request to a target of the pool, and to others as long as that is allowed.
func (p *Proxy) forward(o *pool, out *outgoing, n *record) {
	o.budget.earn()
	var tried [maxTries]*target
	var last error
	for n.tries < maxTries {
		t := o.pick(tried[:n.tries])
		if t == nil || n.tries > 0 && !o.budget.spend() {
			break
		}
		if n.tries > 0 {
			retries.WithLabelValues(tried[n.tries-1].Cluster, t.Cluster).Inc()
		}
		tried[n.tries] = t
		n.tries++
		n.cluster, n.target = t.Cluster, t.Address
		x := &out.exchanges[n.tries-1]
		x.target = t
		answer, err := x.send(out)
		if err == nil {
			t.delivered(nil, answer.StatusCode)
			p.answer(out, answer, x, n)
			return
		}
		if out.Context().Err() != nil || out.clientError.Load() != nil {
			n.status, n.why = statusClientGone, "the client is gone"
			panic(http.ErrAbortHandler)
		}
		if !errors.Is(err, errTooMany) && !x.lost.Load() && x.isTheClusters(err) {
			t.delivered(err, 0)
		}
		last = err
		again := x.unsent && (!out.hasBody || x.conn == nil) || out.repeatable && n.tries == 1
		if !again {
			break
		}
		p.pools.refresh(&o)
	}
	giveUp(out, last, n)
}

// statusClientGone is noted for requests whose client has left, as nginx does.
const statusClientGone = 499

// giveUp answers for a cluster that did not.
func giveUp(out *outgoing, err error, n *record) {
	out.closeAfterAnswer()
	switch {
	case err == nil || errors.Is(err, errTooMany):
		refuse(out.writer, n, http.StatusServiceUnavailable, "no cluster takes requests")
	case isTimeout(err) || errors.Is(err, context.DeadlineExceeded):
		refuse(out.writer, n, http.StatusGatewayTimeout, "the cluster did not answer in time")
	default:
		refuse(out.writer, n, http.StatusBadGateway, "the cluster did not answer")
	}
	if err != nil {
		n.why = err.Error() // for the log; clients are not told addresses
	}
}

// refuse answers a request itself.
func refuse(w http.ResponseWriter, n *record, status int, why string) {
	n.status, n.why = status, why
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(why)+1))
	w.WriteHeader(status)
	size, _ := io.WriteString(w, why+"\n") // who asked may be gone
	n.bytes = int64(size)
}

// answer sends the answer of a cluster to the client.
func (p *Proxy) answer(out *outgoing, answer *http.Response, x *exchange, n *record) {
	defer answer.Body.Close() //nolint:errcheck // what was read stays, and bodyclose wants this form
	n.status = answer.StatusCode
	if answer.StatusCode == http.StatusSwitchingProtocols {
		p.tunnels.switchProtocols(out, answer, x, n)
		return
	}
	h := out.writer.Header()
	dropped := connectionHeaders(answer.Header)
	for name, values := range answer.Header {
		if !endsHere[name] && !dropped[name] {
			h[name] = values
		}
	}
	if length := answer.Header["Content-Length"]; len(length) == 1 {
		h["Content-Length"] = length
	}
	for name := range answer.Trailer {
		h.Add("Trailer", name)
	}
	out.closeAfterAnswer()
	out.writer.WriteHeader(answer.StatusCode)
	size, err := copyBody(out.writer, answer)
	n.bytes = size
	if err != nil {
		n.why = err.Error()
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
	if len(answer.Trailer) > 0 {
		_ = http.NewResponseController(out.writer).Flush() // so that the body is chunked, which trailers need
	}
	for name, values := range answer.Trailer {
		if slices.Contains(h["Trailer"], name) {
			h[name] = values
		} else {
			h[http.TrailerPrefix+name] = values
		}
	}
}

// copyBody copies the body, and flushes what has come before it waits for more.
func copyBody(w http.ResponseWriter, answer *http.Response) (size int64, err error) {
	if answer.ContentLength == 0 || answer.Body == http.NoBody {
		_, err = answer.Body.Read(nil)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return 0, err
	}
	control := http.NewResponseController(w)
	buffered := func() bool { return false }
	if b, ok := answer.Body.(*answerBody); ok {
		buffered = b.buffered
	}
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	bounded := func() { _ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) } // net/http can always do that
	defer bounded()                                                                  // of what is written after us
	for {
		if (answer.ContentLength < 0 || size > 0) && !buffered() {
			bounded()
			_ = control.Flush()                       // a failure shows with the next write
			_ = control.SetWriteDeadline(time.Time{}) // a stream may be silent for longer than a client may take
		}
		n, err := answer.Body.Read(buffer[:])
		if n > 0 {
			bounded()
			if _, failed := w.Write(buffer[:n]); failed != nil {
				return size, failed
			}
			size += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}

// switchProtocols connects a client and a cluster that have agreed on another protocol, until one of them ends it.
func (t *tunnels) switchProtocols(out *outgoing, answer *http.Response, x *exchange, n *record) {
	server := x.upgraded()
	if out.upgrade == "" || server == nil || !strings.EqualFold(answer.Header.Get("Upgrade"), out.upgrade) {
		refuse(out.writer, n, http.StatusBadGateway, "the cluster switched to a protocol that nobody asked for")
		return
	}
	n.tunnel = t.begin() // before the server forgets the connection
	client, buffered, err := http.NewResponseController(out.writer).Hijack()
	if err != nil {
		refuse(out.writer, n, http.StatusBadGateway, "the connection cannot be switched")
		return
	}
	defer client.Close()
	n.tunnel.set(client)
	_ = client.SetDeadline(time.Time{}) // fails only for what is closed
	head := append([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "), answer.Header.Get("Upgrade")+"\r\n"...)
	for name, values := range answer.Header {
		for _, value := range values {
			if !endsHere[name] {
				head = append(head, name+": "+strings.NewReplacer("\r", " ", "\n", " ").Replace(value)+"\r\n"...)
			}
		}
	}
	if _, err := client.Write(append(head, "\r\n"...)); err != nil {
		return
	}
	n.bytes = tunnel(client, io.LimitReader(buffered, int64(buffered.Reader.Buffered())), server)
}

// tunnel copies both ways until both sides have ended, and returns how much went to the client.
// buffered is what of the client's was read already.
func tunnel(client net.Conn, buffered io.Reader, server *upgraded) int64 {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if supervisor.Protect(context.Background(), "loadbalancer", func() error {
			_, _ = io.Copy(server, io.MultiReader(buffered, client)) // either side may end at any time
			server.closeWrite()
			return nil
		}) != nil {
			server.close()
		}
	}()
	first, err := io.Copy(client, server)
	if half, ok := client.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
	} else {
		_ = client.Close()
	}
	<-done
	return first
}

// tunnels are the requests whose protocol was switched. A server knows nothing of their connections any more.
type tunnels struct {
	mu    sync.Mutex
	open  map[*tunnelled]bool
	ended chan struct{} // closed with the last of them
}

// tunnelled is one of them.
type tunnelled struct {
	mu     sync.Mutex
	client net.Conn // nil: it is not known yet
	closed bool
}

// set notes the client's connection.
func (t *tunnelled) set(client net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client = client; t.closed {
		_ = client.Close() // it is given up
	}
}

// close closes the client's connection.
func (t *tunnelled) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed = true; t.client != nil {
		_ = t.client.Close() // it is given up
	}
}

// begin counts one until end.
func (t *tunnels) begin() *tunnelled {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) == 0 {
		t.open, t.ended = map[*tunnelled]bool{}, make(chan struct{})
	}
	one := &tunnelled{}
	t.open[one] = true
	return one
}

// end counts one no more; nil is none.
func (t *tunnels) end(one *tunnelled) {
	if one == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.open, one); len(t.open) == 0 {
		close(t.ended)
	}
}

// closeTimeout is how long a request may take to end whose client's connection has been closed.
const closeTimeout = time.Second

// wait waits until there is none. When ctx ends, it closes those that are left.
func (t *tunnels) wait(ctx context.Context) {
	t.mu.Lock()
	left, ended := len(t.open), t.ended
	t.mu.Unlock()
	if left == 0 {
		return
	}
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	t.mu.Lock()
	rest := slices.Collect(maps.Keys(t.open))
	t.mu.Unlock()
	for _, one := range rest {
		go func() { // by TLS it may take long
			_ = supervisor.Protect(ctx, "loadbalancer", func() error { one.close(); return nil }) // a panic has been logged
		}()
	}
	select {
	case <-ended:
	case <-time.After(closeTimeout):
	}
}
