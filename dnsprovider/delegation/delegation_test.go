package delegation

import (
	"fmt"
	"strings"
	"testing"

	"federation/dnsprovider/servertest"
)

const (
	zone = "example.test."
	ds   = "11 13 2 0000000000000000000000000000000000000000000000000000000000000011"
)

// startKnot runs a real Knot with the parent zone, in which records stand beside the delegation, and returns its address.
func startKnot(t *testing.T, records ...string) string {
	t.Helper()
	address, _ := servertest.Knot{Zone: "test.", File: `$ORIGIN test.
$TTL 300
@ SOA ns host 1 60 10 604800 5
@ NS ns
ns A 127.0.0.1
example NS ns.example
ns.example A 127.0.0.1
` + strings.Join(records, "\n") + "\n"}.Start(t)
	return address
}

func TestEachServerOfTheParentZoneIsAsked(t *testing.T) {
	with, without := startKnot(t, "example 7200 DS "+ds), startKnot(t)
	servers, err := Asker{Servers: []string{with, without}}.DS(t.Context(), "Example.test.")
	if err != nil || len(servers) != 2 || len(servers[0]) != 1 || len(servers[1]) != 0 {
		t.Fatalf("%v, %v: want one record at the first server and none at the second", servers, err)
	}
	if got := servers[0][0]; got.KeyTag != 11 || got.Hdr.Ttl != 7200 || !strings.HasSuffix(got.Digest, "11") {
		t.Errorf("%v, want %s", got, ds)
	}
	if servers, err := (Asker{Servers: []string{with}}).DS(t.Context(), "not-there.test."); err != nil || len(servers[0]) != 0 {
		t.Errorf("a zone that is not delegated: %v, %v", servers, err)
	}
}

func TestNoAnswerIsNoRecord(t *testing.T) {
	with := startKnot(t, "example 7200 DS "+ds)
	nobody := fmt.Sprintf("127.0.0.1:%d", servertest.FreePort(t))
	for _, c := range []struct {
		servers []string
		zone    string
		want    string
	}{
		{[]string{with, nobody}, zone, nobody + ": dial tcp"},
		{[]string{with}, "example.org.", "it answers REFUSED"},
	} {
		if servers, err := (Asker{Servers: c.servers}).DS(t.Context(), c.zone); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %v: %v, %v, want an error with %q", c.zone, c.servers, servers, err, c.want)
		}
	}
}
