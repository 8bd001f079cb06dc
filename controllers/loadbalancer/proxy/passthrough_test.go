package proxy

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// passedBed is a proxy in region east with a TLS listener. TLS for vault.test and *.apps.test is passed on to the Service shop/web; that for www.test, whose
// backend is the same, ends here.
type passedBed struct {
	*bed
	passed plan.PoolID
	own    *x509.CertPool
	log    *lockedBuffer
}

func newPassedBed(t *testing.T, annotations map[string]string, offers ...servicednsplan.Offer) *passedBed {
	t.Helper()
	port := uint16(0)
	for _, o := range offers {
		port = portOf[o.Addresses[0]]
	}
	service := serviceOf(port, "")
	service.Annotations = annotations
	log := &lockedBuffer{}
	own, pool := certificateOf(t, "www.test")
	p := New(Options{Refuse: func(netip.Addr) error { return nil }, AccessLog: log})
	b := &passedBed{bed: &bed{Proxy: p, t: t}, own: pool, log: log}
	rule := func(host string) networkingv1.IngressRule {
		return networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
			Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: int32(port)}}},
		}}}}}
	}
	table := plan.Routes(plan.World{Services: map[string]*corev1.Service{"shop/web": service}, Ingresses: []*networkingv1.Ingress{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "passed", Annotations: map[string]string{v1beta1.SSLPassthroughAnnotation: "true"}},
			Spec: networkingv1.IngressSpec{IngressClassName: new(v1beta1.IngressClassName), Rules: []networkingv1.IngressRule{rule("vault.test"), rule("*.apps.test")}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec: networkingv1.IngressSpec{IngressClassName: new(v1beta1.IngressClassName), TLS: []networkingv1.IngressTLS{{SecretName: "www"}}, Rules: []networkingv1.IngressRule{rule("www.test")}}},
	}})
	b.SetRoutes(table, map[string]*tls.Certificate{"shop/www": own})
	for id := range table.Pools() {
		in := plan.PoolInput{ID: id, Site: plan.Site{Region: "east"}, Service: service, ServerName: table.ServerNames()[id], Offers: offers}
		if b.SetPool(in); id.TLS {
			b.passed = id
		}
	}
	b.listen(ListenOptions{TLS: true})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return b
}

// portOf has the port at which an address of a test serves: the Service's, which all share.
var portOf = map[netip.Addr]uint16{}

func offerOf(name string, addr netip.AddrPort) servicednsplan.Offer {
	portOf[addr.Addr()] = addr.Port()
	region, _, _ := strings.Cut(name, "-")
	return servicednsplan.Offer{Cluster: name, Region: region, Weight: 100, Addresses: []netip.Addr{addr.Addr()}}
}

// get asks by TLS for a server name, and returns who answers, or an error.
func (b *passedBed) get(serverName string, roots *x509.CertPool) (string, error) {
	b.t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{ServerName: serverName, RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequest(http.MethodGet, "https://"+b.url, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Host = serverName
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	answer, err := transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return fmt.Sprintf("%s by %s", text, answer.Proto), err
}

// tlsCluster serves vault.test and names below apps.test by TLS.
func tlsCluster(t *testing.T, name string, n byte, port uint16) (servicednsplan.Offer, *x509.CertPool) {
	t.Helper()
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, n}), port)
	cert, roots := certificateOf(t, "vault.test", "*.apps.test")
	startTLS(t, at, cert, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, name+" "+r.TLS.ServerName) })
	return offerOf(name, at), roots
}

// TestTLSIsPassedOn for hosts whose Ingress says so: the client sees the cluster's certificate, and the protocol that it agrees on. For others it ends here.
func TestTLSIsPassedOn(t *testing.T) {
	port := freePort(t)
	east, roots := tlsCluster(t, "east-a", 101, port)
	b := newPassedBed(t, nil, east)
	for name, want := range map[string]string{"vault.test": "east-a vault.test by HTTP/2.0", "VAULT.test": "east-a VAULT.test by HTTP/2.0", "one.apps.test": "east-a one.apps.test by HTTP/2.0"} {
		if got, err := b.get(name, roots); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	if got, err := b.get("www.test", b.own); err != nil || !strings.HasSuffix(got, " by HTTP/2.0") {
		t.Errorf("www.test: %q, %v", got, err)
	}
	for _, name := range []string{"apps.test", "two.one.apps.test", "none.test", "vault.test.evil"} {
		if got, err := b.get(name, roots); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	eventually(t, func() string {
		if text := b.log.String(); !strings.Contains(text, `"host":"vault.test","ingress":"shop/passed","service":"shop/web","cluster":"east-a","result":"ended"`) {
			return text
		}
		return ""
	})
}

// TestPassedTLSHasAProxyHeader if the Service says so, and checks have one without a client.
func TestPassedTLSHasAProxyHeader(t *testing.T) {
	port := freePort(t)
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.101"), port)
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	clients := make(chan netip.AddrPort, 100)
	go acceptAll(l, func(c net.Conn) {
		client, err := readProxyHeader(c)
		if err == nil {
			clients <- client
			_, _ = c.Write([]byte("\x15\x03\x03\x00\x02\x02\x28")) // an alert
		}
	})
	b := newPassedBed(t, map[string]string{v1beta1.ProxyProtocolAnnotation: v1beta1.ProxyProtocolV2}, offerOf("east-a", at))
	c := b.say(helloOf(t, &tls.Config{ServerName: "vault.test"}))
	if answer, _ := io.ReadAll(io.LimitReader(c, 7)); len(answer) != 7 {
		t.Errorf("answer %x", answer)
	}
	own := c.LocalAddr().(*net.TCPAddr).AddrPort()
	for seen, check := false, false; !seen || !check; {
		select {
		case client := <-clients:
			seen, check = seen || client == own, check || !client.IsValid()
			if client.IsValid() && client != own {
				t.Fatalf("client %s, want %s", client, own)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("the client was named: %t; there was a check: %t", seen, check)
		}
	}
}

// say connects and sends bytes.
func (b *passedBed) say(text []byte) net.Conn {
	b.t.Helper()
	c, err := net.Dial("tcp", b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Write(text); err != nil {
		b.t.Fatal(err)
	}
	return c
}

// helloOf returns the record with a client's hello.
func helloOf(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	c, s := net.Pipe()
	defer s.Close()
	config.InsecureSkipVerify = true
	go func() { _ = tls.Client(c, config).Handshake(); _ = c.Close() }()
	var head [5]byte
	if _, err := io.ReadFull(s, head[:]); err != nil {
		t.Fatal(err)
	}
	rest := make([]byte, binary.BigEndian.Uint16(head[3:]))
	if _, err := io.ReadFull(s, rest); err != nil {
		t.Fatal(err)
	}
	return append(head[:], rest...)
}

func acceptAll(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() { defer c.Close(); serve(c) }()
	}
}

// TestClustersThatDoNotAnswerAHello: another one gets it, the same bytes, when nothing came back.
func TestClustersThatDoNotAnswerAHello(t *testing.T) {
	for what, east := range map[string]func(net.Conn){
		"hangs":                       func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"closes the connection":       func(c net.Conn) { _, _ = io.ReadFull(c, make([]byte, 100)) },
		"resets it without a reading": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) },
	} {
		t.Run(what, func(t *testing.T) {
			port := freePort(t)
			at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.101"), port)
			l, err := net.Listen("tcp", at.String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go acceptAll(l, east)
			west, roots := tlsCluster(t, "west-a", 102, port)
			b := newPassedBed(t, nil, offerOf("east-a", at), west)
			began := time.Now()
			got, err := b.get("vault.test", roots)
			if took := time.Since(began); err != nil || got != "west-a vault.test by HTTP/2.0" || took > 10*time.Second {
				t.Errorf("%q after %s, %v", got, took, err)
			}
			t.Logf("answered after %s", time.Since(began))
		})
	}
}

// TestEarlyDataIsNotSentTwice: whoever sent it would not know.
func TestEarlyDataIsNotSentTwice(t *testing.T) {
	port := freePort(t)
	var offers []servicednsplan.Offer
	got := make(chan []byte, 10)
	for n, name := range []string{"east-a", "west-a"} {
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(101 + n)}), port)
		l, err := net.Listen("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go acceptAll(l, func(c net.Conn) {
			_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			text, _ := io.ReadAll(c)
			if bytes.Contains(text, []byte("vault.test")) && bytes.HasSuffix(text, []byte("order")) {
				got <- text
			}
		})
		offers = append(offers, offerOf(name, at))
	}
	b := newPassedBed(t, nil, offers...)
	hello := withExtension(t, helloOf(t, &tls.Config{ServerName: "vault.test"}), earlyData, nil)
	c := b.say(append(bytes.Clone(hello), "\x17\x03\x03\x00\x05order"...))
	if _, err := io.ReadAll(c); err == nil {
		t.Error("a connection that no cluster answers ends in order")
	}
	if n := len(got); n != 1 {
		t.Errorf("%d clusters got the data", n)
	}
	if text := <-got; !bytes.HasPrefix(text, hello) {
		t.Errorf("the cluster got %x", text)
	}
}

// withExtension adds an extension to a hello.
func withExtension(t *testing.T, hello []byte, id uint16, data []byte) []byte {
	t.Helper()
	b := bytes.Clone(hello)
	at := 5 + 4 + 2 + 32
	at += 1 + int(b[at])                           // session
	at += 2 + int(binary.BigEndian.Uint16(b[at:])) // cipher suites
	at += 1 + int(b[at])                           // compression
	size := int(binary.BigEndian.Uint16(b[at:]))   // extensions
	if at+2+size != len(b) {
		t.Fatal("this is no hello")
	}
	more := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, id), uint16(len(data)))
	more = append(more, data...)
	b = bytes.Join([][]byte{b[:at+2], more, b[at+2:]}, nil)
	binary.BigEndian.PutUint16(b[at:], uint16(size+len(more)))
	binary.BigEndian.PutUint16(b[3:], uint16(len(b)-5))
	binary.BigEndian.PutUint16(b[7:], uint16(len(b)-9)) // of the message, whose length has three bytes
	return b
}

// fragments cuts the message of a hello into records of some bytes each.
func fragments(hello []byte, size int) (all []byte) {
	for rest := hello[5:]; len(rest) > 0; {
		n := min(size, len(rest))
		all = append(append(all, 0x16, 3, 1, byte(n>>8), byte(n)), rest[:n]...)
		rest = rest[n:]
	}
	return all
}

// echList is a list of one ECH configuration, whose public name is outer.test.
func echList(t *testing.T) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	config := append([]byte{7, 0, 0x20, 0, 32}, key.PublicKey().Bytes()...)
	config = append(config, 0, 4, 0, 1, 0, 1, 0, byte(len("vault.test")))
	config = append(append(config, "vault.test"...), 0, 0)
	list := append([]byte{0xfe, 0x0d, 0, byte(len(config))}, config...)
	return append([]byte{0, byte(len(list))}, list...)
}

// TestHelloOfAnyForm: what crypto/tls reads as a hello for the host goes to the cluster, byte by byte as it came.
func TestHelloOfAnyForm(t *testing.T) {
	port := freePort(t)
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.101"), port)
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go acceptAll(l, func(c net.Conn) { _, _ = io.Copy(c, c) }) // it answers what it got
	b := newPassedBed(t, nil, offerOf("east-a", at))
	plain := helloOf(t, &tls.Config{ServerName: "vault.test"})
	other := helloOf(t, &tls.Config{ServerName: "other.test"})
	padded := func(size int) []byte { return withExtension(t, plain, 21, make([]byte, size)) }
	for name, c := range map[string]struct {
		hello  []byte
		passed bool
	}{
		"as it is":                       {plain, true},
		"of TLS 1.2 alone":               {helloOf(t, &tls.Config{ServerName: "vault.test", MaxVersion: tls.VersionTLS12}), true},
		"in records of a byte":           {fragments(plain, 1), true},
		"in records of 100 bytes":        {fragments(plain, 100), true},
		"with GREASE":                    {withExtension(t, withExtension(t, plain, 0x0a0a, nil), 0xfafa, []byte{0}), true},
		"with 10 KiB of padding":         {padded(10 << 10), true},
		"with what comes after":          {append(bytes.Clone(plain), "\x14\x03\x03\x00\x01\x01"...), true},
		"of ECH, whose outer name it is": {helloOf(t, &tls.Config{ServerName: "inner.test", MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: echList(t)}), true},
		"of another host":                {other, false},
		"without a name":                 {helloOf(t, &tls.Config{}), false},
		"of an address":                  {helloOf(t, &tls.Config{ServerName: "127.0.0.1"}), false},
		"with a second name":             {withExtension(t, plain, 0, nameList("other.test")), false},
		"of two names at once":           {withExtension(t, helloOf(t, &tls.Config{}), 0, nameList("vault.test", "other.test")), false},
		"with a dot at its end":          {withExtension(t, helloOf(t, &tls.Config{}), 0, nameList("vault.test.")), false},
		"with 17 KiB of padding":         {fragments(padded(17<<10), 1000), false},
		"in records, most of them empty": {bytes.Repeat([]byte{0x16, 3, 1, 0, 0}, 1000), false},
		"that is cut off":                {plain[:len(plain)-1], false},
		"that says to be longer":         {append([]byte{0x16, 3, 1, 0xff, 0xff}, plain[5:]...), false},
		"that is a request":              {[]byte("GET / HTTP/1.1\r\nHost: vault.test\r\n\r\n"), false},
		"that is an alert":               {[]byte("\x15\x03\x01\x00\x02\x02\x28"), false},
		"of SSL 2":                       {[]byte("\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := b.say(c.hello)
			_ = conn.(*net.TCPConn).CloseWrite()
			got, _ := io.ReadAll(conn)
			if passed := bytes.Equal(got, c.hello); passed != c.passed || !c.passed && len(got) >= len(plain) {
				t.Errorf("passed on: %t, want %t; %d bytes of %d", passed, c.passed, len(got), len(c.hello))
			}
		})
	}
}

// TestASlowHello: whoever takes too long to say whom it wants is given up.
func TestASlowHello(t *testing.T) {
	t.Parallel()
	b := newPassedBed(t, nil, offerOf("east-a", netip.MustParseAddrPort("127.0.0.101:9")))
	hello := helloOf(t, &tls.Config{ServerName: "vault.test"})
	c := b.say(hello[:1])
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		if _, err := c.Write(hello[1:2]); err != nil {
			return
		}
		if hello = hello[1:]; time.Since(began) > readHeaderTimeout+10*time.Second {
			t.Fatal("a client that says a byte at a time is listened to for longer than others")
		}
	}
}

// nameList is the extension with server names.
func nameList(names ...string) (list []byte) {
	for _, name := range names {
		list = append(append(list, 0, 0, byte(len(name))), name...)
	}
	return append([]byte{0, byte(len(list))}, list...)
}

// TestPassedConnectionsEndAsOthers: a shutdown waits for them, and closes them when its time is over.
func TestPassedConnectionsEndAsOthers(t *testing.T) {
	port := freePort(t)
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.101"), port)
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go acceptAll(l, func(c net.Conn) { _, _ = io.Copy(c, c) })
	b := newPassedBed(t, nil, offerOf("east-a", at))
	hello := helloOf(t, &tls.Config{ServerName: "vault.test"})
	c := b.say(hello)
	if _, err := io.ReadFull(c, make([]byte, len(hello))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = b.server.Shutdown(ctx) }()
	eventually(t, func() string {
		c, err := net.Dial("tcp", b.url)
		if err != nil {
			return ""
		}
		_ = c.Close()
		return "new connections are taken"
	})
	if _, err := io.WriteString(c, "still"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
		t.Errorf("an open connection does not go on: %v", err)
	}
	select {
	case <-ended:
		t.Error("it ended before the connection")
	default:
	}
	cancel()
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the connection goes on after the time of the shutdown: %v", err)
	}
	<-ended
}

// FuzzClientHello: whatever a client says, what is noted is what it said, within the bound; and nothing is passed on for another host.
func FuzzClientHello(f *testing.F) {
	for _, name := range []string{"vault.test", "other.test", ""} {
		hello := helloOf(f, &tls.Config{ServerName: name})
		f.Add(hello)
		f.Add(fragments(hello, 50))
	}
	p := New(Options{})
	p.SetRoutes(plan.Routes(plan.World{Ingresses: []*networkingv1.Ingress{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "passed", Annotations: map[string]string{v1beta1.SSLPassthroughAnnotation: "true"}},
		Spec: networkingv1.IngressSpec{IngressClassName: new(v1beta1.IngressClassName), Rules: []networkingv1.IngressRule{{Host: "vault.test"}}, DefaultBackend: &networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "none"}}},
	}}}), nil)
	endsHere := errors.New("TLS ends here")
	config := &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if _, err := p.passOrEnd(hello); err != nil {
			return nil, err
		}
		return nil, endsHere // what follows is not ours
	}}
	f.Fuzz(func(t *testing.T, text []byte) {
		from := &readConn{Reader: bytes.NewReader(text)}
		c := &helloConn{Conn: from}
		err := tls.Server(c, config).Handshake()
		if err == nil {
			t.Fatal("a handshake without an end has ended well")
		}
		if len(c.text) > maxHello || !bytes.HasPrefix(text, c.text) {
			t.Errorf("noted are %d bytes, which are not what the client said", len(c.text))
		}
		if passed := errors.Is(err, errPassedOn); passed != (c.to != nil) || passed && (c.host != "vault.test" || from.written > 0 || len(c.text) == 0) {
			t.Errorf("passed on: %t, to %v, for %q; %d bytes were written", passed, c.to, c.host, from.written)
		}
	})
}

// readConn is a connection of a client that says something and goes.
type readConn struct {
	net.Conn
	io.Reader
	written int
}

func (c *readConn) Read(p []byte) (int, error)       { return c.Reader.Read(p) }
func (c *readConn) Write(p []byte) (int, error)      { c.written += len(p); return len(p), nil }
func (c *readConn) SetDeadline(time.Time) error      { return nil }
func (c *readConn) SetWriteDeadline(time.Time) error { return nil }
func (c *readConn) Close() error                     { return nil }
func (c *readConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *readConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
