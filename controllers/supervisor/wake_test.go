package supervisor

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestALoopLooksAtSignalsAndInTime: a signal during the rest waits for its end, as does what is due before.
func TestALoopLooksAtSignalsAndInTime(t *testing.T) {
	for _, test := range []struct {
		name string
		rest time.Duration
		next []time.Duration
		at   []time.Duration // of signals
		want []time.Duration
	}{
		{"in time, then at a signal, which takes the place of the hour", 0, []time.Duration{2 * time.Second, 0, time.Hour, 0},
			[]time.Duration{time.Minute, 2 * time.Minute}, []time.Duration{0, 2 * time.Second, time.Minute, 2 * time.Minute}},
		{"a burst", 5 * time.Second, []time.Duration{0, 0, 0},
			[]time.Duration{time.Minute, time.Minute, time.Minute + time.Second, time.Minute + 2*time.Second}, []time.Duration{0, time.Minute, time.Minute + 5*time.Second}},
		{"the rest and the next time run together", 5 * time.Second, []time.Duration{time.Second, 8 * time.Second, 0},
			nil, []time.Duration{0, 5 * time.Second, 13 * time.Second}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				w, ended := NewWake(), make(chan struct{})
				var calls []time.Duration
				began := time.Now()
				go func() {
					defer close(ended)
					w.Repeat(ctx, test.rest, func(context.Context) time.Duration {
						calls = append(calls, time.Since(began))
						return test.next[min(len(calls), len(test.next))-1]
					})
				}()
				for _, at := range test.at {
					time.Sleep(time.Until(began.Add(at)))
					w.Signal()
				}
				time.Sleep(2 * time.Hour)
				cancel()
				<-ended
				if !slices.Equal(calls, test.want) {
					t.Errorf("looked at %v, want %v", calls, test.want)
				}
			})
		})
	}
}
