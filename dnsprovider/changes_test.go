package dnsprovider

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func mustNew(t *testing.T, name string, typ Type, ttl uint32, rdata ...string) RRSet {
	t.Helper()
	set, err := New(name, typ, ttl, rdata...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// randomZone has up to 8 names, each with a CNAME or with addresses of one or both families.
func randomZone(t *testing.T, r *rand.Rand) (zone []RRSet) {
	ttl := func() uint32 { return uint32(15 + r.IntN(2)) }
	addresses := func(format string) (list []string) {
		for range 1 + r.IntN(3) {
			list = append(list, fmt.Sprintf(format, r.IntN(4)))
		}
		return list
	}
	for i := range 8 {
		name := fmt.Sprintf("n%d.example", i)
		kind := r.IntN(5)
		if kind == 1 {
			zone = append(zone, mustNew(t, name, CNAME, ttl(), fmt.Sprintf("n%d.example", r.IntN(8))))
		}
		if kind == 2 || kind == 3 {
			zone = append(zone, mustNew(t, name, A, ttl(), addresses("192.0.2.%d")...))
		}
		if kind == 3 || kind == 4 {
			zone = append(zone, mustNew(t, name, AAAA, ttl(), addresses("2001:db8::%d")...))
		}
	}
	r.Shuffle(len(zone), func(i, j int) { zone[i], zone[j] = zone[j], zone[i] })
	return zone
}

func equalZones(a, b []RRSet) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, Compare)
	slices.SortFunc(b, Compare)
	return slices.EqualFunc(a, b, RRSet.Equal)
}

func TestDiffLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		current, desired := randomZone(t, r), randomZone(t, r)
		changes := Diff(current, desired)
		got, err := changes.Apply(current)
		if err != nil {
			t.Fatalf("Apply(Diff): %v\n%s", err, changes)
		}
		if !equalZones(got, desired) {
			t.Fatalf("applying the difference gives %v, want %v", got, desired)
		}
		if again := Diff(got, desired); len(again) != 0 {
			t.Fatalf("a second diff is not empty: %s", again)
		}
		if same := Diff(current, slices.Clone(current)); len(same) != 0 {
			t.Fatalf("equal zones differ: %s", same)
		}
		back, err := Diff(desired, current).Apply(got)
		if err != nil || !equalZones(back, current) {
			t.Fatalf("the way back gives %v, %v, want %v", back, err, current)
		}
		r.Shuffle(len(current), func(i, j int) { current[i], current[j] = current[j], current[i] })
		if shuffled := Diff(current, desired); shuffled.String() != changes.String() {
			t.Fatalf("the order of the input matters:\n%s\n%s", changes, shuffled)
		}
		stepPerName(t, changes)
	}
}

func stepPerName(t *testing.T, changes ChangeSet) {
	t.Helper()
	for i := 1; i < len(changes); i++ {
		if changes[i-1].Name >= changes[i].Name {
			t.Fatalf("steps are not one a name in order: %s", changes)
		}
	}
}

func TestTypeSwitchIsOneStep(t *testing.T) {
	addresses := mustNew(t, "web.example", A, 15, "192.0.2.2", "192.0.2.1")
	alias := mustNew(t, "web.example", CNAME, 15, "other.example")
	changes := Diff([]RRSet{addresses}, []RRSet{alias})
	want := `- web.example. 15 IN A 192.0.2.1
- web.example. 15 IN A 192.0.2.2
+ web.example. 15 IN CNAME other.example.
`
	if len(changes) != 1 || changes.String() != want {
		t.Errorf("%d steps:\n%s, want one:\n%s", len(changes), changes, want)
	}
}

func TestChangeSetApplyRefuses(t *testing.T) {
	one, two := mustNew(t, "a.example", A, 15, "192.0.2.1"), mustNew(t, "a.example", A, 15, "192.0.2.2")
	alias := mustNew(t, "a.example", CNAME, 15, "b.example")
	for name, c := range map[string]struct {
		current  []RRSet
		step     Step
		conflict bool
	}{
		"an old set that is not there":     {nil, Step{"a.example.", []RRSet{one}, nil}, true},
		"an old set that has changed":      {[]RRSet{two}, Step{"a.example.", []RRSet{one}, []RRSet{alias}}, true},
		"a new set that is already there":  {[]RRSet{two}, Step{"a.example.", nil, []RRSet{one}}, true},
		"the same set twice":               {nil, Step{"a.example.", nil, []RRSet{one, one}}, true},
		"a CNAME beside an address":        {[]RRSet{one}, Step{"a.example.", nil, []RRSet{alias}}, false},
		"an address beside a CNAME":        {[]RRSet{alias}, Step{"a.example.", nil, []RRSet{one}}, false},
		"a set of another name":            {nil, Step{"b.example.", nil, []RRSet{one}}, false},
		"an old set with another TTL (16)": {[]RRSet{one}, Step{"a.example.", []RRSet{{Name: one.Name, Type: one.Type, TTL: 16, Rdata: one.Rdata}}, nil}, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ChangeSet{c.step}.Apply(c.current)
			var conflict *ConflictError
			if err == nil || errors.As(err, &conflict) != c.conflict {
				t.Errorf("error %v, want one, a conflict: %t", err, c.conflict)
			}
		})
	}
}

func TestNewIsCanonical(t *testing.T) {
	a, b := mustNew(t, "Web.Example", "aaaa", 15, "2001:DB8:0:0::1", "2001:db8::2", "2001:db8::1"),
		mustNew(t, "web.example.", AAAA, 15, "2001:db8::2", "2001:db8::1")
	if !a.Equal(b) || a.String() != b.String() {
		t.Errorf("%s\n%s\nare not the same", a, b)
	}
}

func TestNewRRSetRefuses(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, c := range []struct {
		name, want string
		typ        Type
		ttl        uint32
		rdata      []string
	}{
		{"web.example", "at least one", A, 15, nil},
		{"web.example", "IPv4", A, 15, []string{"2001:db8::1"}},
		{"web.example", "IPv6", AAAA, 15, []string{"192.0.2.1"}},
		{"web.example", "IPv6", AAAA, 15, []string{"::ffff:192.0.2.1"}},
		{"web.example", "exactly one", CNAME, 15, []string{"a.example", "b.example"}},
		{"web.example", "63", CNAME, 15, []string{long + ".example"}},
		{"web.example", "2147483647", A, 1 << 31, []string{"192.0.2.1"}},
		{long + ".example", "1 to 63", A, 15, []string{"192.0.2.1"}},
		{strings.Repeat("abcdefg.", 32), "at most 255", A, 15, []string{"192.0.2.1"}},
		{"a..example", "1 to 63", A, 15, []string{"192.0.2.1"}},
		{"*.example", "letters", A, 15, []string{"192.0.2.1"}},
		{"", "1 to 63", A, 15, []string{"192.0.2.1"}},
		{"web.example", "one line", "TXT", 15, []string{"a\nb"}},
	} {
		if _, err := New(c.name, c.typ, c.ttl, c.rdata...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%q, %s, %d, %q): error %v, want one with %q", c.name, c.typ, c.ttl, c.rdata, err, c.want)
		}
	}
}
