package e2e

import (
	"net"
	"sync"
	"testing"
	"time"
)

// wire is a network between the federation and a member: a TCP proxy that can be cut, as a cable is,
// without a word to either side, and that can be long.
type wire struct {
	net.Listener
	member string

	mu      sync.Mutex
	latency time.Duration // each way
	cut     chan struct{} // closed when it is whole again; nil while it is
	lost    chan struct{} // closed when the connections of now are forgotten
}

func newWire(t *testing.T, member string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, member: member, lost: make(chan struct{})}
	t.Cleanup(func() {
		_ = l.Close() // nobody connects any more
		w.heal(true)
	})
	go w.accept()
	return w
}

func (w *wire) accept() {
	for {
		c, err := w.Accept()
		if err != nil {
			return
		}
		go w.connect(c)
	}
}

// connect carries bytes both ways. What lies behind a cut learns nothing of the end of the other side.
func (w *wire) connect(c net.Conn) {
	w.mu.Lock()
	lost := w.lost
	w.mu.Unlock()
	m, err := net.Dial("tcp", w.member)
	if err != nil {
		_ = c.Close() // the member is gone
		return
	}
	go w.carry(m, c, lost)
	w.carry(c, m, lost)
}

type parcel struct {
	due  time.Time
	data []byte
}

func (w *wire) carry(to, from net.Conn, lost <-chan struct{}) {
	way := make(chan parcel, 10_000)
	go func() {
		defer close(way)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			w.mu.Lock()
			due := time.Now().Add(w.latency)
			w.mu.Unlock()
			way <- parcel{due, buffer[:n]}
		}
	}()
	for p := range way {
		time.Sleep(time.Until(p.due))
		if w.wait(lost) {
			_, _ = to.Write(p.data) // fails when that side is gone; then this one is told below
		}
	}
	if w.wait(lost) {
		_ = to.Close() // it may be closed already
	}
}

// wait waits until the wire is whole, and reports whether the connection still counts.
func (w *wire) wait(lost <-chan struct{}) bool {
	w.mu.Lock()
	cut := w.cut
	w.mu.Unlock()
	if cut != nil {
		<-cut
	}
	select {
	case <-lost:
		return false
	default:
		return true
	}
}

// sever makes the wire swallow all that is sent, on connections of before and new ones.
func (w *wire) sever() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = make(chan struct{})
}

// heal makes it whole. What was sent meanwhile arrives, as TCP sends it again; or, when something on the
// way has forgotten the connections of before, these stay silent for ever.
func (w *wire) heal(forget bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if forget {
		close(w.lost)
		w.lost = make(chan struct{})
	}
	if w.cut != nil {
		close(w.cut)
		w.cut = nil
	}
}

func (w *wire) setLatency(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latency = d
}
