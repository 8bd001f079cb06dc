package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// podOffer returns an offer of the pods of a cluster "REGION-ZONE" in a network.
func podOffer(cluster, network string, rank int) servicednsplan.Offer {
	o := offer(cluster, rank, "")
	o.ByPods, o.Network = true, network
	return o
}

// ownSlice returns a slice of a cluster itself: "ADDRESS" is ready, "!ADDRESS" is not.
func ownSlice(name string, http int32, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{
		{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: &http}, {Name: new("dns"), Protocol: new(corev1.ProtocolUDP), Port: new(int32(5353))},
	}}
	for _, a := range addresses {
		text := strings.TrimPrefix(a, "!")
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{text}, Conditions: discoveryv1.EndpointConditions{Ready: new(a == text)}})
		if strings.Contains(text, ":") {
			s.AddressType = discoveryv1.AddressTypeIPv6
		}
	}
	return s
}

func pods(own ...*discoveryv1.EndpointSlice) Endpoints { return EndpointsOf(own, nil) }

// balancer returns the Service that was made in a cluster for the exported one.
func balancer(addresses ...string) *corev1.Service {
	s := &corev1.Service{}
	for _, a := range addresses {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a})
	}
	return s
}

// podInput is that of a member east-a in the network n, whose pods are in 10.128.0.0/14.
func podInput(endpoints map[string]Endpoints, offers ...servicednsplan.Offer) Input {
	own := podOffer("east-a", "n", 0)
	own.PodCIDRs = []string{"10.128.0.0/14"}
	in := input(append([]servicednsplan.Offer{own}, offers...)...)
	in.Endpoints = endpoints
	return in
}

func TestPodsOfOtherClusters(t *testing.T) {
	two := map[string]Endpoints{"east-b": pods(ownSlice("web-1", 8080, "10.132.0.7", "!10.132.0.9", "10.132.0.8")), "west-a": pods(ownSlice("web-1", 8080, "10.136.0.1"))}
	exported := map[string]Endpoints{"east-b": EndpointsOf([]*discoveryv1.EndpointSlice{ownSlice("web-1", 8080, "10.132.0.7")}, []*corev1.Service{balancer("192.0.2.7", "127.0.0.1", "198.51.100.9")})}
	within := func(o servicednsplan.Offer, pods, balancers string) servicednsplan.Offer {
		o.PodCIDRs, o.LoadBalancerCIDRs = []string{pods}, []string{balancers}
		return o
	}
	cutOff := podOffer("east-b", "n", 0)
	cutOff.CutOff = true
	for _, c := range []struct {
		name string
		in   Input
		want []string
	}{
		{"ready ones, where the networks are equal", podInput(two, podOffer("east-b", "n", 0), podOffer("west-a", "n", 0)),
			[]string{"create web.east-b.v4 10.132.0.7 10.132.0.8 ready weight 500", "create web.west-a.v4 10.136.0.1 ready weight 1000"}},
		{"in another network", podInput(two, podOffer("east-b", "m", 0), podOffer("west-a", "", 0)), nil},
		{"drained beside one that serves", podInput(two, podOffer("east-b", "n", 1), podOffer("west-a", "n", 0)),
			[]string{"create web.east-b.v4 10.132.0.7 10.132.0.8 serving weight 500", "create web.west-a.v4 10.136.0.1 ready weight 1000"}},
		{"drained, and one that serves has no ready pod", podInput(map[string]Endpoints{"east-b": two["east-b"], "west-a": pods(ownSlice("web-1", 8080, "!10.136.0.1"))}, podOffer("east-b", "n", 1), podOffer("west-a", "n", 0)),
			[]string{"create web.east-b.v4 10.132.0.7 10.132.0.8 ready weight 500"}},
		{"pods outside of what is said to be the cluster's", podInput(two, within(podOffer("east-b", "n", 0), "10.132.0.8/32", "::/0")), []string{"create web.east-b.v4 10.132.0.8 ready weight 1000"}},
		{"pods of the member itself, by another cluster's word", podInput(map[string]Endpoints{"east-b": pods(ownSlice("web-1", 8080, "10.128.0.7"))}, podOffer("east-b", "n", 0)), nil},
		{"an exported Service in another network: by the load balancer that was made for it", podInput(exported, within(podOffer("east-b", "m", 0), "::/0", "192.0.2.0/24")),
			[]string{"create web.east-b.v4 192.0.2.7 ready weight 1000"}},
		{"the same, and no pod is ready", podInput(map[string]Endpoints{"east-b": EndpointsOf(nil, []*corev1.Service{balancer("192.0.2.7")})}, podOffer("east-b", "m", 0)), nil},
		{"an exported Service in the same network: by its pods", podInput(exported, podOffer("east-b", "n", 0)), []string{"create web.east-b.v4 10.132.0.7 ready weight 1000"}},
		{"a cluster that was never connected", podInput(nil, podOffer("east-b", "n", 0)), nil},
		{"a federation that is cut off", podInput(two, cutOff, podOffer("west-a", "n", 3)),
			[]string{"create web.east-b.v4 10.132.0.7 10.132.0.8 ready weight 500", "create web.west-a.v4 10.136.0.1 weight 1000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := Operate(c.in)
			if got := show(first); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if again := show(Operate(after(c.in, first))); len(again) > 0 {
				t.Errorf("a second time: %q, want nothing", again)
			}
		})
	}
}

// TestPodsOfAClusterThatIsLost: what a member was given stays, behind what serves, until the cluster says something else.
func TestPodsOfAClusterThatIsLost(t *testing.T) {
	two := map[string]Endpoints{"east-b": pods(ownSlice("a", 8080, "10.132.0.7"), ownSlice("b", 9090, "10.132.0.8")), "west-a": pods(ownSlice("web-1", 8080, "10.136.0.1"))}
	before := podInput(two, podOffer("east-b", "n", 0), podOffer("west-a", "n", 0))
	before = after(before, Operate(before))
	demoted := []string{"update web.east-b.v4 10.132.0.7 weight 500", "update web.east-b.v4.1 10.132.0.8 weight 500"}
	for _, c := range []struct {
		name   string
		change func(*Input)
		want   []string
	}{
		{"lost, and the connection is not yet", func(in *Input) { in.Offers[1].Rank = 3 }, demoted},
		{"lost", func(in *Input) {
			in.Offers[1].Rank = 3
			delete(in.Endpoints, "east-b")
			in.Away = map[string]bool{"east-b": true}
		}, demoted},
		{"lost before this process began", func(in *Input) { in.Offers[1].Rank = 3; delete(in.Endpoints, "east-b") }, demoted},
		{"only this process does not reach it", func(in *Input) { delete(in.Endpoints, "east-b"); in.Away = map[string]bool{"east-b": true} }, demoted},
		{"all are lost", func(in *Input) {
			in.Offers[1].Rank, in.Offers[2].Rank, in.Endpoints, in.Away = 3, 3, nil, map[string]bool{"east-b": true, "west-a": true}
		}, nil},
		{"this process has just begun", func(in *Input) { in.Endpoints = nil }, nil},
		{"most vanished at once", func(in *Input) {
			in.Offers[1].CutOff, in.Offers[2].CutOff, in.Endpoints, in.Away = true, true, nil, map[string]bool{"east-b": true, "west-a": true}
		}, nil},
		{"it leaves the federation", func(in *Input) { in.Offers = in.Offers[:1]; in.Endpoints = nil }, []string{"delete web.east-b.v4", "delete web.east-b.v4.1", "delete web.west-a.v4"}},
		{"it has nothing any more", func(in *Input) { in.Endpoints["east-b"] = Endpoints{} }, []string{"delete web.east-b.v4", "delete web.east-b.v4.1"}},
		{"it is in another network now", func(in *Input) { in.Offers[1].Network = "m" }, []string{"delete web.east-b.v4", "delete web.east-b.v4.1"}},
		{"the Service is headless", func(in *Input) { in.Service.Spec.ClusterIP = corev1.ClusterIPNone }, []string{"delete web.east-b.v4", "delete web.east-b.v4.1", "delete web.west-a.v4"}},
		{"the member's copy has one port less", func(in *Input) { in.Service.Spec.Ports = in.Service.Spec.Ports[1:] },
			[]string{"update web.east-b.v4 10.132.0.7 ready weight 500", "update web.east-b.v4.1 10.132.0.8 ready weight 500", "update web.west-a.v4 10.136.0.1 ready weight 1000"}},
		{"somebody emptied an endpoint in the member", func(in *Input) { in.Have[0].Endpoints[0].Addresses = nil; delete(in.Endpoints, "east-b") }, []string{"update web.east-b.v4 10.132.0.8 ready weight 1000", "delete web.east-b.v4.1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := before
			in.Offers, in.Endpoints, in.Service, in.Have = slices.Clone(before.Offers), maps.Clone(two), web(), nil
			for _, s := range before.Have {
				in.Have = append(in.Have, s.DeepCopy())
			}
			c.change(&in)
			if got := show(Operate(in)); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestWhatAClusterSaysIsChecked: nothing of what a cluster says of itself can be another thing than a pod's address and port.
func TestWhatAClusterSaysIsChecked(t *testing.T) {
	bad := ownSlice("bad", 8080, "127.0.0.1", "169.254.169.254", "224.0.0.1", "0.0.0.0", "255.255.255.255", "::1", "::ffff:10.132.0.1", "fe80::1", "fe80::1%eth0", "10.0.0.256", "web.example.com", "")
	bad.Endpoints = append(bad.Endpoints, discoveryv1.Endpoint{}, discoveryv1.Endpoint{Addresses: []string{"10.132.0.1"}, Conditions: discoveryv1.EndpointConditions{Terminating: new(true)}})
	bad6, names := bad.DeepCopy(), ownSlice("names", 8080, "web.example.com")
	bad.AddressType, bad6.AddressType, names.AddressType = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN
	ports := ownSlice("ports", 0, "10.132.0.2")
	ports.Ports[1].Port = new(int32(70000))
	ports.Ports = append(ports.Ports, discoveryv1.EndpointPort{})
	if got := pods(bad, bad6, names, ports); len(got.Ready) > 0 {
		t.Errorf("believed: %+v", got)
	}

	many := ownSlice("many", 8080)
	for a := netip.MustParseAddr("10.132.0.1"); len(many.Endpoints) < 20000; a = a.Next() {
		many.Endpoints = append(many.Endpoints, discoveryv1.Endpoint{Addresses: []string{a.String()}})
	}
	for range 1000 {
		many.Ports = append(many.Ports, discoveryv1.EndpointPort{Name: new("x"), Port: new(int32(1))})
	}
	e := pods(ownSlice("first", 8080, "10.132.255.1"), many)
	if n := len(e.Ready[0].Addresses) + len(e.Ready[1].Addresses); n != maxRead {
		t.Errorf("%d addresses are read, want %d", n, maxRead)
	}
	operations := Operate(podInput(map[string]Endpoints{"east-b": e}, podOffer("east-b", "n", 0)))
	n := 0
	for _, op := range operations {
		n += len(op.Slice.Endpoints)
		if len(op.Slice.Ports) > 2 {
			t.Errorf("%s has %d ports, the Service 2", op.Slice.Name, len(op.Slice.Ports))
		}
	}
	if n != maxPods {
		t.Errorf("a member gets %d of many pods, want %d", n, maxPods)
	}
}

// TestTheChoiceAmongManyPods: it stays when pods come and go, and members choose different ones.
func TestTheChoiceAmongManyPods(t *testing.T) {
	all := []string{}
	for i := range 1000 {
		all = append(all, fmt.Sprintf("10.132.%d.%d", i/250, 1+i%250))
	}
	chosen := func(member string, addresses ...string) map[string]bool {
		in := Input{Member: member, Service: web(), Endpoints: map[string]Endpoints{"east-b": pods(ownSlice("web-1", 8080, addresses...))},
			Offers: []servicednsplan.Offer{podOffer("east-b", "n", 0), podOffer(member, "n", 0)}}
		got := map[string]bool{}
		for _, e := range Operate(in)[0].Slice.Endpoints {
			got[e.Addresses[0]] = true
		}
		return got
	}
	before, used := chosen("east-a", all...), map[string]bool{}
	for i := range 100 {
		less := chosen("east-a", slices.Delete(slices.Clone(all), i, i+1)...)
		maps.DeleteFunc(less, func(a string, _ bool) bool { return before[a] })
		if len(less) > 1 {
			t.Fatalf("one pod less of 1000: %d others are chosen", len(less))
		}
		maps.Copy(used, chosen(fmt.Sprintf("m-%d", i), all...))
	}
	if len(before) != maxPods || len(used) != len(all) {
		t.Errorf("one member uses %d, want %d; a hundred use %d, want all %d", len(before), maxPods, len(used), len(all))
	}
}

// randomPodInput makes a member and others of all kinds.
func randomPodInput(r *rand.Rand) Input {
	in := podInput(map[string]Endpoints{})
	in.Away = map[string]bool{}
	for i, n := 0, r.IntN(7); i < n; i++ {
		o := podOffer(fmt.Sprintf("%s-%d", []string{"east", "west"}[r.IntN(2)], i), []string{"n", "n", "m", ""}[r.IntN(4)], []int{0, 0, 0, 1, 3}[r.IntN(5)])
		o.Weight, o.CutOff = uint32(r.IntN(300)), r.IntN(5) == 0
		if r.IntN(4) == 0 {
			o.PodCIDRs = []string{fmt.Sprintf("10.132.%d.0/25", i)}
		}
		in.Offers = append(in.Offers, o)
		var own []*discoveryv1.EndpointSlice
		for s := range r.IntN(3) {
			var addresses []string
			for range r.IntN(120) {
				addresses = append(addresses, []string{"", "", "", "!"}[r.IntN(4)]+fmt.Sprintf("10.%d.%d.%d", 132-4*(r.IntN(20)/19), i, 1+r.IntN(250)))
			}
			own = append(own, ownSlice(fmt.Sprint("s", s), int32(8080+s), addresses...))
		}
		switch r.IntN(4) {
		case 0:
			in.Away[o.Cluster] = r.IntN(2) == 0
		default:
			in.Endpoints[o.Cluster] = EndpointsOf(own, []*corev1.Service{balancer(fmt.Sprintf("192.0.2.%d", i))}[:r.IntN(2)])
		}
	}
	slices.SortFunc(in.Offers, func(a, b servicednsplan.Offer) int { return strings.Compare(a.Cluster, b.Cluster) })
	return in
}

// TestLawsOfPods checks, in random worlds that follow each other, what holds of the pods that a member is given.
func TestLawsOfPods(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := randomPodInput(r)
		in = after(in, Operate(in))
		next := randomPodInput(r)
		next.Have = in.Have
		next = after(next, Operate(next))
		if again := Operate(next); len(again) > 0 {
			t.Fatalf("seed %d: a second time: %q", seed, show(again))
		}
		shuffled := next
		shuffled.Have = slices.Clone(next.Have)
		r.Shuffle(len(shuffled.Have), func(i, j int) { shuffled.Have[i], shuffled.Have[j] = shuffled.Have[j], shuffled.Have[i] })
		if again := Operate(shuffled); len(again) > 0 {
			t.Fatalf("seed %d: by the order of slices: %q", seed, show(again))
		}
		checkPods(t, seed, in, next)
	}
}

// checkPods checks what a member has, which had before what is in was.
func checkPods(t *testing.T, seed uint64, was, in Input) {
	t.Helper()
	offers, readyOf, ranks := map[string]servicednsplan.Offer{}, map[string]int{}, map[string]int{}
	for _, o := range in.Offers {
		offers[o.Cluster] = o
	}
	for _, s := range in.Have {
		cluster := s.Labels[v1beta1.SourceClusterLabel]
		o, there := offers[cluster]
		if !there || cluster == in.Member {
			t.Fatalf("seed %d: %s is of no other cluster", seed, s.Name)
		}
		e, connected := in.Endpoints[cluster]
		for _, endpoint := range s.Endpoints {
			a := netip.MustParseAddr(endpoint.Addresses[0])
			flat := o.Network == "n"
			isPod := slices.ContainsFunc(e.Ready, func(b Backends) bool {
				return slices.Contains(b.Addresses, a) && reflect.DeepEqual(b.Ports, s.Ports)
			}) && v1beta1.InCIDRs(o.PodCIDRs, a) && !v1beta1.InCIDRs([]string{"10.128.0.0/14"}, a)
			wasGiven := slices.ContainsFunc(was.Have, func(h *discoveryv1.EndpointSlice) bool {
				return h.Labels[v1beta1.SourceClusterLabel] == cluster && slices.ContainsFunc(h.Endpoints, func(w discoveryv1.Endpoint) bool { return w.Addresses[0] == a.String() })
			})
			if connected && flat && !isPod || connected && !flat && (!slices.Contains(e.Balancers, a) || len(e.Ready) == 0) || !connected && !wasGiven {
				t.Fatalf("seed %d: %s has %s, of a cluster that is connected %v, flat %v", seed, s.Name, a, connected, flat)
			}
			if *endpoint.Conditions.Ready {
				readyOf[cluster]++
			}
		}
		ranks[cluster] = o.Rank
		if !connected && in.Away[cluster] && !o.CutOff {
			ranks[cluster] = max(o.Rank, servicednsplan.RankUnseen)
		}
	}
	best := servicednsplan.RankUnseen + 1
	for _, rank := range ranks {
		best = min(best, rank)
	}
	for cluster, rank := range ranks {
		if readyOf[cluster] > 0 != (rank == best) || readyOf[cluster] > maxPods {
			t.Fatalf("seed %d: %s of rank %d, the best has %d: %d endpoints are ready", seed, cluster, rank, best, readyOf[cluster])
		}
	}
}
