package providertest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"federation/dnsprovider"
)

const testZone = "example.test."

type (
	sets    = []dnsprovider.RRSet
	changes = dnsprovider.ChangeSet
)

// memory is a provider in memory that is right, unless a test changes one of its parts.
type memory struct {
	mu   sync.Mutex
	sets sets
	// change returns what the zone becomes, also when it fails.
	change func(current sets, c changes) (sets, error)
	read   func(sets) sets
	// between, where there is one, is shown to a reader before what is there is changed.
	between func(current sets, c changes) sets
	wasRead chan struct{}
	zones   func(string) bool
}

func newMemory() *memory {
	return &memory{
		change: func(current sets, c changes) (sets, error) {
			for _, step := range c {
				if !dnsprovider.InZone(step.Name, testZone) {
					return current, dnsprovider.Refusef("%s is outside", step.Name)
				}
			}
			next, err := c.Apply(current)
			if err != nil {
				return current, err
			}
			return next, nil
		},
		read: func(current sets) (out sets) {
			for _, set := range current {
				set.Rdata = slices.Clone(set.Rdata)
				out = append(out, set)
			}
			return out
		},
		wasRead: make(chan struct{}),
		zones:   func(zone string) bool { return zone == testZone },
	}
}

func (m *memory) Records(_ context.Context, zone string) ([]dnsprovider.RRSet, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.zones(zone) {
		return nil, fmt.Errorf("zone %s is not held", zone)
	}
	select {
	case m.wasRead <- struct{}{}:
	default:
	}
	return m.read(m.sets), nil
}

func (m *memory) Apply(_ context.Context, zone string, changes dnsprovider.ChangeSet) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.zones(zone) {
		return fmt.Errorf("zone %s is not held", zone)
	}
	next, err := m.change(m.sets, changes)
	if m.between != nil && len(m.sets) > 0 {
		m.sets = m.between(m.sets, changes)
		m.mu.Unlock()
		<-m.wasRead
		m.mu.Lock()
	}
	m.sets = next
	return err
}

func TestMemory(t *testing.T) {
	Run(t, testZone, func(*testing.T) dnsprovider.Provider { return newMemory() })
}

// recorder is a test that may fail without the real one failing.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Error(...any)          { r.failed = true }
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Fatal(...any)          { r.failed = true; runtime.Goexit() }
func (r *recorder) Fatalf(string, ...any) { r.failed = true; runtime.Goexit() }

// fails reports whether the provider fails the clause.
func fails(provider dnsprovider.Provider, clause func(*suite)) bool {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		clause(&suite{TB: r, zone: testZone, provider: provider})
	}()
	<-done
	return r.failed
}

// TestSuiteFindsWrongProviders: each is wrong in one way, and the clause that says so fails.
func TestSuiteFindsWrongProviders(t *testing.T) {
	right := newMemory()
	for name, c := range map[string]struct {
		clause string
		wrong  func(m *memory)
	}{
		"answers success and does nothing": {"Apply/makes the records", func(m *memory) {
			m.change = func(current sets, _ changes) (sets, error) { return current, nil }
		}},
		"never deletes": {"Apply/changes and deletes", func(m *memory) {
			m.change = func(current sets, c changes) (sets, error) { return edit(current, c, keep), nil }
		}},
		"keeps the last address": {"Apply/keeps all addresses of a name", func(m *memory) {
			m.change = func(current sets, c changes) (sets, error) {
				next, err := right.change(current, c)
				for i := range next {
					next[i].Rdata = next[i].Rdata[len(next[i].Rdata)-1:]
				}
				return next, err
			}
		}},
		"clears a name before it sets it": {"Apply/leaves alone what the changes do not name", func(m *memory) {
			m.change = func(current sets, c changes) (sets, error) { return edit(current, c, clear), nil }
		}},
		"leaves the address when a CNAME comes": {"Apply/switches between address and CNAME", func(m *memory) {
			m.change = func(current sets, c changes) (sets, error) { return edit(current, c, sameType), nil }
		}},
		"forgets what is more than 1000": {"Apply/takes many changes", func(m *memory) {
			m.change = func(current sets, c changes) (sets, error) { return right.change(current, c[:min(1000, len(c))]) }
		}},
		"looks at nothing first":         {"Apply/refuses a stale set with ConflictError", blind},
		"does everything twice":          {"Apply/refuses the same changes again", blind},
		"lets the last of two win":       {"Apply/lets one of two writers win", blind},
		"puts a CNAME beside an address": {"Apply/refuses a CNAME beside other records", blind},
		"takes any name":                 {"Apply/refuses names outside the zone", blind},
		"makes what it can": {"Apply/makes none when one is refused", func(m *memory) {
			m.change = func(current sets, c changes) (sets, error) { return each(current, c, len(c)) }
		}},
		"refuses without saying so": {"Apply/says which refusals last", func(m *memory) {
			m.change = func(current sets, c changes) (sets, error) {
				next, err := right.change(current, c)
				if err != nil {
					err = errors.New(err.Error())
				}
				return next, err
			}
		}},
		"makes the last first": {"Apply/makes the first ones when many are refused", func(m *memory) {
			m.change = func(current sets, c changes) (sets, error) {
				if len(c) > 1000 {
					current, _ = each(current, c[1000:], len(c))
				}
				return each(current, c, 1000)
			}
		}},
		"says that it did when it was stopped": {"Apply/ends with its context", func(m *memory) {
			m.change = func(current sets, _ changes) (sets, error) { return current, nil }
		}},
		"holds every zone": {"Apply/refuses a zone it does not hold", func(m *memory) {
			m.zones = func(string) bool { return true }
		}},
		"deletes before it adds, in two": {"Apply/shows no reader half of a step", func(m *memory) {
			m.between = func(sets, changes) sets { return nil }
		}},
		"is not sorted": {"Records/is sorted and without the server's own", func(m *memory) {
			m.read = func(s sets) sets { s = right.read(s); slices.Reverse(s); return s }
		}},
		"shows its memory": {"Records/returns what the caller may change freely", func(m *memory) {
			m.read = func(s sets) sets { return s }
		}},
		"takes off quotes": {"Apply/keeps text as it is", func(m *memory) {
			m.read = func(s sets) sets {
				s = right.read(s)
				for i, set := range s {
					if set.Type == dnsprovider.TXT {
						s[i].Rdata = []string{"owner=federation"}
					}
				}
				return s
			}
		}},
		"fails always": {"Apply/takes an empty set of changes", func(m *memory) {
			m.change = func(sets, changes) (sets, error) { return nil, fmt.Errorf("no") }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			if fails(m, clauses[c.clause]) {
				t.Fatalf("the right provider fails %q", c.clause)
			}
			m = newMemory()
			c.wrong(m)
			if !fails(m, clauses[c.clause]) {
				t.Errorf("passes %q", c.clause)
			}
		})
	}
}

// edit makes the changes without looking at what is there; stays says what of the old stays.
func edit(current sets, c changes, stays func(dnsprovider.RRSet, dnsprovider.Step) bool) sets {
	next := slices.Clone(current)
	for _, step := range c {
		next = slices.DeleteFunc(next, func(set dnsprovider.RRSet) bool { return set.Name == step.Name && !stays(set, step) })
		next = append(next, step.New...)
	}
	slices.SortFunc(next, dnsprovider.Compare)
	return next
}

func keep(dnsprovider.RRSet, dnsprovider.Step) bool  { return true }
func clear(dnsprovider.RRSet, dnsprovider.Step) bool { return false }

func sameType(set dnsprovider.RRSet, step dnsprovider.Step) bool {
	return !slices.ContainsFunc(append(slices.Clone(step.Old[:min(len(step.Old), len(step.New))]), step.New...),
		func(other dnsprovider.RRSet) bool { return other.Type == set.Type })
}

// blind makes the changes whatever is there.
func blind(m *memory) {
	m.change = func(current sets, c changes) (sets, error) {
		return edit(current, c, func(set dnsprovider.RRSet, step dnsprovider.Step) bool {
			return !slices.ContainsFunc(step.Old, set.Equal)
		}), nil
	}
}

// each makes the first n changes one by one, and goes on when one fails.
func each(current sets, c changes, n int) (next sets, failed error) {
	zone := map[string]sets{}
	for _, set := range current {
		zone[set.Name] = append(zone[set.Name], set)
	}
	for _, step := range c[:min(n, len(c))] {
		if sets, err := step.Apply(zone[step.Name]); err != nil {
			failed = err
		} else {
			zone[step.Name] = sets
		}
	}
	for _, sets := range zone {
		next = append(next, sets...)
	}
	slices.SortFunc(next, dnsprovider.Compare)
	return next, failed
}
