package clients

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/drill/plan"
)

// nameserver answers on loopback with the address that it is set to, or that there is no such name.
func nameserver(t testing.TB) (at netip.AddrPort, address *atomic.Pointer[string], asked *atomic.Int64) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, asked = &atomic.Pointer[string]{}, &atomic.Int64{}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		answer := new(dns.Msg)
		answer.SetReply(q)
		answer.Authoritative = true
		switch is := address.Load(); {
		case is == nil:
			answer.Rcode = dns.RcodeNameError
		case q.Question[0].Qtype == dns.TypeA:
			asked.Add(1)
			answer.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 15}, A: net.ParseIP(*is)}}
		}
		_ = w.WriteMsg(answer)
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	return conn.LocalAddr().(*net.UDPAddr).AddrPort(), address, asked
}

func drillOf(probes ...v1beta1.DrillProbe) *v1beta1.FailoverDrill {
	return &v1beta1.FailoverDrill{ObjectMeta: metav1.ObjectMeta{UID: "d"}, Spec: v1beta1.FailoverDrillSpec{Probes: probes}, Status: v1beta1.FailoverDrillStatus{Phase: v1beta1.DrillBaseline}}
}

func becomes(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 1000 {
		if is() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// A probe asks as a client with a resolver does: it uses a looked-up answer for its TTL, counts a failure, restarts its
// counts at the fault, and another process continues from the recorded counts. Acceptance test 18 of drills, the
// asking.
func TestProbesAskAsClientsDo(t *testing.T) {
	at, address, lookups := nameserver(t)
	var sick atomic.Bool
	var host atomic.Pointer[string]
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host.Store(&r.Host); sick.Load() || r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer web.Close()
	port := web.Listener.Addr().(*net.TCPAddr).Port
	here := "127.0.0.1"
	address.Store(&here)
	o := Options{Resolve: Server(at), Refuse: func(netip.Addr) error { return nil }, TTL: time.Hour, Federation: "fed", Zone: "example.com"}
	c := New(o)
	d := drillOf(
		v1beta1.DrillProbe{Name: "web", Service: &v1beta1.DrillProbeService{Namespace: "shop", Name: "web"}, Type: v1beta1.ProbeHTTP, Port: int32(port), Path: "/healthz"},
		v1beta1.DrillProbe{Name: "dns", Host: "web.example.com", Type: v1beta1.ProbeDNS},
		v1beta1.DrillProbe{Name: "tcp", Host: "web.example.com", Type: v1beta1.ProbeTCP, Port: int32(port)})
	c.Want(t.Context(), d)
	count := func(name string) plan.Client {
		for _, one := range c.Counts(time.Now(), time.Minute) {
			if one.Name == name {
				return one
			}
		}
		return plan.Client{}
	}
	becomes(t, "all are asked", func() bool { return count("web").Asked > 4 && count("dns").Asked > 1 && count("tcp").Asked > 1 })
	for _, name := range []string{"web", "dns", "tcp"} {
		if one := count(name); one.Failed > 0 || one.Unknown > 0 || one.From != "Federation" || one.Recent != one.Asked {
			t.Errorf("%s: %+v", name, one)
		}
	}
	if got := *host.Load(); !strings.HasPrefix(got, "web.shop.fed.svc.example.com") {
		t.Errorf("asked for host %s", got)
	}
	d.Status.Phase, d.Status.Report = v1beta1.DrillHolding, &v1beta1.DrillReport{}
	asked := count("web").Asked
	c.Want(t.Context(), d)
	if n := count("web").Asked; n >= asked {
		t.Errorf("%d questions from before the fault count", n)
	}
	address.Store(nil) // the name is gone, but the cached answer is still used
	before := lookups.Load()
	becomes(t, "the name is gone", func() bool { return count("dns").Failed > 0 })
	if one := count("dns"); one.LastFailure != errNoName.Error() {
		t.Errorf("dns: %+v", one)
	}
	sick.Store(true)
	becomes(t, "web fails", func() bool { return count("web").Failed > 0 })
	sick.Store(false)
	becomes(t, "web answers", func() bool { n := count("web"); return n.Asked > n.Failed+1 && n.LongestOutageMilliseconds > 0 })
	if one := count("web"); one.LastFailure != "status 503" || one.RecentFailed != one.Failed || lookups.Load() != before {
		t.Errorf("web: %+v, looked up %d times", one, lookups.Load()-before)
	}
	d.Status.Report.Probes = []v1beta1.DrillProbeResult{{Name: "web", Asked: 1000, Failed: 7}}
	next := New(o)
	next.Want(t.Context(), d)
	for _, one := range next.Counts(time.Now(), time.Minute) {
		if one.Name == "web" && (one.Asked < 1000 || one.Failed < 7) {
			t.Errorf("another process counts on from %+v", one)
		}
	}
	next.Want(t.Context(), nil)
	c.Want(t.Context(), nil)
	if len(c.Counts(time.Now(), time.Minute)) > 0 {
		t.Error("nothing is to be asked")
	}
}

// No probe reaches this machine, or addresses that only it can reach, whatever a name resolves to.
func TestProbesDoNotAskThisMachine(t *testing.T) {
	var hits atomic.Int64
	local := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer local.Close()
	port := local.Listener.Addr().(*net.TCPAddr).Port
	for _, address := range []string{"127.0.0.1", "::1", "0.0.0.0", "::ffff:127.0.0.1", "169.254.169.254", "64:ff9b::7f00:1"} {
		resolve := func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(address)}, nil
		}
		c := New(Options{Resolve: resolve, Refuse: v1beta1.RefuseAddress, TTL: time.Second})
		c.Want(t.Context(), drillOf(v1beta1.DrillProbe{Name: "web", Host: "web.example.com", Type: v1beta1.ProbeHTTP, Port: int32(port)}))
		becomes(t, address, func() bool { n := c.Counts(time.Now(), time.Minute); return len(n) == 1 && n[0].Failed > 0 })
		c.Want(t.Context(), nil)
	}
	if hits.Load() > 0 {
		t.Errorf("this machine was asked %d times", hits.Load())
	}
}

// BenchmarkQuestion is the cost of a question on loopback, HTTP server and DNS server included: 50 probes ask 50 of them a
// second at most. Acceptance test 29 of drills.
func BenchmarkQuestion(b *testing.B) {
	at, address, _ := nameserver(b)
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer web.Close()
	here := "127.0.0.1"
	address.Store(&here)
	c := New(Options{Resolve: Server(at), Refuse: func(netip.Addr) error { return nil }, TTL: time.Hour, Federation: "fed", Zone: "example.com"})
	for _, mode := range []v1beta1.DrillProbeMode{v1beta1.ProbeCaching, v1beta1.ProbeFresh} {
		b.Run(string(mode), func(b *testing.B) {
			p := v1beta1.DrillProbe{Name: "web", Host: "web.example.com", Type: v1beta1.ProbeHTTP, Mode: mode, Port: int32(web.Listener.Addr().(*net.TCPAddr).Port)}
			one := &client{clients: c, probe: p, name: "web.example.com."}
			for b.Loop() {
				if err := one.askOnce(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
