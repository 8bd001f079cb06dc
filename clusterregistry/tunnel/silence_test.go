package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"federation/hack/forward"
)

// behindProxy starts a proxy to a federation, and returns what has an agent connect through it.
func behindProxy(t *testing.T, f *federation) (*forward.SilentProxy, func(*AgentOptions)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // no more connections come
	return forward.NewSilentProxy(l, f.Listener.Addr().String()), func(o *AgentOptions) { o.Servers = []string{"https://" + l.Addr().String()} }
}

// watching is the API of a member that counts the watches under way.
func watching(t *testing.T) (*httptest.Server, *atomic.Int64) {
	var under atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		under.Add(1)
		defer under.Add(-1)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s, &under
}

// until waits until something is so.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// A watch whose federation is not found any more ends at the member, though nobody says that its connection has ended.
func TestWatchesOfASilentFederationEnd(t *testing.T) {
	f := newFederation(t, "")
	api, under := watching(t)
	proxy, through := behindProxy(t, f)
	startAgent(t, f, api, func(o *AgentOptions) { through(o); o.Quiet = 50 * time.Millisecond })
	answer, err := f.client(true).Get("http://member/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	time.Sleep(2 * pingAfter * 50 * time.Millisecond)
	if n := under.Load(); n != 1 {
		t.Fatalf("%d watches, while the federation is there and has nothing to say", n)
	}
	proxy.Drop(true, true)
	until(t, "the watch ends", func() bool { return under.Load() == 0 })
}

// A federation that has nothing to say, and is slow to take connections, loses none that it uses and is never without one that is ready. It is asked less and less often.
func TestASlowFederationLosesNothing(t *testing.T) {
	f := newFederation(t, "")
	var tries, failed atomic.Int64
	startAgent(t, f, newAPI(t), func(o *AgentOptions) {
		o.Quiet = 100 * time.Millisecond
		o.Observe = func(_ string, err error) {
			if tries.Add(1); err != nil {
				failed.Add(1)
			}
		}
	})
	session := f.session(t)
	until(t, "two connections are ready", func() bool { return f.hub.count(cluster) == 2 })
	none := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-none:
				return
			case <-time.After(time.Millisecond):
				if f.hub.count(cluster) == 0 {
					t.Error("no connection is ready")
					return
				}
			}
		}
	})
	gate := make(chan struct{})
	before := tries.Load()
	f.gate.Store(&gate) // who comes waits
	time.Sleep(2 * connectRetry)
	if failed.Load() == 0 {
		t.Error("the agent does not say that it has no answer")
	}
	close(gate)
	f.gate.Store(nil)
	time.Sleep(2 * time.Second)
	close(none)
	watch.Wait()
	if n := tries.Load() - before; n > 20 { // each of two: one to three that wait, and at 0.2, 0.4, 0.8 and 1.6 s
		t.Errorf("%d tries to connect", n)
	}
	echo(t, session, "word")
}

// A session that hangs, as its path was cut, does not make an agent connected that is not.
func TestHubWithoutAgentButASessionThatHangs(t *testing.T) {
	f := newFederation(t, "")
	stop := startAgent(t, f, newAPI(t), nil)
	f.session(t)
	stop()
	until(t, "none is ready", func() bool { return f.hub.count(cluster) == 0 })
	if _, connected := f.hub.Agent(cluster); !connected {
		t.Error("the agent may still replace what was taken")
	}
	f.hub.mu.Lock()
	m := f.hub.members[cluster]
	f.hub.mu.Unlock()
	time.Sleep(refill) // one more may have been on its way when the agent ended
	m.heard.Store(time.Now().Add(-patience).UnixNano())
	time.Sleep(refill)
	begin := time.Now()
	if _, err := f.hub.Dial(context.Background(), cluster); !errors.Is(err, ErrNoAgent) || time.Since(begin) > refill/2 {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	if _, connected := f.hub.Agent(cluster); connected {
		t.Error("the agent counts as connected")
	}
}

// A connection on which nothing comes any more has its agent in doubt: the next one is of another agent of the cluster, as long as that has any.
func TestHubPrefersTheOtherAgent(t *testing.T) {
	f := newFederation(t, "")
	api := newAPI(t)
	startAgent(t, f, api, nil)
	until(t, "the first agent is ready", func() bool { return f.hub.count(cluster) == 2 })
	startAgent(t, f, api, nil)
	until(t, "both agents are ready", func() bool { return f.hub.count(cluster) == 4 })
	newest := func() (agent string) {
		f.hub.mu.Lock()
		defer f.hub.mu.Unlock()
		ready := f.hub.members[cluster].ready
		return ready[len(ready)-1].agent
	}
	second := newest()
	used, err := f.hub.Dial(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(used, "GET / HTTP/1.1\r\nHost: member\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := used.Read(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	until(t, "another one is ready in its place", func() bool { return f.hub.count(cluster) == 4 })
	if newest() != second {
		t.Fatal("the newest connection is not of the agent that was used")
	}
	if _, err := io.WriteString(used, "GET"); err != nil { // to which there is no answer
		t.Fatal(err)
	}
	_ = used.Close()
	for i, want := range []bool{false, false, true, true} {
		c, _ := f.hub.take(cluster)
		if c == nil || (c.agent == second) != want {
			t.Fatalf("connection %d is %+v, of the agent in doubt: want %t", i, c, want)
		}
		defer c.Close()
	}
}
