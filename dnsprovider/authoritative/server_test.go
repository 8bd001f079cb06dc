package authoritative

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider"
	"federation/dnsprovider/providertest"
	"federation/dnsprovider/servertest"
)

const testZone = "example.test."

// start runs a server on loopback until the test ends.
func start(t *testing.T, options Options) *Server {
	t.Helper()
	if options.Zone == "" {
		options.Zone = testZone
	}
	if options.Listen == "" {
		options.Listen = "127.0.0.1:0"
	}
	s, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// zoneLines returns providertest.Sets below testZone.
func zoneLines(t testing.TB, lines string) []dnsprovider.RRSet {
	t.Helper()
	return providertest.Sets(t, testZone, lines)
}

func fill(t testing.TB, s *Server, sets []dnsprovider.RRSet) {
	t.Helper()
	providertest.Become(t, s, s.Zone(), sets...)
}

const sample = `
web A 192.0.2.1 192.0.2.2
web AAAA 2001:db8::1
alias CNAME web.example.test.
alias2 CNAME alias.example.test.
away CNAME lb.cloud.test.
dangling CNAME none.example.test.
loop1 CNAME loop2.example.test.
loop2 CNAME loop1.example.test.
self CNAME self.example.test.
to-empty CNAME empty.example.test.
deep.down.empty A 192.0.2.3
below.web A 192.0.2.4`

func ask(t *testing.T, s *Server, network, name string, qtype uint16) *dns.Msg {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, qtype)
	return exchange(t, s, network, m)
}

func exchange(t *testing.T, s *Server, network string, m *dns.Msg) *dns.Msg {
	t.Helper()
	client := dns.Client{Net: network, Timeout: 5 * time.Second, UDPSize: 4096}
	reply, _, err := client.Exchange(m, s.Addr().String())
	if err != nil {
		t.Fatalf("%v over %s: %v", m.Question, network, err)
	}
	return reply
}

// summary returns a reply in one line: code, flags, data of the answer, types in the authority section.
func summary(m *dns.Msg) string {
	parts := []string{dns.RcodeToString[m.Rcode]}
	if m.Authoritative {
		parts = append(parts, "aa")
	}
	if m.Truncated {
		parts = append(parts, "tc")
	}
	for _, rr := range m.Answer {
		parts = append(parts, strings.Join(strings.Fields(strings.TrimPrefix(rr.String(), rr.Header().String())), " "))
	}
	for _, rr := range m.Ns {
		parts = append(parts, "/"+dns.TypeToString[rr.Header().Rrtype])
	}
	return strings.Join(parts, " ")
}

func TestServerConforms(t *testing.T) {
	providertest.Run(t, testZone, func(t *testing.T) dnsprovider.Provider { return start(t, Options{}) })
}

func TestAnswers(t *testing.T) {
	s := start(t, Options{})
	fill(t, s, zoneLines(t, sample))
	for _, c := range []struct{ name, qtype, want string }{
		{"below.web", "A", "NOERROR aa 192.0.2.4"},
		{"web", "AAAA", "NOERROR aa 2001:db8::1"},
		{"web", "TXT", "NOERROR aa /SOA"},
		{"none", "A", "NXDOMAIN aa /SOA"},
		{"none.web", "A", "NXDOMAIN aa /SOA"},
		{"empty", "A", "NOERROR aa /SOA"},
		{"down.empty", "A", "NOERROR aa /SOA"},
		{"deep.down.empty", "A", "NOERROR aa 192.0.2.3"},
		{"up.down.empty", "A", "NXDOMAIN aa /SOA"},
		{"alias2", "AAAA", "NOERROR aa alias.example.test. web.example.test. 2001:db8::1"},
		{"alias", "TXT", "NOERROR aa web.example.test. /SOA"},
		{"alias2", "CNAME", "NOERROR aa alias.example.test."},
		{"alias", "ANY", "NOERROR aa web.example.test."},
		{"empty", "ANY", "NOERROR aa /SOA"},
		{"none", "ANY", "NXDOMAIN aa /SOA"},
		{"away", "A", "NOERROR aa lb.cloud.test."},
		{"dangling", "A", "NXDOMAIN aa none.example.test. /SOA"},
		{"to-empty", "A", "NOERROR aa empty.example.test. /SOA"},
		{"loop1", "A", "NOERROR aa loop2.example.test. loop1.example.test."},
		{"self", "A", "NOERROR aa self.example.test."},
		{"ns", "A", "NOERROR aa 127.0.0.1"},
		{"web", "AXFR", "REFUSED"},
		{"web", "MAILB", "NOTIMP"},
		{"web", "OPT", "FORMERR"},
	} {
		for _, network := range []string{"udp", "tcp"} {
			t.Run(c.name+" "+c.qtype+" "+network, func(t *testing.T) {
				if got := summary(ask(t, s, network, c.name+"."+testZone, dns.StringToType[c.qtype])); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		}
	}
	for _, name := range []string{"test.", ".", "web.example.org.", "notexample.test.", `web\.example.test.`} {
		if got := summary(ask(t, s, "udp", name, dns.TypeA)); got != "REFUSED" {
			t.Errorf("%s, outside the zone: got %s, want REFUSED", name, got)
		}
	}
}

func TestApex(t *testing.T) {
	s := start(t, Options{NegativeTTL: 7})
	fill(t, s, zoneLines(t, sample))
	soa := ask(t, s, "udp", testZone, dns.TypeSOA).Answer[0].(*dns.SOA)
	if soa.Ns != "ns."+testZone || soa.Minttl != 7 {
		t.Errorf("SOA %s: want ns.%s and a minimum of 7", soa, testZone)
	}
	if negative := ask(t, s, "udp", "none."+testZone, dns.TypeA).Ns[0]; negative.Header().Ttl != 7 {
		t.Errorf("SOA of a negative answer %s: want a TTL of 7", negative)
	}
	ns := ask(t, s, "udp", testZone, dns.TypeNS)
	if summary(ns) != "NOERROR aa ns."+testZone || len(ns.Extra) != 1 || ns.Extra[0].(*dns.A).A.String() != "127.0.0.1" {
		t.Errorf("NS: %s, want ns.%s with its address", ns, testZone)
	}
	fill(t, s, nil)
	if again := ask(t, s, "udp", testZone, dns.TypeSOA).Answer[0].(*dns.SOA); again.Serial <= soa.Serial {
		t.Errorf("serial %d after a change, want more than %d", again.Serial, soa.Serial)
	}
	before := ask(t, s, "udp", testZone, dns.TypeSOA).Answer[0].(*dns.SOA).Serial
	fill(t, s, nil)
	if after := ask(t, s, "udp", testZone, dns.TypeSOA).Answer[0].(*dns.SOA).Serial; after != before {
		t.Errorf("serial went from %d to %d though nothing changed", before, after)
	}
}

func TestNameServersAreConfigurable(t *testing.T) {
	s := start(t, Options{Listen: "0.0.0.0:0", NameServers: []netip.Addr{netip.MustParseAddr("192.0.2.53"), netip.MustParseAddr("2001:db8::53")}})
	fill(t, s, nil)
	client := dns.Client{}
	// 127.0.0.2, as the answer must come from the address that was asked.
	at := fmt.Sprintf("127.0.0.2:%d", s.Addr().Port())
	for qtype, want := range map[uint16]string{dns.TypeA: "NOERROR aa 192.0.2.53", dns.TypeAAAA: "NOERROR aa 2001:db8::53"} {
		reply, _, err := client.Exchange(new(dns.Msg).SetQuestion("ns."+testZone, qtype), at)
		if err != nil || summary(reply) != want {
			t.Errorf("got %v, %v, want %s", reply, err, want)
		}
	}
}

func TestServfailUntilFirstApply(t *testing.T) {
	s := start(t, Options{})
	if got := summary(ask(t, s, "udp", "web."+testZone, dns.TypeA)); got != "SERVFAIL" {
		t.Errorf("before: %s, want SERVFAIL", got)
	}
	if err := s.Apply(context.Background(), testZone, nil); err != nil {
		t.Fatal(err)
	}
	if got := summary(ask(t, s, "udp", "web."+testZone, dns.TypeA)); got != "NXDOMAIN aa /SOA" {
		t.Errorf("after an empty Apply: %s, want NXDOMAIN", got)
	}
}

func TestNoQuestionFallsBetweenTwoTypes(t *testing.T) {
	s := start(t, Options{RateLimit: -1})
	address, alias := zoneLines(t, "web A 192.0.2.1\nflip A 192.0.2.1"), zoneLines(t, "web A 192.0.2.1\nflip CNAME web.example.test.")
	fill(t, s, address)
	done := make(chan error)
	go func() {
		from, to := address, alias
		for range 500 {
			if err := s.Apply(context.Background(), testZone, dnsprovider.Diff(from, to)); err != nil {
				done <- err
				return
			}
			from, to = to, from
		}
		done <- nil
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
		got := summary(ask(t, s, "udp", "flip."+testZone, dns.TypeA))
		if got != "NOERROR aa 192.0.2.1" && got != "NOERROR aa web.example.test. 192.0.2.1" {
			t.Fatalf("during a switch: %s", got)
		}
	}
}

func TestEmptyNonTerminalsComeAndGo(t *testing.T) {
	s := start(t, Options{})
	for _, c := range []struct{ zone, want string }{
		{"a.b.c A 192.0.2.1", "NOERROR aa /SOA"},
		{"a.b.c A 192.0.2.1\nb.c A 192.0.2.2", "NOERROR aa 192.0.2.2"},
		{"a.b.c A 192.0.2.1\nx.b.c A 192.0.2.2", "NOERROR aa /SOA"},
		{"x.b.c A 192.0.2.2", "NOERROR aa /SOA"},
		{"c A 192.0.2.2", "NXDOMAIN aa /SOA"},
	} {
		fill(t, s, zoneLines(t, c.zone))
		if got := summary(ask(t, s, "udp", "b.c."+testZone, dns.TypeA)); got != c.want {
			t.Errorf("zone %q: b.c is %s, want %s", c.zone, got, c.want)
		}
	}
}

func TestCaseOfTheQuestionIsKept(t *testing.T) {
	s := start(t, Options{})
	fill(t, s, zoneLines(t, sample))
	reply := ask(t, s, "udp", "wEb.exAMple.TEST.", dns.TypeAAAA)
	if reply.Question[0].Name != "wEb.exAMple.TEST." || reply.Answer[0].Header().Name != "wEb.exAMple.TEST." {
		t.Errorf("asked for wEb.exAMple.TEST., got %s", reply)
	}
}

func TestAddressesTakeTurnsAtTheFront(t *testing.T) {
	s := start(t, Options{})
	fill(t, s, zoneLines(t, sample))
	first := map[string]bool{}
	for range 100 { // with two addresses, one in 2^99 such tests fails by chance
		first[ask(t, s, "udp", "web."+testZone, dns.TypeA).Answer[0].(*dns.A).A.String()] = true
	}
	if len(first) != 2 {
		t.Errorf("first address is always %v", first)
	}
}

func TestEDNS(t *testing.T) {
	s := start(t, Options{})
	fill(t, s, zoneLines(t, sample))
	m := new(dns.Msg).SetQuestion("web."+testZone, dns.TypeAAAA)
	if opt := exchange(t, s, "udp", m).IsEdns0(); opt != nil {
		t.Errorf("an OPT record that nobody asked for: %s", opt)
	}
	m.SetEdns0(4096, true)
	if opt := exchange(t, s, "udp", m).IsEdns0(); opt == nil || opt.UDPSize() != 1232 || !opt.Do() || opt.Version() != 0 {
		t.Errorf("OPT %v, want size 1232, DO as asked, version 0", opt)
	}
	m.IsEdns0().SetVersion(1)
	if reply := exchange(t, s, "udp", m); reply.Rcode != dns.RcodeBadVers || reply.IsEdns0().Version() != 0 || len(reply.Answer) != 0 {
		t.Errorf("version 1: %s, want BADVERS with version 0", reply)
	}
}

func TestTruncation(t *testing.T) {
	s := start(t, Options{})
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf("192.0.2.%d", i+1))
	}
	fill(t, s, zoneLines(t, "many A "+strings.Join(many, " ")))
	for _, c := range []struct {
		size    uint16 // 0: no EDNS
		records int
	}{{0, 0}, {512, 0}, {900, 0}, {1232, 60}, {65535, 60}, {100, 0}} {
		m := new(dns.Msg).SetQuestion("many."+testZone, dns.TypeA)
		if c.size > 0 {
			m.SetEdns0(c.size, false)
		}
		reply := exchange(t, s, "udp", m)
		if len(reply.Answer) != c.records || reply.Truncated != (c.records == 0) || (reply.IsEdns0() != nil) != (c.size > 0) {
			t.Errorf("size %d: %d records, truncated %t, OPT %v; want %d", c.size, len(reply.Answer), reply.Truncated, reply.IsEdns0(), c.records)
		}
	}
	if reply := ask(t, s, "tcp", "many."+testZone, dns.TypeA); len(reply.Answer) != 60 || reply.Truncated {
		t.Errorf("over TCP: %d records, truncated %t, want all 60", len(reply.Answer), reply.Truncated)
	}
}

func TestServerApplyRefuses(t *testing.T) {
	s := start(t, Options{})
	for _, c := range []struct{ name, typ, data, want string }{
		{testZone, "A", "192.0.2.1", "must be below"},
		{"ns." + testZone, "A", "192.0.2.1", "must be below"},
		{"sub." + testZone, "NS", "ns.sub.example.test.", "no delegations"},
		{"web." + testZone, "MX", "ten mail.example.test.", "presentation format"},
		{"web." + testZone, "A", "192.0.2.300", "IPv4"},
		{"WEB." + testZone, "A", "192.0.2.1", "canonical"},
	} {
		set := dnsprovider.RRSet{Name: c.name, Type: dnsprovider.Type(c.typ), TTL: 15, Rdata: []string{c.data}}
		err := s.Apply(context.Background(), testZone, dnsprovider.Diff(nil, []dnsprovider.RRSet{set}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", set, err, c.want)
		}
	}
}

func TestServerPortInUse(t *testing.T) {
	s := start(t, Options{})
	_, err := New(Options{Zone: testZone, Listen: s.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), s.Addr().String()) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line with %s", err, s.Addr())
	}
}

func TestTCPConnectionsAreBounded(t *testing.T) {
	s := start(t, Options{MaxConns: 1, IdleTimeout: time.Second})
	fill(t, s, zoneLines(t, sample))
	hold, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	conn := &dns.Conn{Conn: hold}
	for range 2 { // one connection takes several questions
		if err := conn.WriteMsg(new(dns.Msg).SetQuestion("web."+testZone, dns.TypeA)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.ReadMsg(); err != nil {
			t.Fatal(err)
		}
	}
	if !closedByServer(t, s) {
		t.Error("a second connection was taken, though only one is allowed")
	}
	if _, err := conn.ReadMsg(); err == nil || isTimeout(err) {
		t.Errorf("a silent connection: %v, want it closed by the server", err)
	}
	// The place is free a moment after the connection is closed.
	client, query := dns.Client{Net: "tcp"}, new(dns.Msg).SetQuestion("web."+testZone, dns.TypeA)
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if reply, _, err := client.Exchange(query, s.Addr().String()); err == nil && len(reply.Answer) == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("its place was not given to another")
		}
	}
}

func closedByServer(t *testing.T, s *Server) bool {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)) // less than the idle time
	_, err = conn.Read(make([]byte, 1))
	return !isTimeout(err)
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}

func TestDig(t *testing.T) {
	dig := servertest.Find(t, "dig", "bind9-dnsutils")
	s := start(t, Options{})
	fill(t, s, zoneLines(t, sample))
	for _, args := range []string{"alias2 AAAA", "alias2 AAAA +tcp", "alias2 AAAA +noedns", "alias2 AAAA +dnssec +norec"} {
		f := strings.Fields(args)
		cmd := exec.Command(dig, append([]string{"-p", fmt.Sprint(s.Addr().Port()), "@127.0.0.1", f[0] + "." + testZone}, f[1:]...)...)
		out, err := cmd.CombinedOutput()
		text := string(out)
		for _, want := range []string{"status: NOERROR", "flags: qr aa", "ANSWER: 3", "2001:db8::1"} {
			if err != nil || !strings.Contains(text, want) {
				t.Errorf("dig %s: %v: no %q in\n%s", args, err, want, text)
			}
		}
		if strings.Contains(text, "MALFORMED") || strings.Contains(text, "extra bytes") {
			t.Errorf("dig %s complains:\n%s", args, text)
		}
	}
}

func TestSpareProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	for _, threads := range []int{before, before + 1, 1} { // the last has one to spare by then
		start(t, Options{Threads: threads}).SpareProcessor()
		if got := runtime.GOMAXPROCS(0); got <= threads || got > before+2 {
			t.Errorf("%d UDP sockets, %d processors before: now %d", threads, before, got)
		}
	}
}
