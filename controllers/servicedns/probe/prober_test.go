package probe

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
)

func target(address string, port uint16, c v1beta1.DNSHealthCheck) plan.Target {
	c.Port = int32(port)
	return plan.Target{Address: address, Check: c.WithDefaults()}
}

// Real servers show what each type accepts as healthy, and how it describes failures.
func TestAsk(t *testing.T) {
	answers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/gone", http.StatusFound)
		case r.URL.Path == "/gone":
			w.WriteHeader(http.StatusGone)
		case r.URL.Path == "/slow":
			<-r.Context().Done()
		case r.Host != "shop.example.com" && r.Host != "example.com":
			w.WriteHeader(http.StatusNotFound)
		}
	})
	plain, secure := httptest.NewServer(answers), httptest.NewTLSServer(answers) // its certificate is for example.com
	defer plain.Close()
	defer secure.Close()
	trust := x509.NewCertPool()
	trust.AddCert(secure.Certificate())
	at := func(s *httptest.Server) uint16 { return netip.MustParseAddrPort(s.Listener.Addr().String()).Port() }
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := netip.MustParseAddrPort(closed.Addr().String()).Port()
	_ = closed.Close()
	const shop, local = "shop.example.com", "127.0.0.1"
	for name, c := range map[string]struct {
		target plan.Target
		want   string
	}{
		"TCP":                       {target(local, at(plain), v1beta1.DNSHealthCheck{Type: "TCP"}), ""},
		"TCP, nobody there":         {target(local, nobody, v1beta1.DNSHealthCheck{Type: "TCP"}), "connect: connection refused"},
		"HTTP":                      {target(local, at(plain), v1beta1.DNSHealthCheck{Type: "HTTP", Host: shop}), ""},
		"HTTP at a host":            {target("localhost.", at(plain), v1beta1.DNSHealthCheck{Type: "HTTP", Host: shop}), ""},
		"HTTP, the wrong host":      {target(local, at(plain), v1beta1.DNSHealthCheck{Type: "HTTP"}), "status 404"},
		"HTTP, a redirect":          {target(local, at(plain), v1beta1.DNSHealthCheck{Type: "HTTP", Host: shop, Path: "/moved"}), ""},
		"HTTP, gone":                {target(local, at(plain), v1beta1.DNSHealthCheck{Type: "HTTP", Host: shop, Path: "/gone"}), "status 410"},
		"HTTP, slow":                {target(local, at(plain), v1beta1.DNSHealthCheck{Type: "HTTP", Host: shop, Path: "/slow", TimeoutSeconds: 1}), "no answer in time"},
		"HTTP, nobody there":        {target(local, nobody, v1beta1.DNSHealthCheck{Type: "HTTP"}), "connect: connection refused"},
		"HTTPS":                     {target(local, at(secure), v1beta1.DNSHealthCheck{Type: "HTTPS", Host: "example.com"}), ""},
		"HTTPS, the wrong name":     {target(local, at(secure), v1beta1.DNSHealthCheck{Type: "HTTPS", Host: "other.org"}), "certificate is valid for"},
		"HTTPS, unverified":         {target(local, at(secure), v1beta1.DNSHealthCheck{Type: "HTTPS", InsecureSkipVerify: true, Path: "/moved"}), ""},
		"HTTPS at a server of HTTP": {target(local, at(plain), v1beta1.DNSHealthCheck{Type: "HTTPS", Host: "example.com"}), "tls: first record does not look like a TLS handshake"},
		"an address of the machine": {target("169.254.169.254", 80, v1beta1.DNSHealthCheck{Type: "HTTP"}), "it is a link-local address, where no load balancer can be"},
		"an address of nobody":      {target("0.0.0.0", at(plain), v1beta1.DNSHealthCheck{Type: "TCP"}), "it is an unspecified address, where no load balancer can be"},
		"an address in IPv6":        {target("::ffff:169.254.169.254", 80, v1beta1.DNSHealthCheck{Type: "TCP"}), "it is a link-local address, where no load balancer can be"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&asker{trust: trust, refuse: notLoopback}).probeOnce(context.Background(), c.target)
			if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(describeError(err), c.want) || isLocalError(err)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// notLoopback is v1beta1.RefuseAddress, except that it allows these tests' servers.
func notLoopback(addr netip.Addr) error {
	if addr.Unmap().IsLoopback() {
		return nil
	}
	return v1beta1.RefuseAddress(addr)
}

// A host that resolves to this machine is not probed, whatever the check: the dialed address decides.
func TestAHostThatLeadsToUsIsNotAsked(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	port := netip.MustParseAddrPort(server.Listener.Addr().String()).Port()
	for _, check := range []v1beta1.DNSHealthCheck{{Type: "TCP"}, {Type: "HTTP"}, {Type: "HTTPS", InsecureSkipVerify: true}} {
		for _, address := range []string{"localhost.", "127.0.0.1"} {
			p := New(Options{})
			err := p.ask(context.Background(), target(address, port, check))
			if err == nil || !strings.Contains(describeError(err), "it is a loopback address") || isLocalError(err) {
				t.Errorf("%s of %s: %v", check.Type, address, err)
			}
		}
	}
	if asked.Load() > 0 {
		t.Error("the server was asked")
	}
}

// A namespace whose load balancers hang delays its own checks only.
func TestANamespaceHasItsShareOfTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		var mu sync.Mutex
		asked := map[string]int{}
		p := New(Options{})
		p.ask = func(ctx context.Context, t plan.Target) error {
			mu.Lock()
			asked[t.Namespace]++
			mu.Unlock()
			if t.Namespace == "hangs" {
				sleep(ctx, time.Duration(t.Check.TimeoutSeconds)*time.Second)
				return context.DeadlineExceeded
			}
			return nil
		}
		all := []plan.Target{{Namespace: "shop", Address: "192.0.2.1", Check: v1beta1.DNSHealthCheck{Type: "TCP", Port: 80}.WithDefaults()}}
		for i := range 5000 {
			all = append(all, plan.Target{Namespace: "hangs", Address: "192.0.2.2", Check: v1beta1.DNSHealthCheck{Type: "TCP", Port: int32(1 + i), PeriodSeconds: 60, TimeoutSeconds: 60}.WithDefaults()})
		}
		if timeout := all[1].Check.TimeoutSeconds; timeout > 5 {
			t.Errorf("a question may take %d s", timeout)
		}
		p.Want(ctx, all)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if asked["shop"] < 55 { // once in 10 s
			t.Errorf("shop's load balancer was asked %d times in 10 minutes, want 60, give or take a few", asked["shop"])
		}
		if asked["hangs"] == 0 {
			t.Error("the others were never asked")
		}
	})
}

func TestOurOwnFaultIsNoFailure(t *testing.T) {
	for err, want := range map[error]string{
		nil:                                     ok,
		&net.OpError{Err: syscall.EMFILE}:       unknown,
		&net.OpError{Err: syscall.ENETUNREACH}:  unknown,
		&net.DNSError{Name: "lb.test"}:          unknown,
		&net.OpError{Err: syscall.EHOSTUNREACH}: bad,
		errors.New("status 503"):                bad,
	} {
		if got := outcomeOf(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// network is a network with some dead addresses.
type network struct {
	mu    sync.Mutex
	dead  map[string]error
	asked map[string]int
}

func (n *network) ask(_ context.Context, t plan.Target) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked[t.Address]++
	return n.dead[t.Address]
}

func (n *network) set(address string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead[address] = err
}

func failing(p *Prober) (addresses []string) {
	for _, f := range p.Failing() {
		addresses = append(addresses, strings.Fields(f.Target)[1])
	}
	slices.Sort(addresses)
	return addresses
}

func TestRowsDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		n := &network{dead: map[string]error{}, asked: map[string]int{}}
		p := New(Options{})
		p.ask = n.ask
		check := v1beta1.DNSHealthCheck{Type: "TCP"} // 3 failures, 2 successes, each 10 s
		a, b := target("192.0.2.1", 80, check), target("192.0.2.2", 80, check)
		p.Want(ctx, []plan.Target{a, b})
		is := func(after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := failing(p); !slices.Equal(got, want) {
				t.Errorf("failing: %q, want %q", got, want)
			}
		}
		is(time.Minute)
		n.set("192.0.2.1", errors.New("refused"))
		is(17 * time.Second) // two in a row at most
		is(17*time.Second, "192.0.2.1:80")
		n.set("192.0.2.2", syscall.EMFILE) // a local error
		is(time.Minute, "192.0.2.1:80")
		n.set("192.0.2.1", nil)
		is(8*time.Second, "192.0.2.1:80") // one in a row
		is(15 * time.Second)
		n.set("192.0.2.1", errors.New("refused"))
		is(time.Minute, "192.0.2.1:80")
		p.Want(ctx, []plan.Target{b})
		is(0)
		before := maps.Clone(n.asked)
		is(time.Minute)
		if n.asked["192.0.2.1"] != before["192.0.2.1"] {
			t.Error("asked though it is not wanted any more")
		}
		if asked := n.asked["192.0.2.2"] - before["192.0.2.2"]; asked < 5 || asked > 7 {
			t.Errorf("asked %d times in a minute, want 6, give or take one", asked)
		}
	})
}

func TestWhatFailedBeforeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		a := target("192.0.2.1", 80, v1beta1.DNSHealthCheck{Type: "TCP"})
		p := New(Options{Failing: map[string]plan.Failure{a.Key(): {Target: a.Key(), Why: "before"}, "other": {Target: "other"}}})
		p.ask = (&network{asked: map[string]int{}}).ask
		p.Want(ctx, []plan.Target{a})
		if got := p.Failing(); len(got) != 1 || got[0].Why != "before" {
			t.Errorf("failing: %v", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := p.Failing(); len(got) != 0 {
			t.Errorf("it answers, and yet: %v", got)
		}
	})
}

// A thousand targets that never answer in time delay the others no longer than their slots take.
func TestAtMostSoManyAreAskedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		var mu sync.Mutex
		now, most := 0, 0
		p := New(Options{})
		p.ask = func(ctx context.Context, _ plan.Target) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			sleep(ctx, 2*time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return context.DeadlineExceeded
		}
		var all []plan.Target
		for i := range 2000 {
			one := target("192.0.2.1", uint16(1+i), v1beta1.DNSHealthCheck{Type: "TCP"})
			one.Namespace = fmt.Sprint(i % 20)
			all = append(all, one)
		}
		p.Want(ctx, all)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if most != maxAsked || len(p.Failing()) != len(all) {
			t.Errorf("%d asked at once, want %d; %d fail, want all %d", most, maxAsked, len(p.Failing()), len(all))
		}
	})
}
