package plan

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
	crossclusterplan "federation/controllers/crosscluster/plan"
)

// slice returns an EndpointSlice of web with addresses: "10.1.0.1", or "!10.1.0.1" for one that is not ready.
func slice(name string, port int32, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: &port}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{strings.TrimPrefix(a, "!")}, NodeName: new("node"), Conditions: discoveryv1.EndpointConditions{Ready: new(a[0] != '!')}})
	}
	return s
}

// source is a cluster of the flat network "net" that exports web, with these endpoints.
func source(cluster string, addresses ...string) Source {
	e := exported(cluster, 0, "http:80")
	e.Slices = []*discoveryv1.EndpointSlice{slice("web-"+cluster, 8080, addresses...)}
	return Source{Cluster: cluster, Network: "net", Known: true, Export: &e}
}

// input is what member "a" knows.
func input(sources ...Source) Input {
	return Input{Federation: "fed", Namespace: "shop", Name: "web", Member: "a", Network: "net", Imports: true, Sources: sources}
}

// settleIn carries out decisions as a member does, until nothing is left to do. It returns how many writes that took.
func settleIn(t testing.TB, in *Input) (writes int) {
	t.Helper()
	for range 6 {
		d, before := Decide(*in), writes
		switch {
		case d.Import == nil && in.Have.Import != nil:
			in.Have.Import = nil
			writes++
		case d.Import != nil && !reflect.DeepEqual(d.Import, in.Have.Import):
			if d.Import.UID == "" {
				d.Import.UID = "import"
			}
			in.Have.Import = d.Import
			writes++
		}
		switch {
		case d.Derived == nil && in.Have.Derived != nil && (d.Import == nil || d.Import.Spec.Type == mcsv1beta1.Headless):
			in.Have.Derived = nil
			writes++
		case d.Derived != nil && !reflect.DeepEqual(d.Derived, in.Have.Derived):
			if d.Derived.Spec.ClusterIP == "" {
				d.Derived.Spec.ClusterIP, d.Derived.Spec.ClusterIPs = "10.96.0.7", []string{"10.96.0.7"}
			}
			in.Have.Derived = d.Derived
			writes++
		}
		for _, op := range crossclusterplan.Compare(d.Slices, in.Have.Slices, d.Keep) {
			writes++
			in.Have.Slices = slices.DeleteFunc(in.Have.Slices, func(s *discoveryv1.EndpointSlice) bool { return s.Name == op.Slice.Name })
			if op.Verb != crossclusterplan.Delete {
				op.Slice.UID = types.UID(op.Slice.Name)
				in.Have.Slices = append(in.Have.Slices, op.Slice)
			}
		}
		if writes == before {
			return writes
		}
	}
	t.Fatal("it does not settle")
	return 0
}

// endpoints returns what the member has: "CLUSTER ADDRESS:PORT", with a "!" before those that are not ready.
func endpoints(in Input) string {
	var all []string
	for _, s := range in.Have.Slices {
		for _, e := range s.Endpoints {
			text := fmt.Sprintf("%s %s", s.Labels[mcsv1beta1.LabelSourceCluster], e.Addresses[0])
			if len(s.Ports) > 0 {
				text += fmt.Sprint(":", *s.Ports[0].Port)
			}
			if !*e.Conditions.Ready {
				text = "!" + text
			}
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func expect(t *testing.T, in *Input, what, want string) {
	t.Helper()
	settleIn(t, in)
	if got := endpoints(*in); got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func TestAnImportIsMadeInOrder(t *testing.T) {
	in := input(source("a"), source("b", "10.2.0.1"))
	d := Decide(in)
	if d.Import == nil || d.Derived != nil || len(d.Slices) > 0 {
		t.Fatalf("first %+v, want the import alone: it owns the rest", d)
	}
	d.Import.UID, in.Have.Import = "import", d.Import
	if d = Decide(in); d.Derived == nil || len(d.Slices) > 0 {
		t.Fatalf("then %+v, want the derived Service: somebody else's of that name would get the endpoints", d)
	}
	if writes := settleIn(t, &in); writes != 3 {
		t.Errorf("%d writes more, want the derived Service, a slice and the addresses", writes)
	}
	is := in.Have.Import
	if !slices.Equal(is.Spec.IPs, []string{"10.96.0.7"}) || len(is.Status.Clusters) != 2 || is.Status.EndpointSliceObjects != mcsv1beta1.EndpointSliceObjectsPresent || is.Status.Conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("import %+v", is)
	}
	for _, o := range []metav1.Object{in.Have.Derived, in.Have.Slices[0]} {
		if refs := o.GetOwnerReferences(); len(refs) != 1 || refs[0].UID != "import" || o.GetLabels()[v1beta1.ManagedByLabel] != "fed" || o.GetLabels()[mcsv1beta1.LabelServiceName] != "web" {
			t.Errorf("%s: owners %v, labels %v", o.GetName(), refs, o.GetLabels())
		}
	}
	if s := in.Have.Slices[0]; s.Labels[discoveryv1.LabelServiceName] != in.Have.Derived.Name || s.Labels[mcsv1beta1.LabelSourceCluster] != "b" || s.Labels[discoveryv1.LabelManagedBy] != Manager {
		t.Errorf("labels of the slice: %v", s.Labels)
	}
	if in.Have.Derived.Spec.Selector != nil || in.Have.Derived.Spec.Ports[0].Port != 80 {
		t.Errorf("derived Service %+v", in.Have.Derived.Spec)
	}
	if writes := settleIn(t, &in); writes != 0 {
		t.Errorf("%d writes where nothing has changed", writes)
	}
	in.Imports = false
	expect(t, &in, "the namespace is gone", "")
	if in.Have.Import != nil || in.Have.Derived != nil {
		t.Errorf("left: %+v", in.Have)
	}
}

func TestWhoseEndpointsAreReady(t *testing.T) {
	in := input(source("a", "10.1.0.1"), source("b", "10.2.0.1", "!10.2.0.2"))
	expect(t, &in, "both serve", "!b 10.2.0.2:8080, a 10.1.0.1:8080, b 10.2.0.1:8080")
	in.Sources[1].Rank = Lost
	expect(t, &in, "b is lost", "!b 10.2.0.1:8080, !b 10.2.0.2:8080, a 10.1.0.1:8080")
	in.Sources[0] = source("a", "!10.1.0.1")
	expect(t, &in, "b is lost, and nothing else serves", "!a 10.1.0.1:8080, !b 10.2.0.2:8080, b 10.2.0.1:8080")
	in.Sources[0], in.Sources[1].Rank = source("a", "10.1.0.1"), Drained
	expect(t, &in, "b is drained", "!b 10.2.0.1:8080, !b 10.2.0.2:8080, a 10.1.0.1:8080")
	in.Sources[0].Rank = Lost
	expect(t, &in, "b is drained, a lost", "!a 10.1.0.1:8080, !b 10.2.0.2:8080, b 10.2.0.1:8080")
	in.Sources[0].Rank, in.Sources[1].Rank = Serving, Serving
	expect(t, &in, "both are back", "!b 10.2.0.2:8080, a 10.1.0.1:8080, b 10.2.0.1:8080")
	in.Sources[1].Export = nil
	expect(t, &in, "b unexports", "a 10.1.0.1:8080")
	in.Sources = in.Sources[1:]
	expect(t, &in, "a leaves the federation", "")
	if in.Have.Import != nil {
		t.Errorf("nobody exports, and it is imported: %+v", in.Have.Import)
	}
}

// A process that has not seen a cluster leaves alone what members have of it, and what they import.
func TestWhatIsNotKnownStays(t *testing.T) {
	in := input(source("a", "10.1.0.1"), source("b", "10.2.0.1"))
	in.Sources[1].Export.Service.Spec.Ports = append(in.Sources[1].Export.Service.Spec.Ports, port("dns:53/UDP"))
	settleIn(t, &in)
	before := in.Have.Import.DeepCopy()
	in.Sources[1] = Source{Cluster: "b", Network: "net"}
	if writes := settleIn(t, &in); writes != 0 || !reflect.DeepEqual(before, in.Have.Import) {
		t.Errorf("%d writes where nothing is known of b; import %+v", writes, in.Have.Import)
	}
	if d := Decide(in); conflictOf(d.Conditions) != "none" || len(d.Conditions) != 2 {
		t.Errorf("conditions %+v, want none of conflicts", d.Conditions)
	}
	in.Sources[1].Rank = Lost
	expect(t, &in, "it is lost", "!b 10.2.0.1:8080, a 10.1.0.1:8080")
	in.Sources[0] = source("a")
	expect(t, &in, "it is lost, and nothing else serves", "b 10.2.0.1:8080")
	in.Sources[0], in.Sources[1].Rank = source("a", "10.1.0.1"), Serving
	in.Sources[1] = source("b", "10.2.0.1")
	expect(t, &in, "it is seen", "a 10.1.0.1:8080, b 10.2.0.1:8080")
	if got := len(in.Have.Import.Spec.Ports); got != 1 {
		t.Errorf("%d ports once all is known, want that of both", got)
	}
}

func TestOnlyPortsOfTheImportAreServed(t *testing.T) {
	in := input(source("a", "10.1.0.1"), source("b", "10.2.0.1"))
	in.Sources[1].Export.Export.CreationTimestamp = metav1.NewTime(epoch.Add(1))
	in.Sources[1].Export.Export.CreationTimestamp.Time = epoch.Add(1e9)
	in.Sources[1].Export.Service.Spec.Ports[0].Port = 81
	expect(t, &in, "one name, another number", "a 10.1.0.1:8080")
	in.Sources[1].Export.Service.Spec.Ports[0] = port("web:80")
	in.Sources[1].Export.Slices[0].Ports[0].Name = new("web")
	expect(t, &in, "one number, another name", "a 10.1.0.1:8080")
	in.Sources[1].Export.Service.Spec.Ports[0] = port("web:81")
	expect(t, &in, "another port", "a 10.1.0.1:8080, b 10.2.0.1:8080")
	for _, s := range in.Have.Slices {
		if want := map[string]string{"a": "http", "b": "web"}[s.Labels[mcsv1beta1.LabelSourceCluster]]; len(s.Ports) != 1 || *s.Ports[0].Name != want {
			t.Errorf("%s has the ports %v", s.Name, s.Ports)
		}
	}
	in.Sources[1].Export.Slices[0].Ports = nil // which means all ports
	expect(t, &in, "a slice without ports", "a 10.1.0.1:8080")
}

// TestPodsAreOfTheirClustersNetworks: addresses that cannot be of a cluster's pods are not imported from it.
func TestPodsAreOfTheirClustersNetworks(t *testing.T) {
	in := input(source("a", "10.1.0.1"), source("b", "10.2.0.1", "10.9.0.1"))
	in.Sources[0].PodCIDRs, in.Sources[1].PodCIDRs = []string{"10.0.0.0/32"}, []string{"10.2.0.0/16", "fd00::/8"}
	expect(t, &in, "a pinned cluster, and the member itself, which knows its own", "a 10.1.0.1:8080, b 10.2.0.1:8080")
}

func TestOtherNetworksAreReachedByLoadBalancers(t *testing.T) {
	in := input(source("a", "10.1.0.1"), source("b", "10.2.0.1"))
	in.Sources[1].Network = "other"
	expect(t, &in, "b has no load balancer", "a 10.1.0.1:8080")
	status := &in.Sources[1].Export.Service.Status.LoadBalancer
	status.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}, {IP: "127.0.0.1"}, {IP: "169.254.169.254"}, {IP: "x"}, {Hostname: "lb.example.com"}, {IP: "2001:db8::1"}}
	expect(t, &in, "b has one", "a 10.1.0.1:8080, b 192.0.2.1:80, b 2001:db8::1:80")
	in.Sources[1].LoadBalancerCIDRs = []string{"2001:db8::/32"}
	expect(t, &in, "it may have some addresses only", "a 10.1.0.1:8080, b 2001:db8::1:80")
	in.Sources[1].Export.Slices[0] = slice("web-b", 8080, "!10.2.0.1")
	expect(t, &in, "nothing is ready behind it", "!b 2001:db8::1:80, a 10.1.0.1:8080")
	in.Network, in.Sources[0].Network, in.Sources[1].Network = "", "", ""
	expect(t, &in, "networks without names", "!b 2001:db8::1:80, a 10.1.0.1:8080")
}

// What has no load balancer gets one, where a cluster that takes part is in another network.
func TestBalancers(t *testing.T) {
	in := input(source("a", "10.1.0.1"), source("b", "10.2.0.1"))
	own := in.Sources[0].Export
	own.Service.Spec.Selector, own.Export.UID = map[string]string{"app": "web"}, "export"
	if got := Decide(in).Balancer; got != nil {
		t.Errorf("in one network: %+v", got)
	}
	in.Sources[1].Network = "other"
	got := Decide(in).Balancer
	if got == nil || got.Name != "exported-web" || got.Spec.Type != corev1.ServiceTypeLoadBalancer || got.Spec.Selector["app"] != "web" || len(got.Spec.Ports) != 1 || got.OwnerReferences[0].UID != "export" {
		t.Fatalf("in two networks: %+v", got)
	}
	got.Spec.Ports[0].NodePort, got.Spec.ClusterIP = 30123, "10.96.0.9"
	got.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	in.Have.Balancer = got
	if again := Decide(in).Balancer; !reflect.DeepEqual(again, got) {
		t.Errorf("it does not settle: %+v, was %+v", again, got)
	}
	own.Balancer = got
	other := input(in.Sources...)
	other.Member, other.Network = "b", "other"
	expect(t, &other, "b", "a 192.0.2.7:80, b 10.2.0.1:8080")
	for what, change := range map[string]func(in *Input, e *Export){
		"it is headless":                func(_ *Input, e *Export) { e.Service.Spec.ClusterIP = corev1.ClusterIPNone },
		"it is of type LoadBalancer":    func(_ *Input, e *Export) { e.Service.Spec.Type = corev1.ServiceTypeLoadBalancer },
		"it selects no pods":            func(_ *Input, e *Export) { e.Service.Spec.Selector = nil },
		"its export is not valid":       func(_ *Input, e *Export) { e.Refused = "no" },
		"the other takes no part":       func(in *Input, _ *Export) { in.Sources[1].Absent = true },
		"nothing is known of the other": func(in *Input, _ *Export) { in.Sources[1].Known = false },
		"they are in one network":       func(in *Input, _ *Export) { in.Sources[1].Network = "net" },
		"it is not exported":            func(in *Input, _ *Export) { in.Sources[0].Export = nil },
	} {
		e, of := *own, in
		e.Service, of.Sources = own.Service.DeepCopy(), slices.Clone(in.Sources)
		of.Sources[0].Export = &e
		change(&of, &e)
		if got := Decide(of).Balancer; got != nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

func TestHeadless(t *testing.T) {
	in := input(source("a", "10.1.0.1"), source("b", "10.2.0.1"))
	for i := range in.Sources {
		in.Sources[i].Export.Service.Spec.ClusterIP = corev1.ClusterIPNone
		in.Sources[i].Export.Slices[0].Endpoints[0].Hostname = new("web-0")
	}
	in.Sources[1].Rank = Drained
	expect(t, &in, "peers find each other while one is drained", "a 10.1.0.1:8080, b 10.2.0.1:8080")
	if in.Have.Derived != nil || len(in.Have.Import.Spec.IPs) > 0 || len(in.Have.Import.Spec.IPFamilies) != 1 {
		t.Errorf("derived Service %v, IPs %v, families %v", in.Have.Derived, in.Have.Import.Spec.IPs, in.Have.Import.Spec.IPFamilies)
	}
	for _, s := range in.Have.Slices {
		if *s.Endpoints[0].Hostname != "web-0" || s.Labels[discoveryv1.LabelServiceName] != "" {
			t.Errorf("%s: %+v, labels %v", s.Name, s.Endpoints, s.Labels)
		}
	}
	in.Sources[1].Rank = Lost
	expect(t, &in, "b is lost", "!b 10.2.0.1:8080, a 10.1.0.1:8080")
	in.Sources[0].Export.Service.Spec.ClusterIP, in.Sources[1].Rank = "10.0.0.1", Serving
	expect(t, &in, "the oldest is not headless", "a 10.1.0.1:8080, b 10.2.0.1:8080")
	if in.Have.Derived == nil || in.Have.Slices[0].Labels[discoveryv1.LabelServiceName] == "" {
		t.Error("no derived Service")
	}
}

// Whatever a member says of its endpoints, other members get what their API servers accept, of that cluster, and not without end.
func TestEndpointsOfAHostileMember(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := []string{"", "10.1.0.1", "fd00::1", "127.0.0.1", "0.0.0.0", "169.254.169.254", "224.0.0.1", "::ffff:127.0.0.1", "fe80::1%eth0", "x", "10.0.0.1/8", strings.Repeat("1", 300)}
	pick := func() string { return texts[r.IntN(len(texts))] }
	for range 2000 {
		s := slice(pick()+"é", int32(r.IntN(70000)-10))
		s.AddressType = []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN, "x"}[r.IntN(4)]
		for range r.IntN(5) {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{pick(), pick()}[:r.IntN(3)], Hostname: new(pick()), Zone: new(pick()), NodeName: new(pick())})
		}
		hostile := source("b")
		hostile.Export.Slices = []*discoveryv1.EndpointSlice{s}
		in := input(source("a", "10.1.0.1"), hostile)
		settleIn(t, &in)
		for _, got := range in.Have.Slices {
			if got.Labels[mcsv1beta1.LabelSourceCluster] == "a" {
				continue
			}
			if len(validation.IsDNS1123Subdomain(got.Name)) > 0 || got.Name == "" {
				t.Fatalf("name %q", got.Name)
			}
			for _, p := range got.Ports {
				if *p.Port < 1 || *p.Port > 65535 {
					t.Fatalf("port %d", *p.Port)
				}
			}
			for _, e := range got.Endpoints {
				a, err := netip.ParseAddr(e.Addresses[0])
				if err != nil || v1beta1.RefuseAddress(a) != nil || a.Zone() != "" || a.Is4() != (got.AddressType == discoveryv1.AddressTypeIPv4) || len(e.Addresses) > 1 {
					t.Fatalf("address %q in a slice of %s", e.Addresses, got.AddressType)
				}
				if e.NodeName != nil || e.Hostname != nil && len(validation.IsDNS1123Label(*e.Hostname)) > 0 || e.Zone != nil && len(validation.IsValidLabelValue(*e.Zone)) > 0 {
					t.Fatalf("endpoint %+v", e)
				}
			}
		}
	}
	many := source("b")
	many.Export.Slices = nil
	for i := range 10 {
		s := slice(fmt.Sprint("s", i), 80)
		for j := range 1000 {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{netip.AddrFrom4([4]byte{10, byte(i), byte(j / 250), byte(1 + j%250)}).String()}})
		}
		many.Export.Slices = append(many.Export.Slices, s)
	}
	in := input(source("a", "10.1.0.1"), many)
	settleIn(t, &in)
	if got := strings.Count(endpoints(in), "b 10"); got != maxEndpoints {
		t.Errorf("%d endpoints of one cluster, want %d", got, maxEndpoints)
	}
}

// Of very many clusters a member has the endpoints of 64: its own, and not the same others as the next member.
func TestManyClusters(t *testing.T) {
	var all []Source
	for i := range 200 {
		all = append(all, source(fmt.Sprintf("c%03d", i), fmt.Sprintf("10.0.%d.%d", i/100, 1+i%100)))
	}
	had := map[string]bool{}
	for _, member := range []string{"c000", "c111", "c199"} {
		in := input(all...)
		in.Member = member
		settleIn(t, &in)
		if len(in.Have.Slices) != maxSources || !strings.Contains(endpoints(in), member+" ") {
			t.Errorf("%s has %d slices", member, len(in.Have.Slices))
		}
		for _, s := range in.Have.Slices {
			had[s.Labels[mcsv1beta1.LabelSourceCluster]] = true
		}
	}
	if len(had) < 2*maxSources {
		t.Errorf("three members have the endpoints of %d clusters together", len(had))
	}
}

// One change of a cluster that decides nothing writes nothing where it is not seen; a change of its endpoints writes one slice.
func TestWhatAChangeCosts(t *testing.T) {
	in := input(source("a", "10.1.0.1"), source("b", "10.2.0.1"))
	in.Sources[1].Export.Export.CreationTimestamp.Time = epoch.Add(1e9)
	settleIn(t, &in)
	in.Sources[1].Export.Service.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	in.Sources[1].Export.Service.Labels = map[string]string{"a": "b"}
	if writes := settleIn(t, &in); writes != 0 {
		t.Errorf("%d writes for what the younger has otherwise", writes)
	}
	in.Sources[1].Export.Slices[0] = slice("web-b", 8080, "10.2.0.1", "10.2.0.2")
	if writes := settleIn(t, &in); writes != 1 {
		t.Errorf("%d writes for an endpoint more, want 1", writes)
	}
}

func TestDerivedNames(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a", "web", strings.Repeat("a", 55), strings.Repeat("a", 56), strings.Repeat("a", 63), strings.Repeat("a", 62) + "b"} {
		got := DerivedName(name)
		if len(validation.IsDNS1035Label(got)) > 0 || !strings.HasPrefix(got, v1beta1.DerivedServicePrefix) || seen[got] != "" {
			t.Errorf("%s: %s, which %q has, too", name, got, seen[got])
		}
		seen[got] = name
	}
}

func TestCopies(t *testing.T) {
	export := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: mcsv1beta1.ServiceExportSpec{ExportedLabels: map[string]string{"tier": "gold"}}}
	want, gone := Copy("fed", export, nil, true)
	if gone != nil || want == nil || want.Labels[v1beta1.ManagedByLabel] != "fed" || want.Spec.ExportedLabels["tier"] != "gold" {
		t.Errorf("%+v, %+v, want a copy", want, gone)
	}
	if again, gone := Copy("fed", export, want, true); gone != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("%+v differs from the copy that is there", again)
	}
	for what, of := range map[string]*mcsv1beta1.ServiceExport{"the Service is gone": export, "the export is gone": nil} {
		if again, gone := Copy("fed", of, want, of == nil); again != nil || gone != want {
			t.Errorf("%s: %v, %v, want it to go", what, again, gone)
		}
	}
	if want, gone := Copy("fed", nil, export, true); want != nil || gone != nil {
		t.Error("a user's own export is touched")
	}
	if got := FederationConditions(nil); got[0].Status != metav1.ConditionFalse || got[0].Reason != "NoService" {
		t.Errorf("nobody exports it: %+v", got)
	}
	_, of := Merge([]Export{exported("a", 0), exported("b", 1, "http:80")})
	if got := FederationConditions(of); got[0].Status != metav1.ConditionTrue {
		t.Errorf("one export is valid: %+v", got)
	}
	delete(of, "b")
	if got := FederationConditions(of); got[0].Status != metav1.ConditionFalse || !strings.HasPrefix(got[0].Message, "cluster a: ") || strings.HasPrefix(of["a"][0].Message, "cluster a: ") {
		t.Errorf("none is valid: %+v", got)
	}
}

func TestSummary(t *testing.T) {
	sources := []Source{source("a", "10.1.0.1"), source("b")}
	is, conditions := Summary("fed", "shop", "web", sources, nil)
	if is == nil || len(is.Spec.IPs) > 0 || len(is.Status.Clusters) != 2 || is.Status.EndpointSliceObjects != mcsv1beta1.EndpointSliceObjectsAbsent || len(conditions) != 2 {
		t.Errorf("%+v, %v", is, conditions)
	}
	sources[1] = Source{Cluster: "b"}
	if again, _ := Summary("fed", "shop", "web", sources, is); !reflect.DeepEqual(again, is) {
		t.Errorf("b is not known: %+v, was %+v", again, is)
	}
	sources[1].Known, sources[0].Export = true, nil
	if again, _ := Summary("fed", "shop", "web", sources, is); again != nil {
		t.Errorf("nobody exports it: %+v", again)
	}
}
