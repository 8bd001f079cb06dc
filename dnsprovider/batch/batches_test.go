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

// news are steps that bring as many addresses as said, one name each.
func news(t *testing.T, sizes ...int) (c dnsprovider.ChangeSet) {
	for i, n := range sizes {
		var addresses []string
		for j := range n {
			addresses = append(addresses, fmt.Sprintf("192.0.2.%d", j))
		}
		set, err := dnsprovider.New(fmt.Sprintf("n%d.example", i), dnsprovider.A, 15, addresses...)
		if err != nil {
			t.Fatal(err)
		}
		c = append(c, dnsprovider.Step{Name: set.Name, New: []dnsprovider.RRSet{set}})
	}
	return c
}

func TestBatchesHoldAsMuchAsFits(t *testing.T) {
	for _, c := range []struct{ sizes, want []int }{
		{nil, nil},
		{[]int{10}, []int{1}},
		{[]int{4, 6, 1, 9, 10, 2}, []int{2, 2, 1, 1}},
		{[]int{9, 2, 2}, []int{1, 2}},
	} {
		changes := news(t, c.sizes...)
		batches, err := divide(changes, 10, Records)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, b := range batches {
			got = append(got, len(b))
		}
		if !slices.Equal(got, c.want) || slices.Concat(batches...).String() != changes.String() {
			t.Errorf("sizes %v: batches of %v steps, want %v", c.sizes, got, c.want)
		}
	}
	if _, err := divide(news(t, 1, 11), 10, Records); err == nil || !strings.Contains(err.Error(), "n1.example") {
		t.Errorf("a step that fits nowhere: error %v, want one that names it", err)
	}
}

// memory is a service that takes what it is told, or fails from some call on.
type memory struct {
	mu   sync.Mutex
	sets []dnsprovider.RRSet
	// left is how many calls of Change succeed. -1: all.
	left int
	// compares tells whether stale changes are refused; if not they are made all the same.
	compares bool
	calls    int
}

func (m *memory) List(_ context.Context, zone string) ([]dnsprovider.RRSet, error) {
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
	sets, err := changes.Apply(m.sets)
	if err != nil && m.compares {
		return &Refused{errors.New("does not suit")}
	}
	if err != nil {
		return fmt.Errorf("a service that does not compare was given what is stale: %w", err)
	}
	m.sets = sets
	return nil
}

func TestProvider(t *testing.T) {
	for name, compares := range map[string]bool{"a service that compares": true, "one that does not": false} {
		t.Run(name, func(t *testing.T) {
			providertest.Run(t, "example.", func(*testing.T) dnsprovider.Provider {
				return provider(&memory{left: -1, compares: compares})
			})
		})
	}
}

func provider(m *memory) Provider {
	return Provider{Name: "Memory", Service: m, Most: 10, Size: Records, Blind: !m.compares}
}

func TestFailureSaysHowFarItWent(t *testing.T) {
	for left, partial := range []bool{false, true, true} {
		m := &memory{left: left, compares: true}
		err := provider(m).Apply(t.Context(), "example.", news(t, 9, 9, 9))
		var p *PartialError
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
