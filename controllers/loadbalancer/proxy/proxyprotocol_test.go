package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
)

// namedListener takes connections that begin with a PROXY header, and counts those of clients.
type namedListener struct {
	net.Listener
	clients atomic.Int64
}

func (l *namedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &namedConn{&proxiedConn{boundedConn: &boundedConn{directConn: newDirectConn(c.(*net.TCPConn)), release: func() {}}, trusted: func(netip.Addr) bool { return true }}, l, sync.Once{}}, nil
}

// namedConn counts with the first that is read, which is when the header has been.
type namedConn struct {
	*proxiedConn
	l    *namedListener
	once sync.Once
}

func (c *namedConn) Read(p []byte) (int, error) {
	c.once.Do(func() {
		if c.RemoteAddr() != c.boundedConn.RemoteAddr() {
			c.l.clients.Add(1)
		}
	})
	return c.proxiedConn.Read(p)
}

// newNamedCluster starts a server that answers with the client that PROXY headers name.
func newNamedCluster(t *testing.T, n byte, port uint16, config *tls.Config) (*cluster, *namedListener) {
	t.Helper()
	c := &cluster{name: "east-a", addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, n}), port)}
	inner, err := net.Listen("tcp", c.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	l := &namedListener{Listener: inner}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(config != nil)
	protocols.SetUnencryptedHTTP2(true)
	c.server = &http.Server{Protocols: protocols, TLSConfig: config, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RemoteAddr) })}
	if config != nil {
		go func() { _ = c.server.ServeTLS(l, "", "") }()
	} else {
		go func() { _ = c.server.Serve(l) }()
	}
	t.Cleanup(func() { _ = c.server.Close() })
	return c, l
}

// TestRequestsNameTheirClient, whatever clusters are asked by: no connection is used for two clients, and one of a client is used again.
func TestRequestsNameTheirClient(t *testing.T) {
	const clients, each = 20, 25
	cert, roots := certificateOf(t, "www.test")
	for appProtocol, config := range map[string]*tls.Config{"http": nil, "kubernetes.io/h2c": nil, "https": {Certificates: []tls.Certificate{*cert}}} {
		t.Run(appProtocol, func(t *testing.T) {
			port := freePort(t)
			east, l := newNamedCluster(t, 101, port, config)
			service := serviceOf(port, appProtocol)
			service.Annotations = map[string]string{v1beta1.ProxyProtocolAnnotation: v1beta1.ProxyProtocolV2}
			b := newBed(t, Options{Roots: roots}, ListenOptions{}, service, east)
			var running sync.WaitGroup
			for n := range clients {
				running.Go(func() { askInTurn(t, b, netip.AddrFrom4([4]byte{127, 0, 0, byte(20 + n)}), each) })
			}
			running.Wait()
			if got := l.clients.Load(); got != clients {
				t.Errorf("%d connections to the cluster for %d clients of %d requests each", got, clients, each)
			}
			eventually(t, func() string {
				if p, _ := b.Pool(b.id); !p.ProxyProtocol || len(p.Parts) != 1 || p.Parts[0].Out {
					return fmt.Sprintf("its checks do not pass: %+v", p)
				}
				return ""
			})
		})
	}
}

// askInTurn sends requests over one connection from an address, each of which must be answered with it.
func askInTurn(t *testing.T, b *bed, from netip.Addr, requests int) {
	own := atomic.Pointer[net.Addr]{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}}).DialContext(ctx, network, at)
		if err == nil {
			own.Store(new(c.LocalAddr()))
		}
		return c, err
	}}
	defer transport.CloseIdleConnections()
	for range requests {
		r, err := http.NewRequest(http.MethodGet, "http://"+b.url, nil)
		if err != nil {
			t.Error(err)
			return
		}
		r.Host = "www.test"
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if want := (*own.Load()).String(); string(text) != want {
			t.Errorf("the request of %s was answered with %q, status %d", want, text, answer.StatusCode)
			return
		}
	}
}

// TestConnectionsOfManyClientsAreBounded: the oldest goes when there are too many idle ones, for HTTP/1.1 and for others.
func TestConnectionsOfManyClientsAreBounded(t *testing.T) {
	port := freePort(t)
	for n, appProtocol := range []string{"http", "kubernetes.io/h2c"} {
		east, _ := newNamedCluster(t, byte(101+n), port, nil)
		service := serviceOf(port, appProtocol)
		service.Annotations = map[string]string{v1beta1.ProxyProtocolAnnotation: v1beta1.ProxyProtocolV2}
		b := newBed(t, Options{}, ListenOptions{}, service, east)
		for range maxIdle + 20 {
			askInTurn(t, b, netip.MustParseAddr("127.0.0.20"), 1)
		}
		for _, target := range b.pools.allTargets() {
			target.mu.Lock()
			if idle, transports := len(target.idle), len(target.transports); idle > maxIdle || transports > maxIdle || idle+transports < maxIdle {
				t.Errorf("%s: %d idle connections, and %d clients' transports are kept", appProtocol, idle, transports)
			}
			target.mu.Unlock()
			eventually(t, func() string {
				if open := target.open.Load(); open > maxIdle {
					return fmt.Sprintf("%s: %d connections are open", appProtocol, open)
				}
				return ""
			})
		}
	}
}

// TestProtocolsOfPoolsWithProxyHeaders: the plan asks for them behind Ingresses, too.
func TestProtocolsOfPoolsWithProxyHeaders(t *testing.T) {
	service := serviceOf(80, "")
	service.Annotations = map[string]string{v1beta1.ProxyProtocolAnnotation: v1beta1.ProxyProtocolV2}
	for _, id := range []plan.PoolID{{Port: 80}, {Port: 80, TCP: true}, {Port: 80, TLS: true}} {
		if p := plan.DecidePool(plan.PoolInput{ID: id, Service: service}); !p.ProxyProtocol {
			t.Errorf("%+v has none", id)
		}
	}
}
