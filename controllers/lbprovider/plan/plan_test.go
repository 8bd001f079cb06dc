package plan

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"federation/nodeagent/ruleset"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// service is one of our class, age seconds after the first; with a class of "" it has none.
func service(name string, age int, class string, change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(begin.Add(time.Duration(age) * time.Second)), Annotations: map[string]string{}},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP}}},
	}
	if class != "" {
		s.Spec.LoadBalancerClass = &class
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func recorded(addresses ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		for _, a := range addresses {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a})
		}
	}
}

func wants(text string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Annotations[AddressesAnnotation] = text }
}

func dual(policy corev1.IPFamilyPolicy) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}, &policy
	}
}

func settings(pools ...string) *Settings {
	s := &Settings{Class: Class}
	for _, p := range pools {
		s.Pools = append(s.Pools, netip.MustParsePrefix(p))
	}
	return s
}

func TestServes(t *testing.T) {
	gone := metav1.NewTime(begin)
	for name, c := range map[string]struct {
		s                 *corev1.Service
		serves, byDefault bool
	}{
		"our class":       {service("a", 0, Class), true, true},
		"another class":   {service("a", 0, "metallb.io/metallb"), false, false},
		"no class":        {service("a", 0, ""), false, true},
		"another type":    {service("a", 0, Class, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }), false, false},
		"it is going":     {service("a", 0, Class, func(s *corev1.Service) { s.DeletionTimestamp = &gone }), false, false},
		"an empty class":  {service("a", 0, "", func(s *corev1.Service) { s.Spec.LoadBalancerClass = new(string) }), false, false},
		"a class like it": {service("a", 0, Class+"x"), false, false},
	} {
		if got := (&Settings{Class: Class}).Serves(c.s); got != c.serves {
			t.Errorf("%s: %t", name, got)
		}
		if got := (&Settings{Class: Class, Default: true}).Serves(c.s); got != c.byDefault {
			t.Errorf("%s, as the default: %t", name, got)
		}
	}
}

func TestAllocate(t *testing.T) {
	const v4, v6 = "192.0.2.0/29", "2001:db8::/64" // .1 to .6
	for name, c := range map[string]struct {
		settings *Settings
		services []*corev1.Service
		want     map[string]string
	}{
		"free ones, by age":               {settings(v4), []*corev1.Service{service("young", 2, Class), service("old", 1, Class)}, map[string]string{"old": "[192.0.2.1]", "young": "[192.0.2.2]"}},
		"what is on record stays":         {settings(v4), []*corev1.Service{service("old", 1, Class), service("young", 2, Class, recorded("192.0.2.1"))}, map[string]string{"old": "[192.0.2.2]", "young": "[192.0.2.1]"}},
		"two with one address":            {settings(v4), []*corev1.Service{service("young", 2, Class, recorded("192.0.2.4")), service("old", 1, Class, recorded("192.0.2.4"))}, map[string]string{"old": "[192.0.2.4]", "young": "[192.0.2.1]"}},
		"another class has one":           {settings(v4), []*corev1.Service{service("other", 1, "x/y", recorded("192.0.2.1")), service("a", 2, Class)}, map[string]string{"a": "[192.0.2.2]"}},
		"of a pool that is not ours":      {settings(v4), []*corev1.Service{service("a", 1, Class, recorded("198.51.100.1"))}, map[string]string{"a": "[192.0.2.1]"}},
		"both families":                   {settings(v4, v6), []*corev1.Service{service("a", 1, Class, dual(corev1.IPFamilyPolicyRequireDualStack))}, map[string]string{"a": "[2001:db8::1 192.0.2.1]"}},
		"both, and one is there":          {settings(v4), []*corev1.Service{service("a", 1, Class, dual(corev1.IPFamilyPolicyPreferDualStack))}, map[string]string{"a": "[192.0.2.1]"}},
		"both must be, and one is there":  {settings(v4), []*corev1.Service{service("a", 1, Class, dual(corev1.IPFamilyPolicyRequireDualStack))}, map[string]string{"a": "[192.0.2.1] NoAddressPool"}},
		"a wanted one":                    {settings(v4), []*corev1.Service{service("a", 1, Class, wants("192.0.2.5"))}, map[string]string{"a": "[192.0.2.5]"}},
		"another than on record":          {settings(v4), []*corev1.Service{service("a", 1, Class, recorded("192.0.2.1"), wants("192.0.2.5"))}, map[string]string{"a": "[192.0.2.5]"}},
		"by spec.loadBalancerIP":          {settings(v4), []*corev1.Service{service("a", 1, Class, wants("192.0.2.5"), func(s *corev1.Service) { s.Spec.LoadBalancerIP = "192.0.2.6" })}, map[string]string{"a": "[192.0.2.6]"}},
		"by MetalLB's annotation":         {settings(v4), []*corev1.Service{service("a", 1, Class, func(s *corev1.Service) { s.Annotations["metallb.io/loadBalancerIPs"] = "192.0.2.3" })}, map[string]string{"a": "[192.0.2.3]"}},
		"wanted, of both families":        {settings(v4, v6), []*corev1.Service{service("a", 1, Class, dual(corev1.IPFamilyPolicyRequireDualStack), wants("192.0.2.5, 2001:db8::7"))}, map[string]string{"a": "[2001:db8::7 192.0.2.5]"}},
		"wanted, and another one's":       {settings(v4), []*corev1.Service{service("a", 1, Class, wants("192.0.2.5")), service("b", 2, Class, recorded("192.0.2.5"))}, map[string]string{"a": "[] AddressInUse", "b": "[192.0.2.5]"}},
		"wanted by two":                   {settings(v4), []*corev1.Service{service("b", 2, Class, wants("192.0.2.5")), service("a", 1, Class, wants("192.0.2.5"))}, map[string]string{"a": "[192.0.2.5]", "b": "[] AddressInUse"}},
		"wanted, of no pool":              {settings(v4), []*corev1.Service{service("a", 1, Class, wants("192.0.2.9"))}, map[string]string{"a": "[] AddressNotInPool"}},
		"wanted, of broadcast":            {settings(v4), []*corev1.Service{service("a", 1, Class, wants("192.0.2.7"))}, map[string]string{"a": "[] AddressNotInPool"}},
		"wanted, no address":              {settings(v4), []*corev1.Service{service("a", 1, Class, wants("all"))}, map[string]string{"a": "[] InvalidAddress"}},
		"wanted, two of a family":         {settings(v4), []*corev1.Service{service("a", 1, Class, wants("192.0.2.1,192.0.2.2"))}, map[string]string{"a": "[] InvalidAddress"}},
		"wanted, of a family it has not":  {settings(v4, v6), []*corev1.Service{service("a", 1, Class, wants("2001:db8::7"))}, map[string]string{"a": "[] InvalidAddress"}},
		"none is free":                    {settings("192.0.2.4/32"), []*corev1.Service{service("a", 1, Class), service("b", 2, Class)}, map[string]string{"a": "[192.0.2.4]", "b": "[] AddressPoolExhausted"}},
		"from the second pool":            {settings("192.0.2.4/32", "192.0.2.9/32"), []*corev1.Service{service("a", 1, Class), service("b", 2, Class)}, map[string]string{"a": "[192.0.2.4]", "b": "[192.0.2.9]"}},
		"a port without a node port":      {settings(v4), []*corev1.Service{service("a", 1, Class, func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 0 })}, map[string]string{"a": "[192.0.2.1] NoNodePort"}},
		"without a class, of another one": {&Settings{Class: Class, Default: true, Pools: settings(v4).Pools}, []*corev1.Service{service("a", 1, "", recorded("198.51.100.1"))}, map[string]string{"a": "[] AddressOfAnotherProvider"}},
	} {
		got := map[string]string{}
		for k, v := range c.settings.Allocate(c.services) {
			if got[k.Name] = fmt.Sprint(v.Addresses); v.Reason != "" {
				got[k.Name] += " " + v.Reason
			}
			if (v.Message == "") != (v.Reason == "") {
				t.Errorf("%s: reason %q has the message %q", name, v.Reason, v.Message)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestLawsOfAddresses, for random Services over many rounds, each of which begins with the record of the one before.
func TestLawsOfAddresses(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := settings("192.0.2.0/28", "2001:db8::/126")
		s.Default = seed%2 == 0
		var services []*corev1.Service
		for round := range 8 {
			services = slices.DeleteFunc(services, func(*corev1.Service) bool { return r.IntN(5) == 0 })
			for i := range r.IntN(8) {
				services = append(services, random(r, fmt.Sprintf("s-%d-%d", round, i), round))
			}
			r.Shuffle(len(services), func(i, j int) { services[i], services[j] = services[j], services[i] })
			before := map[string][]netip.Addr{}
			for _, x := range services {
				before[x.Name] = Recorded(x)
			}
			verdicts := s.Allocate(services)
			owner := map[netip.Addr]string{}
			for _, x := range services {
				v, ours := verdicts[types.NamespacedName{Namespace: x.Namespace, Name: x.Name}]
				if ours != s.Serves(x) {
					t.Fatalf("seed %d: %s: ours %t", seed, x.Name, ours)
				}
				if !ours || v.OfAnother {
					if len(v.Addresses) > 0 {
						t.Fatalf("seed %d: %s is another provider's and gets %v", seed, x.Name, v.Addresses)
					}
					v.Addresses = before[x.Name]
				} else {
					x.Status.LoadBalancer.Ingress = nil
					for _, a := range v.Addresses {
						recorded(a.String())(x)
						if !s.Contains(a) {
							t.Fatalf("seed %d: %s gets %s, which is of no pool", seed, x.Name, a)
						}
					}
					if len(v.Addresses) < len(x.Spec.IPFamilies) && v.Reason == "" {
						t.Fatalf("seed %d: %s gets %v, and no reason", seed, x.Name, v.Addresses)
					}
				}
				for _, a := range v.Addresses {
					if other, has := owner[a]; has && s.Contains(a) && (ours || verdicts[types.NamespacedName{Namespace: "shop", Name: other}].Addresses != nil) {
						t.Fatalf("seed %d: %s and %s have %s", seed, x.Name, other, a)
					}
					owner[a] = x.Name
				}
			}
			again := s.Allocate(services)
			for k, v := range verdicts {
				if fmt.Sprint(again[k].Addresses) != fmt.Sprint(v.Addresses) {
					t.Fatalf("seed %d: %s has %v, and %v once that is on record", seed, k, v.Addresses, again[k].Addresses)
				}
			}
		}
	}
}

func random(r *rand.Rand, name string, age int) *corev1.Service {
	x := service(name, age, []string{Class, Class, Class, "", "x/y"}[r.IntN(5)])
	if r.IntN(2) == 0 {
		dual([]corev1.IPFamilyPolicy{corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicyPreferDualStack}[r.IntN(2)])(x)
		x.Spec.IPFamilies = x.Spec.IPFamilies[r.IntN(2):]
	}
	if r.IntN(3) == 0 {
		wants(fmt.Sprintf("192.0.2.%d", r.IntN(18)))(x)
	}
	if x.Spec.LoadBalancerClass == nil && r.IntN(3) == 0 {
		recorded("198.51.100.7")(x)
	}
	return x
}

func node(name string, change func(*corev1.Node), addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	if change != nil {
		change(n)
	}
	return n
}

func unready(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

func TestMembersOf(t *testing.T) {
	nodes := []*corev1.Node{
		node("b", nil, "10.0.0.2", "2001:db8:1::2"), node("a", nil, "10.0.0.1"), node("again", nil, "10.0.0.1"),
		node("excluded", func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: "false"} }, "10.0.0.3"),
		node("leaving", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: taintLeaving}} }, "10.0.0.4"),
		node("itself", nil, "127.0.0.1"), node("metadata", nil, "169.254.169.254"), node("pool", nil, "192.0.2.1"), node("all", nil, "224.0.0.1"), node("none", nil, "here"),
		node("mapped", nil, "::ffff:10.0.0.9"),
	}
	s := settings("192.0.2.0/24")
	if got := fmt.Sprint(s.MembersOf(nodes, false)); got != "[{a 10.0.0.1 true} {b 10.0.0.2 true}]" {
		t.Errorf("IPv4: %s", got)
	}
	if got := fmt.Sprint(s.MembersOf(nodes, true)); got != "[{b 2001:db8:1::2 true}]" {
		t.Errorf("IPv6: %s", got)
	}
}

func TestMembers(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	all := []Member{{"a", a, true}, {"b", b, true}, {"c", c, false}}
	yes, no := true, false
	at := func(node string, ready, serving *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: ready, Serving: serving}}
	}
	for name, x := range map[string]struct {
		local     bool
		endpoints []discoveryv1.Endpoint
		failing   []netip.Addr
		want      string
	}{
		"ready ones":                           {want: "ab"},
		"one fails":                            {failing: []netip.Addr{a}, want: "b"},
		"all ready ones fail":                  {failing: []netip.Addr{a, b}, want: "c"},
		"all fail":                             {failing: []netip.Addr{a, b, c}, want: "abc"},
		"Local":                                {local: true, endpoints: []discoveryv1.Endpoint{at("b", &yes, &yes), at("a", &no, &no), {}}, want: "b"},
		"Local, and nothing is said":           {local: true, endpoints: []discoveryv1.Endpoint{at("a", nil, nil)}, want: "a"},
		"Local, and the last one ends":         {local: true, endpoints: []discoveryv1.Endpoint{at("a", &no, &yes)}, want: "a"},
		"Local, one ends beside a ready one":   {local: true, endpoints: []discoveryv1.Endpoint{at("a", &no, &yes), at("b", &yes, &yes)}, want: "b"},
		"Local, on a node that is not ready":   {local: true, endpoints: []discoveryv1.Endpoint{at("c", &yes, &yes)}, want: "c"},
		"Local, on a node that fails":          {local: true, endpoints: []discoveryv1.Endpoint{at("a", &yes, &yes)}, failing: []netip.Addr{a}, want: "a"},
		"Local, on a node that is not there":   {local: true, endpoints: []discoveryv1.Endpoint{at("z", &yes, &yes)}, want: ""},
		"Local without an endpoint, no member": {local: true, want: ""},
	} {
		s := service("s", 0, Class)
		if x.local {
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}
		failing, got := map[netip.Addr]bool{}, ""
		for _, f := range x.failing {
			failing[f] = true
		}
		for _, m := range Members(s, all, []*discoveryv1.EndpointSlice{{Endpoints: x.endpoints}}, failing) {
			got += m.Node
		}
		if got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
	if unreadyOnes := settings().MembersOf([]*corev1.Node{node("a", unready, "10.0.0.1")}, false); len(unreadyOnes) != 1 || unreadyOnes[0].Ready {
		t.Errorf("a node that is not ready: %v", unreadyOnes)
	}
}

func TestPorts(t *testing.T) {
	vip, member := netip.MustParseAddr("192.0.2.1"), []Member{{"a", netip.MustParseAddr("10.0.0.1"), true}}
	s := service("s", 0, Class, func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "dns", Port: 53, NodePort: 30053, Protocol: corev1.ProtocolUDP}, corev1.ServicePort{Name: "none", Port: 1})
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	})
	ports := Ports(s, vip, member)
	if len(ports) != 2 || ports[0].Affinity != 10800 || len(ports[0].Living) != 0 || len(ports[1].Living) != 1 || ports[1].Frontends[0].Key.Port != 53 ||
		ports[1].Cluster.Backends[0].Addr != netip.MustParseAddrPort("10.0.0.1:30053") || !ports[0].Frontends[0].Alone || !ports[0].Frontends[0].FromOutside.Masquerade {
		t.Errorf("%+v", ports)
	}
	for name, c := range map[string]struct {
		ranges  []string
		members []Member
		to      ruleset.Target
		kept    int
	}{
		"everybody":            {nil, member, ruleset.ToCluster, 0},
		"some":                 {[]string{"10.0.0.0/8", " 172.16.0.0/12"}, member, ruleset.ToCluster, 2},
		"everybody by a range": {[]string{"10.0.0.0/8", "0.0.0.0/0"}, member, ruleset.ToCluster, 0},
		"of the other family":  {[]string{"2001:db8::/32"}, member, ruleset.Drop, 0},
		"no member":            {nil, nil, ruleset.Reject, 0},
	} {
		s.Spec.LoadBalancerSourceRanges = c.ranges
		if f := Ports(s, vip, c.members)[0].Frontends[0]; f.FromOutside.To != c.to || f.FromNode.To != c.to || f.FromPod.To != c.to || len(f.SourceRanges) != c.kept {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestMembersOfNodesInAnyOrder: of two with one address, as of a machine that came back under another name, it is the one that is ready.
func TestMembersOfNodesInAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		var nodes []*corev1.Node
		ready := map[string]bool{}
		for i := range 20 {
			addr, is := fmt.Sprintf("10.0.0.%d", 1+r.IntN(5)), r.IntN(2) == 0
			n := node(fmt.Sprint("n", i), nil, addr)
			if !is {
				unready(n)
			}
			nodes, ready[addr] = append(nodes, n), ready[addr] || is
		}
		got := settings().MembersOf(nodes, false)
		for _, m := range got {
			if m.Ready != ready[m.Addr.String()] {
				t.Fatalf("seed %d: %v, and one with that address is ready: %t", seed, m, !m.Ready)
			}
		}
		r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		if again := settings().MembersOf(nodes, false); len(got) != len(ready) || !slices.Equal(again, got) {
			t.Fatalf("seed %d: %v, and in another order %v", seed, got, again)
		}
	}
}
