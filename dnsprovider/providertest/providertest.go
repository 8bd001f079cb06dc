// Package providertest is the suite that every dnsprovider.Provider passes. Each test is named for
// the clause of the interface that it checks.
//
//	func TestMyDNSConforms(t *testing.T) {
//		providertest.Run(t, "example.", func(t *testing.T) dnsprovider.Provider { … an empty zone … })
//	}
//
// The suite is itself tested with providers that are wrong in one way each, such as one that answers
// success and does nothing: each fails the clause that it breaks.
package providertest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"federation/dnsprovider"
)

// Except is a clause that a service does not let its provider keep.
type Except struct {
	Clause string
	// Why says what about the service prevents it.
	Why string
}

// Run checks the providers that empty makes. Each holds the zone, which is canonical, and nothing
// in it. What a provider cannot keep is excepted by name.
func Run(t *testing.T, zone string, empty func(*testing.T) dnsprovider.Provider, except ...Except) {
	for _, e := range except {
		if clauses[e.Clause] == nil {
			t.Errorf("except %q: there is no such clause", e.Clause)
		}
	}
	for name, clause := range clauses {
		t.Run(name, func(t *testing.T) {
			if i := slices.IndexFunc(except, func(e Except) bool { return e.Clause == name }); i >= 0 {
				t.Skip(except[i].Why)
			}
			clause(&suite{TB: t, zone: zone, provider: empty(t)})
		})
	}
}

var clauses = map[string]func(*suite){
	"Apply/makes the records":                           (*suite).makes,
	"Apply/changes and deletes":                         (*suite).changes,
	"Apply/switches between address and CNAME":          (*suite).switches,
	"Apply/keeps all addresses of a name":               (*suite).keepsAll,
	"Apply/keeps text as it is":                         (*suite).keepsText,
	"Apply/leaves alone what the changes do not name":   (*suite).leavesOthers,
	"Apply/takes an empty set of changes":               (*suite).takesEmpty,
	"Apply/takes many changes":                          (*suite).takesMany,
	"Apply/refuses a stale set with ConflictError":      (*suite).refusesStale,
	"Apply/refuses the same changes again":              (*suite).refusesAgain,
	"Apply/lets one of two writers win":                 (*suite).oneWins,
	"Apply/makes none when one is refused":              (*suite).allOrNone,
	"Apply/says which refusals last":                    (*suite).saysRefused,
	"Apply/makes the first ones when many are refused":  (*suite).firstOnes,
	"Apply/ends with its context":                       (*suite).ends,
	"Apply/refuses names outside the zone":              (*suite).refusesOutside,
	"Apply/refuses a CNAME beside other records":        (*suite).refusesMixed,
	"Apply/refuses a zone it does not hold":             (*suite).refusesZone,
	"Apply/shows no reader half of a step":              (*suite).wholeSteps,
	"Records/is sorted and without the server's own":    (*suite).sorted,
	"Records/returns what the caller may change freely": (*suite).copies,
}

type suite struct {
	testing.TB
	zone     string
	provider dnsprovider.Provider
}

func (s *suite) set(name string, t dnsprovider.Type, rdata ...string) dnsprovider.RRSet {
	s.Helper()
	return Set(s, name+"."+s.zone, t, rdata...)
}

// manySets returns the names n0000, n0001 and so on, each with one address: more than any server takes in
// one message or batch.
func (s *suite) manySets() (sets []dnsprovider.RRSet) {
	for i := range 2500 {
		sets = append(sets, s.set(fmt.Sprintf("n%04d", i), dnsprovider.A, fmt.Sprintf("192.0.2.%d", i%256)))
	}
	return sets
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

// applyAndCheck applies the difference to want, and checks that the zone then is want.
func (s *suite) applyAndCheck(want ...dnsprovider.RRSet) {
	s.Helper()
	Become(s, s.provider, s.zone, want...)
	s.checkZone(want...)
}

func (s *suite) checkZone(want ...dnsprovider.RRSet) {
	s.Helper()
	if rest := dnsprovider.Diff(s.records(), want); len(rest) > 0 {
		s.Fatalf("the zone still differs:\n%.2000s", rest)
	}
}
