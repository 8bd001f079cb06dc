package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// echo is a cluster's load balancer: it says its name, and then what it is sent.
type echo struct {
	net.Listener
	name string
	addr netip.AddrPort
	mu   sync.Mutex
	// proxied has the PROXY headers' clients, of connections that have one.
	proxied []netip.AddrPort
	header  bool
}

func newEcho(t *testing.T, name string, n byte, port uint16) *echo {
	t.Helper()
	e := &echo{name: name, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, n}), port)}
	e.start(t)
	return e
}

func (e *echo) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", e.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	e.Listener = l
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go e.serve(c)
		}
	}()
}

func (e *echo) serve(c net.Conn) {
	defer c.Close()
	e.mu.Lock()
	header := e.header
	e.mu.Unlock()
	if header {
		client, err := readProxyHeader(c)
		if err != nil {
			return
		}
		e.mu.Lock()
		e.proxied = append(e.proxied, client)
		e.mu.Unlock()
	}
	_, _ = io.WriteString(c, e.name+"\n")
	_, _ = io.Copy(c, c)
}

// streamBed is a proxy in region east that serves the Service shop/db.
type streamBed struct {
	*Proxy
	t       *testing.T
	streams *Streams
	in      plan.PoolInput
	service *corev1.Service
	at      string
}

func newStreamBed(t *testing.T, o Options, s StreamOptions, annotations map[string]string, clusters ...*echo) *streamBed {
	t.Helper()
	port := clusters[0].addr.Port()
	o.Refuse = func(netip.Addr) error { return nil }
	b := &streamBed{Proxy: New(o), t: t, at: net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))}
	b.service = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Annotations: annotations}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(v1beta1.LoadBalancerClassName), Ports: []corev1.ServicePort{{Port: int32(port)}},
	}}
	b.in = plan.PoolInput{ID: plan.PoolID{Namespace: "shop", Service: "db", Port: int32(port), TCP: true}, Site: plan.Site{Region: "east"}, Service: b.service}
	for _, c := range clusters {
		region, _, _ := strings.Cut(c.name, "-")
		b.in.Offers = append(b.in.Offers, servicednsplan.Offer{Cluster: c.name, Region: region, Weight: 100, Addresses: []netip.Addr{c.addr.Addr()}})
	}
	b.SetPool(b.in)
	s.Host = "127.0.0.1"
	if s.MaxConnections == 0 {
		s.MaxConnections, s.MaxOfClient = 1000, 1000
	}
	if s.IdleTimeout == 0 {
		s.IdleTimeout = time.Minute
	}
	b.streams = b.ServeStreams(s)
	b.SetRoutes(plan.Routes(plan.World{Services: map[string]*corev1.Service{"shop/db": b.service}, ServicePorts: plan.PortRanges{{First: port, Last: port}}}), nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.Run(ctx) }()
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		b.streams.Shutdown(ended)
		cancel()
		<-done
	})
	return b
}

// open connects, and returns the name of the cluster.
func (b *streamBed) open() (net.Conn, string) {
	b.t.Helper()
	c, err := net.Dial("tcp", b.at)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c, readLine(c)
}

// readLine reads a line byte by byte, so that nothing of the next is lost; "" if there is none.
func readLine(c net.Conn) string {
	var line []byte
	for one := make([]byte, 1); ; line = append(line, one[0]) {
		if _, err := c.Read(one); err != nil {
			return ""
		}
		if one[0] == '\n' {
			return string(line)
		}
	}
}

func twoEchoes(t *testing.T) (east, west *echo) {
	port := freePort(t)
	return newEcho(t, "east-a", 103, port), newEcho(t, "west-a", 104, port)
}

// TestConnectionsArePassedOn: every byte of both ways, with each way ended by itself.
func TestConnectionsArePassedOn(t *testing.T) {
	east, west := twoEchoes(t)
	var log bytes.Buffer
	b := newStreamBed(t, Options{AccessLog: &log}, StreamOptions{IdleTimeout: 2 * time.Second}, nil, east, west)
	c, name := b.open()
	if name != "east-a" {
		t.Fatalf("%q answers, want the cluster of its own region", name)
	}
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	go func() {
		for n := 0; n < len(sent); n += len(sent) / 8 { // for longer than the idle timeout, of which each piece begins another
			_, _ = c.Write(sent[n : n+len(sent)/8])
			time.Sleep(400 * time.Millisecond)
		}
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d of %d bytes came back: %v", len(got), len(sent), err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for b.target(east.addr).openStreams() > 0 {
		if time.Now().After(deadline) {
			t.Fatal("the connection is still counted")
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.streams.bounds.mu.Lock()
	defer b.streams.bounds.mu.Unlock()
	if b.streams.bounds.open > 1 || len(b.streams.bounds.of) > 1 {
		t.Errorf("%d connections, of %d clients, are counted after the end", b.streams.bounds.open, len(b.streams.bounds.of))
	}
}

func (b *streamBed) target(at netip.AddrPort) *target {
	for _, t := range b.pools.allTargets() {
		if t.Address == at {
			return t
		}
	}
	b.t.Fatalf("no target %s", at)
	return nil
}

func (t *target) openStreams() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.streams)
}

// TestNoNewConnectionFailsWhenAClusterDies: those to a cluster that refuses them go to another at once; those that were open are reset, and the cluster is
// used again when it is back.
func TestNoNewConnectionFailsWhenAClusterDies(t *testing.T) {
	east, west := twoEchoes(t)
	b := newStreamBed(t, Options{}, StreamOptions{}, nil, east, west)
	kept, name := b.open()
	if name != "east-a" {
		t.Fatal(name)
	}
	_ = east.Close() // it takes no more; the kept connection lives on, as in a cluster that is cut off
	lost := make(chan error)
	go func() { _, err := io.ReadAll(kept); lost <- err }()
	for n, until := 0, time.Now().Add(4*time.Second); time.Now().Before(until); n++ {
		c, name := b.open()
		if _ = c.Close(); name != "west-a" {
			t.Fatalf("connection %d: %q answers", n, name)
		}
		time.Sleep(10 * time.Millisecond)
	}
	select {
	case err := <-lost:
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the kept connection ended by %v, want a reset", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the kept connection to the failing cluster stays")
	}
	east.start(t)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		c, name := b.open()
		if _ = c.Close(); name == "east-a" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("east-a is back, and gets nothing")
		}
	}
}

// TestADrainedClusterKeepsItsConnections, and gets no new ones.
func TestADrainedClusterKeepsItsConnections(t *testing.T) {
	east, west := twoEchoes(t)
	b := newStreamBed(t, Options{}, StreamOptions{}, nil, east, west)
	kept, name := b.open()
	b.in.Offers[0].Rank, b.in.Offers[0].Weight = 1, 0
	b.SetPool(b.in)
	for range 20 {
		if _, name := b.open(); name != "west-a" {
			t.Fatalf("%q answers", name)
		}
	}
	if _, err := io.WriteString(kept, "still\n"); err != nil || name != "east-a" || readLine(kept) != "still" {
		t.Errorf("the kept connection, to %s, does not go on: %v", name, err)
	}
}

// TestProxyHeaderOut: the cluster learns who the client is, and can tell checks from clients.
func TestProxyHeaderOut(t *testing.T) {
	east, west := twoEchoes(t)
	for _, e := range []*echo{east, west} {
		e.mu.Lock()
		e.header = true
		e.mu.Unlock()
	}
	b := newStreamBed(t, Options{}, StreamOptions{}, map[string]string{v1beta1.ProxyProtocolAnnotation: v1beta1.ProxyProtocolV2}, east, west)
	c, name := b.open()
	if name != "east-a" {
		t.Fatalf("%q answers", name)
	}
	time.Sleep(1500 * time.Millisecond) // a check
	east.mu.Lock()
	defer east.mu.Unlock()
	want := c.LocalAddr().(*net.TCPAddr).AddrPort()
	clients := 0
	for _, from := range east.proxied {
		if from == want {
			clients++
		} else if from.IsValid() {
			t.Errorf("client %s, want %s", from, want)
		}
	}
	if clients != 1 || len(east.proxied) < 2 {
		t.Errorf("%d connections of the client, of %d: want 1, and a check", clients, len(east.proxied))
	}
}

// TestProxyHeadersAreReadAsWritten, of both families.
func TestProxyHeadersAreReadAsWritten(t *testing.T) {
	for _, client := range []string{"192.0.2.1:4711", "[2001:db8::1]:4711"} {
		from := netip.MustParseAddrPort(client)
		for _, at := range []string{"198.51.100.1:80", "[2001:db8::2]:80"} {
			r := bytes.NewReader(append(endpoints{from, netip.MustParseAddrPort(at)}.appendHeader(nil), "rest"...))
			if got, err := readProxyHeader(r); err != nil || got != from || r.Len() != len("rest") {
				t.Errorf("%s to %s: %s, %d bytes left, %v", client, at, got, r.Len(), err)
			}
		}
	}
	if got, err := readProxyHeader(strings.NewReader(localProxyHeader)); err != nil || got.IsValid() {
		t.Errorf("a check: %s, %v", got, err)
	}
}

// TestHostileStreams: too many connections of one client are closed at once, and silent ones after a while; both are counted no more.
func TestHostileStreams(t *testing.T) {
	east, west := twoEchoes(t)
	b := newStreamBed(t, Options{}, StreamOptions{MaxConnections: 100, MaxOfClient: 3, IdleTimeout: 2 * time.Second}, nil, east, west)
	var first net.Conn
	for range 3 {
		c, name := b.open()
		if first = c; name == "" {
			t.Fatal("a connection within the bounds is refused")
		}
	}
	if _, name := b.open(); name != "" {
		t.Error("the fourth connection of a client that may have three is passed on")
	}
	began := time.Now()
	if _, err := io.ReadAll(first); !errors.Is(err, syscall.ECONNRESET) || time.Since(began) > 10*time.Second {
		t.Errorf("a silent connection ended by %v after %s", err, time.Since(began))
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, name := b.open(); name != "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the ended connections still count")
		}
	}
}

// TestShutdownWaitsForConnections, and takes no new ones.
func TestShutdownWaitsForConnections(t *testing.T) {
	east, west := twoEchoes(t)
	b := newStreamBed(t, Options{}, StreamOptions{}, nil, east, west)
	kept, _ := b.open()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		b.streams.Shutdown(ctx)
	}()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", b.at)
		if err != nil {
			break
		}
		if _ = c.Close(); time.Now().After(deadline) {
			t.Fatal("new connections are taken")
		}
	}
	if _, err := io.WriteString(kept, "still\n"); err != nil || readLine(kept) != "still" {
		t.Errorf("an open connection does not go on: %v", err)
	}
	select {
	case <-ended:
		t.Error("it ended before the connection")
	default:
	}
	_ = kept.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("it does not end with the last connection")
	}
}

// TestPortsOpenAndClose with the table.
func TestPortsOpenAndClose(t *testing.T) {
	east, west := twoEchoes(t)
	b := newStreamBed(t, Options{}, StreamOptions{}, nil, east, west)
	kept, _ := b.open()
	b.SetRoutes(plan.Routes(plan.World{}), nil)
	if c, err := net.Dial("tcp", b.at); err == nil {
		_ = c.Close()
		t.Error("the port of a Service that is gone takes connections")
	}
	if _, err := io.WriteString(kept, "still\n"); err != nil || readLine(kept) != "still" {
		t.Errorf("an open connection ended with the port: %v", err)
	}
}
