package election

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"federation/controllers/writegate"
)

// lock is a Lease in memory.
type lock struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	fails  error
}

func (l *lock) Identity() string { return "us" }

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &l.record, nil, l.fails
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.fails == nil {
		l.record = record
	}
	return l.fails
}

func TestALeaderWritesNothingAfterItsLease(t *testing.T) {
	now := time.Hour
	g := writegate.New(GateAfter, func() time.Duration { return now })
	held := &lock{}
	renew := func(as string, fails error) {
		held.fails = fails
		_ = watchedLock{held, g}.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: as})
	}
	renew("us", nil)
	if now += GateAfter - time.Second; !g.Open() {
		t.Error("it is closed within the time")
	}
	now += 2 * time.Second
	renew("us", errors.New("away"))
	renew("another", nil)
	if g.Open() {
		t.Error("it is open after the time, though a renewal failed, and what succeeded was for another process")
	}
}

// hungLock is a Lease of which no request is answered.
type hungLock struct{ lock }

func (*hungLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	<-ctx.Done()
	return nil, nil, ctx.Err()
}

func (*hungLock) Update(ctx context.Context, _ resourcelock.LeaderElectionRecord) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestARequestThatHangsLeavesTimeForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung, begin := watchedLock{&hungLock{}, writegate.New(GateAfter, writegate.BootTime)}, time.Now()
		if _, _, err := hung.Get(t.Context()); err == nil || time.Since(begin) >= renewDeadline {
			t.Errorf("a read is given up after %s with %v, and the Lease is lost after %s", time.Since(begin), err, renewDeadline)
		}
		begin = time.Now()
		if err := hung.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us"}); err == nil || time.Since(begin) >= renewDeadline {
			t.Errorf("a renewal is given up after %s with %v, and the Lease is lost after %s", time.Since(begin), err, renewDeadline)
		}
	})
}

func TestOnlyOurOwnLeaseIsGivenUp(t *testing.T) {
	for holder, want := range map[string]string{"us": "", "another": "another"} {
		held := &lock{record: resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaderTransitions: 3}}
		release(t.Context(), held)
		if held.record.HolderIdentity != want || held.record.LeaderTransitions != 3 {
			t.Errorf("of %s: %+v", holder, held.record)
		}
	}
}
