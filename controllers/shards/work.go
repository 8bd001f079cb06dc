package shards

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"

	"federation/controllers/shards/plan"
	"federation/controllers/supervisor"
)

// work is one run of Options.Work.
type work struct {
	held   plan.Set
	cancel context.CancelFunc
	ended  chan error
}

// done returns a channel that is ready when the work has ended; never if there is none.
func (w *work) done() <-chan error {
	if w == nil {
		return nil
	}
	return w.ended
}

// startWork runs the work with a set. Work with the same set continues; work with another one is stopped first.
func (s *session) startWork(ctx context.Context, held plan.Set) error {
	if ctx.Err() != nil || (s.work != nil && s.work.held == held) {
		return nil
	}
	if err := s.stopWork(ctx); err != nil || held == 0 {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &work{held: held, cancel: cancel, ended: make(chan error, 1)}
	s.work = w
	heldGauge.Set(float64(held.Len()))
	klog.FromContext(ctx).Info("Acquired shards", "held", held.String(), "number", held.Len())
	go func() { w.ended <- supervisor.Protect(ctx, "shards", func() error { return s.Work(ctx, held) }) }()
	return nil
}

// ErrStuck must end the process, because nothing else ends the work.
var ErrStuck = errors.New("the work with shards that may belong to another replica does not end")

// stopWork returns when the work, if any, has ended. Once the session's ctx is done, it gives up before others may begin.
func (s *session) stopWork(ctx context.Context) error {
	if s.work == nil {
		return nil
	}
	heldGauge.Set(0)
	s.work.cancel()
	select {
	case <-s.work.ended:
		s.work = nil
		return nil
	case <-ctx.Done():
	}
	select {
	case <-s.work.ended:
		s.work = nil
		return nil
	case <-time.After(s.Timing.Duration - s.Timing.Deadline):
		return ErrStuck
	}
}
