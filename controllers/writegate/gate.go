// Package writegate keeps a process from writing once what its Lease entitles it to may be another's.
//
// A process that was paused wakes in the middle of what it was doing, before any timer has said that time has passed. So each write asks
// the gate, which goes by CLOCK_BOOTTIME: the monotonic clock stands still while a machine is suspended.
package writegate

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// ErrClosed is the error of writes at a closed gate.
var ErrClosed = errors.New("the Lease was not renewed in time: its work may be another process's by now, and nothing is written")

// BootTime is the time since the machine was started. It counts while the machine is suspended, and cannot be set.
func BootTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // it fails for clocks only that a system does not have
	return time.Duration(t.Nano())
}

// Gate is open until some time has passed since the last renewal that succeeded was asked for. Make it with New.
type Gate struct {
	after   time.Duration
	now     func() time.Duration
	renewed atomic.Int64
}

// New makes a gate, which is closed. now is BootTime, except in tests.
func New(after time.Duration, now func() time.Duration) *Gate {
	g := &Gate{after: after, now: now}
	g.renewed.Store(int64(now() - after))
	return g
}

// Renewed opens the gate: a renewal succeeded that was asked for at that time.
func (g *Gate) Renewed(asked time.Duration) { g.renewed.Store(int64(asked)) }

// Now is the time by the gate's clock.
func (g *Gate) Now() time.Duration { return g.now() }

// Open reports whether writes may begin.
func (g *Gate) Open() bool { return g.Now()-time.Duration(g.renewed.Load()) < g.after }

// Check returns ErrClosed if writes may not begin.
func (g *Gate) Check() error {
	if !g.Open() {
		return ErrClosed
	}
	return nil
}

// Wrap returns a transport on which nothing is written while the gate is closed.
func (g *Gate) Wrap(rt http.RoundTripper) http.RoundTripper { return gated{rt, g} }

type gated struct {
	http.RoundTripper
	gate *Gate
}

// RoundTrip implements http.RoundTripper.
func (t gated) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.gate.Check(); err != nil && r.Method != http.MethodGet {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must, whatever comes of the request
		}
		return nil, err
	}
	return t.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper lets client-go look through to the transport.
func (t gated) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }
