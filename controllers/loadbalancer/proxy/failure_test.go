package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
)

// lockedBuffer is a buffer that several goroutines use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestATargetThatIsGoneCountsAsFailingNoMore: nobody checks it any more, so the metric would say so for ever.
func TestATargetThatIsGoneCountsAsFailingNoMore(t *testing.T) {
	RegisterMetrics()
	port := freePort(t)
	c := newCluster(t, "gone-a", 9, port)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), c)
	counted := func() float64 {
		all, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range all {
			for _, m := range family.GetMetric() {
				if family.GetName() == "federation_lb_targets_failing" && m.GetLabel()[0].GetValue() == c.name {
					return m.GetGauge().GetValue()
				}
			}
		}
		return 0
	}
	_ = c.server.Close()
	_, _, _ = b.do("GET", "/", nil) // so that it is checked soon
	eventually(t, func() string {
		if n := counted(); n != 1 {
			return fmt.Sprintf("%v addresses fail, want the one", n)
		}
		return ""
	})
	b.DropPool(b.id)
	if n := counted(); n != 0 {
		t.Errorf("%v addresses fail of a cluster that has none any more", n)
	}
}

// TestAClusterThatRefusesCostsNoRequest: it is tried again elsewhere, then not asked any more, and gets its share back slowly.
func TestAClusterThatRefusesCostsNoRequest(t *testing.T) {
	port, east, west := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east, west)
	if _, body, _ := b.do("GET", "/", nil); body != "east-a" {
		t.Fatalf("the first choice is %s", body)
	}
	_ = east.server.Close()
	for n := range 20 {
		method, body := "GET", io.Reader(nil)
		if n%2 == 1 { // nothing of it is sent where nobody takes a connection
			method, body = "POST", strings.NewReader("text")
		}
		if status, got, _ := b.do(method, "/", body); status != 200 || got != "west-a" {
			t.Fatalf("%s %d: %d %s", method, n, status, got)
		}
	}
	if got := b.shares(); got != "west-a 100, east-a 0" {
		t.Errorf("shares %s after so many failures", got)
	}
	east.start(t)
	eventually(t, func() string {
		if got := b.shares(); !strings.HasPrefix(got, "east-a ") || got == "east-a 100, west-a 0" {
			return "it is back, and the shares are " + got + ", want a little of east-a"
		}
		return ""
	})
}

// TestAClusterThatHangs: it takes requests and answers none. GETs that wait are sent elsewhere once it fails its checks.
func TestAClusterThatHangs(t *testing.T) {
	port := freePort(t)
	west := newCluster(t, "west-a", 102, port)
	east := &cluster{name: "east-a", addr: west.addr}
	east.addr = addrAt(101, port)
	l, err := net.Listen("tcp", east.addr.String()) // the kernel takes connections, nobody reads
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east, west)
	var wait sync.WaitGroup
	for range 30 {
		wait.Go(func() {
			if status, got, _ := b.do("GET", "/", nil); status != 200 || got != "west-a" {
				t.Errorf("%d %s", status, got)
			}
		})
	}
	wait.Wait()
	if got := b.shares(); got != "west-a 100, east-a 0" {
		t.Errorf("shares %s", got)
	}
	if n := b.target(t, east).open.Load(); n != 0 {
		t.Errorf("%d connections to a cluster that hangs are kept", n)
	}
}

// TestWhatIsNotRepeated: a request that may have been carried out is not sent a second time.
func TestWhatIsNotRepeated(t *testing.T) {
	port, east, west := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east, west)
	vanish := func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }
	for _, c := range []struct {
		method string
		body   io.Reader
		status int
	}{{"GET", nil, 200}, {"HEAD", nil, 200}, {"OPTIONS", nil, 200}, {"POST", strings.NewReader("x"), 502}, {"POST", nil, 502}, {"PUT", nil, 502}, {"DELETE", nil, 502}, {"PATCH", strings.NewReader("x"), 502}, {"GET", strings.NewReader("x"), 502}} {
		b.target(t, east).delivered(nil, 200)
		east.does(vanish)
		before := west.seen.Load()
		if status, body, _ := b.do(c.method, "/", c.body); status != c.status {
			t.Errorf("%s with body %t: %d %s, want %d", c.method, c.body != nil, status, body, c.status)
		}
		if sent := west.seen.Load() - before; (sent == 1) != (c.status == 200) {
			t.Errorf("%s: sent %d times to the other cluster", c.method, sent)
		}
		east.does(east.names)
		b.do("GET", "/", nil)
	}
}

// TestBothClustersVanish: a GET is tried once more, and no more often.
func TestBothClustersVanish(t *testing.T) {
	port, east, west := twoClusters(t)
	north := newCluster(t, "north-a", 103, port)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east, west, north)
	for _, c := range []*cluster{east, west, north} {
		c.does(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	}
	status, body, _ := b.do("GET", "/", nil)
	if seen := east.seen.Load() + west.seen.Load() + north.seen.Load(); status != http.StatusBadGateway || seen != 2 {
		t.Errorf("%d %s after %d tries, want 502 after 2", status, body, seen)
	}
}

// TestABrokenAnswerIsNotWhole: a client sees that an answer is cut off, with and without a length.
func TestABrokenAnswerIsNotWhole(t *testing.T) {
	port, east, _ := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	for _, length := range []string{"", "100"} {
		east.does(func(w http.ResponseWriter, r *http.Request) {
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			_, _ = io.WriteString(w, "part")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		r, _ := http.NewRequest("GET", "http://"+b.url+"/", nil)
		r.Host = "www.test"
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err == nil {
			t.Errorf("length %q: %q is taken for the whole", length, body)
		}
	}
}

// TestAClientThatLeaves: its request ends in the cluster too.
func TestAClientThatLeaves(t *testing.T) {
	port, east, _ := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east)
	left := make(chan struct{})
	enter := make(chan struct{})
	east.does(func(w http.ResponseWriter, r *http.Request) {
		close(enter)
		<-r.Context().Done()
		close(left)
	})
	c, err := net.Dial("tcp", b.url)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: www.test\r\n\r\n")
	<-enter
	_ = c.Close()
	<-left
	if got := b.shares(); got != "east-a 100" {
		t.Errorf("shares %s: what a client does is held against a cluster", got)
	}
}

// TestGatewayErrorsEject: a cluster that only says 503 is left alone for a while, if others are there.
func TestGatewayErrorsEject(t *testing.T) {
	port, east, west := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east, west)
	east.does(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	for range ejectAfterErrors {
		if status, _, _ := b.do("GET", "/", nil); status != http.StatusServiceUnavailable {
			t.Errorf("%d: an answer of a cluster is the client's", status)
		}
	}
	if status, body, _ := b.do("GET", "/", nil); status != 200 || body != "west-a" {
		t.Errorf("after that: %d %s, shares %s", status, body, b.shares())
	}
	west.does(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	for range ejectAfterErrors {
		b.do("GET", "/", nil)
	}
	if got := b.shares(); got != "east-a 100, west-a 0" {
		t.Errorf("shares %s when both are ejected, want as before", got)
	}
}

// TestTheBudgetOfRetries: a fifth of the requests, beside those that are always allowed.
func TestTheBudgetOfRetries(t *testing.T) {
	b := newBudget()
	spent := func() (n int) {
		for b.spend() {
			n++
		}
		return n
	}
	if n := spent(); n != retriesAtRest {
		t.Errorf("%d at rest, want %d", n, retriesAtRest)
	}
	for range 1000 {
		b.earn()
	}
	if n := spent(); n != 200 {
		t.Errorf("%d after 1000 requests, want 200", n)
	}
	for range 10 * mostRetries * retryCost {
		b.earn()
	}
	if n := spent(); n != mostRetries {
		t.Errorf("%d after very many, want %d", n, mostRetries)
	}
}

// TestPoolsChangeUnderLoad: nobody notices thousands of changes.
func TestPoolsChangeUnderLoad(t *testing.T) {
	port, east, west := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{}, serviceOf(port, ""), east, west)
	var asked, failed atomic.Int64
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				status, body, _ := b.do("GET", "/", nil)
				if asked.Add(1); status != 200 || body != "east-a" && body != "west-a" {
					failed.Add(1)
				}
			}
		})
	}
	service := b.in.Service
	for n := range 5000 {
		in := b.in
		in.Offers = in.Offers[:1+n%2]
		if n%3 == 0 {
			in.Offers = in.Offers[len(in.Offers)-1:]
		}
		b.SetPool(in)
		if n%10 == 0 {
			b.SetRoutes(tableOf(service, "www.test", ""), nil)
		}
	}
	eventually(t, func() string {
		if asked.Load() < 1000 {
			return fmt.Sprintf("only %d requests", asked.Load())
		}
		return ""
	})
	close(stop)
	wait.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), asked.Load())
	}
}

// TestConnectionsAreBounded, of a client and of all; a slow head of a request ends.
func TestConnectionsAreBounded(t *testing.T) {
	port, east, _ := twoClusters(t)
	b := newBed(t, Options{}, ListenOptions{MaxConnections: 5, MaxOfClient: 3}, serviceOf(port, ""), east)
	dial := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp", b.url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	isTaken := func(c net.Conn) bool {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: www.test\r\n\r\n")
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, err := c.Read(make([]byte, 10))
		return err == nil
	}
	for from, want := range map[string][]bool{"127.0.0.21": {true, true, true, false}} {
		for n, taken := range want {
			if isTaken(dial(from)) != taken {
				t.Errorf("connection %d of %s is taken: %t, want %t", n, from, !taken, taken)
			}
		}
	}
	if !isTaken(dial("127.0.0.22")) || !isTaken(dial("127.0.0.23")) || isTaken(dial("127.0.0.24")) {
		t.Error("five connections are allowed, no more and no less")
	}
}
