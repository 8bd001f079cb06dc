package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// allocatable lists the addresses of a small network that can be given, in order.
func allocatable(p netip.Prefix) (all []netip.Addr) {
	for a := p.Addr(); p.Contains(a); a = a.Next() {
		all = append(all, a)
	}
	return all[1 : len(all)-1]
}

// firstFree returns the first address that is free in a round through all of them that begins at the name's own, and none only if all are taken.
func TestFirstFree_IsTheNextOfARound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	none := func(netip.Addr) bool { return false }
	for range 3000 {
		p := netip.MustParsePrefix([]string{"10.0.0.4/30", "10.0.0.8/29", "10.1.0.240/28", "fd00::fff0/124", "fd00::/126"}[random.IntN(5)])
		all, taken, name := allocatable(p), map[netip.Addr]bool{}, fmt.Sprint("ns/", random.IntN(1000))
		for _, a := range all {
			taken[a] = random.IntN(3) > 0
		}
		first, _ := firstFree(p, name, none)
		at := slices.Index(all, first)
		if at < 0 {
			t.Fatalf("%s begins at %s, which is not to be given", p, first)
		}
		round := slices.DeleteFunc(slices.Concat(all[at:], all[:at]), func(a netip.Addr) bool { return taken[a] })
		got, ok := firstFree(p, name, func(a netip.Addr) bool { return taken[a] })
		if ok != (len(round) > 0) || ok && got != round[0] {
			t.Fatalf("%s from %s, taken %v: %s %t, want the first of %v", p, first, taken, got, ok, round)
		}
	}
}

// Services that ask at once hardly ever try the same address, whatever the size of the range; one that is created again tries its own.
func TestFirstFree_BeginsElsewhereForEach(t *testing.T) {
	none := func(netip.Addr) bool { return false }
	for _, network := range []string{"10.0.0.0/8", "10.0.0.0/16", "fd00::/64", "fd00:1::/108"} {
		p, tried := netip.MustParsePrefix(network), map[netip.Addr]bool{}
		for i := range 200 {
			name := fmt.Sprint("shop/web-", i)
			a, ok := firstFree(p, name, none)
			if again, _ := firstFree(p, name, none); !ok || again != a || !isAllocatable(p, a) {
				t.Errorf("%s tries %s, then %s of %s", name, a, again, p)
			}
			tried[a] = true
		}
		if len(tried) < 195 {
			t.Errorf("200 Services try %d addresses of %s", len(tried), p)
		}
	}
}

// A network is as large as can be filled, and every address of it can be routed; an error says which of both is not so.
func TestParseRanges_SaysWhatIsWrong(t *testing.T) {
	const notation, size, twice = "CIDR notation", "must have from 4 to 2^%d addresses", "the only network of its family"
	for text, want := range map[string]string{
		"10.0.0.0/8": "", "10.0.0.0/30": "", "fd00::/64": "", "fd00::/126": "", "10.0.0.0/24 fd00::/108": "", "fd00::/108 10.0.0.0/24": "",
		"11.0.0.0/7": notation, "10.0.0.1/30": notation, "10.0.0.0/33": notation, "fd00::1/64": notation, "::ffff:10.0.0.0/120": notation, "10.0.0.0": notation,
		"10.0.0.0/7": fmt.Sprintf(size, 24), "10.0.0.0/31": fmt.Sprintf(size, 24), "fc00::/63": fmt.Sprintf(size, 64), "fd00::/127": fmt.Sprintf(size, 64),
		"169.254.0.0/16": fmt.Sprintf(size, 24), "fe80::/64": fmt.Sprintf(size, 64), "ff02::/64": fmt.Sprintf(size, 64),
		"fd00::/64 10.0.0.0/24 fd01::/64": twice,
	} {
		texts := strings.Fields(text)
		got, err := ParseRanges(texts)
		switch last := texts[len(texts)-1]; {
		case want == "" && (err != nil || len(got) != len(texts)):
			t.Errorf("%q: %v, %v", text, got, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), fmt.Sprintf("%q", last))):
			t.Errorf("%q: %v, want that %q: %s", text, err, last, want)
		}
	}
}

// A fault says which address or family it is about, and who has what the Service asks for.
func TestDecide_FaultsSayWhy(t *testing.T) {
	six := service("a/web", "auto", 2)
	six.Families = []corev1.IPFamily{corev1.IPv6Protocol}
	small := ranges(t, "10.0.0.0/30")
	for name, c := range map[string]struct {
		ranges   Ranges
		held     map[string]string
		services []Service
		want     string
	}{
		"another Service has it": {small, map[string]string{"10.0.0.1": "b/web"}, []Service{service("a/web", "10.0.0.1", 2)},
			"Clash: 10.0.0.1 is allocated to b/web"},
		"somebody else has it": {small, map[string]string{"10.0.0.1": ""}, []Service{service("a/web", "10.0.0.1", 2)},
			"Clash: 10.0.0.1 is allocated to an IPAddress that is not the federation's"},
		"an older one says it": {small, nil, []Service{service("a/web", "10.0.0.1", 2), service("b/web", "10.0.0.1", 1)},
			"Clash: 10.0.0.1 is also said by b/web, which is older"},
		"nothing is free": {small, map[string]string{"10.0.0.1": "", "10.0.0.2": ""}, []Service{service("a/web", "auto", 2)},
			"RangeFull: all addresses of 10.0.0.0/30 are allocated"},
		"none of the family": {small, nil, []Service{six}, "RangeMissing: the federation has no range of clusterset IPs of the family IPv6"},
		"no range at all": {nil, nil, []Service{service("a/web", "auto", 2)},
			"RangeMissing: the federation has no range of clusterset IPs (--clusterset-ip-range)"},
		"outside of the range": {small, nil, []Service{service("a/web", "10.0.0.3", 2)},
			"OutOfRange: 10.0.0.3 is in no range of the federation, and stays until the annotation is removed"},
	} {
		in := Input{Ranges: c.ranges, Services: c.services, Held: map[netip.Addr]string{}}
		for a, key := range c.held {
			in.Held[addr(a)] = key
		}
		var got []string
		for _, f := range Decide(in).Faults["a/web"] {
			got = append(got, f.Reason+": "+f.Message)
		}
		if !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The families are those that the Service asks for, in its order; without any that of the first range; with Dual all that have ranges. An
// address that it has stays when another family comes in.
func TestDecide_FamiliesOfAService(t *testing.T) {
	const v4, v6 = corev1.IPv4Protocol, corev1.IPv6Protocol
	both, sixFirst := ranges(t, "10.0.0.0/30", "fd00::/126"), ranges(t, "fd00::/126", "10.0.0.0/30")
	for name, c := range map[string]struct {
		ranges   Ranges
		value    string
		families []corev1.IPFamily
		dual     bool
		want     string
	}{
		"the first range":                  {sixFirst, "auto", nil, false, "fd00::2"},
		"both, in the order of the ranges": {sixFirst, "auto", nil, true, "fd00::2,10.0.0.2"},
		"both, in its own order":           {sixFirst, "auto", []corev1.IPFamily{v4, v6}, false, "10.0.0.2,fd00::2"},
		"both, its own first":              {sixFirst, "auto", []corev1.IPFamily{v4}, true, "10.0.0.2,fd00::2"},
		"both where there is one range":    {both[:1], "auto", nil, true, "10.0.0.2"},
		"a second family comes in":         {both, "10.0.0.1", []corev1.IPFamily{v4}, true, "10.0.0.1,fd00::2"},
		"the second family goes":           {both, "10.0.0.1,fd00::1", []corev1.IPFamily{v4}, false, "10.0.0.1"},
		"the range of a family went":       {both[:1], "10.0.0.1,fd00::1", []corev1.IPFamily{v4}, false, "10.0.0.1,fd00::1"},
		"what is no address":               {both, "10.0.0.1,10.0.0.2", nil, false, "10.0.0.2"},
	} {
		s := service("a/web", c.value, 1)
		s.Families, s.Dual = c.families, c.dual
		next := done(t, Input{Ranges: c.ranges, Services: []Service{s}, Held: map[netip.Addr]string{}})
		if got := next.Services[0].Value; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// While Services come, go and come again, none loses an address that it holds and says, no address is left over when all is done, and who asks
// is without one only if the range is full.
func TestDecide_ClusterSetIPsOverTime(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3))
	in := Input{Ranges: ranges(t, "10.0.0.0/28"), Held: map[netip.Addr]string{}}
	for day := range 2000 {
		key := fmt.Sprint("s/", random.IntN(20))
		without := slices.DeleteFunc(slices.Clone(in.Services), func(s Service) bool { return s.Key == key })
		if len(without) == len(in.Services) {
			without = append(without, service(key, []string{"auto", fmt.Sprint("10.0.0.", 1+random.IntN(14))}[random.IntN(2)], day))
		}
		had := map[string]string{}
		for _, s := range without {
			if s.Key != key && s.Value != "auto" {
				had[s.Key] = s.Value
			}
		}
		in = done(t, done(t, Input{Ranges: in.Ranges, Services: without, Held: in.Held}))
		said := map[netip.Addr]string{}
		for _, s := range in.Services {
			if s.Value == "auto" {
				if len(in.Held) < 14 {
					t.Fatalf("%s has no address, and %d of 14 are held", s.Key, len(in.Held))
				}
				continue
			}
			if said[addr(s.Value)] = s.Key; had[s.Key] != "" && had[s.Key] != s.Value {
				t.Fatalf("%s goes from %s to %s because of %s", s.Key, had[s.Key], s.Value, key)
			}
		}
		if !maps.Equal(in.Held, said) {
			t.Fatalf("held %v, said %v", in.Held, said)
		}
	}
}
