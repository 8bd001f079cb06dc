package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"federation/dnsprovider"
	"federation/dnsprovider/providertest"
)

// memory is a service that takes what it is told, or fails from some call on.
type memory struct {
	mu   sync.Mutex
	sets []dnsprovider.RRSet
	// left is how many calls of Change succeed. -1: all.
	left int
	// compares reports whether stale changes are refused; if not they are made all the same.
	compares bool
	calls    int
	// least is the least TTL that is taken.
	least uint32
}

func (m *memory) List(_ context.Context, zone string, _ ...string) ([]dnsprovider.RRSet, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if zone != "example." {
		return nil, errors.New("not held")
	}
	sets := slices.Clone(m.sets)
	for i := range sets {
		sets[i].Rdata = slices.Clone(sets[i].Rdata)
	}
	slices.Reverse(sets) // any order
	return sets, nil
}

func (m *memory) Change(_ context.Context, _ string, changes dnsprovider.ChangeSet) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls++; m.left == 0 {
		return errors.New("broken")
	}
	m.left--
	for _, step := range changes {
		for _, set := range step.New {
			if set.TTL < m.least {
				return fmt.Errorf("TTL %d is less than %d", set.TTL, m.least)
			}
		}
	}
	sets, err := changes.Apply(m.sets)
	if err != nil && m.compares {
		return &dnsprovider.RefusedError{Err: errors.New("does not suit")}
	}
	if err != nil {
		return fmt.Errorf("a service that does not compare was given what is stale: %w", err)
	}
	m.sets = sets
	return nil
}

func TestBatchConforms(t *testing.T) {
	for name, m := range map[string]*memory{"a service that compares": {compares: true}, "one that does not": {}, "one of large TTLs": {least: 60}} {
		t.Run(name, func(t *testing.T) {
			providertest.Run(t, "example.", func(*testing.T) dnsprovider.Provider {
				return provider(&memory{left: -1, compares: m.compares, least: m.least})
			})
		})
	}
}

func provider(m *memory) *Provider {
	return &Provider{Name: "Memory", Service: m, Most: 10, Size: Records, Blind: !m.compares, MinTTL: m.least}
}

func TestFailureSaysHowFarItWent(t *testing.T) {
	for left, partial := range []bool{false, true, true} {
		m := &memory{left: left, compares: true}
		err := provider(m).Apply(t.Context(), "example.", news(t, 9, 9, 9))
		var p *dnsprovider.PartialError
		if err == nil || errors.As(err, &p) != partial || partial && (p.Done != left || p.Of != 3) {
			t.Errorf("fails after %d: %v", left, err)
		}
	}
}

func TestLargeStaleChangesAreRefusedWhole(t *testing.T) {
	m := &memory{left: -1, compares: true}
	changes := news(t, 9, 9)
	changes[1].Old, changes[1].New = changes[1].New, nil
	err := provider(m).Apply(t.Context(), "example.", changes)
	var conflict *dnsprovider.ConflictError
	if !errors.As(err, &conflict) || m.calls > 0 {
		t.Errorf("error %v after %d calls, want a ConflictError before any", err, m.calls)
	}
}

func TestRaisedTTLCostsNothingAfterRestart(t *testing.T) {
	m := &memory{left: -1, least: 60}
	changes := news(t, 1, 2)
	if err := provider(m).Apply(t.Context(), "example.", changes); err != nil {
		t.Fatal(err)
	}
	restarted := provider(m)
	for pass, want := range []int{2, 0} { // names that differ: all, as nobody knows what was asked for; then none
		have, err := restarted.Records(t.Context(), "example.")
		if err != nil {
			t.Fatal(err)
		}
		var desired []dnsprovider.RRSet
		for _, step := range changes {
			desired = append(desired, step.New...)
		}
		rest := dnsprovider.Diff(have, desired)
		if err := restarted.Apply(t.Context(), "example.", rest); err != nil || len(rest) != want || m.calls != 1 {
			t.Errorf("pass %d: %d names differ, want %d; %d changes at the service, want 1; error %v", pass, len(rest), want, m.calls, err)
		}
	}
}

func TestTypesThatAreNotTakenAreRefused(t *testing.T) {
	m := &memory{left: -1}
	p := provider(m)
	p.Types = []dnsprovider.Type{dnsprovider.AAAA}
	if err := p.Apply(t.Context(), "example.", news(t, 1)); err == nil || !strings.Contains(err.Error(), "n0.example. A: type must be one of [AAAA]") {
		t.Errorf("error %v, want one that names the record and what is taken", err)
	}
}
