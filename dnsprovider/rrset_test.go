package dnsprovider

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A name is taken if it is of labels as a host's, on the wire at most 255 bytes long; its canonical form is lower-case with one final dot, and stays as it is.
func TestCanonicalNameIsByTheGrammar(t *testing.T) {
	grammar := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,63}(\.[a-zA-Z0-9_-]{1,63})*\.?$`)
	chance, taken := rand.New(rand.NewPCG(91, 1)), 0
	for range 5000 {
		name := ""
		for range 1 + chance.IntN(6) {
			name += strings.Repeat(string("aZ0-_"[chance.IntN(5)]), chance.IntN(66)) + []string{".", ".", ".", "", "*", "é"}[min(chance.IntN(20), 5)%6]
		}
		name = strings.TrimSuffix(name, []string{".", ""}[chance.IntN(2)])
		wire := 1 // the root
		for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
			wire += 1 + len(label)
		}
		got, err := CanonicalName(name)
		if want := grammar.MatchString(name) && wire <= 255; (err == nil) != want {
			t.Fatalf("%q: error %v, want it taken: %t", name, err, want)
		}
		if err != nil {
			continue
		}
		taken++
		if again, err := CanonicalName(got); got != strings.ToLower(strings.TrimSuffix(name, "."))+"." || again != got || err != nil {
			t.Fatalf("%q is %q, and that is %q, %v", name, got, again, err)
		}
	}
	if taken < 150 {
		t.Errorf("only %d names were taken", taken)
	}
	most := strings.Repeat(strings.Repeat("a", 49)+".", 5) + "bbb" // 255 bytes on the wire
	for name, want := range map[string]bool{most: true, most + ".": true, most + "b": false, most + "b.": false} {
		if _, err := CanonicalName(name); (err == nil) != want {
			t.Errorf("a name of %d bytes: error %v, want it taken: %t", len(name), err, want)
		}
	}
}

// A name is in a zone if the zone's labels are its last ones: a name that only ends in the same letters is not.
func TestInZone(t *testing.T) {
	for name, want := range map[string]bool{"example.com.": true, "www.example.com.": true, "a.b.example.com.": true, "notexample.com.": false, "com.": false,
		"example.com.org.": false, "example.": false} {
		if got := InZone(name, "example.com."); got != want {
			t.Errorf("%s in example.com.: got %t, want %t", name, got, want)
		}
	}
}

// A difference has of each name just what is in one content and not in the other, and what it is applied to stays as it is.
func TestDiffIsMinimal(t *testing.T) {
	r := rand.New(rand.NewPCG(92, 1))
	only := func(in, other []RRSet) (lines []string) {
		for _, set := range in {
			if !slices.ContainsFunc(other, func(o RRSet) bool { return o.String() == set.String() }) {
				lines = append(lines, set.String())
			}
		}
		slices.Sort(lines)
		return lines
	}
	for range 1000 {
		current, desired := randomZone(t, r), randomZone(t, r)
		was := slices.Clone(current)
		changes := Diff(current, desired)
		var goes, comes []string
		for _, step := range changes {
			for _, set := range step.Old {
				goes = append(goes, set.String())
			}
			for _, set := range step.New {
				comes = append(comes, set.String())
			}
		}
		slices.Sort(goes)
		slices.Sort(comes)
		if !slices.Equal(goes, only(current, desired)) || !slices.Equal(comes, only(desired, current)) {
			t.Fatalf("from %v to %v:\n%s", current, desired, changes)
		}
		if _, err := changes.Apply(current); err != nil || !slices.EqualFunc(current, was, RRSet.Equal) {
			t.Fatalf("after applying, error %v, the content is %v, was %v", err, current, was)
		}
	}
}

// A conflict says what was expected and what is there; a refusal will never be taken, and is no conflict. What lies behind errors is found.
func TestErrorsSayWhatIsThere(t *testing.T) {
	one, two, other := mustNew(t, "a.example", A, 15, "192.0.2.1"), mustNew(t, "a.example", A, 30, "192.0.2.2"), mustNew(t, "b.example", A, 15, "192.0.2.1")
	for _, c := range []struct {
		current []RRSet
		step    Step
		want    string
	}{
		{nil, Step{one.Name, []RRSet{one}, nil}, `record a.example. A: expected 15 ["192.0.2.1"], found no record: read the zone again`},
		{[]RRSet{two}, Step{one.Name, []RRSet{one}, nil}, `record a.example. A: expected 15 ["192.0.2.1"], found 30 ["192.0.2.2"]: read the zone again`},
		{[]RRSet{two}, Step{one.Name, nil, []RRSet{one}}, `record a.example. A: expected no record, found 30 ["192.0.2.2"]: read the zone again`},
		{nil, Step{one.Name, nil, []RRSet{other}}, `step at a.example.: record b.example. A: must be of the step's name`},
		{[]RRSet{one}, Step{one.Name, nil, []RRSet{mustNew(t, "a.example", CNAME, 15, "b.example")}},
			`name a.example.: a CNAME must be alone, and here it would stand beside 1 other record sets`},
	} {
		_, err := c.step.Apply(c.current)
		var conflict *ConflictError
		var refused *RefusedError
		if err == nil || err.Error() != c.want || errors.As(err, &conflict) == errors.As(err, &refused) || errors.As(err, &conflict) != strings.HasSuffix(c.want,
			"again") {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		partial := &PartialError{Done: 2, Of: 7, Err: fmt.Errorf("later: %w", err)}
		if !errors.Is(partial, err) || partial.Error() != "2 of 7 names were changed, then: later: "+c.want {
			t.Errorf("in part: %v", partial)
		}
	}
	if cause := errors.New("a reserved name"); !errors.Is(Refusef("not taken: %w", cause), cause) {
		t.Error("what a provider said is not found behind a refusal")
	}
}

// Whatever the order, the case and the repetition of its data, a set is the same; and sets that differ in anything are not.
func TestNewDependsOnNothingElse(t *testing.T) {
	r := rand.New(rand.NewPCG(93, 1))
	data := []string{"2001:db8::1", "2001:DB8::1", "2001:db8:0::2", "2001:db8::2", "2001:0db8::3"}
	for range 500 {
		some := slices.Clone(data[:1+r.IntN(5)])
		want := mustNew(t, "web.example", AAAA, 15, some...)
		r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		if got := mustNew(t, "WEB.example.", "aaaa", 15, append(some, some[0])...); !got.Equal(want) || Compare(got, want) != 0 {
			t.Fatalf("%q is %s, want %s", some, got, want)
		}
	}
	is := mustNew(t, "web.example", A, 15, "192.0.2.1", "192.0.2.2")
	for _, other := range []RRSet{mustNew(t, "wec.example", A, 15, is.Rdata...), mustNew(t, "web.example", TXT, 15, is.Rdata...), mustNew(t, "web.example", A,
		16, is.Rdata...),
		mustNew(t, "web.example", A, 15, "192.0.2.1"), mustNew(t, "web.example", A, 15, "192.0.2.1", "192.0.2.3")} {
		if is.Equal(other) || other.Equal(is) || Compare(is, other) != -Compare(other, is) {
			t.Errorf("%s equals %s, or comes before it and after it", is, other)
		}
	}
}
