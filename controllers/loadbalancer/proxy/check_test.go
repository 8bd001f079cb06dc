package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"federation/controllers/loadbalancer/plan"
)

func addrAt(n byte, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, n}), port)
}

// corpus has requests that servers are known to read in different ways, each with the statuses that are right; 0: the connection is
// closed. nginx 1.22 refuses those too, unless it says otherwise.
var corpus = []struct {
	name, text string
	want       []int
}{
	{"a plain request", "GET / HTTP/1.1\r\nHost: www.test\r\n\r\n", []int{200}},
	{"no host", "GET / HTTP/1.1\r\n\r\n", []int{400}},
	{"no host in HTTP/1.0, where nginx takes the first server", "GET / HTTP/1.0\r\n\r\n", []int{400}},
	{"two hosts", "GET / HTTP/1.1\r\nHost: www.test\r\nHost: other.test\r\n\r\n", []int{400}},
	{"a host with a path", "GET / HTTP/1.1\r\nHost: www.test/x\r\n\r\n", []int{400}},
	{"a host with a space", "GET / HTTP/1.1\r\nHost: www.test other\r\n\r\n", []int{400}},
	{"a host with user information", "GET / HTTP/1.1\r\nHost: a@www.test\r\n\r\n", []int{400}},
	{"a host with an empty label", "GET / HTTP/1.1\r\nHost: www..test\r\n\r\n", []int{400}},
	{"a host with a port that is none", "GET / HTTP/1.1\r\nHost: www.test:x\r\n\r\n", []int{400}},
	{"a host with a dot at its end, and a port", "GET / HTTP/1.1\r\nHost: WWW.test.:80\r\n\r\n", []int{200}},
	{"an absolute address", "GET http://www.test/ HTTP/1.1\r\nHost: www.test\r\n\r\n", []int{200}},
	{"an absolute address of another host than the header's: the address counts", "GET http://www.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n", []int{200}},
	{"two lengths", "POST / HTTP/1.1\r\nHost: www.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", []int{400}},
	{"two lengths in one", "POST / HTTP/1.1\r\nHost: www.test\r\nContent-Length: 1, 1\r\n\r\nx", []int{400}},
	{"a length with a sign", "POST / HTTP/1.1\r\nHost: www.test\r\nContent-Length: +1\r\n\r\nx", []int{400}},
	{"a length that is no number", "POST / HTTP/1.1\r\nHost: www.test\r\nContent-Length: 0x1\r\n\r\nx", []int{400}},
	{"a negative length", "POST / HTTP/1.1\r\nHost: www.test\r\nContent-Length: -1\r\n\r\nx", []int{400}},
	{"a length of many digits", "POST / HTTP/1.1\r\nHost: www.test\r\nContent-Length: 99999999999999999999\r\n\r\nx", []int{400}},
	{"an encoding that nobody knows", "POST / HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", []int{501, 400}},
	{"two encodings", "POST / HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", []int{501, 400}},
	{"chunked twice", "POST / HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{501, 400}},
	{"an encoding and a length", "POST / HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", []int{400}},
	{"a length and an encoding", "POST / HTTP/1.1\r\nHost: www.test\r\ncontent-LENGTH:5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{400}},
	{"a length and an encoding, in lines that end by one byte", "POST / HTTP/1.1\nHost: www.test\nContent-Length: 0\nTransfer-Encoding: chunked\n\n0\r\n\r\n", []int{400}},
	{"an encoding in HTTP/1.0", "POST / HTTP/1.0\r\nHost: www.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{400}},
	{"an encoding and a length in HTTP/1.0", "POST / HTTP/1.0\r\nHost: www.test\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", []int{400}},
	{"two lengths and an encoding", "POST / HTTP/1.1\r\nHost: www.test\r\nContent-Length: 5\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{400}},
	{"an encoding behind a control character", "POST / HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", []int{501, 400}},
	{"a space before the colon", "POST / HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", []int{400}},
	{"a name with a space", "GET / HTTP/1.1\r\nHost: www.test\r\nX Y: 1\r\n\r\n", []int{400}},
	{"a name with a zero byte", "GET / HTTP/1.1\r\nHost: www.test\r\nX\x00Y: 1\r\n\r\n", []int{400}},
	{"a value with a zero byte", "GET / HTTP/1.1\r\nHost: www.test\r\nX: 1\x002\r\n\r\n", []int{400}},
	{"a value with a bare carriage return", "GET / HTTP/1.1\r\nHost: www.test\r\nX: 1\rY: 2\r\n\r\n", []int{400}},
	{"a line without a colon", "GET / HTTP/1.1\r\nHost: www.test\r\nX\r\n\r\n", []int{400}},
	{"the first header begins with a space", "GET / HTTP/1.1\r\n Host: www.test\r\n\r\n", []int{400}},
	{"a chunk size that is none", "POST / HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", []int{400, 502, 0}},
	{"a chunk size of many digits", "POST / HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n\r\n", []int{400, 502, 0}},
	{"HTTP/0.9", "GET /\r\n\r\n", []int{400}},
	{"HTTP/3.0", "GET / HTTP/3.0\r\nHost: www.test\r\n\r\n", []int{505}},
	{"a version that is none", "GET / HTTP/1.1x\r\nHost: www.test\r\n\r\n", []int{400}},
	{"a space in the path", "GET /a b HTTP/1.1\r\nHost: www.test\r\n\r\n", []int{400}},
	{"a control character in the path", "GET /a\x01b HTTP/1.1\r\nHost: www.test\r\n\r\n", []int{400}},
	{"a byte beyond ASCII in the path, which nginx takes", "GET /\xff HTTP/1.1\r\nHost: www.test\r\n\r\n", []int{400}},
	{"an encoded zero byte in the path", "GET /a%00b HTTP/1.1\r\nHost: www.test\r\n\r\n", []int{400}},
	{"an escape that is none", "GET /%zz HTTP/1.1\r\nHost: www.test\r\n\r\n", []int{400}},
	{"a path that goes up, which nginx resolves", "GET /a/../../b HTTP/1.1\r\nHost: www.test\r\n\r\n", []int{400}},
	{"a path that goes up, encoded", "GET /a/%2e%2E/b HTTP/1.1\r\nHost: www.test\r\n\r\n", []int{400}},
	{"a path that does not begin with a slash", "GET a HTTP/1.1\r\nHost: www.test\r\n\r\n", []int{400}},
	{"CONNECT", "CONNECT www.test:443 HTTP/1.1\r\nHost: www.test:443\r\n\r\n", []int{405}},
	{"TRACE", "TRACE / HTTP/1.1\r\nHost: www.test\r\n\r\n", []int{405}},
	{"a method that is none", "GE T / HTTP/1.1\r\nHost: www.test\r\n\r\n", []int{400}},
	{"a very long path", "GET /" + strings.Repeat("a", 9<<10) + " HTTP/1.1\r\nHost: www.test\r\n\r\n", []int{414}},
	{"a header that is too large", "GET / HTTP/1.1\r\nHost: www.test\r\nX: " + strings.Repeat("a", 32<<10) + "\r\n\r\n", []int{431}},
	{"very many headers", "GET / HTTP/1.1\r\nHost: www.test\r\n" + strings.Repeat("X: 1\r\n", 6<<10) + "\r\n", []int{431}},
	{"an upgrade with a body", "POST / HTTP/1.1\r\nHost: www.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\nx", []int{400}},
	{"an upgrade to h2c is not passed on", "GET / HTTP/1.1\r\nHost: www.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n", []int{200}},
	{"an expectation that nobody knows", "GET / HTTP/1.1\r\nHost: www.test\r\nExpect: more\r\n\r\n", []int{417}},
	{"TLS where it is not spoken", "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", []int{400, 0}},
}

func TestRequestsThatServersReadInTwoWays(t *testing.T) {
	port, east, _ := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	for _, c := range corpus {
		before := east.seen.Load()
		text := c.text
		if strings.HasPrefix(text, "\x16") {
			text += "\r\n\r\n"
		}
		status, _, _ := b.raw(text)
		ok := false
		for _, want := range c.want {
			ok = ok || status == want
		}
		if !ok {
			t.Errorf("%s: %d, want one of %v", c.name, status, c.want)
		}
		if sent := east.seen.Load() - before; sent > 1 || sent == 1 && status == 400 && !strings.Contains(c.text, "chunked") {
			t.Errorf("%s: the cluster got %d requests", c.name, sent)
		}
	}
}

// corpus2 is the same for HTTP/2 over TLS: what is sent in place of, or beside, the pseudo-headers of a GET of https://www.test/, in pairs; 0: the stream or
// connection is reset. nginx 1.22 takes some of what is refused here; what it refuses is refused.
var corpus2 = []struct {
	name    string
	headers []string
	want    int
}{
	{"a plain request", nil, 200},
	{"another scheme than the connection's, which counts for nothing, as with nginx", []string{":scheme", "http"}, 200},
	{"another scheme, and a host that the connection was not opened for", []string{":scheme", "http", ":authority", "other.test"}, 421},
	{"a scheme that is none, which nginx takes", []string{":scheme", "ftp"}, 0},
	{"no scheme", []string{":scheme", ""}, 0},
	{"a host beside the authority", []string{"host", "www.test"}, 200},
	{"another host beside the authority", []string{"host", "other.test"}, 400},
	{"a host in place of the authority", []string{":authority", "", "host", "www.test"}, 200},
	{"two hosts in place of the authority", []string{":authority", "", "host", "www.test", "host", "other.test"}, 400},
	{"an authority with user information, which nginx takes", []string{":authority", "a@www.test"}, 0},
	{"a path that does not begin with a slash", []string{":path", "a"}, 0},
	{"a space in the path", []string{":path", "/a b"}, 400},
	{"a name in upper case", []string{"X-Y", "1"}, 0},
	{"an encoding, which nginx takes", []string{"transfer-encoding", "chunked"}, 400},
	{"a header of the connection, which nginx takes", []string{"connection", "close"}, 400},
	{"a line in a value", []string{"x", "1\r\ny: 2"}, 0},
	{"a very long path, which nginx takes", []string{":path", "/" + strings.Repeat("a", 9<<10)}, 414},
	{"a header as large as HTTP/1 may have, which nginx refuses", []string{"x", strings.Repeat("a", 15<<10)}, 200},
	{"a header that is too large", []string{"x", strings.Repeat("a", 32<<10)}, 0},
	{"headers that are too large together", slices.Repeat([]string{"x", strings.Repeat("a", 4<<10)}, 5), 431},
	{"very many headers, which nginx takes", slices.Repeat([]string{"x", "1"}, 6<<10), 431},
}

func TestRequestsThatServersReadInTwoWaysByHTTP2(t *testing.T) {
	port, east, _ := twoClusters(t)
	cert, roots := certificateOf(t, "www.test")
	b := newBed(t, Options{}, ListenOptions{TLS: true}, serviceOf(port, ""), east)
	east.does(func(w http.ResponseWriter, r *http.Request) {
		if proto := r.Header.Get("X-Forwarded-Proto"); proto != "https" || r.Host != "www.test" {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	service := serviceOf(port, "")
	other := ingressOf(service, "other.test", "other")
	other.Name = "other"
	table := plan.Routes(plan.World{Services: map[string]*corev1.Service{"shop/web": service}, Ingresses: []*networkingv1.Ingress{ingressOf(service, "www.test", "cert"), other}})
	b.SetRoutes(table, map[string]*tls.Certificate{"shop/cert": cert})
	for _, c := range corpus2 {
		before := east.seen.Load()
		if status := askByHTTP2(t, b.url, roots, c.headers); status != c.want {
			t.Errorf("%s: %d, want %d", c.name, status, c.want)
		}
		if sent := east.seen.Load() - before; sent != 0 && c.want != 200 {
			t.Errorf("%s: the cluster got %d requests", c.name, sent)
		}
	}
}

// askByHTTP2 sends a GET with these headers, and returns the status; 0 if the stream or connection is reset.
func askByHTTP2(t *testing.T, address string, roots *x509.CertPool, headers []string) (status int) {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{ServerName: "www.test", RootCAs: roots, NextProtos: []string{http2Protocol}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	pseudo := []string{":method", "GET", ":scheme", "https", ":authority", "www.test", ":path", "/"}
	for len(headers) > 0 && headers[0][0] == ':' {
		at := slices.Index(pseudo, headers[0])
		if pseudo[at+1] = headers[1]; headers[1] == "" {
			pseudo = slices.Delete(pseudo, at, at+2)
		}
		headers = headers[2:]
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for pair := range slices.Chunk(slices.Concat(pseudo, headers), 2) {
		_ = encoder.WriteField(hpack.HeaderField{Name: pair[0], Value: pair[1]}) // into memory
	}
	_, _ = io.WriteString(c, http2.ClientPreface) // what it answers tells
	framer := http2.NewFramer(c, c)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = framer.WriteSettings()
	const most = 16 << 10 // bytes of a frame
	first := block.Next(most)
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: first, EndStream: true, EndHeaders: block.Len() == 0})
	for block.Len() > 0 {
		part := block.Next(most)
		_ = framer.WriteContinuation(1, block.Len() == 0, part)
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return 0
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			_, _ = fmt.Sscan(f.PseudoValue("status"), &status) // 0 is none
			return status
		case *http2.RSTStreamFrame:
			return 0
		}
	}
}

// TestNothingIsSmuggled: whatever a client sends with a length and an encoding, the cluster gets one request, with one of them.
func TestNothingIsSmuggled(t *testing.T) {
	port, east, _ := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	east.does(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "smuggled") || len(r.TransferEncoding) > 0 && r.ContentLength >= 0 {
			t.Errorf("the cluster got %s with %v and length %d", r.URL.Path, r.TransferEncoding, r.ContentLength)
		}
		_, _ = io.Copy(io.Discard, r.Body)
	})
	smuggled := "GET /smuggled HTTP/1.1\r\nHost: www.test\r\nX: "
	for _, text := range []string{
		"POST / HTTP/1.1\r\nHost: www.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n60\r\n" + smuggled + strings.Repeat("a", 0x60-len(smuggled)) + "\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: www.test\r\nContent-Length: 60\r\nConnection: close\r\n\r\n" + smuggled + strings.Repeat("a", 60-min(60, len(smuggled))),
		"POST / HTTP/1.1\r\nHost: www.test\r\nConnection: Content-Length, close\r\nContent-Length: 60\r\n\r\n" + smuggled + strings.Repeat("a", 60-min(60, len(smuggled))),
		"GET / HTTP/1.1\r\nHost: www.test\r\nConnection: Host, close\r\nContent-Length: 60\r\n\r\n" + smuggled + strings.Repeat("a", 60-min(60, len(smuggled))),
	} {
		b.raw(text)
	}
}

// TestALengthBesideAnEncodingIsRefused: wherever in a connection it comes, in whatever pieces, and by TLS; the connection ends with it.
func TestALengthBesideAnEncodingIsRefused(t *testing.T) {
	port, east, _ := twoClusters(t)
	cert, roots := certificateOf(t, "www.test")
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	plain := b.url
	b.SetRoutes(tableOf(serviceOf(port, ""), "www.test", "cert"), map[string]*tls.Certificate{"shop/cert": cert})
	b.listen(ListenOptions{TLS: true})
	east.does(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	const (
		get     = "GET / HTTP/1.1\r\nHost: www.test\r\nX: \r\n\r\n"
		post    = "POST / HTTP/1.1\r\nHost: www.test\r\nContent-Length: 21\r\n\r\n\r\nContent-Length: 5\r\n"
		chunked = "POST / HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
		both    = "POST / HTTP/1.1\r\nHost: www.test\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
	)
	for name, c := range map[string]struct {
		requests []string
		pieces   int
		want     string
	}{
		"the first":             {[]string{both}, 1 << 10, "400 closed"},
		"with one behind it":    {[]string{both + get}, 1 << 10, "400 closed"},
		"in single bytes":       {[]string{get, both}, 1, "200, 400 closed"},
		"behind others":         {[]string{get, post, get, both}, 1 << 10, "200, 200, 200, 400 closed"},
		"behind a body":         {[]string{post, post, chunked}, 7, "200, 200, 200"},
		"behind chunks":         {[]string{chunked, both}, 1 << 10, "200, 400 closed"},
		"chunks behind chunks":  {[]string{chunked, get, chunked}, 1 << 10, "200, 200, 200"},
		"others behind chunks":  {[]string{chunked, get, post, get}, 1 << 10, "200, 200, 200, 200"},
		"sent before an answer": {[]string{get + both, ""}, 1 << 10, "200, 400 closed"},
	} {
		for _, secure := range []bool{false, true} {
			conn, err := net.Dial("tcp", map[bool]string{false: plain, true: b.url}[secure])
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			if secure {
				conn = tls.Client(conn, &tls.Config{ServerName: "www.test", RootCAs: roots})
			}
			if got := askInPieces(conn, c.requests, c.pieces); got != c.want {
				t.Errorf("%s, by TLS %t: %s, want %s", name, secure, got, c.want)
			}
			_ = conn.Close()
		}
	}
}

// askInPieces sends requests over a connection, each after the answer to the one before, and returns the statuses.
func askInPieces(c net.Conn, requests []string, piece int) string {
	reader, out := bufio.NewReader(c), []string(nil)
	for _, text := range requests {
		for part := range slices.Chunk([]byte(text), piece) {
			_, _ = c.Write(part) // what it answers tells
		}
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			out = append(out, err.Error())
			break
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		status := fmt.Sprint(answer.StatusCode)
		if answer.Close {
			if _, err := reader.ReadByte(); errors.Is(err, io.EOF) {
				status += " closed"
			}
		}
		out = append(out, status)
	}
	return strings.Join(out, ", ")
}

func TestHostNames(t *testing.T) {
	for text, want := range map[string]string{
		"www.test": "www.test", "WWW.Test.": "www.test", "www.test:80": "www.test", "www.test.:": "www.test", "192.0.2.1:80": "192.0.2.1", "[2001:db8::1]": "[2001:db8::1]", "[2001:db8::1]:443": "[2001:db8::1]",
		"": "", ":80": "", ".": "", ".test": "", "a..b": "", "a:b": "", "a:123456": "", "[::1": "", "[::1]x": "", "[fe80::1%eth0]": "", "[192.0.2.1]": "", "a/b": "", "a b": "", "*.test": "", "a\x00": "", "ä.test": "", "a_b.test": "a_b.test",
		strings.Repeat("a", 254): "",
	} {
		if got := hostName(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// proxyHeader makes a header of PROXY protocol v2.
func proxyHeader(command, family byte, rest string) string {
	return proxySignature + string([]byte{command, family}) + string(binary.BigEndian.AppendUint16(nil, uint16(len(rest)))) + rest
}

func TestProxyProtocol(t *testing.T) {
	const v4 = "\xc0\x00\x02\x01\x7f\x00\x00\x01\x30\x39\x00\x50"
	for name, c := range map[string]struct{ text, want, err string }{
		"IPv4":                    {proxyHeader(0x21, 0x11, v4), "192.0.2.1:12345", ""},
		"IPv4 with more behind":   {proxyHeader(0x21, 0x11, v4+"\x01\x00\x02h2"), "192.0.2.1:12345", ""},
		"IPv6":                    {proxyHeader(0x21, 0x21, "\x20\x01\x0d\xb8"+strings.Repeat("\x00", 11)+"\x01"+strings.Repeat("\x00", 16)+"\x30\x39\x00\x50"), "[2001:db8::1]:12345", ""},
		"LOCAL":                   {proxyHeader(0x20, 0x00, ""), "invalid AddrPort", ""},
		"LOCAL with addresses":    {proxyHeader(0x20, 0x11, v4), "invalid AddrPort", ""},
		"no family":               {proxyHeader(0x21, 0x00, ""), "invalid AddrPort", ""},
		"version 1":               {"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "", "does not begin"},
		"no header":               {"GET / HTTP/1.1\r\n\r\n", "", "does not begin"},
		"another version":         {proxyHeader(0x31, 0x11, v4), "", "must be version 2"},
		"another command":         {proxyHeader(0x22, 0x11, v4), "", "must be version 2"},
		"UDP":                     {proxyHeader(0x21, 0x12, v4), "", "must be TCP"},
		"a short address":         {proxyHeader(0x21, 0x11, v4[:11]), "", "must be TCP"},
		"more than anybody sends": {proxyHeader(0x21, 0x11, v4+strings.Repeat("x", maxProxyHeader)), "", "at most"},
		"cut off":                 {proxyHeader(0x21, 0x11, v4)[:20], "", "unexpected EOF"},
		"nothing":                 {"", "", "EOF"},
	} {
		got, err := readProxyHeader(strings.NewReader(c.text))
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || c.err == "" && (err != nil || got.String() != c.want) {
			t.Errorf("%s: %v, %v; want %s%s", name, got, err, c.want, c.err)
		}
	}
}

func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte(proxyHeader(0x21, 0x11, "\xc0\x00\x02\x01\x7f\x00\x00\x01\x30\x39\x00\x50")))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := bytes.NewReader(text)
		client, err := readProxyHeader(r)
		if read := len(text) - r.Len(); read > 16+maxProxyHeader || client.IsValid() && err != nil {
			t.Errorf("%d bytes read, %v, %v", read, client, err)
		}
	})
}

// TestWhoMaySayWhoTheClientIs: a trusted peer only; its word goes on to the cluster.
func TestWhoMaySayWhoTheClientIs(t *testing.T) {
	port, east, _ := twoClusters(t)
	east.does(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-For"))
	})
	text := proxyHeader(0x21, 0x11, "\xc0\x00\x02\x01\x7f\x00\x00\x01\x30\x39\x00\x50") + "GET / HTTP/1.1\r\nHost: www.test\r\n\r\n"
	trusted := newBed(t, Options{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, ListenOptions{ProxyProtocol: true}, serviceOf(port, ""), east)
	if status, _, body := trusted.raw(text); status != 200 || body != "192.0.2.1" {
		t.Errorf("by a trusted peer: %d %q", status, body)
	}
	if status, _, _ := trusted.raw("GET / HTTP/1.1\r\nHost: www.test\r\n\r\n"); status == 200 {
		t.Error("a connection without a header is served")
	}
	alien := newBed(t, Options{}, ListenOptions{ProxyProtocol: true}, serviceOf(port, ""), east)
	if status, _, body := alien.raw(text); status == 200 {
		t.Errorf("by anybody: %d %q", status, body)
	}
}

// FuzzRequest: whatever comes from a client, a cluster gets requests for the host's paths only, and the next client is served.
func FuzzRequest(f *testing.F) {
	for _, c := range corpus {
		if len(c.text) < 4<<10 {
			f.Add([]byte(c.text))
		}
	}
	var b *bed
	f.Fuzz(func(t *testing.T, text []byte) {
		if b == nil {
			b = fuzzBed(t)
		}
		c, err := net.Dial("tcp", b.url)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = c.Write(text)
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, io.LimitReader(c, 1<<20))
		_ = c.Close()
	})
}

// fuzzBed lives as long as the process.
func fuzzBed(t *testing.T) *bed {
	l, err := net.Listen("tcp", "127.0.0.103:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr).AddrPort()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hostName(r.Host) != "www.test" || strings.Contains(r.URL.Path, "/../") || r.Header.Get("Transfer-Encoding") != "" {
			panic("the cluster got " + r.Host + " " + r.RequestURI)
		}
	})}
	go func() { _ = server.Serve(l) }()
	p := New(Options{Refuse: func(netip.Addr) error { return nil }})
	service := serviceOf(at.Port(), "")
	p.SetRoutes(tableOf(service, "www.test", ""), nil)
	b := &bed{Proxy: p, t: t}
	east := &cluster{name: "east-a", addr: at}
	b.in.ID.Namespace, b.in.ID.Service, b.in.ID.Port = "shop", "web", int32(at.Port())
	b.in.Service, b.in.Offers = service, append(b.in.Offers, east.offer(0))
	p.SetPool(b.in)
	s, err := p.Listen(t.Context(), ListenOptions{Address: "127.0.0.1:0", MaxConnections: 1000, MaxOfClient: 1000})
	if err != nil {
		t.Fatal(err)
	}
	b.url = s.Addr().String()
	go func() { _ = s.Serve() }()
	return b
}
