package plan

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"federation/nodeagent/ruleset"
)

// hosts counts a network up: all addresses but its first and, of IPv4, its last, where it has more than two.
func hosts(p netip.Prefix) (all []netip.Addr) {
	for a := p.Masked().Addr(); p.Contains(a); a = a.Next() {
		all = append(all, a)
	}
	switch {
	case len(all) <= 2:
		return all
	case p.Addr().Is4():
		return all[1 : len(all)-1]
	}
	return all[1:]
}

// TestContainsAgainstAllAddresses asks of each address in and around small networks, also at the end of all addresses.
func TestContainsAgainstAllAddresses(t *testing.T) {
	for _, text := range []string{"192.0.2.77", "0.0.0.0", "255.255.255.255", "2001:db8::5f", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::"} {
		addr := netip.MustParseAddr(text)
		for host := range 7 {
			pool, around := netip.PrefixFrom(addr, addr.BitLen()-host), netip.PrefixFrom(addr, addr.BitLen()-host-2)
			s, own := &Settings{Pools: []netip.Prefix{pool}}, hosts(pool)
			for a := around.Masked().Addr(); around.Contains(a); a = a.Next() {
				if got := s.Contains(a); got != slices.Contains(own, a) {
					t.Errorf("pool %s, address %s: %t", pool, a, got)
				}
			}
		}
	}
}

// randomWorld has Services of each kind, few addresses, and pools of both families or of one.
func randomWorld(r *rand.Rand) (*Settings, []*corev1.Service) {
	s := settings([][]string{{"192.0.2.0/29", "2001:db8::/126"}, {"192.0.2.0/30", "192.0.2.8/31"}, {"2001:db8::/127"}}[r.IntN(3)]...)
	s.Default = r.IntN(2) == 0
	var services []*corev1.Service
	for i := range 1 + r.IntN(10) {
		x := random(r, fmt.Sprint("s-", i), r.IntN(5))
		switch r.IntN(6) {
		case 0:
			recorded(fmt.Sprintf("192.0.2.%d", r.IntN(10)))(x)
		case 1:
			x.Spec.Ports[0].NodePort = 0
		case 2:
			wants([]string{"192.0.2.1,192.0.2.2", "192.0.2.1, 2001:db8::1", "fe80::1%eth0", "x", ","}[r.IntN(5)])(x)
		}
		services = append(services, x)
	}
	return s, services
}

// TestReasonsOfAddressesAreTrue: the reason that a Service gets is true of the world as it is in the end, and one that lacks an address gets a reason.
func TestReasonsOfAddressesAreTrue(t *testing.T) {
	given := map[string]int{}
	for seed := range uint64(3000) {
		s, services := randomWorld(rand.New(rand.NewPCG(seed, 2)))
		verdicts, owner := s.Allocate(services), map[netip.Addr]string{}
		for _, x := range services {
			v, ours := verdicts[types.NamespacedName{Namespace: x.Namespace, Name: x.Name}]
			if !ours || v.OfAnother {
				v.Addresses = Recorded(x)
			}
			for _, a := range v.Addresses {
				owner[a] = x.Name
			}
		}
		free := func(of corev1.IPFamily) (pools int, all []netip.Addr) {
			for _, p := range s.Pools {
				if familyOf(p.Addr()) == of {
					pools++
					all = append(all, slices.DeleteFunc(hosts(p), func(a netip.Addr) bool { return owner[a] != "" })...)
				}
			}
			return pools, all
		}
		for _, x := range services {
			v, ours := verdicts[types.NamespacedName{Namespace: x.Namespace, Name: x.Name}]
			if !ours {
				continue
			}
			asked, invalid := wanted(x)
			lacks := func(why func(pools int, free []netip.Addr) bool) bool {
				return slices.ContainsFunc(x.Spec.IPFamilies, func(of corev1.IPFamily) bool {
					return !slices.ContainsFunc(v.Addresses, func(a netip.Addr) bool { return familyOf(a) == of }) && why(free(of))
				})
			}
			is := map[string]bool{
				ReasonOfAnother:  s.isOfAnother(x),
				ReasonInvalid:    invalid != nil,
				ReasonNotInPool:  slices.ContainsFunc(asked, func(a netip.Addr) bool { return !s.Contains(a) }),
				ReasonTaken:      slices.ContainsFunc(asked, func(a netip.Addr) bool { return owner[a] != "" && owner[a] != x.Name }),
				ReasonExhausted:  lacks(func(pools int, free []netip.Addr) bool { return pools > 0 && len(free) == 0 }),
				ReasonNoPool:     lacks(func(pools int, _ []netip.Addr) bool { return pools == 0 }),
				ReasonNoNodePort: x.Spec.Ports[0].NodePort == 0,
			}
			optional := len(v.Addresses) > 0 && x.Spec.IPFamilyPolicy != nil && *x.Spec.IPFamilyPolicy == corev1.IPFamilyPolicyPreferDualStack
			switch {
			case v.Reason != "" && !is[v.Reason]:
				t.Fatalf("seed %d: %s gets %v, and %s, which is not so: %s", seed, x.Name, v.Addresses, v.Reason, v.Message)
			case v.Reason == "" && len(v.Addresses) < len(x.Spec.IPFamilies) && !optional:
				t.Fatalf("seed %d: %s gets %v, and no reason", seed, x.Name, v.Addresses)
			}
			given[v.Reason]++
		}
	}
	if len(given) != 8 {
		t.Errorf("not every reason was given: %v", given)
	}
}

// TestNewcomersTakeNothing: what is on record of our Services stays, whoever comes.
func TestNewcomersTakeNothing(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 3))
		s, services := randomWorld(r)
		settled := s.Allocate(services)
		for _, x := range services {
			if v, ours := settled[types.NamespacedName{Namespace: x.Namespace, Name: x.Name}]; ours && !v.OfAnother {
				x.Status.LoadBalancer.Ingress = nil
				for _, a := range v.Addresses {
					recorded(a.String())(x)
				}
			}
		}
		for i := range 1 + r.IntN(8) {
			services = append(services, random(r, fmt.Sprint("new-", i), r.IntN(9)))
		}
		r.Shuffle(len(services), func(i, j int) { services[i], services[j] = services[j], services[i] })
		for name, v := range s.Allocate(services) {
			if before, old := settled[name]; old && fmt.Sprint(v.Addresses) != fmt.Sprint(before.Addresses) {
				t.Fatalf("seed %d: %s had %v, and has %v", seed, name, before.Addresses, v.Addresses)
			}
		}
	}
}

// TestMembersAgainstRanks compares with a rank for each node: those of the highest are members.
func TestMembersAgainstRanks(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 4))
		s, slice, failing := service("s", 0, Class), &discoveryv1.EndpointSlice{}, map[netip.Addr]bool{}
		if r.IntN(2) == 0 {
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}
		var nodes []Member
		has := map[string]int{}
		for i := range r.IntN(6) {
			m := Member{fmt.Sprint("n", i), netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), r.IntN(3) > 0}
			nodes, failing[m.Addr] = append(nodes, m), r.IntN(3) == 0
			for range r.IntN(3) {
				ready, serving := []*bool{nil, new(true), new(false), new(false)}[r.IntN(4)], []*bool{nil, new(true), new(false)}[r.IntN(3)]
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &m.Node, Conditions: discoveryv1.EndpointConditions{Ready: ready, Serving: serving}})
				switch {
				case ready == nil || *ready:
					has[m.Node] = 2
				case serving != nil && *serving:
					has[m.Node] = max(has[m.Node], 1)
				}
			}
		}
		rank := func(m Member) (n int) {
			if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
				n = 10*has[m.Node] - 10
			}
			switch {
			case n < 0: // no connection gets there
			case !failing[m.Addr] && m.Ready:
				n += 2
			case !failing[m.Addr]:
				n++
			}
			return n
		}
		best := 0
		for _, m := range nodes {
			best = max(best, rank(m))
		}
		want := slices.DeleteFunc(slices.Clone(nodes), func(m Member) bool { return rank(m) != best })
		if got := Members(s, nodes, []*discoveryv1.EndpointSlice{slice}, failing); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: %v of %v, want %v; failing %v, endpoints %v", seed, got, nodes, want, failing, has)
		}
	}
}

// TestANodeIsReachedAtItsInnerAddress, and not at all once it is being deleted.
func TestANodeIsReachedAtItsInnerAddress(t *testing.T) {
	n := node("a", func(n *corev1.Node) {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "10.0.0.9"}, {Type: corev1.NodeExternalIP, Address: "198.51.100.1"}}
	})
	if got := fmt.Sprint(settings().MembersOf([]*corev1.Node{n}, false)); got != "[{a 198.51.100.1 true}]" {
		t.Errorf("without an inner address: %s", got)
	}
	n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.1"})
	if got := fmt.Sprint(settings().MembersOf([]*corev1.Node{n}, false)); got != "[{a 10.0.0.1 true}]" {
		t.Errorf("with one: %s", got)
	}
	n.DeletionTimestamp = new(metav1.NewTime(begin))
	if got := settings().MembersOf([]*corev1.Node{n}, false); len(got) != 0 {
		t.Errorf("on its way out: %v", got)
	}
}

// TestWhoMayConnect asks of each address whether a source range of its family has it.
func TestWhoMayConnect(t *testing.T) {
	ranges := []string{"10.0.0.0/30", " 10.0.0.2/31", "10.0.0.1/32", "10.0.0.6/29", "0.0.0.0/0", "2001:db8::/126", "2001:db8::3/128", "::/0", "everybody", ""}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := service("s", 0, Class)
		for range r.IntN(4) {
			s.Spec.LoadBalancerSourceRanges = append(s.Spec.LoadBalancerSourceRanges, ranges[r.IntN(len(ranges))])
		}
		for vip, first := range map[string]string{"192.0.2.1": "10.0.0.0", "2001:db8:1::1": "2001:db8::"} {
			f := Ports(s, netip.MustParseAddr(vip), []Member{{"a", netip.MustParseAddr(first), true}})[0].Frontends[0]
			from := netip.MustParseAddr(first)
			for range 10 {
				want := len(s.Spec.LoadBalancerSourceRanges) == 0
				for _, text := range s.Spec.LoadBalancerSourceRanges {
					p, err := netip.ParsePrefix(strings.TrimSpace(text))
					want = want || err == nil && p.Contains(from)
				}
				may := f.FromOutside.To == ruleset.ToCluster && (len(f.SourceRanges) == 0 || slices.ContainsFunc(f.SourceRanges, func(p netip.Prefix) bool { return p.Contains(from) }))
				if may != want {
					t.Fatalf("seed %d: %q, %s may connect to %s: %t; %+v", seed, s.Spec.LoadBalancerSourceRanges, from, vip, may, f)
				}
				from = from.Next()
			}
		}
	}
}

func TestAffinity(t *testing.T) {
	s := service("s", 0, Class)
	s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(60))}}
	for kind, want := range map[corev1.ServiceAffinity]uint32{corev1.ServiceAffinityClientIP: 60, corev1.ServiceAffinityNone: 0, "": 0} {
		if s.Spec.SessionAffinity = kind; Ports(s, netip.MustParseAddr("192.0.2.1"), nil)[0].Affinity != want {
			t.Errorf("%q with a timeout: want %d", kind, want)
		}
	}
}
