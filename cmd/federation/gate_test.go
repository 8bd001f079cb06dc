package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"federation/apiserver/apis/federation/v1beta1"
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
	now := writegate.BootTime()
	g := writegate.New(gateAfter, func() time.Duration { return now })
	held := &lock{}
	renew := func(as string, fails error) {
		held.fails = fails
		_ = watchedLock{held, g}.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: as})
	}
	renew("us", nil)
	if now += gateAfter - time.Second; !g.Open() {
		t.Error("it is closed within the time")
	}
	now += 2 * time.Second
	renew("us", errors.New("away"))
	renew("another", nil)
	if g.Open() {
		t.Error("it is open after the time, though a renewal failed, and what succeeded was for another process")
	}
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

// TestAShardHolderWritesNothingAfterItsLease: neither to the federation nor to members.
func TestAShardHolderWritesNothingAfterItsLease(t *testing.T) {
	written := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { written++ }))
	defer server.Close()
	now := time.Hour
	g := writegate.New(time.Second, func() time.Duration { return now })
	c, err := (&controllers{config: &rest.Config{Host: server.URL}, shards: g, several: true}).behind(g)
	if err != nil {
		t.Fatal(err)
	}
	remove := func() error {
		return c.client.Resource(v1beta1.ClustersResource).Delete(t.Context(), "c", metav1.DeleteOptions{})
	}
	if err := remove(); !errors.Is(err, writegate.ErrClosed) || written > 0 {
		t.Errorf("not renewed: %v, written %d times", err, written)
	}
	g.Renewed(now)
	if err := remove(); errors.Is(err, writegate.ErrClosed) || written != 1 {
		t.Errorf("renewed: %v, written %d times", err, written)
	}
	if got := c.members().gate; got != g {
		t.Errorf("members are written to behind the gate %p, want %p", got, g)
	}
	c.several = false
	if got := c.members().gate; got != nil {
		t.Error("one process that has all shards has no Lease to renew, and a gate")
	}
}
