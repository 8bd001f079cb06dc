package drill

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoDecidesIsCalledAtChangesAndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c, ended := &changes{wake: make(chan struct{}, 1)}, make(chan struct{})
		var calls []time.Duration
		began := time.Now()
		go func() {
			defer close(ended)
			next := []time.Duration{2 * time.Second, 0, time.Hour, 0}
			c.repeat(ctx, func(context.Context) time.Duration {
				calls = append(calls, time.Since(began))
				return next[len(calls)-1]
			})
		}()
		time.Sleep(time.Minute) // at once, and 2 s later
		c.wake <- struct{}{}    // an hour is set
		time.Sleep(time.Minute)
		c.wake <- struct{}{} // which counts no more
		time.Sleep(2 * time.Hour)
		cancel()
		<-ended
		if want := []time.Duration{0, 2 * time.Second, time.Minute, 2 * time.Minute}; !slices.Equal(calls, want) {
			t.Errorf("called at %v, want %v", calls, want)
		}
	})
}
