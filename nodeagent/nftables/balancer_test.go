package nftables

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/conntrack"
	"federation/nodeagent/nettest"
	"federation/nodeagent/ruleset"
)

// balancerBed is a load balancer between outside and two clusters' load balancers, in one family.
type balancerBed struct {
	*Writer
	*testing.T
	at       *nettest.Host
	outside  *nettest.Host
	clusters [2]*nettest.Host
	ipv6     bool
}

func newBalancer(t *testing.T, ipv6 bool) *balancerBed {
	rig := nettest.New(t)
	b := &balancerBed{T: t, at: rig.Neighbour(t, "lb", 30), outside: rig.Outside, ipv6: ipv6}
	for i, name := range []string{"a", "b"} {
		b.clusters[i] = rig.Neighbour(t, name, 40+i)
		b.clusters[i].ServeUDP(t, 53)
	}
	if err := b.at.Do(func() (err error) { b.Writer, err = NewNamed("balancer"); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func (b *balancerBed) address(h *nettest.Host, port uint16) netip.AddrPort {
	if b.ipv6 {
		return netip.AddrPortFrom(h.V6, port)
	}
	return netip.AddrPortFrom(h.V4, port)
}

// port returns one of a Service at all addresses of the load balancer.
func (b *balancerBed) port(protocol corev1.Protocol, number uint16, retried bool, to ...*nettest.Host) *ruleset.Port {
	route := ruleset.Route{To: ruleset.ToCluster}
	p := &ruleset.Port{ID: ruleset.PortID{Key: ruleset.Key{Namespace: "shop", Name: "db"}, Port: "p", Protocol: protocol}, IPv6: b.ipv6, Retried: retried}
	p.Frontends = []ruleset.Frontend{{Key: ruleset.FrontendKey{IPv6: b.ipv6, Protocol: protocol, Port: number}, Kind: ruleset.LoadBalancer, FromPod: route, FromNode: route, FromOutside: route}}
	for _, h := range to {
		p.Cluster.Backends = append(p.Cluster.Backends, ruleset.Backend{Addr: b.address(h, number), Weight: 1, Cluster: h.Name})
	}
	return p
}

func (b *balancerBed) sync(ports ...*ruleset.Port) {
	b.Helper()
	if err := b.Sync(context.Background(), &ruleset.Node{Federated: true, Balancer: true}, ports); err != nil {
		b.Fatal(err)
	}
}

func (b *balancerBed) count(h *nettest.Host, protocol corev1.Protocol, port uint16) Count {
	b.Helper()
	all, err := b.Counts()
	if err != nil {
		b.Fatal(err)
	}
	return all[Backend{protocol, b.address(h, port)}]
}

// TestBalancerCounts: new connections and flows by backend, and those of TCP that it took. Counters outlive a Sync, as of another process.
func TestBalancerCounts(t *testing.T) {
	eachFamily(t, func(t *testing.T, ipv6 bool) {
		b := newBalancer(t, ipv6)
		b.clusters[0].ServeHTTP(t, 8080)
		b.clusters[1].ServeHTTP(t, 8080)
		tcp, udp := b.port(corev1.ProtocolTCP, 8080, true, b.clusters[:]...), b.port(corev1.ProtocolUDP, 53, true, b.clusters[0])
		b.sync(tcp, udp)
		answers := map[string]int{}
		for range 40 {
			got, err := b.outside.Get(b.address(b.at, 8080))
			if err != nil || got.Client != b.address(b.at, 0).Addr() {
				t.Fatalf("%v, %v: want an answer to the load balancer's address", got, err)
			}
			answers[got.Server]++
		}
		flow := b.outside.Flow(t, b.address(b.at, 53))
		for range 3 {
			if got, err := flow.Ask(); err != nil || got.Server != "a" {
				t.Fatalf("by UDP %v, %v", got, err)
			}
		}
		b.sync(tcp, udp)
		if b.Wrote() != 0 {
			t.Errorf("a second Sync had %d messages", b.Wrote())
		}
		for i, h := range b.clusters {
			n := uint64(answers[h.Name])
			if got := b.count(h, corev1.ProtocolTCP, 8080); n == 0 || got != (Count{Asked: n, Taken: n}) {
				t.Errorf("%s answered %d, and is counted as %+v", h.Name, n, got)
			}
			if got := b.count(h, corev1.ProtocolUDP, 53); got != (Count{Asked: uint64(1 - i)}) {
				t.Errorf("%s, by UDP, is counted as %+v", h.Name, got)
			}
		}
	})
}

// TestBalancerRetries: what a backend refuses, by a reset or by ICMP, is tried again a second later, as often as it takes; unless it is not to be retried.
func TestBalancerRetries(t *testing.T) {
	eachFamily(t, func(t *testing.T, ipv6 bool) {
		b := newBalancer(t, ipv6)
		b.clusters[0].ServeHTTP(t, 8080) // and b refuses
		b.sync(b.port(corev1.ProtocolTCP, 8080, true, b.clusters[:]...))
		at := b.address(b.at, 8080)
		for range 8 {
			begin := time.Now()
			if got, err := b.outside.GetWithin(at, 30*time.Second); err != nil || got.Server != "a" {
				t.Fatalf("%v, %v", got, err)
			}
			if took := time.Since(begin); took > 500*time.Millisecond {
				break
			}
		}
		if got := b.count(b.clusters[1], corev1.ProtocolTCP, 8080); got.Refused == 0 || got.Refused != got.Asked || got.Taken != 0 {
			t.Errorf("of the one that refuses: %+v", got)
		}
		b.sync(b.port(corev1.ProtocolTCP, 8080, false, b.clusters[1]))
		if err := b.outside.Refused(at); err != nil {
			t.Error(err)
		}
		reject := "add table inet f; add chain inet f in { type filter hook input priority 0; }; add rule inet f in tcp dport 8080 reject with icmpx port-unreachable"
		if err := b.clusters[1].Do(exec.Command("/usr/sbin/nft", reject).Run); err != nil {
			t.Fatal(err)
		}
		if _, err := b.outside.GetWithin(at, 300*time.Millisecond); !ipv6 && !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a refusal by ICMP that is not to be retried: %v", err) // by IPv6 the client's kernel does not end connect() for it
		}
		b.sync(b.port(corev1.ProtocolTCP, 8080, true, b.clusters[1]))
		before := b.count(b.clusters[1], corev1.ProtocolTCP, 8080).Refused
		if _, err := b.outside.GetWithin(at, 300*time.Millisecond); err == nil || errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a refusal by ICMP that is to be retried: %v", err)
		}
		if b.count(b.clusters[1], corev1.ProtocolTCP, 8080).Refused != before+1 {
			t.Error("it has reached the client")
		}
	})
}

// TestBalancerResets: a connection that is ended is reset when the client says something; what comes of an established one passes.
func TestBalancerResets(t *testing.T) {
	eachFamily(t, func(t *testing.T, ipv6 bool) {
		b := newBalancer(t, ipv6)
		b.clusters[0].ServeHTTP(t, 8080)
		b.clusters[1].ServeHTTP(t, 8080)
		b.sync(b.port(corev1.ProtocolTCP, 8080, true, b.clusters[0]))
		c, err := b.outside.Dial(b.address(b.at, 8080))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ask := func() (string, error) {
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: db\r\n\r\n"); err != nil {
				return "", err
			}
			answer := make([]byte, 1024)
			n, err := c.Read(answer)
			return string(answer[:n]), err
		}
		if _, err := ask(); err != nil {
			t.Fatal(err)
		}
		var flows *conntrack.Table
		if err := b.at.Do(func() (err error) { flows, err = conntrack.Open(); return err }); err != nil {
			t.Fatal(err)
		}
		defer flows.Close()
		b.sync(b.port(corev1.ProtocolTCP, 8080, true, b.clusters[1]))
		if got, err := ask(); err != nil || !strings.Contains(got, "\r\n\r\na ") {
			t.Fatalf("a connection to a backend that gets no new ones: %v, %v", got, err)
		}
		to := ruleset.FrontendKey{IPv6: ipv6, Protocol: corev1.ProtocolTCP, Port: 8080}
		lost := conntrack.Answered{To: to, By: b.address(b.clusters[0], 8080)}
		lost.Unanswered = true
		if ended, err := flows.End([]conntrack.Answered{lost}); err != nil || len(ended) != 0 {
			t.Fatalf("of those that were not answered: %v, %v", ended, err)
		}
		lost.Unanswered = false
		ended, err := flows.End([]conntrack.Answered{lost, {To: to, By: b.address(b.clusters[1], 8080)}})
		if err != nil || len(ended) != 1 || ended[0].Client.Addr() != b.address(b.outside, 0).Addr() || ended[0].To != b.address(b.at, 8080) || ended[0].Protocol != corev1.ProtocolTCP || !ended[0].Answered {
			t.Fatalf("ended: %v, %v", ended, err)
		}
		if got, err := ask(); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("after its end: %v, %v; want a reset", got, err)
		}
	})
}

// TestBalancerBecomesNode: a table for load balancers becomes one for nodes, and the other way round.
func TestBalancerBecomesNode(t *testing.T) {
	b := newBalancer(t, false)
	p := b.port(corev1.ProtocolTCP, 8080, true, b.clusters[0])
	b.clusters[0].ServeHTTP(t, 8080)
	for range 2 {
		for _, node := range []*ruleset.Node{{Federated: true, Balancer: true}, {Federated: true}} {
			if err := b.Sync(context.Background(), node, []*ruleset.Port{p}); err != nil {
				t.Fatal(err)
			}
			if _, err := b.outside.Get(b.address(b.at, 8080)); err != nil {
				t.Error(err)
			}
		}
	}
	if counts, err := b.Counts(); err != nil || len(counts) > 0 {
		t.Errorf("counts of a node: %v, %v", counts, err)
	}
}
