package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"federation/dnsprovider"
	"federation/dnsprovider/split"
)

func (s *suite) makes() {
	s.applyAndCheck(s.set("a", dnsprovider.A, "192.0.2.1"), s.set("deep.down.a", dnsprovider.AAAA, "2001:db8::1"),
		s.set("alias", dnsprovider.CNAME, "a."+s.zone), s.set("away", dnsprovider.CNAME, "elsewhere.test."))
}

func (s *suite) changes() {
	s.applyAndCheck(s.set("a", dnsprovider.A, "192.0.2.1"), s.set("b", dnsprovider.A, "192.0.2.2"))
	s.applyAndCheck(s.set("a", dnsprovider.A, "192.0.2.3"))
	changed := s.set("a", dnsprovider.A, "192.0.2.3")
	changed.TTL = 60
	s.applyAndCheck(changed)
	s.applyAndCheck()
}

func (s *suite) switches() {
	for range 3 {
		s.applyAndCheck(s.set("a", dnsprovider.A, "192.0.2.1"), s.set("a", dnsprovider.AAAA, "2001:db8::1"))
		s.applyAndCheck(s.set("a", dnsprovider.CNAME, "b."+s.zone))
	}
}

func (s *suite) keepsAll() {
	s.applyAndCheck(s.set("a", dnsprovider.A, "192.0.2.1", "192.0.2.2", "192.0.2.3"))
	s.applyAndCheck(s.set("a", dnsprovider.A, "192.0.2.1", "192.0.2.3"))
}

func (s *suite) keepsText() {
	s.applyAndCheck(s.set("a", dnsprovider.TXT, `"owner=federation,uid=0d9b"`, `"two words; and more"`))
	s.applyAndCheck(s.set("a", dnsprovider.TXT, `"owner=federation,uid=0d9b"`), s.set("a", dnsprovider.A, "192.0.2.1"))
	s.applyAndCheck()
}

// leavesOthers has another type at the same name, and names above, below and beside.
func (s *suite) leavesOthers() {
	others := []dnsprovider.RRSet{
		s.set("a", dnsprovider.TXT, `"by hand"`), s.set("a", dnsprovider.AAAA, "2001:db8::1"),
		s.set("below.a", dnsprovider.A, "192.0.2.2"), s.set("aa", dnsprovider.A, "192.0.2.3"), s.set("b", dnsprovider.CNAME, "a."+s.zone),
	}
	s.applyAndCheck(others...)
	one, two := s.set("a", dnsprovider.A, "192.0.2.1"), s.set("a", dnsprovider.A, "192.0.2.4")
	for _, step := range [][2][]dnsprovider.RRSet{{nil, {one}}, {{one}, {two}}, {{two}, nil}} {
		if err := s.apply(dnsprovider.Diff(step[0], step[1])); err != nil {
			s.Fatal(err)
		}
		s.checkZone(append(slices.Clone(others), step[1]...)...)
	}
}

func (s *suite) takesEmpty() {
	if err := s.apply(nil); err != nil {
		s.Fatal(err)
	}
	s.checkZone()
}

func (s *suite) takesMany() {
	s.applyAndCheck(s.manySets()...)
	s.applyAndCheck()
}

func (s *suite) isConflict(err error) {
	s.Helper()
	var conflict *dnsprovider.ConflictError
	if !errors.As(err, &conflict) {
		s.Errorf("error %v, want a ConflictError", err)
	}
}

func (s *suite) refusesStale() {
	s.applyAndCheck(s.set("a", dnsprovider.A, "192.0.2.1"))
	s.isConflict(s.apply(dnsprovider.Diff([]dnsprovider.RRSet{s.set("a", dnsprovider.A, "192.0.2.9")}, nil)))
	s.checkZone(s.set("a", dnsprovider.A, "192.0.2.1"))
}

func (s *suite) refusesAgain() {
	one := []dnsprovider.RRSet{s.set("a", dnsprovider.A, "192.0.2.1")}
	two := []dnsprovider.RRSet{s.set("a", dnsprovider.A, "192.0.2.2")}
	for _, changes := range []dnsprovider.ChangeSet{dnsprovider.Diff(nil, one), dnsprovider.Diff(one, two), dnsprovider.Diff(two, nil)} {
		if err := s.apply(changes); err != nil {
			s.Fatal(err)
		}
		s.isConflict(s.apply(changes))
	}
	s.checkZone()
}

func (s *suite) oneWins() {
	for range 5 {
		s.applyAndCheck(s.set("a", dnsprovider.A, "192.0.2.1"))
		from := s.records()
		errs := make(chan error)
		for _, address := range []string{"192.0.2.2", "192.0.2.3"} {
			changes := dnsprovider.Diff(from, []dnsprovider.RRSet{s.set("a", dnsprovider.A, address)})
			go func() { errs <- s.apply(changes) }()
		}
		first, second := <-errs, <-errs
		if (first == nil) == (second == nil) {
			s.Fatalf("two writers got %v and %v, want one error", first, second)
		}
		s.isConflict(errors.Join(first, second))
	}
}

func (s *suite) allOrNone() {
	s.applyAndCheck(s.set("a", dnsprovider.A, "192.0.2.1"))
	good := dnsprovider.Diff(s.records(), nil)
	bad := dnsprovider.Diff([]dnsprovider.RRSet{s.set("z", dnsprovider.A, "192.0.2.9")}, nil)
	if err := s.apply(append(good, bad...)); err == nil {
		s.Error("a change of a record that is not there was taken")
	}
	s.checkZone(s.set("a", dnsprovider.A, "192.0.2.1"))
}

// saysRefused: one step of a hundred is none that the provider takes. It says so, and split finds which: the others are made.
func (s *suite) saysRefused() {
	outside, err := dnsprovider.New("outside-of-"+s.zone, dnsprovider.A, 15, "192.0.2.1")
	if err != nil {
		s.Fatal(err)
	}
	var good []dnsprovider.RRSet
	for i := range 99 {
		good = append(good, s.set(fmt.Sprintf("n%02d", i), dnsprovider.A, "192.0.2.1"))
	}
	changes := dnsprovider.Diff(nil, append([]dnsprovider.RRSet{outside}, good...))
	var refused *dnsprovider.RefusedError
	if err := s.apply(changes); !errors.As(err, &refused) {
		s.Errorf("error %v, want a RefusedError", err)
	}
	result, err := split.Apply(context.Background(), s.provider, s.zone, dnsprovider.Diff(s.records(), append(good, outside)), 1)
	if err != nil || len(result.Refused) != 1 || result.Refused[outside.Name].Err == nil || len(result.Left) > 0 {
		s.Errorf("%d names refused, %d left, error %v; want 1, none and none", len(result.Refused), len(result.Left), err)
	}
	s.checkZone(good...)
	s.applyAndCheck()
}

// firstOnes: the last of many changes is stale. What was made before are the first ones, and looking
// again leads on.
func (s *suite) firstOnes() {
	want := append(s.manySets(), s.set("z", dnsprovider.A, "192.0.2.1"))
	s.applyAndCheck(s.set("z", dnsprovider.A, "192.0.2.9"))
	s.isConflict(s.apply(dnsprovider.Diff(nil, want)))
	made := s.records()
	if rest := dnsprovider.Diff(made[:len(made)-1], want[:len(made)-1]); len(rest) > 0 {
		s.Errorf("%d records were made, and are not the first ones:\n%.1000s", len(made)-1, rest)
	}
	s.applyAndCheck(want...)
}

// ends: who says that it did not do it may have done it; who says that it did, has.
func (s *suite) ends() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	want := s.set("a", dnsprovider.A, "192.0.2.1")
	err := s.provider.Apply(ctx, s.zone, dnsprovider.Diff(nil, []dnsprovider.RRSet{want}))
	if err == nil {
		s.checkZone(want)
	} else if !errors.Is(err, context.Canceled) {
		s.Errorf("error %v, want that the context has ended", err)
	}
	s.applyAndCheck(want)
}

func (s *suite) refusesOutside() {
	outside, err := dnsprovider.New("outside-of-"+s.zone, dnsprovider.A, 15, "192.0.2.1")
	if err != nil {
		s.Fatal(err)
	}
	if err := s.apply(dnsprovider.Diff(nil, []dnsprovider.RRSet{outside})); err == nil {
		s.Errorf("a record of %s was taken into the zone %s", outside.Name, s.zone)
	}
	s.checkZone()
}

func (s *suite) refusesMixed() {
	alias := []dnsprovider.RRSet{s.set("a", dnsprovider.CNAME, "b."+s.zone)}
	for _, first := range []dnsprovider.RRSet{s.set("a", dnsprovider.A, "192.0.2.1"), s.set("a", dnsprovider.TXT, `"by hand"`)} {
		s.applyAndCheck(first)
		if err := s.apply(dnsprovider.Diff(nil, alias)); err == nil {
			s.Errorf("a CNAME beside %s was taken", first)
		}
		s.checkZone(first)
	}
	s.applyAndCheck(alias...)
	if err := s.apply(dnsprovider.Diff(nil, []dnsprovider.RRSet{s.set("a", dnsprovider.A, "192.0.2.1")})); err == nil {
		s.Error("an address beside a CNAME was taken")
	}
	s.checkZone(alias...)
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
	s.applyAndCheck(address)
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
