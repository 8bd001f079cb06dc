package propagation

import (
	"context"
	"sync"

	"federation/controllers/supervisor"
)

// serving is the work in all members, which ends with the controller.
type serving struct {
	mu      sync.Mutex
	ended   bool
	cancels map[*context.CancelFunc]bool
	all     sync.WaitGroup
}

// start runs do until ctx is done or the controller has ended, again after a panic. If it has ended already, start returns false without
// calling do.
func (s *serving) start(ctx context.Context, do func(context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	if s.cancels == nil {
		s.cancels = map[*context.CancelFunc]bool{}
	}
	s.cancels[&cancel] = true
	s.all.Go(func() {
		defer func() {
			cancel()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.cancels, &cancel)
		}()
		supervisor.Keep(ctx, "propagation", do)
	})
	return true
}

// end ends all of it, and waits for that.
func (s *serving) end() {
	s.mu.Lock()
	s.ended = true
	for cancel := range s.cancels {
		(*cancel)()
	}
	s.mu.Unlock()
	s.all.Wait()
}
