package nftables

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/nettest"
	"federation/nodeagent/nettest/behaviours"
	"federation/nodeagent/ruleset"
)

// blackholed is a world with a Service that clients outside know: at a load balancer's address, an external one, and a
// node port.
type blackholed struct {
	*behaviours.World
	t        *testing.T
	w        *Writer
	outside  []netip.AddrPort
	clientIP netip.AddrPort
}

func newBlackholed(t *testing.T, ipv6 bool) *blackholed {
	b := &blackholed{t: t}
	b.World = behaviours.NewWorld(t, ipv6, func(t testing.TB) behaviours.Writer {
		b.w = open(t).(*Writer)
		return b.w
	})
	node := *b.Model.Node()
	node.Blackhole = true
	b.Model.SetNode(node)
	clusterIP, external := netip.MustParseAddr("10.96.0.77"), netip.MustParseAddr("192.0.2.77")
	if ipv6 {
		clusterIP, external = netip.MustParseAddr("fd00:10:96::77"), netip.MustParseAddr("2001:db8:0:2::77")
	}
	b.Outside.Route(t, netip.PrefixFrom(external, external.BitLen()), b.Node())
	b.Sync(t)
	b.Service(t, func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalIPs = corev1.ServiceTypeLoadBalancer, []string{external.String()}
		s.Spec.ClusterIP, s.Spec.ClusterIPs = clusterIP.String(), []string{clusterIP.String()}
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: b.VIP.String()}}
		s.Spec.Ports[0].NodePort, s.Spec.Ports[1].NodePort = 30080, 30053
	})
	b.Endpoints(t, b.There)
	b.outside = []netip.AddrPort{b.Web(b.VIP), b.Web(external), netip.AddrPortFrom(b.Node(), 30080)}
	b.clientIP = b.Web(clusterIP)
	return b
}

// until makes the kernel drop packets from outside for d.
func (b *blackholed) until(d time.Duration) time.Time {
	b.t.Helper()
	until := time.Now().Add(d)
	if err := b.w.Blackhole(b.t.Context(), until); err != nil {
		b.t.Fatal(err)
	}
	return until
}

// dropped checks that nobody outside gets an answer: silence, not a refusal.
func (b *blackholed) dropped() {
	b.t.Helper()
	for _, to := range b.outside {
		var slow interface{ Timeout() bool }
		if c, err := b.Outside.DialWithin(to, 100*time.Millisecond); err == nil {
			_ = c.Close()
			b.t.Errorf("%s answers outside", to)
		} else if !errors.As(err, &slow) || !slow.Timeout() {
			b.t.Errorf("%s: %v, want silence", to, err)
		}
	}
	if got, err := b.Outside.Flow(b.t, b.DNS(b.VIP)).Ask(); !errors.Is(err, os.ErrDeadlineExceeded) {
		b.t.Errorf("UDP: %v, %v, want silence", got, err)
	}
}

// inside checks that pods and the node reach the Service at each of its addresses.
func (b *blackholed) inside() {
	b.t.Helper()
	for _, from := range []*nettest.Host{b.Client, b.There, b.Nodes[0].Host} {
		for _, to := range append(b.outside[:3:3], b.clientIP) {
			if from != b.There || to.Addr() == b.Node() { // a pod of the other node reaches this one's node port; the rest is its own node's
				b.Gets(b.t, from, to, b.There, netip.Addr{})
			}
		}
	}
}

func (b *blackholed) served() {
	b.t.Helper()
	for _, to := range b.outside {
		b.Gets(b.t, b.Outside, to, b.There, netip.Addr{})
	}
}

func eachFamily(t *testing.T, f func(t *testing.T, ipv6 bool)) {
	for name, ipv6 := range map[string]bool{"IPv4": false, "IPv6": true} {
		t.Run(name, func(t *testing.T) { f(t, ipv6) })
	}
}

// While a drill takes the node from its clients, nobody outside gets an answer, not even over existing connections;
// inside nothing changes.
func TestBlackholeDropsWhatComesFromOutside(t *testing.T) {
	eachFamily(t, func(t *testing.T, ipv6 bool) {
		b := newBlackholed(t, ipv6)
		b.served()
		b.inside()
		out, in, over := b.Outside.Stay(t, b.outside[0]), b.Client.Stay(t, b.clientIP), b.Client.Stay(t, b.outside[0])
		for _, ask := range []func() (nettest.Answer, error){out, in, over} {
			if _, err := ask(); err != nil {
				t.Fatal(err)
			}
		}
		b.until(time.Minute)
		b.dropped()
		b.inside()
		for name, ask := range map[string]func() (nettest.Answer, error){"cluster IP": in, "load balancer's address": over} {
			if _, err := ask(); err != nil {
				t.Errorf("an established connection inside, to the %s: %v", name, err)
			}
		}
		if got, err := out(); err == nil {
			t.Errorf("an established connection from outside is answered: %v", got)
		}
		b.until(-1)
		b.served()
	})
}

// Without renewals the kernel ends the blackhole by itself: the agent may be gone. A renewal extends it, and so does an
// agent that finds its rules changed.
func TestTheKernelEndsABlackhole(t *testing.T) {
	eachFamily(t, func(t *testing.T, ipv6 bool) {
		b := newBlackholed(t, ipv6)
		first := b.until(1500 * time.Millisecond)
		time.Sleep(time.Second)
		end := b.until(3 * time.Second)
		time.Sleep(time.Until(first) + 200*time.Millisecond)
		b.dropped()
		if err := b.Nodes[0].Do(func() error { // somebody takes all rules away, and the agent writes them again
			if err := b.w.Cleanup(context.Background()); err != nil {
				return err
			}
			return b.w.Sync(context.Background(), b.Model.Node(), b.Model.Ports())
		}); err != nil {
			t.Fatal(err)
		}
		b.dropped()
		b.w.Close()
		for {
			c, err := b.Outside.DialWithin(b.outside[0], 50*time.Millisecond)
			if err == nil {
				_ = c.Close()
				break
			}
			if time.Since(end) > time.Second {
				t.Fatal("a second after the end it still drops")
			}
		}
		if early := time.Until(end); early > 100*time.Millisecond {
			t.Errorf("it ended %s early", early)
		}
		b.served()
	})
}

// A node that is not to be blackholed has no rule for it, and one that was loses it.
func TestWithoutTheFlagThereIsNoRule(t *testing.T) {
	b := newBlackholed(t, false)
	b.until(time.Minute)
	node := *b.Model.Node()
	node.Blackhole = false
	b.Model.SetNode(node)
	b.Sync(t)
	if k, err := read(b.w.socket, TableName, families[0]); err != nil || k.chains["outside-prerouting"] != nil {
		t.Errorf("the chain is there: %v, %v", k.chains["outside-prerouting"], err)
	}
	b.served()
	b.until(time.Minute)
	b.served()
	node.Blackhole = true // what is asked for meanwhile begins with the next renewal, or with the rules
	b.Model.SetNode(node)
	b.Sync(t)
	b.dropped()
	b.Model.SetNode(ruleset.Node{Name: node.Name, Addrs: node.Addrs, Pods: node.Pods, Blackhole: true, Inside: []netip.Prefix{netip.PrefixFrom(b.Outside.V4, 32)}})
	b.Sync(t)
	b.served()
}
