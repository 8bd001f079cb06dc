package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// web returns the copy in the member.
func web() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}, {Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53}},
	}}
}

// offer returns an offer of a cluster "REGION-ZONE", from "ADDRESS,…".
func offer(cluster string, rank int, addresses string) servicednsplan.Offer {
	region, zone, _ := strings.Cut(cluster, "-")
	o := servicednsplan.Offer{Object: "Service shop/web", Cluster: cluster, Region: region, Zone: zone, Weight: 100, Rank: rank}
	for _, a := range strings.FieldsFunc(addresses, func(r rune) bool { return r == ',' }) {
		o.Addresses = append(o.Addresses, netip.MustParseAddr(a))
	}
	return o
}

func input(offers ...servicednsplan.Offer) Input {
	return Input{Member: "east-a", Federation: "fed", Service: web(), Offers: offers}
}

// show formats operations: "create web.east-b.v4 192.0.2.1 ready weight 100".
func show(operations []Operation) (out []string) {
	for _, op := range operations {
		line := fmt.Sprintf("%s %s", op.Verb, op.Slice.Name)
		if op.Verb != Delete {
			for _, e := range op.Slice.Endpoints {
				line += " " + e.Addresses[0]
			}
			c := op.Slice.Endpoints[0].Conditions
			switch {
			case *c.Ready:
				line += " ready"
			case *c.Serving:
				line += " serving"
			}
			line += " weight " + op.Slice.Annotations[v1beta1.WeightAnnotation]
		}
		out = append(out, line)
	}
	return out
}

// after returns the input once the operations are done.
func after(in Input, operations []Operation) Input {
	for _, op := range operations {
		in.Have = slices.DeleteFunc(slices.Clone(in.Have), func(s *discoveryv1.EndpointSlice) bool { return s.Name == op.Slice.Name })
		if op.Verb != Delete {
			in.Have = append(in.Have, op.Slice)
		}
	}
	return in
}

// TestAMemberKeepsWhatNobodyKnows: after a restore of the federation nobody knows what a cluster has that cannot be seen yet. What a
// member was given of it stays, behind what serves.
func TestAMemberKeepsWhatNobodyKnows(t *testing.T) {
	in := input(offer("east-b", 0, "192.0.2.2,2001:db8::2"), offer("west-a", 0, "192.0.2.9"))
	in = after(in, Operate(in))
	unknown := func(cluster string, rank int) servicednsplan.Offer {
		o := offer(cluster, rank, "")
		o.Unknown = true
		return o
	}
	for _, c := range []struct {
		name   string
		offers []servicednsplan.Offer
		want   []string
	}{
		{"of all clusters", []servicednsplan.Offer{unknown("east-b", 0), unknown("west-a", 0), unknown("west-b", 0)}, nil},
		{"of one that is not seen", []servicednsplan.Offer{unknown("east-b", servicednsplan.RankUnseen), offer("west-a", 0, "192.0.2.9")},
			[]string{"update web.east-b.v4 192.0.2.2 weight 50", "update web.east-b.v6 2001:db8::2 weight 50"}},
		{"of one that is not seen, and none serves", []servicednsplan.Offer{unknown("east-b", servicednsplan.RankUnseen)}, []string{"delete web.west-a.v4"}},
		{"one is known to have nothing", []servicednsplan.Offer{unknown("east-b", 0)}, []string{"delete web.west-a.v4"}},
	} {
		in.Offers = c.offers
		if got := show(Operate(in)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWhatAMemberHolds(t *testing.T) {
	half := offer("west-a", 0, "192.0.2.9,192.0.2.10")
	half.Weight = 5000
	drained := offer("east-b", 1, "192.0.2.2")
	drained.Weight = 0
	waits := offer("west-a", 0, "192.0.2.9")
	waits.Unresolved = true
	for _, c := range []struct {
		name   string
		offers []servicednsplan.Offer
		want   []string
	}{
		{"the others, not itself", []servicednsplan.Offer{offer("east-a", 0, "192.0.2.1"), offer("east-b", 0, "192.0.2.2")}, []string{"create web.east-b.v4 192.0.2.2 ready weight 100"}},
		{"a slice for each family", []servicednsplan.Offer{offer("east-b", 0, "192.0.2.2,2001:db8::2")},
			[]string{"create web.east-b.v4 192.0.2.2 ready weight 50", "create web.east-b.v6 2001:db8::2 ready weight 50"}},
		{"addresses share the weight, which has a limit", []servicednsplan.Offer{half}, []string{"create web.west-a.v4 192.0.2.9 192.0.2.10 ready weight 1000"}},
		{"drained beside one that serves", []servicednsplan.Offer{drained, offer("west-a", 0, "192.0.2.9")},
			[]string{"create web.east-b.v4 192.0.2.2 serving weight 1", "create web.west-a.v4 192.0.2.9 ready weight 100"}},
		{"drained, and none that serves but this one", []servicednsplan.Offer{offer("east-a", 0, "192.0.2.1"), drained}, []string{"create web.east-b.v4 192.0.2.2 ready weight 1"}},
		{"unseen beside one that fails its check", []servicednsplan.Offer{offer("east-b", 3, "192.0.2.2"), offer("west-a", 2, "192.0.2.9")},
			[]string{"create web.east-b.v4 192.0.2.2 weight 100", "create web.west-a.v4 192.0.2.9 ready weight 100"}},
		{"none is seen: fail static", []servicednsplan.Offer{offer("east-b", 3, "192.0.2.2"), offer("west-a", 3, "192.0.2.9")},
			[]string{"create web.east-b.v4 192.0.2.2 ready weight 100", "create web.west-a.v4 192.0.2.9 ready weight 100"}},
		{"one without an address does not count as better", []servicednsplan.Offer{offer("east-b", 0, ""), offer("west-a", 3, "192.0.2.9")}, []string{"create web.west-a.v4 192.0.2.9 ready weight 100"}},
		{"addresses that the API refuses", []servicednsplan.Offer{offer("east-b", 0, "127.0.0.1,169.254.1.1,192.0.2.2,fe80::1")}, []string{"create web.east-b.v4 192.0.2.2 ready weight 100"}},
		{"what is known of one whose host is not looked up yet", []servicednsplan.Offer{waits}, []string{"create web.west-a.v4 192.0.2.9 ready weight 100"}},
		{"nothing", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(c.offers...)
			first := Operate(in)
			if got := show(first); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if again := show(Operate(after(in, first))); len(again) > 0 {
				t.Errorf("a second time: %q, want nothing", again)
			}
		})
	}
}

func TestWhatChanges(t *testing.T) {
	before := []servicednsplan.Offer{offer("east-b", 0, "192.0.2.2"), offer("west-a", 0, "192.0.2.9")}
	for _, c := range []struct {
		name   string
		change func(*Input)
		want   []string
	}{
		{"a cluster has no ready endpoint any more", func(in *Input) { in.Offers = in.Offers[1:] }, []string{"delete web.east-b.v4"}},
		{"its host has to be looked up again", func(in *Input) { in.Offers[0].Addresses, in.Offers[0].Unresolved = nil, true }, nil},
		{"a cluster is lost", func(in *Input) { in.Offers[0].Rank = 3 }, []string{"update web.east-b.v4 192.0.2.2 weight 100"}},
		{"another weight", func(in *Input) { in.Offers[0].Weight = 7 }, []string{"update web.east-b.v4 192.0.2.2 ready weight 7"}},
		{"a region is told later", func(in *Input) { in.Offers[0].Region = "north" }, []string{"update web.east-b.v4 192.0.2.2 ready weight 100"}},
		{"a region is told no more", func(in *Input) { in.Offers[0].Region = "" }, []string{"update web.east-b.v4 192.0.2.2 ready weight 100"}},
		{"other addresses of both", func(in *Input) {
			in.Offers = []servicednsplan.Offer{offer("east-b", 0, "192.0.2.3"), offer("north", 0, "192.0.2.77")}
		}, []string{"update web.east-b.v4 192.0.2.3 ready weight 100", "create web.north.v4 192.0.2.77 ready weight 100", "delete web.west-a.v4"}},
		{"a further port", func(in *Input) {
			in.Service.Spec.Ports = append(in.Service.Spec.Ports, corev1.ServicePort{Name: "https", Protocol: corev1.ProtocolTCP, Port: 443})
		}, []string{"update web.east-b.v4 192.0.2.2 ready weight 100", "update web.west-a.v4 192.0.2.9 ready weight 100"}},
		{"the copy was made anew", func(in *Input) { in.Service.UID = "u2" },
			[]string{"update web.east-b.v4 192.0.2.2 ready weight 100", "update web.west-a.v4 192.0.2.9 ready weight 100"}},
		{"the copy is gone, or was released", func(in *Input) { in.Service = nil }, []string{"delete web.east-b.v4", "delete web.west-a.v4"}},
		{"the Service is of another type now", func(in *Input) { in.Offers = nil }, []string{"delete web.east-b.v4", "delete web.west-a.v4"}},
		{"somebody put a label of his own on", func(in *Input) { in.Have[0].Labels["team"] = "a" }, nil},
		{"somebody changed an endpoint", func(in *Input) { in.Have[0].Endpoints = nil }, []string{"update web.east-b.v4 192.0.2.2 ready weight 100"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(slices.Clone(before)...)
			in = after(in, Operate(in))
			in.Service = web()
			c.change(&in)
			operations := Operate(in)
			if got := show(operations); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if again := show(Operate(after(in, operations))); len(again) > 0 {
				t.Errorf("a second time: %q, want nothing", again)
			}
		})
	}
}

// A slice holds at most 1000 endpoints.
func TestManyAddresses(t *testing.T) {
	o := offer("east-b", 0, "")
	for a := netip.MustParseAddr("10.0.0.1"); len(o.Addresses) < 2100; a = a.Next() {
		o.Addresses = append(o.Addresses, a)
	}
	var got []string
	for _, op := range Operate(input(o)) {
		got = append(got, fmt.Sprint(op.Slice.Name, " ", len(op.Slice.Endpoints)))
	}
	if want := []string{"web.east-b.v4 1000", "web.east-b.v4.1 1000", "web.east-b.v4.2 100"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The complete slice, as the node agent reads it.
func TestOneSlice(t *testing.T) {
	got, err := yaml.Marshal(Operate(input(offer("east-b", 0, "192.0.2.2")))[0].Slice)
	want := `addressType: IPv4
apiVersion: discovery.k8s.io/v1
endpoints:
- addresses:
  - 192.0.2.2
  conditions:
    ready: true
    serving: true
  zone: b
kind: EndpointSlice
metadata:
  annotations:
    federation.kubernetes.io/weight: "100"
  labels:
    endpointslice.kubernetes.io/managed-by: federation.kubernetes.io
    federation.kubernetes.io/managed-by: fed
    federation.kubernetes.io/shard: "` + fmt.Sprint(v1beta1.Shard("shop", "web")) + `"
    multicluster.kubernetes.io/service-name: web
    multicluster.kubernetes.io/source-cluster: east-b
    topology.kubernetes.io/region: east
  name: web.east-b.v4
  namespace: shop
  ownerReferences:
  - apiVersion: v1
    kind: Service
    name: web
    uid: u1
ports:
- name: http
  port: 80
  protocol: TCP
- name: dns
  port: 53
  protocol: UDP
`
	if err != nil || string(got) != want {
		t.Errorf("%v; got\n%s\nwant\n%s", err, got, want)
	}
}

// A thousand clusters would be a million slices of each Service. A member has those of some: the best and nearest, and
// not the same in all members.
func TestManyClusters(t *testing.T) {
	var offers []servicednsplan.Offer
	for i := range 1000 {
		o := offer(fmt.Sprintf("c-%04d", i), i%2, fmt.Sprintf("192.0.%d.%d", i/250, 1+i%250))
		o.Region = []string{"east", "west", "north", "south"}[i/2%4]
		offers = append(offers, o)
	}
	sources := func(member string) map[string]bool {
		in := input(offers...)
		in.Member = member
		found := map[string]bool{}
		for _, o := range Operate(in) {
			found[o.Slice.Labels[v1beta1.SourceClusterLabel]] = true
			if i, _ := strconv.Atoi(strings.TrimPrefix(o.Slice.Labels[v1beta1.SourceClusterLabel], "c-")); o.Verb != Create || i%2 != 0 || i/2%4 != 1 {
				t.Errorf("%s: %s %s", member, o.Verb, o.Slice.Name)
			}
		}
		if len(found) != 64 || found[member] {
			t.Errorf("%s has slices of %d", member, len(found))
		}
		if again := Operate(after(in, Operate(in))); len(again) > 0 {
			t.Errorf("%s writes again: %v", member, show(again))
		}
		return found
	}
	all := map[string]int{}
	for i := 2; i < 1000; i += 8 { // in the west
		for source := range sources(fmt.Sprintf("c-%04d", i)) {
			all[source]++
		}
	}
	for source, n := range all {
		if n < 125*64/125/4 || n > 125 {
			t.Errorf("%s is known to %d of 125 members", source, n)
		}
	}
	if len(all) != 125 {
		t.Errorf("members know of %d clusters in all, of 125 in their region", len(all))
	}
}
