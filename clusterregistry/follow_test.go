package clusterregistry

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// listener remembers what it was told of, and refuses the first few.
type listener struct {
	mu      sync.Mutex
	told    []string
	ctxs    []context.Context
	refuses int
}

func (l *listener) Engage(ctx context.Context, m *Member) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuses > 0 {
		l.refuses--
		return errors.New("not now")
	}
	l.told, l.ctxs = append(l.told, m.Name), append(l.ctxs, ctx)
	slices.Sort(l.told)
	return nil
}

func (l *listener) await(t *testing.T, want ...string) {
	t.Helper()
	var told []string
	for range 1000 {
		l.mu.Lock()
		told = slices.Clone(l.told)
		l.mu.Unlock()
		if slices.Equal(told, want) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("told of %v, want %v", told, want)
}

func TestWhoComesLateIsToldOfAllMembersUntilHeGoes(t *testing.T) {
	f := newFleet(t)
	first, late := &listener{}, &listener{}
	f.Add(first)
	f.join("east", newFakeMember(t), "good")
	first.await(t, "east")
	ctx, cancel := context.WithCancel(t.Context())
	f.Follow(ctx, late)
	late.await(t, "east")
	f.join("west", newFakeMember(t), "good")
	late.await(t, "east", "west")
	first.await(t, "east", "west")
	cancel()
	for _, c := range late.ctxs {
		select {
		case <-c.Done():
		case <-time.After(5 * time.Second):
			t.Fatal("who goes is left with a context that goes on")
		}
	}
	f.join("north", newFakeMember(t), "good")
	first.await(t, "east", "north", "west")
	late.await(t, "east", "west")
}

func TestAMemberThatCannotBeTakenUpLateIsConnectedAnew(t *testing.T) {
	f := newFleet(t)
	first := &listener{}
	f.Add(first)
	f.join("east", newFakeMember(t), "good")
	first.await(t, "east")
	late := &listener{refuses: 1}
	f.Follow(t.Context(), late)
	late.await(t, "east")
	first.await(t, "east", "east")
}

func TestOnlyOneReports(t *testing.T) {
	f := newFleet(t)
	f.options.Report = func() bool { return false }
	first := &listener{}
	f.Add(first)
	f.join("east", newFakeMember(t), "good")
	first.await(t, "east")
	time.Sleep(100 * time.Millisecond) // a few checks
	if c := f.cluster("east"); len(c.Status.Conditions) > 0 {
		t.Errorf("it wrote %v", c.Status.Conditions)
	}
}
