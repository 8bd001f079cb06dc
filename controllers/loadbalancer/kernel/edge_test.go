package kernel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
	"federation/controllers/loadbalancer/proxy"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/nodeagent/conntrack"
	"federation/nodeagent/nettest"
	"federation/nodeagent/nftables"
)

// asBalancer in the environment has the test's binary be a load balancer.
const asBalancer = "KERNEL_TEST_BALANCER"

func TestMain(m *testing.M) {
	if os.Getenv(asBalancer) != "" {
		if err := balance(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const (
	httpPort, dnsPort, plainDNSPort, proxiedPort = 8080, 53, 5353, 8081
	table                                        = "services-under-test"
)

// services are: web at httpPort, and a copy that wants PROXY headers; dns by both protocols, and plain-dns by UDP alone.
func services() map[string]*corev1.Service {
	all := map[string]*corev1.Service{}
	for name, ports := range map[string][]corev1.ServicePort{
		"web": {{Port: httpPort}}, "proxied": {{Port: proxiedPort}}, "dns": {{Port: dnsPort, Protocol: corev1.ProtocolUDP}, {Port: dnsPort, Protocol: corev1.ProtocolTCP}}, "plain-dns": {{Port: plainDNSPort, Protocol: corev1.ProtocolUDP}},
	} {
		all["shop/"+name] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(v1beta1.LoadBalancerClassName), Ports: ports}}
	}
	all["shop/proxied"].Annotations = map[string]string{v1beta1.ProxyProtocolAnnotation: v1beta1.ProxyProtocolV2}
	return all
}

// balance is a load balancer: a proxy with an edge, as federation-lb has them. Each line of its input has the offers of all its pools.
func balance() error {
	var edge *Edge
	p := proxy.New(proxy.Options{SpreadChanged: func() { edge.Changed() }, OwnAddresses: func() (map[netip.Addr]bool, error) { return proxy.LocalAddresses(nil) }})
	writer, err := nftables.NewNamed(table)
	if err != nil {
		return err
	}
	flows, err := conntrack.Open()
	if err != nil {
		return err
	}
	edge = New(Options{Settings: Settings{IPv4: true, IPv6: true}, Proxy: p, Writer: writer, Flows: flows, Claim: NewClaim(table), Drain: 20 * time.Second})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ended, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	routes := plan.Routes(plan.World{Services: services(), ServicePorts: plan.PortRanges{{First: 1, Last: 9000}}, UDP: true})
	input := bufio.NewScanner(os.Stdin)
	next := func() error {
		if !input.Scan() {
			return io.EOF
		}
		var offers []servicednsplan.Offer
		err := json.Unmarshal(input.Bytes(), &offers)
		for _, l := range routes.Listeners() {
			p.SetPool(plan.PoolInput{ID: l.Pool, Service: services()[l.Pool.Key()], Offers: offers})
		}
		return err
	}
	if err := next(); err != nil {
		return err
	}
	p.SetRoutes(routes, nil)
	streams := p.ServeStreams(proxy.StreamOptions{MaxConnections: 1000, MaxOfClient: 1000, IdleTimeout: time.Minute})
	running.Go(func() { p.Run(ended) })
	running.Go(func() { edge.Run(ended) })
	fmt.Println("ready")
	go func() {
		for next() == nil {
			fmt.Println("done")
		}
	}()
	<-ctx.Done()
	edge.Yield()
	time.Sleep(2 * time.Second)
	now, cancel := context.WithCancel(context.Background())
	cancel()
	streams.Shutdown(now)
	return nil
}

// bed is a load balancer between outside and two clusters, in one family.
type bed struct {
	*testing.T
	lb, outside *nettest.Host
	clusters    map[string]*nettest.Host
	ranks       map[string]int
	ipv6        bool
}

func newBed(t *testing.T, ipv6 bool) *bed {
	rig := nettest.New(t)
	b := &bed{T: t, lb: rig.Neighbour(t, "lb", 30), outside: rig.Outside, clusters: map[string]*nettest.Host{}, ranks: map[string]int{"a": 0, "b": 0}, ipv6: ipv6}
	for i, name := range []string{"a", "b"} {
		h := rig.Neighbour(t, name, 40+i)
		h.ServeHTTP(t, httpPort)
		h.ServeUDP(t, dnsPort)
		h.ServeUDP(t, plainDNSPort)
		h.ServeHTTP(t, dnsPort) // what answers at the port of TCP
		b.clusters[name] = h
	}
	return b
}

func eachFamily(t *testing.T, f func(b *bed)) {
	for name, ipv6 := range map[string]bool{"IPv4": false, "IPv6": true} {
		t.Run(name, func(t *testing.T) { f(newBed(t, ipv6)) })
	}
}

func (b *bed) at(h *nettest.Host, port uint16) netip.AddrPort {
	if b.ipv6 {
		return netip.AddrPortFrom(h.V6, port)
	}
	return netip.AddrPortFrom(h.V4, port)
}

// nobody is a user without any right.
const nobody = 65534

// program returns the test's binary where nobody may run it, with nothing but the rights that it needs.
func (b *bed) program() string {
	b.Helper()
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "balancer")
	if err := errors.Join(os.WriteFile(file, text, 0o755), os.Chmod(filepath.Dir(filepath.Dir(file)), 0o755)); err != nil { // the folder of a test is its owner's alone
		b.Fatal(err)
	}
	return file
}

// process is a load balancer.
type process struct {
	*exec.Cmd
	in  io.Writer
	out *bufio.Scanner
	bed *bed
}

// start starts a load balancer, and waits until it serves.
func (b *bed) start() *process {
	b.Helper()
	cmd := exec.Command(b.program())
	cmd.Env = append(os.Environ(), asBalancer+"=yes")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_BIND_SERVICE}}
	var log strings.Builder
	cmd.Stderr = &log
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, b.lb.Do(cmd.Start)); err != nil {
		b.Fatal(err)
	}
	p := &process{cmd, in, bufio.NewScanner(out), b}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if b.Failed() {
			b.Logf("the load balancer: %s", log.String())
		}
	})
	p.offer()
	return p
}

// offer tells it what clusters have.
func (p *process) offer() {
	p.bed.Helper()
	var offers []servicednsplan.Offer
	for name, h := range p.bed.clusters {
		offers = append(offers, servicednsplan.Offer{Cluster: name, Weight: 100, Rank: p.bed.ranks[name], Addresses: []netip.Addr{h.V4, h.V6}})
	}
	text, err := json.Marshal(offers)
	if err != nil {
		p.bed.Fatal(err)
	}
	if _, err := fmt.Fprintf(p.in, "%s\n", text); err != nil || !p.out.Scan() {
		p.bed.Fatalf("the load balancer does not take what clusters have: %v", err)
	}
}

func (b *bed) nft(on *nettest.Host, text string) string {
	b.Helper()
	var out []byte
	if err := on.Do(func() (err error) { out, err = exec.Command("/usr/sbin/nft", text).CombinedOutput(); return err }); err != nil {
		b.Fatalf("nft %s: %v: %s", text, err, out)
	}
	return string(out)
}

// fails has all that comes to a cluster from outside be dropped or refused: by a verdict of nft.
func (b *bed) fails(cluster, verdict string) {
	b.Helper()
	b.nft(b.clusters[cluster], "add table inet fault; add chain inet fault in { type filter hook input priority 0; }; add rule inet fault in meta l4proto { tcp, udp } "+verdict)
}

func (b *bed) heals(cluster string) { b.nft(b.clusters[cluster], "delete table inet fault") }

func (b *bed) eventually(within time.Duration, what string, is func() bool) {
	b.Helper()
	for end := time.Now().Add(within); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("not within %s: %s", within, what)
		}
	}
}

// inKernel waits until the kernel has rules.
func (b *bed) inKernel() {
	b.Helper()
	b.eventually(5*time.Second, "the kernel passes connections on", func() bool {
		return strings.Contains(b.nft(b.lb, "list ruleset"), fmt.Sprintf("tcp . %d", httpPort))
	})
}

// visit has new connections for a time, 50 a second, and returns how long each took, by which cluster, and what failed.
func (b *bed) visit(lasts time.Duration) (took []time.Duration, by map[string]int) {
	var mu sync.Mutex
	var running sync.WaitGroup
	by = map[string]int{}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(lasts); time.Now().Before(end); <-tick.C {
		running.Go(func() {
			begin := time.Now()
			got, err := b.outside.GetWithin(b.at(b.lb, httpPort), 10*time.Second)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				b.Errorf("a connection failed after %s: %v", time.Since(begin), err)
				return
			}
			took = append(took, time.Since(begin))
			by[got.Server]++
		})
	}
	running.Wait()
	return took, by
}

// TestDivides: new connections and flows, by share; what the kernel cannot do the proxy does. Nobody is sent to addresses that lead back.
func TestDivides(t *testing.T) {
	eachFamily(t, func(b *bed) {
		b.clusters["hostile"] = &nettest.Host{V4: b.lb.V4, V6: b.lb.V6}
		b.clusters["liar"] = &nettest.Host{V4: netip.MustParseAddr("169.254.169.254"), V6: netip.MustParseAddr("fe80::1")}
		p := b.start()
		b.inKernel()
		_, by := b.visit(2 * time.Second)
		if by["a"] < 25 || by["b"] < 25 || len(by) != 2 {
			b.Errorf("answers: %v", by)
		}
		flows := map[string]int{}
		for range 40 {
			got, err := b.outside.AskOnce(b.at(b.lb, dnsPort))
			if err != nil || got.Client != b.at(b.lb, 0).Addr() {
				b.Fatalf("by UDP: %v, %v", got, err)
			}
			flows[got.Server]++
		}
		if flows["a"] == 0 || flows["b"] == 0 {
			b.Errorf("flows: %v", flows)
		}
		rules := b.nft(b.lb, "list table ip "+table) + b.nft(b.lb, "list table ip6 "+table)
		if strings.Contains(rules, fmt.Sprintf(" %d :", proxiedPort)) || strings.Contains(rules, "169.254.169.254") || strings.Contains(rules, "fe80::1") || strings.Contains(rules, fmt.Sprintf(": %s . ", b.lb.V4)) {
			b.Errorf("rules:\n%s", rules)
		}
		if err := b.outside.Refused(b.at(b.lb, 7777)); err != nil {
			b.Errorf("a port that no Service has: %v", err)
		}
		if err := b.lb.Do(func() error { _, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", httpPort)); return err }); err != nil {
			b.Errorf("at loopback, where the proxy serves: %v", err)
		}
		b.ranks["a"] = 1 // drained
		p.offer()
		time.Sleep(200 * time.Millisecond)
		if _, by := b.visit(time.Second); by["a"] > 0 {
			b.Errorf("a drained cluster gets %v", by)
		}
	})
}

// TestNoConnectionFails, while a cluster refuses all, or drops it, and is back: new ones wait for a second or more.
func TestNoConnectionFails(t *testing.T) {
	for name, verdict := range map[string]string{"refuses": "reject with tcp reset", "drops": "drop"} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, false)
			b.start()
			b.inKernel()
			b.visit(time.Second)
			if verdict == "drop" {
				b.fails("a", verdict)
			} else {
				b.nft(b.clusters["a"], "add table inet fault; add chain inet fault in { type filter hook input priority 0; }; add rule inet fault in tcp flags syn "+verdict)
			}
			took, by := b.visit(6 * time.Second)
			slices.Sort(took)
			late := 0
			for _, d := range took {
				if d > 500*time.Millisecond {
					late++
				}
			}
			b.Logf("%d of %d connections took more than half a second, the slowest %s; by %v", late, len(took), took[len(took)-1].Round(10*time.Millisecond), by)
			if took[len(took)-1] > 4*time.Second {
				b.Errorf("the slowest took %s", took[len(took)-1])
			}
			if _, by = b.visit(time.Second); by["a"] > 0 {
				b.Errorf("it still gets %v", by)
			}
			b.heals("a")
			if _, by = b.visit(8 * time.Second); by["a"] == 0 {
				b.Errorf("it is back, and gets %v", by)
			}
		})
	}
}

// holdTo opens connections until one is at a cluster.
func (b *bed) holdTo(cluster string) net.Conn {
	b.Helper()
	for range 50 {
		c, err := b.outside.Dial(b.at(b.lb, httpPort))
		if err != nil {
			b.Fatal(err)
		}
		if got, err := askOver(c); err == nil && strings.HasPrefix(got, cluster+" ") {
			b.Cleanup(func() { _ = c.Close() })
			return c
		}
		_ = c.Close() // it is at another one
	}
	b.Fatalf("no connection is at %s", cluster)
	return nil
}

// askOver asks over a connection, and returns the body of the answer.
func askOver(c net.Conn) (string, error) {
	_ = c.SetDeadline(time.Now().Add(15 * time.Second))
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: web\r\n\r\n"); err != nil {
		return "", err
	}
	answer := make([]byte, 1024)
	n, err := c.Read(answer)
	_, body, _ := strings.Cut(string(answer[:n]), "\r\n\r\n")
	return body, err
}

// TestOpenConnections: those to a cluster that is cut off are reset, also of clients that only wait; those to a drained one go on.
func TestOpenConnections(t *testing.T) {
	eachFamily(t, func(b *bed) {
		p := b.start()
		b.inKernel()
		stays, waits := b.holdTo("b"), b.holdTo("a")
		b.ranks["b"] = 1 // drained
		p.offer()
		if got, err := askOver(stays); err != nil || !strings.HasPrefix(got, "b ") {
			b.Errorf("a connection to a drained cluster: %q, %v", got, err)
		}
		b.ranks["b"] = 0
		p.offer()
		begin := time.Now()
		b.fails("a", "drop")
		_ = waits.SetDeadline(begin.Add(15 * time.Second))
		_, err := waits.Read(make([]byte, 1))
		if !errors.Is(err, unix.ECONNRESET) {
			b.Errorf("a client that waits, of a cluster that is cut off, has %v after %s; want a reset", err, time.Since(begin))
		}
		b.Logf("reset after %s", time.Since(begin).Round(10*time.Millisecond))
		if got, err := askOver(stays); err != nil || !strings.HasPrefix(got, "b ") {
			b.Errorf("a connection to another cluster: %q, %v", got, err)
		}
	})
}

// TestDatagrams: a client that goes on sending by one flow is led to another cluster when its own is cut off: by the checks of a port with TCP, or else
// when the federation says so.
func TestDatagrams(t *testing.T) {
	eachFamily(t, func(b *bed) {
		p := b.start()
		b.inKernel()
		moves := func(port uint16, after func(server string)) {
			b.Helper()
			flow := b.outside.Flow(b.T, b.at(b.lb, port))
			first, err := flow.Ask()
			if err != nil {
				b.Fatal(err)
			}
			for range 5 {
				if got, err := flow.Ask(); err != nil || got.Server != first.Server {
					b.Fatalf("a flow of %s is at %v: %v", first.Server, got, err)
				}
			}
			b.fails(first.Server, "drop")
			after(first.Server)
			b.eventually(10*time.Second, "the flow is at another cluster", func() bool {
				got, err := flow.Ask()
				return err == nil && got.Server != first.Server
			})
			b.heals(first.Server)
		}
		moves(dnsPort, func(string) {})
		moves(plainDNSPort, func(server string) {
			b.ranks[server] = servicednsplan.RankUnseen
			p.offer()
		})
	})
}

// TestHandOver: a new process takes the rules over from one that ends, and from one that was killed; the last one takes them along. Tables of others stay.
func TestHandOver(t *testing.T) {
	b := newBed(t, false)
	b.nft(b.lb, "add table ip foreign")
	first := b.start()
	b.inKernel()
	stays := b.holdTo("a")
	second := b.start()
	visited := make(chan map[string]int, 1)
	go func() {
		_, by := b.visit(6 * time.Second)
		visited <- by
	}()
	_ = first.Process.Signal(syscall.SIGTERM)
	_ = first.Wait()
	b.inKernel()
	b.ranks["b"] = 1
	second.offer()
	b.eventually(5*time.Second, "the second process writes the rules", func() bool {
		return !strings.Contains(b.nft(b.lb, "list table ip "+table), fmt.Sprintf(": %s . %d", b.clusters["b"].V4, httpPort))
	})
	if by := <-visited; by["a"] == 0 {
		b.Errorf("meanwhile %v", by)
	}
	_ = second.Process.Kill()
	_ = second.Wait()
	b.inKernel()
	if _, by := b.visit(time.Second); by["a"] < 40 {
		b.Errorf("while no process is there: %v", by)
	}
	third := b.start()
	third.offer()
	b.lastEnds(third, stays)
}

// lastEnds ends the last process, which waits for open connections.
func (b *bed) lastEnds(last *process, stays net.Conn) {
	_ = last.Process.Signal(syscall.SIGTERM)
	time.Sleep(3 * time.Second)
	if err := b.outside.Refused(b.at(b.lb, httpPort)); err != nil {
		b.Errorf("at the end: %v", err)
	}
	if got, err := askOver(stays); err != nil || !strings.HasPrefix(got, "a ") {
		b.Errorf("a connection that is as old as the first process: %q, %v", got, err)
	}
	_ = stays.Close()
	begin := time.Now()
	_ = last.Wait()
	if took := time.Since(begin); took > 10*time.Second {
		b.Errorf("it ends %s after the last connection", took)
	}
	if rules := b.nft(b.lb, "list tables"); rules != "table ip foreign\n" {
		b.Errorf("tables after the end: %q", rules)
	}
}
