package supervisor

import (
	"context"
	"time"
)

// Wake has a loop look again. Make it with NewWake.
type Wake chan struct{}

// NewWake returns a Wake that nobody has signaled.
func NewWake() Wake { return make(Wake, 1) }

// Signal has the loop look again, once for all signals that come before it does. It never blocks.
func (w Wake) Signal() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Repeat calls look until ctx is done: at once, after a signal, and when the time that it returned last has passed, unless that is 0. It waits for
// rest after each call, so that a burst of signals is one.
func (w Wake) Repeat(ctx context.Context, rest time.Duration, look func(context.Context) (next time.Duration)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w:
		case <-timer.C:
		}
		timer.Stop()
		if next := look(ctx); next > 0 {
			timer.Reset(next)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
	}
}
