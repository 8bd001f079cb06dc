package main

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

func mustPool(t *testing.T, cidrs ...string) *pool {
	t.Helper()
	prefixes, err := parsePools(cidrs)
	if err != nil {
		t.Fatal(err)
	}
	return newPool(prefixes)
}

func mustAllocate(t *testing.T, p *pool, owner string) string {
	t.Helper()
	a, err := p.allocate(owner)
	if err != nil {
		t.Fatal(err)
	}
	return a.String()
}

func TestPoolGoesThroughItsNetworksInOrder(t *testing.T) {
	p := mustPool(t, "192.0.2.0/30", "198.18.0.0/30")
	var got []string
	for _, owner := range []string{"a", "b", "c", "d"} {
		got = append(got, mustAllocate(t, p, owner))
	}
	if s := strings.Join(got, " "); s != "192.0.2.1 192.0.2.2 198.18.0.1 198.18.0.2" {
		t.Errorf("network and broadcast addresses must be left out, got %s", s)
	}
	if _, err := p.allocate("e"); err == nil || !strings.Contains(err.Error(), "all 4 of 192.0.2.0/30, 198.18.0.0/30") {
		t.Errorf("an exhausted pool must say so, got %v", err)
	}
	if got := mustAllocate(t, p, "b"); got != "192.0.2.2" {
		t.Errorf("who holds an address keeps it in an exhausted pool too, got %s", got)
	}
	p.release("b")
	if got := mustAllocate(t, p, "e"); got != "192.0.2.2" {
		t.Errorf("the only free address is the released one, got %s", got)
	}
}

func TestPoolLetsAReleasedAddressRest(t *testing.T) {
	p := mustPool(t, "192.0.2.0/24")
	mustAllocate(t, p, "a")
	p.release("a")
	if got := mustAllocate(t, p, "b"); got != "192.0.2.2" {
		t.Errorf("another address is free, got %s", got)
	}
}

func TestPoolClaim(t *testing.T) {
	tests := []struct {
		name, owner, address string
		want                 bool
	}{
		{"a free one", "new", "192.0.2.9", true},
		{"its own", "old", "192.0.2.5", true},
		{"another's", "new", "192.0.2.5", false},
		{"a second one", "old", "192.0.2.9", false},
		{"not of the pool", "new", "203.0.113.1", false},
		{"the network's", "new", "192.0.2.0", false},
		{"broadcast", "new", "192.0.2.255", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := mustPool(t, "192.0.2.0/24")
			p.claim("old", netip.MustParseAddr("192.0.2.5"))
			if got := p.claim(test.owner, netip.MustParseAddr(test.address)); got != test.want {
				t.Errorf("claim(%s, %s) = %v", test.owner, test.address, got)
			}
		})
	}
}

// A member that is started again claims what the statuses say, in whatever order they are listed.
func TestPoolIsTheSameAfterARestart(t *testing.T) {
	before := mustPool(t, "192.0.2.0/28", "198.18.0.0/28")
	owners := strings.Split("abcdefghijklmnopqrstuvwx", "")
	for range 500 {
		if owner := owners[rand.IntN(len(owners))]; rand.IntN(2) == 0 {
			mustAllocate(t, before, owner)
		} else {
			before.release(owner)
		}
	}
	after := mustPool(t, "192.0.2.0/28", "198.18.0.0/28")
	for owner, a := range before.held { // in random order
		if !after.claim(owner, a) {
			t.Fatalf("%s cannot have %s back", owner, a)
		}
	}
	seen := map[string]string{}
	for _, owner := range owners {
		a := mustAllocate(t, after, owner)
		if held, ok := before.held[owner]; ok && held.String() != a {
			t.Errorf("%s had %s and has %s now", owner, held, a)
		}
		if seen[a] != "" {
			t.Errorf("%s and %s both have %s", seen[a], owner, a)
		}
		seen[a] = owner
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	good := map[string]string{"name": "east-a", "region": "east", "zone": "a", "port": "20443", "data-dir": "x", "lb-cidr": "192.0.2.0/24"}
	tests := []struct{ flag, value, want string }{
		{"name", "East", `--name="East": a lowercase RFC 1123 label`},
		{"zone", "a.b", `--zone="a.b"`},
		{"port", "0", "--port=0: must be from 1 to 65535"},
		{"nodes", "0", "--nodes=0: must be from 1 to 250"},
		{"data-dir", "", "--data-dir: must be set"},
		{"lb-cidr", "192.0.2.1", `--lb-cidr: "192.0.2.1" must be an IPv4 network`},
		{"lb-cidr", "192.0.2.0/31", "must be an IPv4 network of /30 or larger"},
		{"lb-cidr", "2001:db8::/64", "must be an IPv4 network"},
		{"lb-cidr", "", "must name at least one IPv4 network"},
	}
	for _, test := range tests {
		t.Run(test.flag+"="+test.value, func(t *testing.T) {
			var args []string
			for flag, value := range good {
				if flag != test.flag {
					args = append(args, "--"+flag+"="+value)
				}
			}
			_, err := parseOptions(append(args, "--"+test.flag+"="+test.value))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
