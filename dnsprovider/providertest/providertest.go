// Package providertest is the suite that every dnsprovider.Provider passes. Each test is named for
// the clause of the interface that it checks.
//
//	func TestProvider(t *testing.T) {
//		providertest.Run(t, "example.", func(t *testing.T) dnsprovider.Provider { … an empty zone … })
//	}
package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"federation/dnsprovider"
)

// Run checks the providers that empty makes. Each holds the zone, which is canonical, and nothing
// in it.
func Run(t *testing.T, zone string, empty func(*testing.T) dnsprovider.Provider) {
	for name, clause := range map[string]func(*suite){
		"Apply/makes the records":                           (*suite).makes,
		"Apply/changes and deletes":                         (*suite).changes,
		"Apply/switches between address and CNAME":          (*suite).switches,
		"Apply/keeps all addresses of a name":               (*suite).keepsAll,
		"Apply/takes an empty set of changes":               (*suite).takesEmpty,
		"Apply/refuses a stale set with ConflictError":      (*suite).refusesStale,
		"Apply/makes none when one is refused":              (*suite).allOrNone,
		"Apply/refuses names outside the zone":              (*suite).refusesOutside,
		"Apply/refuses a CNAME beside other records":        (*suite).refusesMixed,
		"Apply/refuses a zone it does not hold":             (*suite).refusesZone,
		"Apply/shows no reader half of a step":              (*suite).wholeSteps,
		"Records/is sorted and without the server's own":    (*suite).sorted,
		"Records/returns what the caller may change freely": (*suite).copies,
	} {
		t.Run(name, func(t *testing.T) {
			clause(&suite{T: t, zone: zone, provider: empty(t)})
		})
	}
}

type suite struct {
	*testing.T
	zone     string
	provider dnsprovider.Provider
}

func (s *suite) set(name string, t dnsprovider.Type, rdata ...string) dnsprovider.RRSet {
	s.Helper()
	set, err := dnsprovider.New(name+"."+s.zone, t, 15, rdata...)
	if err != nil {
		s.Fatal(err)
	}
	return set
}

func (s *suite) records() []dnsprovider.RRSet {
	s.Helper()
	sets, err := s.provider.Records(context.Background(), s.zone)
	if err != nil {
		s.Fatal(err)
	}
	return sets
}

func (s *suite) apply(changes dnsprovider.ChangeSet) error {
	return s.provider.Apply(context.Background(), s.zone, changes)
}

// become applies the difference to want, and checks that the zone then is want.
func (s *suite) become(want ...dnsprovider.RRSet) {
	s.Helper()
	changes := dnsprovider.Diff(s.records(), want)
	if err := s.apply(changes); err != nil {
		s.Fatalf("%v\nat the changes\n%s", err, changes)
	}
	s.is(want...)
}

func (s *suite) is(want ...dnsprovider.RRSet) {
	s.Helper()
	if rest := dnsprovider.Diff(s.records(), want); len(rest) > 0 {
		s.Fatalf("the zone still differs:\n%s", rest)
	}
}

func (s *suite) makes() {
	s.become(s.set("a", dnsprovider.A, "192.0.2.1"), s.set("deep.down.a", dnsprovider.AAAA, "2001:db8::1"),
		s.set("alias", dnsprovider.CNAME, "a."+s.zone), s.set("away", dnsprovider.CNAME, "elsewhere.test."))
}

func (s *suite) changes() {
	s.become(s.set("a", dnsprovider.A, "192.0.2.1"), s.set("b", dnsprovider.A, "192.0.2.2"))
	s.become(s.set("a", dnsprovider.A, "192.0.2.3"))
	changed := s.set("a", dnsprovider.A, "192.0.2.3")
	changed.TTL = 60
	s.become(changed)
	s.become()
}

func (s *suite) switches() {
	for range 3 {
		s.become(s.set("a", dnsprovider.A, "192.0.2.1"), s.set("a", dnsprovider.AAAA, "2001:db8::1"))
		s.become(s.set("a", dnsprovider.CNAME, "b."+s.zone))
	}
}

func (s *suite) keepsAll() {
	s.become(s.set("a", dnsprovider.A, "192.0.2.1", "192.0.2.2", "192.0.2.3"))
	s.become(s.set("a", dnsprovider.A, "192.0.2.1", "192.0.2.3"))
}

func (s *suite) takesEmpty() {
	if err := s.apply(nil); err != nil {
		s.Fatal(err)
	}
	s.is()
}

func (s *suite) refusesStale() {
	s.become(s.set("a", dnsprovider.A, "192.0.2.1"))
	stale := dnsprovider.Diff([]dnsprovider.RRSet{s.set("a", dnsprovider.A, "192.0.2.9")}, nil)
	var conflict *dnsprovider.ConflictError
	if err := s.apply(stale); !errors.As(err, &conflict) {
		s.Errorf("error %v, want a ConflictError", err)
	}
	s.is(s.set("a", dnsprovider.A, "192.0.2.1"))
}

func (s *suite) allOrNone() {
	s.become(s.set("a", dnsprovider.A, "192.0.2.1"))
	good := dnsprovider.Diff(s.records(), nil)
	bad := dnsprovider.Diff([]dnsprovider.RRSet{s.set("z", dnsprovider.A, "192.0.2.9")}, nil)
	if err := s.apply(append(good, bad...)); err == nil {
		s.Error("a change of a record that is not there was taken")
	}
	s.is(s.set("a", dnsprovider.A, "192.0.2.1"))
}

func (s *suite) refusesOutside() {
	outside, err := dnsprovider.New("outside-of-"+s.zone, dnsprovider.A, 15, "192.0.2.1")
	if err != nil {
		s.Fatal(err)
	}
	if err := s.apply(dnsprovider.Diff(nil, []dnsprovider.RRSet{outside})); err == nil {
		s.Errorf("a record of %s was taken into the zone %s", outside.Name, s.zone)
	}
	s.is()
}

func (s *suite) refusesMixed() {
	s.become(s.set("a", dnsprovider.A, "192.0.2.1"))
	mixed := dnsprovider.Diff(nil, []dnsprovider.RRSet{s.set("a", dnsprovider.CNAME, "b."+s.zone)})
	if err := s.apply(mixed); err == nil {
		s.Error("a CNAME beside an address was taken")
	}
	s.is(s.set("a", dnsprovider.A, "192.0.2.1"))
}

func (s *suite) refusesZone() {
	if err := s.provider.Apply(context.Background(), "not-held.test.", nil); err == nil {
		s.Error("Apply to a zone that is not held gives no error")
	}
	if _, err := s.provider.Records(context.Background(), "not-held.test."); err == nil {
		s.Error("Records of a zone that is not held gives no error")
	}
}

func (s *suite) wholeSteps() {
	address, alias := s.set("a", dnsprovider.A, "192.0.2.1"), s.set("a", dnsprovider.CNAME, "b."+s.zone)
	s.become(address)
	done := make(chan error)
	go func() { done <- s.flip(address, alias, 50) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				s.Fatal(err)
			}
			return
		default:
			if sets := s.records(); len(sets) != 1 {
				s.Errorf("a reader sees %v", sets)
			}
		}
	}
}

func (s *suite) flip(from, to dnsprovider.RRSet, times int) error {
	for i := range times {
		if err := s.apply(dnsprovider.Diff([]dnsprovider.RRSet{from}, []dnsprovider.RRSet{to})); err != nil {
			return fmt.Errorf("flip %d: %w", i, err)
		}
		from, to = to, from
	}
	return nil
}

func (s *suite) sorted() {
	s.become(s.set("c", dnsprovider.A, "192.0.2.1"), s.set("b", dnsprovider.AAAA, "2001:db8::1"),
		s.set("b", dnsprovider.A, "192.0.2.1"), s.set("a", dnsprovider.A, "192.0.2.1"))
	if sets := s.records(); len(sets) != 4 || !slices.IsSortedFunc(sets, dnsprovider.Compare) {
		s.Errorf("not the four that were put in, sorted: %v", sets)
	}
}

func (s *suite) copies() {
	s.become(s.set("a", dnsprovider.A, "192.0.2.1", "192.0.2.2"))
	s.records()[0].Rdata[0] = "192.0.2.9"
	s.is(s.set("a", dnsprovider.A, "192.0.2.1", "192.0.2.2"))
}
