package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRequestsAndAnswersPassAsTheyAre(t *testing.T) {
	port, east, _ := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	large := make([]byte, 3<<20)
	_, _ = rand.Read(large)
	east.does(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the cluster reads the body: %v", err)
		}
		w.Header().Set("X-Saw", fmt.Sprintf("%s %s %s %d %v", r.Method, r.Host, r.RequestURI, len(body), r.TransferEncoding))
		w.Header()["X-Two"] = []string{"1", "2"}
		w.Header().Set("Keep-Alive", "timeout=5")
		switch r.URL.Path {
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/same":
			w.WriteHeader(http.StatusNotModified)
		case "/chunked":
			_, _ = w.Write(body[:len(body)/2])
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(body[len(body)/2:])
		default:
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = w.Write(body)
		}
	})
	for _, c := range []struct {
		method, path string
		body         io.Reader
		saw          string
		status, size int
	}{
		{"GET", "/a/b?q=%20&x=a+b;c", nil, "GET www.test /a/b?q=%20&x=a+b;c 0 []", 200, 0},
		{"GET", "/%61%2Fb//c", nil, "GET www.test /%61%2Fb//c 0 []", 200, 0},
		{"HEAD", "/", nil, "HEAD www.test / 0 []", 200, 0},
		{"DELETE", "/x", nil, "DELETE www.test /x 0 []", 200, 0},
		{"POST", "/", bytes.NewReader(large), fmt.Sprintf("POST www.test / %d []", len(large)), 200, len(large)},
		{"PUT", "/chunked", struct{ io.Reader }{bytes.NewReader(large)}, fmt.Sprintf("PUT www.test /chunked %d [chunked]", len(large)), 200, len(large)},
		{"POST", "/", strings.NewReader(""), "POST www.test / 0 []", 200, 0},
		{"PATCH", "/none", strings.NewReader("x"), "PATCH www.test /none 1 []", 204, 0},
		{"GET", "/same", nil, "GET www.test /same 0 []", 304, 0},
	} {
		status, body, header := b.do(c.method, c.path, c.body)
		if status != c.status || header.Get("X-Saw") != c.saw || len(body) != c.size {
			t.Errorf("%s %s: %d, the cluster saw %q, %d bytes; want %d, %q, %d", c.method, c.path, status, header.Get("X-Saw"), len(body), c.status, c.saw, c.size)
		}
		if c.size == len(large) && body != string(large) {
			t.Errorf("%s %s: the body differs", c.method, c.path)
		}
		if !slices.Equal(header["X-Two"], []string{"1", "2"}) || header.Get("Keep-Alive") != "" {
			t.Errorf("%s %s: headers %v", c.method, c.path, header)
		}
	}
	if n := b.target(t, east).open.Load(); n != 1 {
		t.Errorf("%d connections for requests one after another, want 1", n)
	}
}

// target returns the target of a cluster.
func (b *bed) target(t *testing.T, c *cluster) *target {
	t.Helper()
	for _, x := range b.pools.allTargets() {
		if x.Address == c.addr {
			return x
		}
	}
	t.Fatalf("no target has the address of %s", c.name)
	return nil
}

func TestWhatComesInPiecesIsPassedOnAtOnce(t *testing.T) {
	port, east, _ := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	next := make(chan string)
	east.does(func(w http.ResponseWriter, r *http.Request) {
		for text := range next {
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
		}
	})
	r, _ := http.NewRequest("GET", "http://"+b.url+"/events", nil)
	r.Host = "www.test"
	next2 := make(chan struct{})
	go func() { next <- "one\n"; <-next2; next <- "two\n"; close(next) }()
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	if !lines.Scan() || lines.Text() != "one" { // it would wait for ever if the first piece were kept
		t.Fatalf("first line %q", lines.Text())
	}
	close(next2)
	if !lines.Scan() || lines.Text() != "two" || lines.Scan() {
		t.Fatalf("second line %q, %v", lines.Text(), lines.Err())
	}
}

// TestTheAnswerMayEndBeforeTheRequest: a cluster that refuses a large body is heard, and nothing hangs.
func TestTheAnswerMayEndBeforeTheRequest(t *testing.T) {
	port, east, _ := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	east.does(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusRequestEntityTooLarge) })
	c, err := net.Dial("tcp", b.url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: www.test\r\nContent-Length: 1000000\r\n\r\nbegin")
	read := bufio.NewReader(c)
	answer, err := http.ReadResponse(read, nil)
	if err != nil || answer.StatusCode != http.StatusRequestEntityTooLarge || !answer.Close {
		t.Fatalf("answer %v, %v", answer, err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_, _ = io.WriteString(c, "GET /smuggled HTTP/1.1\r\nHost: www.test\r\n\r\n") // a part of the body
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if next, err := http.ReadResponse(read, nil); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("what is left of a body passes for a request: %v, %v", next, err)
	}
	eventually(t, func() string {
		if n := b.target(t, east).open.Load(); n != 0 {
			return fmt.Sprintf("%d connections are kept though half a request is on them", n)
		}
		return ""
	})
}

func TestTrailersAndInterimAnswers(t *testing.T) {
	port, east, _ := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	east.does(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Sum", "42")
	})
	r, _ := http.NewRequest("GET", "http://"+b.url+"/", nil)
	r.Host = "www.test"
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	if string(body) != "body" || answer.Trailer.Get("X-Sum") != "42" {
		t.Errorf("body %q, trailer %v", body, answer.Trailer)
	}
}

// TestGRPC: HTTP/2 on both sides, with both directions open at once, and trailers.
func TestGRPC(t *testing.T) {
	port, east, _ := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, "kubernetes.io/h2c"), east)
	east.does(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" {
			t.Errorf("the cluster gets %s with TE %q", r.Proto, r.Header.Get("Te"))
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			_, _ = io.WriteString(w, "echo "+lines.Text()+"\n")
			_ = http.NewResponseController(w).Flush()
		}
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	})
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	in, out := io.Pipe()
	r, _ := http.NewRequest("POST", "http://"+b.url+"/pkg.Service/Method", in)
	r.Host = "www.test"
	r.Header.Set("Te", "trailers")
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(answer.Body)
	for _, text := range []string{"one", "two"} {
		if _, err := io.WriteString(out, text+"\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || lines.Text() != "echo "+text {
			t.Fatalf("answer %q, %v", lines.Text(), lines.Err())
		}
	}
	_ = out.Close()
	if lines.Scan() || answer.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("after the end %q, trailer %v", lines.Text(), answer.Trailer)
	}
}

func TestUpgrades(t *testing.T) {
	port, east, _ := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	east.does(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" || r.Header.Get("Sec-Websocket-Key") != "k" {
			t.Errorf("the cluster gets %v", r.Header)
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Own: 1\r\n\r\nhello ")
		_, _ = io.Copy(c, rw.Reader)
	})
	c, err := net.Dial("tcp", b.url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: www.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\nearly ")
	reader := bufio.NewReader(c)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil || answer.StatusCode != 101 || answer.Header.Get("X-Own") != "1" {
		t.Fatalf("answer %v, %v", answer, err)
	}
	_, _ = io.WriteString(c, "late")
	_ = c.(*net.TCPConn).CloseWrite()
	text, err := io.ReadAll(reader)
	if string(text) != "hello early late" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

// startTLS starts a server with a certificate as the load balancer of a cluster.
func startTLS(t *testing.T, addr netip.AddrPort, cert *tls.Certificate, handler http.HandlerFunc) *cluster {
	t.Helper()
	l, err := net.Listen("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if cert.PrivateKey == nil {
			return nil, errNoCertificate
		}
		return cert, nil
	}}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: handler, TLSConfig: config, HTTP2: &http.HTTP2Config{}, MaxHeaderBytes: 4 << 10}
	go func() { _ = server.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	return &cluster{name: "east-a", addr: addr}
}

// switchProtocol answers that the protocol is another one now, and goes on with the connection, and what the client sends.
func switchProtocol(t *testing.T, w http.ResponseWriter, goOn func(c net.Conn, sent io.Reader)) {
	t.Helper()
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	goOn(c, rw.Reader)
}

// webSocket opens one, and sends a text at once.
func (b *bed) webSocket(upgrade, text string) (net.Conn, *bufio.Reader) {
	b.t.Helper()
	c, err := net.Dial("tcp", b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: www.test\r\nConnection: Upgrade\r\nUpgrade: "+upgrade+"\r\n\r\n"+text)
	reader := bufio.NewReader(c)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		b.t.Fatalf("answer %v, %v", answer, err)
	}
	return c, reader
}

// WebSockets pass to clusters by TLS, too, where other requests go by HTTP/2. They count for a shutdown, which waits for them as long as it may.
func TestWebSocketsByTLS(t *testing.T) {
	cert, roots := certificateOf(t, "www.test")
	port := freePort(t)
	east := startTLS(t, addrAt(101, port), cert, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, r.Proto)
			return
		}
		switchProtocol(t, w, func(c net.Conn, sent io.Reader) {
			_, _ = io.WriteString(c, "hello ")
			_, _ = io.Copy(c, sent)
		})
	})
	b := newBed(t, Options{Roots: roots}, ListenOptions{}, serviceOf(port, "kubernetes.io/wss"), east)
	if _, body, _ := b.do("GET", "/", nil); body != "HTTP/2.0" {
		t.Errorf("other requests go by %q", body)
	}
	c, reader := b.webSocket("websocket", "early")
	got := make([]byte, len("hello early"))
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != "hello early" {
		t.Fatalf("got %q, %v", got, err)
	}
	ending, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.server.Shutdown(ending) }()
	select {
	case err := <-ended:
		t.Fatalf("shut down beside a WebSocket: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if _, err := io.WriteString(c, "late"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(reader, got[:4]); err != nil || string(got[:4]) != "late" {
		t.Fatalf("got %q, %v", got[:4], err)
	}
	cancel()
	<-ended
	if _, err := reader.ReadByte(); err == nil {
		t.Error("the WebSocket is open after the shutdown")
	}
}

// WebSockets by TLS are open connections to the target, as all others: http.Transport forgets those whose protocol was switched.
func TestWebSocketsByTLSCountAsOpen(t *testing.T) {
	cert, roots := certificateOf(t, "www.test")
	port := freePort(t)
	east := startTLS(t, addrAt(101, port), cert, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			switchProtocol(t, w, func(_ net.Conn, sent io.Reader) { _, _ = io.Copy(io.Discard, sent) })
		}
	})
	b := newBed(t, Options{Roots: roots}, ListenOptions{}, serviceOf(port, "kubernetes.io/wss"), east)
	at := b.target(t, east)
	c, _ := b.webSocket("websocket", "")
	if n := at.open.Load(); n != 1 {
		t.Errorf("with a WebSocket %d connections are open", n)
	}
	at.open.Add(maxOpen - 1)
	if status, body, _ := b.do("GET", "/", nil); status != http.StatusServiceUnavailable {
		t.Errorf("beside as many as may be, one more: %d %s", status, body)
	}
	at.open.Add(1 - maxOpen)
	if status, body, _ := b.do("GET", "/", nil); status != http.StatusOK {
		t.Errorf("after that: %d %s", status, body)
	}
	_ = c.Close()
	eventually(t, func() string {
		if n := at.open.Load(); n != 1 {
			return fmt.Sprintf("%d are open, and not the one of HTTP/2 alone", n)
		}
		return ""
	})
}

// A client that has sent all still gets what the cluster sends, by TLS, too.
func TestHalfClosedWebSocketsByTLS(t *testing.T) {
	cert, roots := certificateOf(t, "www.test")
	port := freePort(t)
	east := startTLS(t, addrAt(101, port), cert, func(w http.ResponseWriter, _ *http.Request) {
		switchProtocol(t, w, func(c net.Conn, sent io.Reader) {
			text, _ := io.ReadAll(sent)
			_, _ = io.WriteString(c, "got "+string(text))
		})
	})
	b := newBed(t, Options{Roots: roots}, ListenOptions{}, serviceOf(port, "https"), east)
	c, reader := b.webSocket("WebSocket", "all")
	_ = c.(*net.TCPConn).CloseWrite()
	if text, err := io.ReadAll(reader); string(text) != "got all" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

// Whatever a client asks for, it does not count against the cluster: a client could take any cluster out.
func TestRequestsThatAClusterCannotTake(t *testing.T) {
	lacks, roots := certificateOf(t, "other.test")
	has, others := certificateOf(t, "www.test")
	refuses := &tls.Certificate{}
	for name, c := range map[string]struct {
		cert   *tls.Certificate
		roots  *x509.CertPool
		header []string
	}{
		"a name that the certificate lacks":           {lacks, roots, nil},
		"a name that the server refuses":              {refuses, roots, nil},
		"a head that is too large":                    {has, others, []string{"X-Large", strings.Repeat("x", 12<<10)}},
		"an upgrade that looks like one to WebSocket": {has, others, []string{"Connection", "Upgrade", "Upgrade", "web\u017focket"}},
	} {
		port := freePort(t)
		b := newBed(t, Options{Roots: c.roots}, ListenOptions{}, serviceOf(port, "https"), startTLS(t, addrAt(101, port), c.cert, func(http.ResponseWriter, *http.Request) {}))
		for range ejectAfter {
			b.do("GET", "/", nil, c.header...)
		}
		for _, target := range b.pools.allTargets() {
			if target.mu.Lock(); target.ejections > 0 || target.undelivered > 0 {
				t.Errorf("%s: %d requests count against %v, and it was ejected %d times", name, target.undelivered, target.Target, target.ejections)
			}
			target.mu.Unlock()
		}
	}
}

func TestWhatIsSaidOfTheClient(t *testing.T) {
	port, east, _ := twoClusters(t)
	east.does(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded", "X-Real-Ip", "X-Secret", "X_user", "X-Own"} {
			_, _ = fmt.Fprintf(w, "%s=%s\n", name, strings.Join(r.Header[name], "|"))
		}
	})
	lies := []string{"X-Forwarded-For", "192.0.2.66", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil.test", "Forwarded", "for=192.0.2.66", "X-Real-IP", "192.0.2.66", "Connection", "X-Secret", "X-Secret", "1", "X_user", "root", "X-Own", "1"}
	alien := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	if _, got, _ := alien.do("GET", "/", nil, lies...); got != "X-Forwarded-For=127.0.0.1\nX-Forwarded-Proto=http\nX-Forwarded-Host=www.test\nForwarded=for=127.0.0.1;host=www.test;proto=http\nX-Real-Ip=\nX-Secret=\nX_user=\nX-Own=1\n" {
		t.Errorf("of a client that is not trusted:\n%s", got)
	}
	trusted := newBed(t, Options{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, ListenOptions{}, serviceOf(port, ""), east)
	if _, got, _ := trusted.do("GET", "/", nil, lies...); got != "X-Forwarded-For=192.0.2.66, 127.0.0.1\nX-Forwarded-Proto=https\nX-Forwarded-Host=www.test\nForwarded=for=192.0.2.66, for=127.0.0.1;host=www.test;proto=https\nX-Real-Ip=\nX-Secret=\nX_user=\nX-Own=1\n" {
		t.Errorf("of a peer that is trusted:\n%s", got)
	}
}

func TestTLSByServerName(t *testing.T) {
	port, east, _ := twoClusters(t)
	service := serviceOf(port, "")
	b := newBed(t, Options{}, ListenOptions{TLS: true}, service, east)
	cert, roots := certificateOf(t, "www.test")
	get := func(serverName, host string, protocols ...string) (string, error) {
		transport := &http.Transport{ForceAttemptHTTP2: len(protocols) == 0, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: serverName, NextProtos: protocols}}
		defer transport.CloseIdleConnections()
		r, _ := http.NewRequest("GET", "https://"+b.url+"/", nil)
		r.Host = host
		answer, err := transport.RoundTrip(r)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return fmt.Sprintf("%s %d %s", answer.Proto, answer.StatusCode, strings.TrimSpace(string(body))), err
	}
	if got, err := get("www.test", "www.test"); err == nil {
		t.Errorf("without a certificate: %s", got)
	}
	b.SetRoutes(tableOf(service, "www.test", "cert"), map[string]*tls.Certificate{"shop/cert": cert})
	for want, ask := range map[string][]string{
		"HTTP/2.0 200 east-a":                   {"www.test", "www.test"},
		"HTTP/1.1 200 east-a":                   {"www.test", "WWW.test.:443", "http/1.1"},
		"HTTP/2.0 404 no Ingress has this host": {"www.test", "other.test"},
	} {
		if got, err := get(ask[0], ask[1], ask[2:]...); got != want {
			t.Errorf("server name and host %v: %q, %v; want %q", ask, got, err, want)
		}
	}
	if got, err := get("other.test", "www.test"); err == nil {
		t.Errorf("for another server name: %s", got)
	}
	cert, roots = certificateOf(t, "www.test")
	if got, err := get("www.test", "www.test"); err == nil {
		t.Errorf("the new certificate is served before anybody has set it: %s", got)
	}
	b.SetRoutes(tableOf(service, "www.test", "cert"), map[string]*tls.Certificate{"shop/cert": cert})
	if got, err := get("www.test", "www.test"); err != nil {
		t.Errorf("with a new certificate: %q, %v", got, err)
	}
	if status, _, _ := b.raw("GET / HTTP/1.1\r\nHost: www.test\r\n\r\n"); status != http.StatusBadRequest {
		t.Errorf("without TLS: %d", status)
	}
}

func TestAccessLog(t *testing.T) {
	port, east, _ := twoClusters(t)
	logged := &lockedBuffer{}
	b := newBed(t, Options{AccessLog: logged}, ListenOptions{}, serviceOf(port, ""), east)
	b.do("GET", "/a?b=\"\\", nil, "User-Agent", "quo\"te\x80")
	b.raw("GET /../x HTTP/1.1\r\nHost: www.test\r\n\r\n")
	b.raw("GET / HTTP/1.1\r\nHost: other.test\r\n\r\n")
	eventually(t, func() string {
		if n := strings.Count(logged.String(), "\n"); n != 3 {
			return fmt.Sprintf("%d lines, want 3:\n%s", n, logged.String())
		}
		return ""
	})
	var lines []map[string]any
	for line := range strings.Lines(logged.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, m)
	}
	first := lines[0]
	if first["uri"] != `/a?b=%22%5C` && first["uri"] != `/a?b="\` || first["status"] != 200.0 || first["cluster"] != "east-a" || first["ingress"] != "shop/web" || first["client"] != "127.0.0.1" || first["bytes"] != 6.0 || first["tries"] != 1.0 {
		t.Errorf("line of a request: %v", first)
	}
	if lines[1]["status"] != 400.0 || lines[1]["reason"] == "" || lines[2]["status"] != 404.0 || lines[2]["host"] != "other.test" {
		t.Errorf("lines of refused requests: %v", lines[1:])
	}
}

// TestDrainEndsConnectionsWithTheirAnswers: what is under way ends, and clients go with their next answer.
func TestDrainEndsConnectionsWithTheirAnswers(t *testing.T) {
	port, east, _ := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	enter, leave := make(chan struct{}), make(chan struct{})
	east.does(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(enter)
			<-leave
		}
		_, _ = io.WriteString(w, "done")
	})
	result := make(chan string)
	go func() {
		_, body, _ := b.do("GET", "/slow", nil)
		result <- body
	}()
	<-enter
	b.Drain()
	if _, header, body := b.raw("GET / HTTP/1.1\r\nHost: www.test\r\n\r\n"); header.Get("Connection") != "close" || body != "done" {
		t.Errorf("while it drains: %v, %q", header, body)
	}
	ended := make(chan error)
	go func() { ended <- b.server.Shutdown(context.Background()) }()
	select {
	case err := <-ended:
		t.Errorf("shut down before the request was answered: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(leave)
	if body := <-result; body != "done" {
		t.Errorf("the request under way got %q", body)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestTLSToClusters: a cluster must have a certificate for the host, of a trusted authority.
func TestTLSToClusters(t *testing.T) {
	cert, roots := certificateOf(t, "www.test")
	other, _ := certificateOf(t, "www.test")
	for name, c := range map[string]struct {
		cert *tls.Certificate
		want int
	}{"its own": {cert, 200}, "of somebody else": {other, 502}} {
		port := freePort(t)
		l, err := tls.Listen("tcp", addrAt(101, port).String(), &tls.Config{Certificates: []tls.Certificate{*c.cert}})
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.TLS.ServerName+" "+r.Host) })}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { _ = server.Close() })
		b := newBed(t, Options{Roots: roots}, ListenOptions{}, serviceOf(port, "https"), &cluster{name: "east-a", addr: addrAt(101, port)})
		status, body, _ := b.do("GET", "/", nil)
		if status != c.want || status == 200 && body != "www.test www.test" {
			t.Errorf("with a certificate %s: %d %q, want %d", name, status, body, c.want)
		}
	}
}

// A client whose request is refused is not waited for, though its body has not come: its connection ends.
func TestBodiesOfRefusedRequestsEnd(t *testing.T) {
	port, east, _ := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	c, err := net.Dial("tcp", b.url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: nobody.test\r\nContent-Length: 10\r\n\r\n")
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || answer.StatusCode != http.StatusNotFound || !answer.Close {
		t.Fatalf("answer %v, %v", answer, err)
	}
}

// Methods that are no tokens, which HTTP/2 can carry, would be read in two ways behind us.
func TestMethodsAreTokens(t *testing.T) {
	for method, good := range map[string]bool{"GET": true, "PROPFIND": true, "GET /admin?x=": false, "A\tB": false, "": false} {
		r := &http.Request{Method: method, Host: "www.test", RequestURI: "/", URL: &url.URL{Path: "/"}, ProtoMajor: 2}
		if _, f := checkRequest(r); (f == nil) != good {
			t.Errorf("method %q: %+v", method, f)
		}
	}
}
