package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// gate lets a leader write for as long as its Lease cannot be another's: until gateAfter has passed since the last renewal that
// succeeded was asked for, by a clock that also counts while the machine is suspended. A process that was paused wakes in the middle of
// what it was doing, before anything tells it that it does not lead any more.
type gate struct {
	renewed atomic.Int64 // by CLOCK_BOOTTIME
	now     func() time.Duration
}

func newGate() *gate { return &gate{now: bootTime} }

// bootTime is the time since the machine was started, suspended or not.
func bootTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // Linux has it
	return time.Duration(t.Nano())
}

var errGateClosed = errors.New("the Lease was not renewed in time: another process may lead by now, and nothing is written")

func (g *gate) open() bool { return g.now()-time.Duration(g.renewed.Load()) < gateAfter }

// wrap returns a transport on which nothing is written while the gate is closed.
func (g *gate) wrap(rt http.RoundTripper) http.RoundTripper { return gated{rt, g} }

type gated struct {
	http.RoundTripper
	gate *gate
}

// RoundTrip implements http.RoundTripper.
func (t gated) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !t.gate.open() {
		return nil, errGateClosed
	}
	return t.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper lets client-go look through to the transport.
func (t gated) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// watchedLock tells a gate of the renewals of a Lease.
type watchedLock struct {
	resourcelock.Interface
	gate *gate
}

// Create implements resourcelock.Interface.
func (l watchedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, func() error { return l.Interface.Update(ctx, record) })
}

func (l watchedLock) note(record resourcelock.LeaderElectionRecord, write func() error) error {
	asked := l.gate.now()
	err := write()
	if err == nil && record.HolderIdentity == l.Identity() {
		l.gate.renewed.Store(int64(asked))
	}
	return err
}
