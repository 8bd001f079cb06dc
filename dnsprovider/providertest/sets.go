package providertest

import (
	"context"
	"strings"
	"testing"

	"federation/dnsprovider"
)

// Set returns a set with a TTL of 15 s. Where there can be no such set the test fails.
func Set(t testing.TB, name string, typ dnsprovider.Type, rdata ...string) dnsprovider.RRSet {
	t.Helper()
	set, err := dnsprovider.New(name, typ, 15, rdata...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Sets returns those of the lines "NAME TYPE RDATA RDATA…", with names below the zone.
func Sets(t testing.TB, zone, lines string) (sets []dnsprovider.RRSet) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		f := strings.Fields(line)
		sets = append(sets, Set(t, f[0]+"."+zone, dnsprovider.Type(f[1]), f[2:]...))
	}
	return sets
}

// Become makes the zone be want.
func Become(t testing.TB, p dnsprovider.Provider, zone string, want ...dnsprovider.RRSet) {
	t.Helper()
	have, err := p.Records(context.Background(), zone)
	if err != nil {
		t.Fatal(err)
	}
	changes := dnsprovider.Diff(have, want)
	if err := p.Apply(context.Background(), zone, changes); err != nil {
		t.Fatalf("%v\nat the changes\n%.2000s", err, changes)
	}
}
