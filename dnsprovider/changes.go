package dnsprovider

import (
	"fmt"
	"slices"
	"strings"
)

// Step is a change at one name, to be made atomically: Old goes, then New comes.
type Step struct {
	Name string
	// Old are the sets that are there now and go or change, sorted by type.
	Old []RRSet
	// New are the sets that come or change, in their final form, sorted by type.
	New []RRSet
}

// ChangeSet is what to do to get from one content of a zone to another, sorted by name.
type ChangeSet []Step

// Diff returns what to do to get from current to desired. Both have at most one set of a name and
// type, in any order. Equal contents give an empty ChangeSet.
func Diff(current, desired []RRSet) ChangeSet {
	have, want := sortSets(current), sortSets(desired)
	var changes ChangeSet
	for len(have)+len(want) > 0 {
		name := firstName(have, want)
		var old, now []RRSet
		old, have = cutName(have, name)
		now, want = cutName(want, name)
		step := Step{Name: name, Old: subtractSets(old, now), New: subtractSets(now, old)}
		if len(step.Old)+len(step.New) > 0 {
			changes = append(changes, step)
		}
	}
	return changes
}

// sortSets returns the sets in order; the argument stays as it is.
func sortSets(sets []RRSet) []RRSet {
	if slices.IsSortedFunc(sets, Compare) {
		return sets
	}
	return slices.SortedFunc(slices.Values(sets), Compare)
}

// firstName returns the least name in two sorted lists, of which one at least has any.
func firstName(a, b []RRSet) string {
	if len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name {
		return a[0].Name
	}
	return b[0].Name
}

// cutName divides a sorted list, whose first name is not less, into the sets of a name and the rest.
func cutName(sets []RRSet, name string) (of, rest []RRSet) {
	n := 0
	for n < len(sets) && sets[n].Name == name {
		n++
	}
	return sets[:n], sets[n:]
}

// Apply returns the result of the changes on current, sorted, without changing current. It is what every Provider does
// to a zone, and fails as a Provider does: see Step.Apply.
func (c ChangeSet) Apply(current []RRSet) ([]RRSet, error) {
	zone := byName(current)
	for _, step := range c {
		sets, err := step.Apply(zone[step.Name])
		if err != nil {
			return nil, err
		}
		zone[step.Name] = sets
	}
	var result []RRSet
	for _, sets := range zone {
		result = append(result, sets...)
	}
	slices.SortFunc(result, Compare)
	return result, nil
}

// Apply returns the sets at the step's name after the step, sorted by type. It fails with a ConflictError if an old set
// is not as expected, or a new one exists already; and with another error if the result would have a CNAME beside
// something else (RFC 2181, section 10.1).
func (s Step) Apply(current []RRSet) ([]RRSet, error) {
	for _, old := range s.Old {
		if !slices.ContainsFunc(current, old.Equal) {
			return nil, &ConflictError{Expected: old, Found: findSet(current, old)}
		}
	}
	result := subtractSets(current, s.Old)
	for _, set := range s.New {
		if set.Name != s.Name {
			return nil, Refusef("step at %s: record %s %s: must be of the step's name", s.Name, set.Name, set.Type)
		}
		if found := findSet(result, set); found != nil {
			return nil, &ConflictError{Expected: RRSet{Name: set.Name, Type: set.Type}, Found: found}
		}
		result = append(result, set)
	}
	if len(result) > 1 && slices.ContainsFunc(result, func(s RRSet) bool { return s.Type == CNAME }) {
		return nil, Refusef("name %s: a CNAME must be alone, and here it would stand beside %d other record sets", s.Name, len(result)-1)
	}
	slices.SortFunc(result, Compare)
	return result, nil
}

// String gives the changes as lines of a zone file, with "-" before what goes and "+" before what comes.
func (c ChangeSet) String() string {
	var b strings.Builder
	for _, step := range c {
		writeLines(&b, "-", step.Old)
		writeLines(&b, "+", step.New)
	}
	return b.String()
}

func writeLines(b *strings.Builder, sign string, sets []RRSet) {
	for _, set := range sets {
		for line := range strings.Lines(set.String()) {
			fmt.Fprintf(b, "%s %s\n", sign, strings.TrimSuffix(line, "\n"))
		}
	}
}

// ConflictError means that a zone is not as a ChangeSet expects: read it again and diff again.
type ConflictError struct {
	// Expected is the expected set; without Rdata: none.
	Expected RRSet
	// Found is the set of that name and type that is there, nil for none.
	Found *RRSet
}

// Error returns what was expected and what is there.
func (e *ConflictError) Error() string {
	expected, found := "no record", "no record"
	if len(e.Expected.Rdata) > 0 {
		expected = fmt.Sprintf("%d %q", e.Expected.TTL, e.Expected.Rdata)
	}
	if e.Found != nil {
		found = fmt.Sprintf("%d %q", e.Found.TTL, e.Found.Rdata)
	}
	return fmt.Sprintf("record %s %s: expected %s, found %s: read the zone again", e.Expected.Name, e.Expected.Type, expected, found)
}

func byName(sets []RRSet) map[string][]RRSet {
	m := make(map[string][]RRSet, len(sets))
	for _, set := range sets {
		m[set.Name] = append(m[set.Name], set)
	}
	return m
}

// subtractSets returns, sorted, the sets that have no equal in others.
func subtractSets(sets, others []RRSet) []RRSet {
	var rest []RRSet
	for _, set := range sets {
		if !slices.ContainsFunc(others, set.Equal) {
			rest = append(rest, set)
		}
	}
	slices.SortFunc(rest, Compare)
	return rest
}

func findSet(sets []RRSet, key RRSet) *RRSet {
	if i := slices.IndexFunc(sets, key.sameKey); i >= 0 {
		return &sets[i]
	}
	return nil
}
