package ruleset

import (
	"cmp"
	"encoding/base32"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Slices come and go, move from one Service to another, and the node changes: the Ports are those of a model that sees only the end, also where an Update has
// several keys, some of them twice.
func TestUpdatesOfSlicesAddUp(t *testing.T) {
	chance := rand.New(rand.NewPCG(31, 1))
	pick := func(of ...string) string { return of[chance.IntN(len(of))] }
	m, held, is := New(node()), map[string]*Port{}, node()
	services, all, pending := map[Key]*corev1.Service{}, map[Key]*discoveryv1.EndpointSlice{}, []Key{}
	for step := range 4000 {
		switch chance.IntN(6) {
		case 0:
			s := es1(func(s *corev1.Service) { s.Spec.ExternalIPs = []string{pick("10.0.0.1", "198.51.100.1")} })
			s.Name, s.Spec.ClusterIPs = pick("s0", "s1", "s2"), []string{pick("10.0.0.1", "10.0.0.2")}
			s.Spec.Ports[0].NodePort = 0
			services[Key{"default", s.Name}] = s
			pending = append(pending, m.SetService(s))
		case 1:
			k := Key{"default", pick("s0", "s1", "s2")}
			delete(services, k)
			pending = append(pending, m.DeleteService(k))
		case 2:
			k := Key{"default", pick("a", "b", "c")}
			delete(all, k)
			pending = append(pending, m.DeleteSlice(k)...)
		case 3:
			if chance.IntN(20) == 0 {
				is.Region, is.Name = pick("ra", "rb"), pick("n1", "n2")
				pending = append(pending, m.SetNode(is)...)
			}
		default:
			e := slice(pick("a", "b", "c"), "10.180.1."+pick("1", "2")+" @n1 "+pick("", "notready"))
			if chance.IntN(3) == 0 {
				e = remote(e.Name, pick("ra", "rb"), "1", "203.0.113."+pick("1", "2"))
			}
			for label := range e.Labels {
				if strings.HasSuffix(label, "service-name") {
					e.Labels[label] = pick("s0", "s1", "s2", "") // "": of no Service
				}
			}
			all[Key{"default", e.Name}] = e
			pending = append(pending, m.SetSlice(e)...)
		}
		if chance.IntN(3) > 0 {
			continue
		}
		apply(t, held, m.Update(append(pending, pending...)...))
		pending = nil
		fresh := New(is)
		for _, s := range services {
			fresh.SetService(s)
		}
		for _, e := range all {
			fresh.SetSlice(e)
		}
		fresh.Update(fresh.SetNode(is)...)
		if want, got := fresh.Ports(), m.Ports(); !equal(got, want) || len(held) != len(want) || len(m.services) > len(fresh.services) {
			t.Fatalf("step %d: %d ports by changes, %d held, want %d; %d Services are known of %d", step, len(got), len(held), len(want), len(m.services),
				len(fresh.services))
		}
	}
}

// An address that several want is that of the first by kind, then age, then name, in whatever order they come, and everybody else is told whose it is.
func TestAnAddressIsTheFirsts(t *testing.T) {
	chance := rand.New(rand.NewPCG(32, 1))
	for range 1000 {
		m := New(node())
		type wants struct {
			kind, born int
			name       string
		}
		var all []wants
		for i := range 2 + chance.IntN(3) {
			all = append(all, wants{chance.IntN(3), chance.IntN(2), fmt.Sprint("s", i)})
		}
		chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var change Change
		for i, w := range all {
			s := es1(annotated())
			s.Name, s.CreationTimestamp, s.Spec.ClusterIPs = w.name, metav1.NewTime(time.Unix(int64(w.born), 0)), []string{fmt.Sprint("10.0.1.", i)}
			s.Spec.Ports[0].NodePort, s.Status.LoadBalancer.Ingress = 0, nil
			switch w.kind {
			case 0:
				s.Spec.ClusterIPs = []string{"241.0.0.7"}
			case 1:
				s.Annotations[AnnotationClusterSetIP] = "241.0.0.7"
			default:
				s.Spec.ExternalIPs = []string{"241.0.0.7"}
			}
			change = m.Update(m.SetService(s))
		}
		last := all[len(all)-1]
		first := slices.MinFunc(all, func(a, b wants) int { return cmp.Or(a.kind-b.kind, a.born-b.born, strings.Compare(a.name, b.name)) })
		var has []string
		for _, p := range m.Ports() {
			for _, f := range p.Frontends {
				if f.Key.Addr.String() == "241.0.0.7" {
					has = append(has, p.ID.Name)
				}
			}
		}
		if !slices.Equal(has, []string{first.name}) {
			t.Fatalf("%v have it of %+v, want %s", has, all, first.name)
		}
		reason := fmt.Sprintf("default/%s:http: 241.0.0.7:9200/tcp is that of default/%s:http, which was first", last.name, first.name)
		if slices.Contains(change.Reasons, reason) != (last != first) {
			t.Fatalf("%+v came last, %+v has it; reasons %q", last, first, change.Reasons)
		}
	}
}

// alter gives a field another value than it has.
func alter(t *testing.T, v reflect.Value) {
	switch old := v.Interface().(type) {
	case string:
		v.SetString(old + "x")
	case Kind, Target, Tier, corev1.Protocol:
		v.SetString(v.String() + "x")
	case bool:
		v.SetBool(!old)
	case uint16, uint32:
		v.SetUint(v.Uint() + 1)
	case netip.Addr:
		v.Set(reflect.ValueOf(old.Next()))
	case netip.AddrPort:
		v.Set(reflect.ValueOf(netip.AddrPortFrom(old.Addr().Next(), old.Port())))
	case netip.Prefix:
		v.Set(reflect.ValueOf(netip.PrefixFrom(old.Addr(), old.Bits()-1)))
	default:
		t.Fatalf("the test cannot change a %T: teach it", old)
	}
}

// leaves calls visit for each value within another that has no parts.
func leaves(path string, v reflect.Value, visit func(string, reflect.Value)) {
	whole := map[reflect.Type]bool{reflect.TypeFor[netip.Addr](): true, reflect.TypeFor[netip.AddrPort](): true, reflect.TypeFor[netip.Prefix](): true}[v.Type()]
	switch {
	case !whole && v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			leaves(path+"."+v.Type().Field(i).Name, v.Field(i), visit)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			leaves(fmt.Sprintf("%s[%d]", path, i), v.Index(i), visit)
		}
	default:
		visit(path, v)
	}
}

// samplePort has something in each field.
func samplePort() *Port {
	to := netip.MustParseAddrPort("10.180.1.1:9200")
	pool := func() Pool {
		return Pool{Tier: TierReady, Backends: []Backend{{Addr: to, Weight: 1, Local: true, Cluster: "east"}}}
	}
	key := FrontendKey{netip.MustParseAddr("10.0.0.1"), false, "TCP", 80}
	return &Port{ID: PortID{Key{"default", "es1"}, "http", "TCP"}, Hash: "H", Cluster: pool(), Own: pool(), Local: pool(), Living: []netip.AddrPort{to},
		Affinity: 1, HealthCheckNodePort: 1,
		Frontends: []Frontend{{Key: key, Kind: ClusterIP, SourceRanges: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, FromPod: Route{ToOwn, true},
			FromNode: Route{ToOwn, true}, FromOutside: Route{ToOwn, true}}}}
}

// Ports that differ in any one field are not equal, else a node would not hear of it; the hash alone follows from the ID. A field that
// somebody adds is tried too.
func TestEqualSeesEachField(t *testing.T) {
	tried := 0
	for n := 0; ; n++ {
		is, i, at := samplePort(), 0, ""
		leaves("Port", reflect.ValueOf(is).Elem(), func(path string, v reflect.Value) {
			if i == n {
				at = path
				alter(t, v)
			}
			i++
		})
		if at == "" {
			break
		}
		if tried++; is.Equal(samplePort()) != (at == "Port.Hash") {
			t.Errorf("%s differs, and the Ports are equal: %t", at, is.Equal(samplePort()))
		}
	}
	for name, shorter := range map[string]func(*Port){
		"Frontends": func(p *Port) { p.Frontends = nil }, "Living": func(p *Port) { p.Living = nil }, "Own": func(p *Port) { p.Own.Backends = nil },
		"SourceRanges": func(p *Port) { p.Frontends[0].SourceRanges = nil },
	} {
		is := samplePort()
		if shorter(is); is.Equal(samplePort()) || samplePort().Equal(is) {
			t.Errorf("without %s a Port is equal", name)
		}
	}
	if tried < 30 || !samplePort().Equal(samplePort()) {
		t.Errorf("%d fields were tried", tried)
	}
}

// Ports are in order of family, then namespace, name, port and protocol, whatever the order in which they came.
func TestPortsAreSorted(t *testing.T) {
	var want []*Port
	for _, six := range []bool{false, true} {
		for _, id := range []PortID{{Key{"a", "z"}, "z", "UDP"}, {Key{"b", "a"}, "z", "TCP"}, {Key{"b", "b"}, "a", "UDP"}, {Key{"b", "b"}, "b", "TCP"}, {Key{"b",
			"b"}, "b", "UDP"}} {
			want = append(want, &Port{ID: id, IPv6: six})
		}
	}
	chance := rand.New(rand.NewPCG(33, 1))
	for range 100 {
		m := New(node())
		for _, i := range chance.Perm(len(want)) {
			k := Key{"x", fmt.Sprint(i)}
			m.entry(k).ports = []*Port{want[i]}
		}
		if got := m.Ports(); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	if got := New(node()).PortsOf(Key{"no", "body"}); got != nil {
		t.Errorf("nobody has %v", got)
	}
}

// Names of chains are 16 characters of base 32, and no two of them are the same for ports that differ in anything, or for their backends.
func TestHashesDiffer(t *testing.T) {
	seen := map[string]string{}
	note := func(hash, of string) {
		if other := seen[hash]; other != "" && other != of {
			t.Errorf("%s and %s are both %s", other, of, hash)
		}
		if _, err := base32.StdEncoding.DecodeString(hash); err != nil || len(hash) != 16 {
			t.Errorf("%s of %s: %v", hash, of, err)
		}
		seen[hash] = of
	}
	for _, namespace := range []string{"a", "b"} {
		for _, name := range []string{"a", "b"} {
			for _, port := range []string{"", "a", "b"} {
				for _, protocol := range []corev1.Protocol{"TCP", "UDP", "SCTP"} {
					id := PortID{Key{namespace, name}, port, protocol}
					note(id.Hash(), fmt.Sprint(id, protocol))
					for _, to := range []string{"10.0.0.1:1", "10.0.0.11:1", "10.0.0.1:11", "[fd00::1]:1"} {
						note(id.BackendHash(netip.MustParseAddrPort(to)), fmt.Sprint(id, protocol, to))
					}
				}
			}
		}
	}
	if want := 2 * 2 * 3 * 3 * 5; len(seen) != want {
		t.Errorf("%d names, want %d", len(seen), want)
	}
}

// Addresses are written as they are in the API, so that a person finds them.
func TestFrontendKeyString(t *testing.T) {
	for want, k := range map[string]FrontendKey{
		"10.0.147.93:9200/tcp":    {netip.MustParseAddr("10.0.147.93"), false, "TCP", 9200},
		"[fd00:147::93]:53/udp":   {netip.MustParseAddr("fd00:147::93"), true, "UDP", 53},
		"node port 32135/sctp":    {netip.Addr{}, true, "SCTP", 32135},
		"198.51.100.7:9200/other": {netip.MustParseAddr("198.51.100.7"), false, "Other", 9200},
	} {
		if got := k.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A pod's packet is known by its address, or by the interface that it comes in by; each family by its own range where there is one.
func TestPodsAreRecognized(t *testing.T) {
	both, bridge, prefix := node().Pods, Pods{Bridge: "cbr0"}, Pods{InterfacePrefix: "veth"}
	for _, c := range []struct {
		pods        Pods
		from, iface string
		want        bool
	}{
		{both, "10.180.9.9", "", true}, {both, "10.184.0.0", "", false}, {both, "fd00:180::1", "", true}, {both, "10.184.0.0", "cbr0", false},
		{both.OfFamily(false), "10.180.9.9", "", true}, {both.OfFamily(false), "fd00:180::1", "", false}, {both.OfFamily(true), "fd00:180::1", "", true},
		{both.OfFamily(true), "10.180.9.9", "", false},
		{bridge, "10.180.9.9", "cbr0", true}, {bridge, "10.180.9.9", "cbr01", false}, {bridge.OfFamily(true), "fd00:180::1", "cbr0", true},
		{prefix, "10.180.9.9", "veth7", true}, {prefix, "10.180.9.9", "eth0", false}, {prefix.OfFamily(false), "10.180.9.9", "veth7", true},
		{Pods{}, "10.180.9.9", "", false}, {Pods{}.OfFamily(true), "fd00:180::1", "", false},
	} {
		if got := c.pods.IsSource(netip.MustParseAddr(c.from), c.iface); got != c.want {
			t.Errorf("%+v from %s by %q: got %t, want %t", c.pods, c.from, c.iface, got, c.want)
		}
		if known := c.pods.Known(); known != (!reflect.DeepEqual(c.pods, Pods{})) {
			t.Errorf("%+v: pods can be recognized: %t", c.pods, known)
		}
	}
	if four := (Pods{CIDRs: both.CIDRs[:1]}); four.OfFamily(true).Known() {
		t.Error("pods of IPv6 are known by a range of IPv4")
	}
}
