package tunnel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"federation/controllers/supervisor"
)

const (
	// Protocol is what an agent asks to upgrade its connection to.
	Protocol = "federation-tunnel"
	// ProcessHeader says, in the answer to an agent, which process of the federation it has reached.
	ProcessHeader = "Federation-Process"
	// VersionHeader says, in the request of an agent, which version of the federation it is from.
	VersionHeader = "Federation-Version"
	// AgentHeader says there which of the cluster's agents it is.
	AgentHeader = "Federation-Agent"
)

// MostReady is how many connections of one member may be ready: more are refused.
const MostReady = 8

const (
	// refill is how long an agent that has no connection left may take to replace those that were taken.
	refill = time.Second
	// patience is how long to wait for that while others of its connections are in use, as when the machine is busy.
	patience = 10 * time.Second
	// maxIdle is how long a connection is kept ready at most, and half of it at least: its agent then connects, and is authenticated, again.
	maxIdle = time.Hour
	// maxSaid bounds each thing that an agent says of itself.
	maxSaid = 64
)

// ErrNoAgent means that no agent of a member is connected to this process.
var ErrNoAgent = errors.New("no agent of the cluster is connected")

// Hub has the connections of agents to this process of the federation. Its methods may be called from any goroutine.
type Hub struct {
	process string

	mu      sync.Mutex
	members map[types.UID]*member
}

// member is what a Hub has of one member.
type member struct {
	ready   []*readyConn  // the last one is the newest
	came    chan struct{} // closed when one comes
	last    time.Time     // when one was there the last time
	used    int           // connections that were taken and have not been closed
	heard   atomic.Int64  // when something came on any of them, or one came, in nanoseconds since the epoch
	version string        // of the agent that connected last
}

// NewHub returns a Hub that says process in its answers, a name that no other process of the federation has.
func NewHub(process string) *Hub { return &Hub{process: process, members: map[types.UID]*member{}} }

// Agent returns the version that the agent of a Cluster said that it is, and whether it is connected.
func (h *Hub) Agent(cluster types.UID) (version string, connected bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.members[cluster]
	if m == nil || !m.connected() {
		return "", false
	}
	return m.version, true
}

// connected reports whether the agent has connections, or replaces those that were taken. Where nothing comes on those any more, they say nothing about it.
func (m *member) connected() bool {
	inUse := m.used > 0 && time.Since(time.Unix(0, m.heard.Load())) < patience
	return len(m.ready) > 0 || inUse || time.Since(m.last) < refill
}

func (m *member) hears() { m.heard.Store(time.Now().UnixNano()) }

// Park answers the request of an agent that has been authenticated as that of the Cluster with a UID, and keeps its connection until it is dialled. It
// returns at once.
func (h *Hub) Park(w http.ResponseWriter, r *http.Request, cluster types.UID) {
	if r.Header.Get("Upgrade") != Protocol || r.ProtoMajor != 1 {
		w.Header().Set("Upgrade", Protocol)
		http.Error(w, fmt.Sprintf("Upgrade %q over HTTP/%d: must be %s over HTTP/1.1", r.Header.Get("Upgrade"), r.ProtoMajor, Protocol), http.StatusUpgradeRequired)
		return
	}
	if h.count(cluster) >= MostReady {
		http.Error(w, fmt.Sprintf("%d connections of this cluster are ready: more are not taken", MostReady), http.StatusTooManyRequests)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if buffered.Reader.Buffered() > 0 { // an agent speaks when it is spoken to
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Now().Add(refill)) // it fails on connections that are closed, which the write finds
	_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %s\r\n\r\n", Protocol, ProcessHeader, h.process)
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return
	}
	keepAlive(conn)
	said := func(header string) string {
		value := r.Header.Get(header)
		return value[:min(len(value), maxSaid)]
	}
	if !h.add(cluster, conn, said(AgentHeader), said(VersionHeader)) {
		_ = conn.Close() // others came meanwhile
	}
}

// keepAlive has the kernel ask the other side of a connection whether it is there, so that one that was cut silently ends within some ten seconds.
func keepAlive(conn net.Conn) {
	for {
		wrapped, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = wrapped.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}) // without it, it ends later
	}
}

func (h *Hub) count(cluster types.UID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.members[cluster]; m != nil {
		return len(m.ready)
	}
	return 0
}

// add makes a connection ready, unless there are enough.
func (h *Hub) add(cluster types.UID, conn net.Conn, agent, version string) bool {
	c := &readyConn{Conn: conn, agent: agent, since: time.Now(), done: make(chan struct{})}
	_ = c.SetReadDeadline(time.Now().Add(maxIdle/2 + rand.N(maxIdle/2))) // an error means that it has ended, which watch finds
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.members[cluster]
	if m != nil && len(m.ready) >= MostReady {
		return false
	}
	if m == nil {
		m = h.addMember(cluster)
	}
	m.ready, m.last, m.version = append(m.ready, c), time.Now(), version
	m.hears()
	close(m.came)
	m.came = make(chan struct{})
	go func() {
		_ = supervisor.Protect(context.Background(), "tunnel", func() error { h.watch(cluster, c); return nil }) // it is logged and counted
	}()
	return true
}

func (h *Hub) addMember(cluster types.UID) *member {
	m := &member{came: make(chan struct{})}
	h.members[cluster] = m
	return m
}

// Came returns what is closed when the next connection of a Cluster comes, unless the Cluster leaves before.
func (h *Hub) Came(cluster types.UID) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.members[cluster]
	if m == nil {
		m = h.addMember(cluster)
	}
	return m.came
}

// readyConn is a connection that nobody uses yet.
type readyConn struct {
	net.Conn
	agent    string // which of the cluster's it is of
	since    time.Time
	doubtful bool // its agent has not answered since it is ready
	taken    atomic.Bool
	done     chan struct{} // closed when watch no longer reads
	gone     bool          // it ended, was ready for long, or the agent said something unasked
}

// watch waits until a connection ends, has been ready for long, or is taken, which sets a deadline in the past.
func (h *Hub) watch(cluster types.UID, c *readyConn) {
	n, err := c.Read(make([]byte, 1))
	c.gone = n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !c.taken.Load()
	close(c.done)
	if c.gone {
		h.remove(cluster, c)
	}
}

func (h *Hub) remove(cluster types.UID, c *readyConn) {
	_ = c.Close() // it has ended
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.members[cluster]; m != nil {
		m.ready = slices.DeleteFunc(m.ready, func(other *readyConn) bool { return other == c })
	}
}

// Dial returns a connection to the API of the Cluster with a UID, through its agent. Where none is connected, it returns ErrNoAgent at once.
func (h *Hub) Dial(ctx context.Context, cluster types.UID) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrNoAgent)
	defer cancel()
	look := time.NewTicker(refill)
	defer look.Stop()
	for {
		c, came := h.take(cluster)
		if c == nil && came == nil {
			return nil, ErrNoAgent
		}
		if c != nil {
			if c.use() {
				return h.countUsed(cluster, c), nil
			}
			continue
		}
		select {
		case <-came:
		case <-look.C: // those in use may have ended
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// countUsed returns a connection that counts as in use until it is closed. If nothing came any more on it by then, those of the same agent that were ready
// before are in doubt: the path was cut, or the agent hangs. If nothing came at all, those that were ready before it are ended.
func (h *Hub) countUsed(cluster types.UID, ready *readyConn) net.Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.members[cluster]
	if m == nil { // it has just left the federation
		return ready.Conn
	}
	m.used++
	c := &usedConn{Conn: ready.Conn, heard: m.hears}
	c.closed = sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		m.used--
		wrote, read := c.wrote.Load(), c.read.Load()
		for _, other := range m.ready {
			switch {
			case other.agent != ready.agent: // a cluster's other agents may be well
			case read == 0 && other.since.Before(ready.since):
				_ = other.Close() // watch removes it
			case read < wrote && other.since.UnixNano() < wrote:
				other.doubtful = true
			}
		}
	})
	return c
}

// usedConn is a connection that was taken.
type usedConn struct {
	net.Conn
	wrote, read atomic.Int64 // when something was sent and came the last time, in nanoseconds since the epoch
	heard       func()
	closed      func()
}

// Read implements net.Conn.
func (c *usedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.read.Store(time.Now().UnixNano())
		c.heard()
	}
	return n, err
}

// Write implements net.Conn.
func (c *usedConn) Write(b []byte) (int, error) {
	c.wrote.Store(time.Now().UnixNano())
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *usedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

// take returns the newest connection that is not in doubt, or else the newest: after the path was cut, older ones may be dead without our knowing. Where there
// is none but the agent is connected, it returns what is closed when one comes; else nothing.
func (h *Hub) take(cluster types.UID) (*readyConn, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.members[cluster]
	switch {
	case m == nil || !m.connected():
		return nil, nil
	case len(m.ready) == 0:
		return nil, m.came
	}
	i := len(m.ready) - 1
	for j, c := range m.ready {
		if !c.doubtful {
			i = j
		}
	}
	c := m.ready[i]
	m.ready, m.last = slices.Delete(m.ready, i, i+1), time.Now()
	return c, nil
}

// use makes a connection that was taken ready to be used, and reports whether it has not ended.
func (c *readyConn) use() bool {
	c.taken.Store(true)
	_ = c.SetReadDeadline(time.Unix(1, 0)) // an error means that it has ended, which watch finds
	<-c.done
	if c.gone || c.SetReadDeadline(time.Time{}) != nil {
		_ = c.Close() // it has ended
		return false
	}
	return true
}

// Forget ends the connections of a Cluster that are ready, as it has left the federation. Those that were taken are whose they are.
func (h *Hub) Forget(cluster types.UID) {
	h.mu.Lock()
	m := h.members[cluster]
	delete(h.members, cluster)
	h.mu.Unlock()
	if m == nil {
		return
	}
	for _, c := range m.ready {
		_ = c.Close() // nobody uses it
	}
}
