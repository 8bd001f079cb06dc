package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
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
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Method) }))
	defer server.Close()
	now, g := time.Hour, newGate()
	g.now = func() time.Duration { return now }
	held := &lock{}
	renew := func(fails error) {
		held.fails = fails
		_ = watchedLock{held, g}.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us"})
	}
	client := &http.Client{Transport: g.wrap(http.DefaultTransport)}
	try := func(method string) error {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	renew(nil)
	now += gateAfter - 1
	if err := try(http.MethodPatch); err != nil {
		t.Errorf("within the time: %v", err)
	}
	renew(errors.New("away"))
	now++
	if err := try(http.MethodPatch); !errors.Is(err, errGateClosed) {
		t.Errorf("after it, though a renewal was tried: %v", err)
	}
	if err := try(http.MethodGet); err != nil {
		t.Errorf("a read: %v", err)
	}
	renew(nil)
	if err := try(http.MethodDelete); err != nil {
		t.Errorf("renewed: %v", err)
	}
	if want := "PATCH GET DELETE"; strings.Join(got, " ") != want {
		t.Errorf("arrived: %q, want %q", got, want)
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
