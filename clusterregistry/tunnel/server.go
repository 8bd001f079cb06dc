package tunnel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// server is a process of the federation, as an agent knows it. That it is there shows in what it sends: each process checks the health of each member, and
// these requests come from one end of the tunnel to the other.
type server struct {
	url string

	quiet   atomic.Int64 // since when it has said nothing, or was last in doubt, in nanoseconds since the epoch
	doubts  atomic.Int32 // how often it was in doubt since it said something
	waiting atomic.Int32 // connections that are ready, and not in doubt

	mu      sync.Mutex
	doubted chan struct{} // closed when it is in doubt
}

func newServer(url string) *server {
	s := &server{url: url, doubted: make(chan struct{})}
	s.connected()
	return s
}

// said notes that the server sent something.
func (s *server) said() {
	s.quiet.Store(time.Now().UnixNano())
	s.doubts.Store(0)
}

// connected notes that the server took a connection: it is there, which does not mean that it has something to say.
func (s *server) connected() { s.quiet.Store(time.Now().UnixNano()) }

// wait counts a connection as waiting, and returns what is closed when the server is in doubt.
func (s *server) wait() (doubted <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting.Add(1)
	return s.doubted
}

// watch has the server in doubt when it has been quiet for long; for twice as long each time, until it says something.
func (s *server) watch(ctx context.Context, long time.Duration) {
	look := time.NewTicker(long / 10)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if s.waiting.Load() > 0 && time.Since(time.Unix(0, s.quiet.Load())) > long<<min(s.doubts.Load(), mostDoubts) {
			s.doubt()
		}
	}
}

func (s *server) doubt() {
	s.connected() // it is given time again
	s.doubts.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.doubted)
	s.doubted = make(chan struct{})
}
