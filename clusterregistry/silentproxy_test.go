package clusterregistry

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/health"
	"federation/clusterregistry/tunnel"
	"federation/hack/forward"
)

// behindProxy is a registry with one member, whose agent reaches it through a proxy. Its periods are those of a federation.
type behindProxy struct {
	*fleet
	proxy *forward.SilentProxy
	away  atomic.Int64 // when the agent first said that it is not connected, after it was; 0: it is
}

func newBehindProxy(t *testing.T) *behindProxy {
	hub := tunnel.NewHub("process-1")
	b := &behindProxy{fleet: newFleetWith(t, func(o *Options) {
		o.Tunnel, o.Policy, o.Timeout = hub, health.DefaultPolicy(), DefaultTimeout
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // no more connections come
	runAgentBy(t, hub, newFakeMember(t), func(address string) string {
		b.proxy = forward.NewSilentProxy(l, address)
		return l.Addr().String()
	}, func(_ string, err error) {
		if err == nil {
			b.away.Store(0)
		} else {
			b.away.CompareAndSwap(0, time.Now().UnixNano())
		}
	})
	b.createPulled()
	b.untilReady(time.Now(), corev1.ConditionTrue)
	return b
}

// untilReady returns how long after begin the member's condition Ready has a status.
func (b *behindProxy) untilReady(begin time.Time, status corev1.ConditionStatus) time.Duration {
	b.t.Helper()
	b.eventually("Ready is "+string(status), func() bool {
		c := b.cluster("east").Condition(v1beta1.ClusterReady)
		return c != nil && c.Status == status
	})
	return time.Since(begin)
}

// agentNoticed returns how long after begin the agent said first that it is not connected, while it still says so.
func (b *behindProxy) agentNoticed(begin time.Time) time.Duration {
	away := b.away.Load()
	if away == 0 {
		b.t.Errorf("the agent takes itself to be connected")
		return 0
	}
	return time.Duration(away - begin.UnixNano())
}

const (
	// noticedWithin is how soon both sides are to know that nothing passes: as in push, and a little for a busy machine.
	noticedWithin = 4500 * time.Millisecond
	// backWithin is how soon a member is to be ready when the path is back.
	backWithin = 3 * time.Second
)

// TestASilentProxyInTheWay: a proxy between agent and federation keeps all its connections open, and drops what goes one way, the other, or both. Both sides
// notice it as soon as without one, and are back as soon, however long it lasts.
func TestASilentProxyInTheWay(t *testing.T) {
	for name, drop := range map[string]struct{ fromAgent, toAgent bool }{"to the agent": {false, true}, "from the agent": {true, false}, "both ways": {true, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBehindProxy(t)
			for _, lasts := range []time.Duration{4600 * time.Millisecond, 9700 * time.Millisecond} {
				time.Sleep(2 * time.Second) // it is in use again
				begin := time.Now()
				b.proxy.Drop(drop.fromAgent, drop.toAgent)
				lost := b.untilReady(begin, corev1.ConditionFalse)
				time.Sleep(lasts - time.Since(begin))
				noticed := b.agentNoticed(begin)
				b.proxy.Drop(false, false)
				back := b.untilReady(time.Now(), corev1.ConditionTrue)
				t.Logf("%s for %v: the federation noticed after %.1f s, the agent after %.1f s; ready %.1f s after it was over", name, lasts, lost.Seconds(), noticed.Seconds(), back.Seconds())
				if lost > noticedWithin || noticed > noticedWithin {
					t.Errorf("noticed after %v and %v, want %v", lost, noticed, noticedWithin)
				}
				if back > backWithin {
					t.Errorf("ready %v after it was over, want %v", back, backWithin)
				}
			}
		})
	}
}
