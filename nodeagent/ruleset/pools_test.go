package ruleset

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// told is an endpoint as a test tells of it: its address and its words, see slice.
type told struct{ addr, words string }

func (e told) is(word string) bool { return slices.Contains(strings.Fields(e.words), word) }
func (e told) ready() bool         { return !e.is("notready") && !e.is("terminating") && !e.is("gone") }

// filter returns the addresses of the endpoints for which is returns true.
func filter(all []told, is func(told) bool) (some []string) {
	for _, e := range all {
		if is(e) {
			some = append(some, e.addr)
		}
	}
	return some
}

// poolInWords returns what the policies Cluster and Local lead to, as the design has it in words: a list of cases, the first that has somebody.
func poolInWords(here []told, away map[string]string) (cluster, local string) {
	ready := filter(here, told.ready)
	everyone := func(hint string) bool {
		return len(filter(here, func(e told) bool { return e.ready() && strings.Contains(e.words, hint) })) == len(ready)
	}
	var near, far []string
	for addr, region := range away {
		if region == "ra" {
			near = append(near, addr)
		}
		far = append(far, addr)
	}
	for _, c := range []struct {
		tier Tier
		when bool
		is   []string
	}{
		{TierNode, everyone("fornode="), filter(here, func(e told) bool { return e.ready() && e.is("fornode=n1") })},
		{TierZone, everyone("zone="), filter(here, func(e told) bool { return e.ready() && e.is("zone=za") })},
		{TierReady, true, ready},
		{TierTerminating, true, filter(here, func(e told) bool { return e.is("terminating") })},
		{TierRemoteRegion, true, near},
		{TierRemote, true, far},
		{TierNone, true, []string{""}},
	} {
		if c.when && len(c.is) > 0 {
			cluster = string(c.tier) + ":" + sorted(c.is)
			break
		}
	}
	local = string(TierNone) + ":"
	for tier, some := range map[Tier][]string{
		TierNode:        filter(here, func(e told) bool { return e.is("@n1") && e.ready() }),
		TierTerminating: filter(here, func(e told) bool { return e.is("@n1") && e.is("terminating") }),
	} {
		if len(some) > 0 && (tier == TierNode || !strings.HasPrefix(local, string(TierNode))) {
			local = string(tier) + ":" + sorted(some)
		}
	}
	return cluster, local
}

// sorted returns addresses in a line, each with the port of es1.
func sorted(addrs []string) (line string) {
	var all []netip.Addr
	for _, a := range addrs {
		if a != "" {
			all = append(all, netip.MustParseAddr(a))
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	for _, a := range all {
		line += " " + netip.AddrPortFrom(a, 9200).String()
	}
	return line
}

// The pools are those that the design has in words, whatever the endpoints are and over however many slices they are spread, in any order. Existing flows of
// UDP may go on to all that is ready or serves.
func TestPoolsAreAsTheDesignHasThemInWords(t *testing.T) {
	chance := rand.New(rand.NewPCG(21, 1))
	states, hints := []string{"", "", "notready", "terminating", "gone"}, []string{"", "zone=za", "zone=zb", "zone=za fornode=n1", "zone=zb fornode=n2"}
	for range 5000 {
		var here []told
		var parts [3][]string
		pattern := chance.IntN(3) // hints of nobody, of all, of some
		for i := range chance.IntN(6) {
			words := []string{"@n1", "@n2"}[chance.IntN(2)] + " " + states[chance.IntN(len(states))]
			if pattern == 1 || pattern == 2 && chance.IntN(4) > 0 {
				words += " " + hints[1+chance.IntN(4)]
			}
			e := told{fmt.Sprint("10.180.2.", 100-9*i), words}
			here = append(here, e)
			p := chance.IntN(3)
			parts[p] = append(parts[p], e.addr+" "+e.words)
		}
		all, away := []*discoveryv1.EndpointSlice{slice("a", parts[0]...), slice("b", parts[1]...), slice("c", parts[2]...)}, map[string]string{}
		for i := range chance.IntN(3) {
			region, addr := []string{"ra", "rb"}[chance.IntN(2)], fmt.Sprint("203.0.113.", i)
			all, away[addr] = append(all, remote(fmt.Sprint("far", i), region, "", addr)), region
		}
		chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, s := range all {
			s.Ports[0].Protocol = new(corev1.ProtocolUDP)
		}
		ports, _ := Build(new(node()), es1(localOutside, func(s *corev1.Service) { s.Spec.Ports[0].Protocol = "UDP" }), all)
		cluster, local := poolInWords(here, away)
		living := strings.Trim(fmt.Sprint(ports[0].Living), "[]")
		lives := sorted(append(filter(here, func(e told) bool { return e.ready() || e.is("terminating") }), slices.Collect(maps.Keys(away))...))
		if backends(ports[0].Cluster) != cluster || backends(ports[0].Local) != local || living != strings.TrimSpace(lives) {
			t.Fatalf("%v and %v:\ncluster %s\nwant    %s\nlocal %s\nwant  %s\nliving %s\nwant  %s", here, away, backends(ports[0].Cluster), cluster,
				backends(ports[0].Local), local, living, lives)
		}
	}
}

// An address that is there twice is used as the better one is: ready before not ready, that before terminating, and this cluster's before another's. The
// order of slices does not matter.
func TestAnAddressIsUsedAsTheBestOfItIs(t *testing.T) {
	one := func(name, words string) *discoveryv1.EndpointSlice { return slice(name, "10.180.2.11 "+words) }
	far := remote("east", "ra", "", "10.180.2.11")
	for name, c := range map[string]struct {
		is   []*discoveryv1.EndpointSlice
		want string
	}{
		"ready and terminating":     {[]*discoveryv1.EndpointSlice{one("a", "terminating"), one("b", "@n1")}, "ready: 10.180.2.11:9200"},
		"ready and not ready":       {[]*discoveryv1.EndpointSlice{one("a", "notready"), one("b", "")}, "ready: 10.180.2.11:9200"},
		"not ready and terminating": {[]*discoveryv1.EndpointSlice{one("a", "terminating"), one("b", "notready")}, "none:"},
		"terminating and far":       {[]*discoveryv1.EndpointSlice{one("a", "terminating"), far}, "terminating, still serving: 10.180.2.11:9200"},
		"not ready and far":         {[]*discoveryv1.EndpointSlice{one("a", "notready"), far}, "none:"},
		"far alone":                 {[]*discoveryv1.EndpointSlice{far}, "another cluster of this region, as no endpoint here is ready: 10.180.2.11:9200"},
	} {
		for range 2 {
			slices.Reverse(c.is)
			ports, _ := Build(new(node()), es1(), c.is)
			if got := backends(ports[0].Cluster); got != c.want {
				t.Errorf("%s: got %q, want %q", name, got, c.want)
			}
		}
	}
}

// What is scarce is divided exactly: this cluster has the share ready/(below of all), evenly, and other clusters the rest by their weights. Fractions are
// compared, not floats.
func TestSharesAreExact(t *testing.T) {
	chance := rand.New(rand.NewPCG(22, 1))
	for range 2000 {
		ready, unready, below := 1+chance.IntN(20), chance.IntN(40), 1+chance.IntN(100)
		var here []string
		for i := range ready + unready {
			here = append(here, fmt.Sprint("10.180.2.", i)+map[bool]string{true: "", false: " notready"}[i < ready])
		}
		all, weights, sum := []*discoveryv1.EndpointSlice{slice("a", here...)}, map[string]int64{}, int64(0)
		for i := range 1 + chance.IntN(3) {
			name, weight := fmt.Sprint("far", i), int64(1+chance.IntN(1000))
			all, weights[name], sum = append(all, remote(name, "rb", fmt.Sprint(weight), fmt.Sprint("203.0.113.", i))), weight, sum+weight
		}
		ports, _ := Build(new(node()), es1(annotated(AnnotationFallbackBelow, fmt.Sprint(below, "%"))), all)
		pool, total := ports[0].Cluster, int64(0)
		for _, b := range pool.Backends {
			total += int64(b.Weight)
		}
		part := big.NewRat(int64(100*ready), int64(below*(ready+unready))) // this cluster's part
		if part.Cmp(big.NewRat(1, 1)) >= 0 {
			if pool.Away() || pool.Tier != TierReady {
				t.Fatalf("%d of %d are ready, %d %% must be: %+v", ready, ready+unready, below, pool)
			}
			continue
		}
		for _, b := range pool.Backends {
			want := new(big.Rat).Quo(part, big.NewRat(int64(ready), 1))
			if b.Cluster != "" {
				want = new(big.Rat).Mul(new(big.Rat).Sub(big.NewRat(1, 1), part), big.NewRat(weights[b.Cluster], sum))
			}
			if got := big.NewRat(int64(b.Weight), total); got.Cmp(want) != 0 {
				t.Fatalf("%d of %d are ready, %d %% must be, weights %v: %s has %s, want %s", ready, ready+unready, below, weights, b.Addr, got, want)
			}
		}
	}
}

// Weights that do not fit into 32 bits are scaled down: each stays a share of at least 1, near to what it was.
func TestSharesOfManyFit(t *testing.T) {
	own, others := Pool{Backends: make([]Backend, 0, 10_000)}, Pool{}
	for i := range 5000 {
		own.Backends = append(own.Backends, Backend{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 80), Weight: 1})
		others.Backends = append(others.Backends, Backend{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)}), 80),
			Weight: uint32(1 + i%997), Cluster: "far"})
	}
	p := mixPools(own, others, 499_979, 1_000_003)
	here, away := 0.0, 0.0
	for i, b := range p.Backends {
		if b.Weight < 1 || i > 0 && !p.Backends[i-1].Addr.Addr().Less(b.Addr.Addr()) {
			t.Fatalf("backend %d of %d: %+v", i, len(p.Backends), b)
		}
		if b.Cluster == "" {
			here += float64(b.Weight)
		} else {
			away += float64(b.Weight)
		}
	}
	if got, want := here/(here+away), 499_979.0/(499_979+1_000_003); got < want-1e-6 || got > want+1e-6 || len(p.Backends) != 10_000 {
		t.Errorf("this cluster has %.7f of %d backends, want %.7f", got, len(p.Backends), want)
	}
	if own.Backends[0].Weight != 1 || others.Backends[0].Weight != 1 {
		t.Error("the pools that were mixed have changed")
	}
	for _, b := range mixPools(Pool{Backends: own.Backends[:1]}, others, 100_000, 1).Backends {
		if b.Weight == 0 {
			t.Fatalf("%s has no share", b.Addr)
		}
	}
}

// A weight that is none, or beyond the limits, counts as 1.
func TestWeightsAreFrom1To1000(t *testing.T) {
	for text, want := range map[string]uint32{"1": 1, "7": 7, "1000": 1000, "1001": 1, "0": 1, "-3": 1, "": 1, "x": 1, "4294967297": 1, "2.5": 1} {
		ports, _ := Build(new(node()), es1(), []*discoveryv1.EndpointSlice{remote("east", "ra", text, "203.0.113.1")})
		if got := ports[0].Cluster.Backends[0].Weight; got != want {
			t.Errorf("weight %q: got %d, want %d", text, got, want)
		}
	}
}

// An endpoint counts if it has an address that can be read, in a slice of the family that names the port by name, protocol and a valid number.
func TestWhatIsAnEndpoint(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*discoveryv1.EndpointSlice)
		want   string
	}{
		"as it is":      {func(*discoveryv1.EndpointSlice) {}, "ready: 10.180.2.11:9200"},
		"no address":    {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = nil }, "none:"},
		"no IP address": {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = []string{"web.example.com"} }, "none:"},
		"two addresses": {func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0].Addresses = append(s.Endpoints[0].Addresses, "10.180.2.12")
		}, "ready: 10.180.2.11:9200"},
		"not an address of its family": {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = []string{"fd00:180::1"} }, "none:"},
		"names":                        {func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeFQDN }, "none:"},
		"another family":               {func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeIPv6 }, "none:"},
		"no conditions":                {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions = discoveryv1.EndpointConditions{} }, "ready: 10.180.2.11:9200"},
		"no protocol":                  {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Protocol = nil }, "ready: 10.180.2.11:9200"},
		"another protocol":             {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Protocol = new(corev1.ProtocolUDP) }, "none:"},
		"another port":                 {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Name = new("metrics") }, "none:"},
		"no name":                      {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Name = nil }, "none:"},
		"all ports":                    {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = nil }, "none:"},
		"port 0":                       {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = new(int32(0)) }, "none:"},
		"port 70000":                   {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = new(int32(70000)) }, "none:"},
		"the second port": {func(s *discoveryv1.EndpointSlice) {
			s.Ports = []discoveryv1.EndpointPort{{Name: new("metrics"), Port: new(int32(1))}, {Name: new("http"), Port: new(int32(65535))}}
		}, "ready: 10.180.2.11:65535"},
		"serving, but not ready": {func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true)}
		}, "none:"},
		"terminating, and who says no more": {func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: new(false), Terminating: new(true)}
		}, "terminating, still serving: 10.180.2.11:9200"},
	} {
		s := slice("a", "10.180.2.11")
		c.change(s)
		ports, reasons := Build(new(node()), es1(), []*discoveryv1.EndpointSlice{s})
		if got := backends(ports[0].Cluster); got != c.want || len(reasons) > 0 {
			t.Errorf("%s: got %q %q, want %q", name, got, reasons, c.want)
		}
	}
}

// TestNoOtherClusterHasTheNodesOwnAddress: a slice of another cluster that says so leads nowhere.
func TestNoOtherClusterHasTheNodesOwnAddress(t *testing.T) {
	n := node()
	n.Addrs = append(n.Addrs, netip.MustParseAddr("10.240.0.9"))
	ports, _ := Build(&n, es1(), []*discoveryv1.EndpointSlice{remote("cb", "ra", "1", "10.240.0.9", "10.240.1.9")})
	if got := backends(ports[0].Cluster); got != string(TierRemoteRegion)+": 10.240.1.9:9200" {
		t.Errorf("got %q", got)
	}
}
