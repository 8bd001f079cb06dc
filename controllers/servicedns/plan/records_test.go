package plan

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/dnsprovider"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const zone = "example.com."

// service returns "default/web" with an annotation for each cluster: "cluster=ip,host,…"; "cluster" alone has no ready
// endpoint.
func service(items ...string) Object {
	ingresses := &v1beta1.ServiceIngresses{}
	for _, item := range items {
		name, list, ready := strings.Cut(item, "=")
		c := v1beta1.ClusterServiceIngress{Cluster: name}
		switch {
		case list == "never":
			c.Seen = new(false)
		case ready:
			c.Items = []corev1.LoadBalancerIngress{}
		}
		for at := range strings.SplitSeq(strings.TrimPrefix(list, "never"), ",") {
			if _, err := netip.ParseAddr(at); err == nil {
				c.Items = append(c.Items, corev1.LoadBalancerIngress{IP: at})
			} else if at != "" {
				c.Items = append(c.Items, corev1.LoadBalancerIngress{Hostname: at})
			}
		}
		ingresses.Items = append(ingresses.Items, c)
	}
	return Object{Kind: KindService, Namespace: "default", Name: "web", Type: corev1.ServiceTypeLoadBalancer, Ingresses: ingresses, Reported: true}
}

func threeClusters() []Cluster {
	return []Cluster{
		{Name: "east-a", Ready: true, Weight: 100, Zones: []string{"a"}, Region: "east"},
		{Name: "east-b", Ready: true, Weight: 100, Zones: []string{"b"}, Region: "east"},
		{Name: "west-a", Ready: true, Weight: 100, Zones: []string{"a"}, Region: "west"},
	}
}

// input has the clusters that the objects are in. Other clusters' places have names too: see elsewhere.
func input(clusters []Cluster, objects ...Object) Input {
	return elsewhere(slices.DeleteFunc(slices.Clone(clusters), func(c Cluster) bool {
		return !slices.ContainsFunc(objects, func(o Object) bool {
			return o.Ingresses != nil && slices.ContainsFunc(o.Ingresses.Items, func(i v1beta1.ClusterServiceIngress) bool { return i.Cluster == c.Name })
		})
	}), objects...)
}

// elsewhere is input with all clusters.
func elsewhere(clusters []Cluster, objects ...Object) Input {
	return Input{Federation: "fed", Zone: zone, TTL: 15, Objects: objects, Clusters: clusters}
}

// lines formats records as "zone.region TYPE data", relative to web.default.fed.svc; "@" is global.
func lines(p Plan) (out []string) {
	for _, set := range p.Records {
		short := func(s string) string {
			if s == "web.default.fed.svc."+zone {
				return "@"
			}
			return strings.TrimSuffix(strings.TrimPrefix(s, "web.default.fed.svc."), "."+zone)
		}
		data := make([]string, len(set.Rdata))
		for i, d := range set.Rdata {
			data[i] = short(d)
		}
		out = append(out, fmt.Sprintf("%s %s %s", short(set.Name), set.Type, strings.Join(data, " ")))
	}
	slices.Sort(out)
	return out
}

func TestRecords(t *testing.T) {
	change := func(at int, do func(*Cluster)) []Cluster {
		c := threeClusters()
		do(&c[at])
		return c
	}
	for name, c := range map[string]struct {
		in      Input
		want    []string
		reasons []string // parts of them, in order
	}{
		"all three serve": {
			in: input(threeClusters(), service("east-a=192.0.2.1", "east-b=192.0.2.2", "west-a=192.0.2.3")),
			want: []string{"@ A 192.0.2.1 192.0.2.2 192.0.2.3", "a.east A 192.0.2.1", "a.west A 192.0.2.3",
				"b.east A 192.0.2.2", "east A 192.0.2.1 192.0.2.2", "west A 192.0.2.3"},
		},
		"a zone without a ready endpoint leads to its region": {
			in:      input(threeClusters(), service("east-a", "east-b=192.0.2.2")),
			want:    []string{"@ A 192.0.2.2", "a.east CNAME east", "b.east A 192.0.2.2", "east A 192.0.2.2"},
			reasons: []string{"east-a: no endpoint is ready"},
		},
		"a joined cluster without the Service has the names of its place, which lead up": {
			in:   elsewhere(threeClusters(), service("east-a=192.0.2.1")),
			want: []string{"@ A 192.0.2.1", "a.east A 192.0.2.1", "a.west CNAME west", "b.east CNAME east", "east A 192.0.2.1", "west CNAME @"},
		},
		"so has one that nothing is known of but its place": {
			in:   elsewhere(change(2, func(c *Cluster) { c.Ready, c.Weight = false, 0 }), service("east-a=192.0.2.1", "east-b=192.0.2.2")),
			want: []string{"@ A 192.0.2.1 192.0.2.2", "a.east A 192.0.2.1", "a.west CNAME west", "b.east A 192.0.2.2", "east A 192.0.2.1 192.0.2.2", "west CNAME @"},
		},
		"a Service that is in no joined cluster has no names": {in: elsewhere(threeClusters(), service())},
		"a region whose cluster cannot be reached leads to the global name": {
			in:      input(change(2, func(c *Cluster) { c.Ready = false }), service("east-a=192.0.2.1", "west-a=192.0.2.3")),
			want:    []string{"@ A 192.0.2.1", "a.east A 192.0.2.1", "a.west CNAME west", "east A 192.0.2.1", "west CNAME @"},
			reasons: []string{"west-a: the cluster is not ready"},
		},
		"nothing serves: CNAMEs up to a global name that has nothing": {
			in:      input(threeClusters(), service("east-a")),
			want:    []string{"a.east CNAME east", "east CNAME @"},
			reasons: []string{"web.default.fed.svc.example.com.: no cluster serves", "no endpoint is ready"},
		},
		"a drained cluster leads its zone up, and is left out where others serve": {
			in:      input(change(0, func(c *Cluster) { c.Weight = 0 }), service("east-a=192.0.2.1", "east-b=192.0.2.2")),
			want:    []string{"@ A 192.0.2.2", "a.east CNAME east", "b.east A 192.0.2.2", "east A 192.0.2.2"},
			reasons: []string{"east-a: the cluster's DNS weight is 0"},
		},
		"a region with only a drained cluster leads up": {
			in:      input(change(2, func(c *Cluster) { c.Weight = 0 }), service("east-a=192.0.2.1", "west-a=192.0.2.3")),
			want:    []string{"@ A 192.0.2.1", "a.east A 192.0.2.1", "a.west CNAME west", "east A 192.0.2.1", "west CNAME @"},
			reasons: []string{"west-a: the cluster's DNS weight is 0"},
		},
		"where only a drained cluster serves, the global name keeps its addresses": {
			in:      input(change(0, func(c *Cluster) { c.Weight = 0 }), service("east-a=192.0.2.1", "east-b")),
			want:    []string{"@ A 192.0.2.1", "a.east CNAME east", "b.east CNAME east", "east CNAME @"},
			reasons: []string{"east-a: the cluster's DNS weight is 0", "east-b: no endpoint"},
		},
		"a cluster that is failed over is left out when it is ready again, as its pods are about to go": {
			in:      input(change(0, func(c *Cluster) { c.FailedOver = true }), service("east-a=192.0.2.1", "east-b=192.0.2.2")),
			want:    []string{"@ A 192.0.2.2", "a.east CNAME east", "b.east A 192.0.2.2", "east A 192.0.2.2"},
			reasons: []string{"east-a: the cluster is failed over, and its pods move"},
		},
		"where only a cluster that is failed over serves, the global name has its addresses": {
			in:      input(change(0, func(c *Cluster) { c.FailedOver = true }), service("east-a=192.0.2.1", "east-b")),
			want:    []string{"@ A 192.0.2.1", "a.east CNAME east", "b.east CNAME east", "east CNAME @"},
			reasons: []string{"east-a: the cluster is failed over", "east-b: no endpoint"},
		},
		"a cluster that is failed over and vanished with most others stays as it was": {
			in: input([]Cluster{{Name: "east-a", CutOff: true, FailedOver: true, Weight: 100, Zones: []string{"a"}, Region: "east"}, {Name: "east-b", Ready: true, Weight: 100, Zones: []string{"b"}, Region: "east"}},
				service("east-a=192.0.2.1", "east-b=192.0.2.2")),
			want:    []string{"@ A 192.0.2.1 192.0.2.2", "a.east A 192.0.2.1", "b.east A 192.0.2.2", "east A 192.0.2.1 192.0.2.2"},
			reasons: []string{"east-a: most clusters vanished together"},
		},
		"a name is not emptied because its only cluster cannot be seen": {
			in:      input(change(0, func(c *Cluster) { c.Ready = false }), service("east-a=192.0.2.1", "east-b")),
			want:    []string{"@ A 192.0.2.1", "a.east CNAME east", "b.east CNAME east", "east CNAME @"},
			reasons: []string{"east-a: no other cluster serves: the addresses stay", "east-a: the cluster is not ready", "east-b: no endpoint"},
		},
		"clusters that vanished with most others stay as they were": {
			in: input([]Cluster{{Name: "east-a", CutOff: true, Weight: 100, Zones: []string{"a"}, Region: "east"}, {Name: "east-b", Ready: true, Weight: 100, Zones: []string{"b"}, Region: "east"}},
				service("east-a=192.0.2.1", "east-b=192.0.2.2")),
			want:    []string{"@ A 192.0.2.1 192.0.2.2", "a.east A 192.0.2.1", "b.east A 192.0.2.2", "east A 192.0.2.1 192.0.2.2"},
			reasons: []string{"east-a: most clusters vanished together"},
		},
		"of those, one that a person has drained is out": {
			in: input([]Cluster{{Name: "east-a", CutOff: true, Zones: []string{"a"}, Region: "east"}, {Name: "east-b", CutOff: true, Weight: 100, Zones: []string{"b"}, Region: "east"}, {Name: "west-a", Ready: true, Weight: 100, Zones: []string{"a"}, Region: "west"}},
				service("east-a=192.0.2.1", "east-b=192.0.2.2", "west-a=192.0.2.3")),
			want:    []string{"@ A 192.0.2.2 192.0.2.3", "a.east CNAME east", "a.west A 192.0.2.3", "b.east A 192.0.2.2", "east A 192.0.2.2", "west A 192.0.2.3"},
			reasons: []string{"east-a: the cluster's DNS weight is 0", "east-b: most clusters vanished together: its addresses stay, for it may be the federation that is cut off; if the cluster is dead: kubectl federation drain east-b"},
		},
		"a cluster with several zones is in each": {
			in:   input(change(0, func(c *Cluster) { c.Zones = []string{"a", "c"} }), service("east-a=192.0.2.1")),
			want: []string{"@ A 192.0.2.1", "a.east A 192.0.2.1", "c.east A 192.0.2.1", "east A 192.0.2.1"},
		},
		"clusters in one zone share its name": {
			in:   input(change(1, func(c *Cluster) { c.Zones = []string{"A"} }), service("east-a=192.0.2.1", "east-b=192.0.2.2")),
			want: []string{"@ A 192.0.2.1 192.0.2.2", "a.east A 192.0.2.1 192.0.2.2", "east A 192.0.2.1 192.0.2.2"},
		},
		"a cluster without labels counts for the global name": {
			in:      input(change(0, func(c *Cluster) { c.Zones, c.Region = nil, "" }), service("east-a=192.0.2.1")),
			want:    []string{"@ A 192.0.2.1"},
			reasons: []string{"no region"},
		},
		"a cluster without zones counts for the region": {
			in:      input(change(0, func(c *Cluster) { c.Zones = nil }), service("east-a=192.0.2.1")),
			want:    []string{"@ A 192.0.2.1", "east A 192.0.2.1"},
			reasons: []string{"no zones"},
		},
		"both families, each address once, sorted": {
			in: input(threeClusters(), service("west-a=2001:db8::2,192.0.2.9,2001:DB8:0::1,192.0.2.9,::ffff:192.0.2.8")),
			want: []string{"@ A 192.0.2.8 192.0.2.9", "@ AAAA 2001:db8::1 2001:db8::2", "a.west A 192.0.2.8 192.0.2.9",
				"a.west AAAA 2001:db8::1 2001:db8::2", "west A 192.0.2.8 192.0.2.9", "west AAAA 2001:db8::1 2001:db8::2"},
		},
		"a cluster that is not joined has no names": {
			in:      input(threeClusters()[:1], service("east-a=192.0.2.1", "west-a=192.0.2.3")),
			want:    []string{"@ A 192.0.2.1", "a.east A 192.0.2.1", "east A 192.0.2.1"},
			reasons: []string{"west-a: the cluster is not joined"},
		},
		"a ready endpoint and no load balancer address yet": {
			in:      input(threeClusters(), service("east-a=")),
			want:    []string{"a.east CNAME east", "east CNAME @"},
			reasons: []string{"no cluster serves"},
		},
		"another type has no records": {
			in: input(threeClusters(), func() Object {
				s := service("east-a=192.0.2.1")
				s.Type = corev1.ServiceTypeClusterIP
				return s
			}()),
			reasons: []string{"must be LoadBalancer"},
		},
		"no annotation": {in: input(threeClusters(), Object{Kind: KindService, Namespace: "default", Name: "web", Type: corev1.ServiceTypeLoadBalancer})},
		"a label that is no DNS label": {
			in:      input(change(0, func(c *Cluster) { c.Region = "eu.east" }), service("east-a=192.0.2.1")),
			want:    []string{"@ A 192.0.2.1"},
			reasons: []string{`no names of the region: label "eu.east"`},
		},
		"a zone name that is too long": {
			in:      input(change(0, func(c *Cluster) { c.Zones = []string{"a", strings.Repeat("z", 64)} }), service("east-a=192.0.2.1")),
			want:    []string{"@ A 192.0.2.1", "a.east A 192.0.2.1", "east A 192.0.2.1"},
			reasons: []string{"1 to 63"},
		},
		"names longer than 255 bytes": {
			in: func() Input {
				in := input(threeClusters(), service("east-a=192.0.2.1"))
				in.Zone = strings.Repeat("abcdefg.", 29) + zone
				return in
			}(),
			reasons: []string{"at most 255"},
		},
		"an address that is none": {
			in: input(threeClusters(), Object{Kind: KindService, Namespace: "default", Name: "web", Type: corev1.ServiceTypeLoadBalancer,
				Ingresses: &v1beta1.ServiceIngresses{Items: []v1beta1.ClusterServiceIngress{
					{Cluster: "east-a", Items: []corev1.LoadBalancerIngress{{IP: "192.0.2"}, {IP: "192.0.2.1"}}}}}}),
			want:    []string{"@ A 192.0.2.1", "a.east A 192.0.2.1", "east A 192.0.2.1"},
			reasons: []string{`"192.0.2": must be an IP address`},
		},
	} {
		t.Run(name, func(t *testing.T) { check(t, Records(c.in), c.want, c.reasons) })
	}
}

func check(t *testing.T, got Plan, want, reasons []string) {
	t.Helper()
	if !slices.Equal(lines(got), want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines(got), "\n"), strings.Join(want, "\n"))
	}
	if len(got.Reasons) != len(reasons) {
		t.Fatalf("reasons %v, want %q", got.Reasons, reasons)
	}
	for i, part := range reasons {
		if !strings.Contains(got.Reasons[i].String(), part) {
			t.Errorf("reason %q, want %q in it", got.Reasons[i], part)
		}
	}
}

func TestHostNamesOfLoadBalancers(t *testing.T) {
	two := service("east-a=one.lb.test", "east-b=two.lb.test")
	known := map[string][]netip.Addr{"one.lb.test.": {netip.MustParseAddr("192.0.2.1")}, "two.lb.test.": {netip.MustParseAddr("2001:db8::2")}}
	for name, c := range map[string]struct {
		service             Object
		resolved            map[string][]netip.Addr
		want, reasons, need []string
	}{
		"alone at every level: a CNAME": {
			service: service("east-a=One.lb.test"),
			want:    []string{"@ CNAME one.lb.test.", "a.east CNAME one.lb.test.", "east CNAME one.lb.test."},
		},
		"two at a level: their addresses": {
			service: two, resolved: known, need: []string{"one.lb.test.", "two.lb.test."},
			want: []string{"@ A 192.0.2.1", "@ AAAA 2001:db8::2", "a.east CNAME one.lb.test.", "b.east CNAME two.lb.test.",
				"east A 192.0.2.1", "east AAAA 2001:db8::2"},
		},
		"two at a level, not known yet: the first": {
			service: two, need: []string{"one.lb.test.", "two.lb.test."},
			want: []string{"@ CNAME one.lb.test.", "a.east CNAME one.lb.test.", "b.east CNAME two.lb.test.", "east CNAME one.lb.test."},
			reasons: []string{"east.example.com.: no address", "east.example.com.: the addresses of host one", "east.example.com.: the addresses of host two",
				"svc.example.com.: no address", "svc.example.com.: the addresses of host one", "svc.example.com.: the addresses of host two"},
		},
		"beside an address: the address until it is known": {
			service: service("east-a=one.lb.test,192.0.2.7"), need: []string{"one.lb.test."},
			want:    []string{"@ A 192.0.2.7", "a.east A 192.0.2.7", "east A 192.0.2.7"},
			reasons: []string{"a.east.", "svc.east.", "svc.example.com."},
		},
		"in our own zone: left out": {
			service: service("east-a=web.default.fed.svc.example.com,192.0.2.7"),
			want:    []string{"@ A 192.0.2.7", "a.east A 192.0.2.7", "east A 192.0.2.7"}, reasons: []string{"must be outside the zone"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(threeClusters(), c.service)
			in.Resolved = c.resolved
			got := Records(in)
			check(t, got, c.want, c.reasons)
			if !slices.Equal(got.Resolve, c.need) {
				t.Errorf("asks for %q, want %q", got.Resolve, c.need)
			}
		})
	}
}

// randomInput returns up to 4 clusters in up to 2 regions, and up to 3 Services.
func randomInput(r *rand.Rand) Input {
	in := input(nil)
	for i := range r.IntN(5) {
		c := Cluster{Name: fmt.Sprintf("c%d", i), Ready: r.IntN(3) > 0, CutOff: r.IntN(6) == 0, Weight: uint32(r.IntN(3)), Region: []string{"", "east", "west"}[r.IntN(3)]}
		for range r.IntN(3) {
			c.Zones = append(c.Zones, []string{"a", "b", "east"}[r.IntN(3)])
		}
		in.Clusters = append(in.Clusters, c)
	}
	in.Resolved = map[string][]netip.Addr{"h1.test.": {netip.MustParseAddr("192.0.2.101"), netip.MustParseAddr("2001:db8::101")}, "h2.test.": nil}
	for i := range r.IntN(4) {
		var items []string
		for c := range 5 {
			choice := []string{"", "=", "=192.0.2.1", "=192.0.2.2,2001:db8::1", "=h1.test", "=h2.test", "=h3.test,h1.test"}
			if r.IntN(2) == 0 {
				items = append(items, fmt.Sprintf("c%d%s", c, choice[r.IntN(len(choice))]))
			}
		}
		s := service(items...)
		s.Name = fmt.Sprintf("s%d", i)
		in.Objects = append(in.Objects, s)
	}
	return in
}

func TestRecordLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		in := randomInput(r)
		got := Records(in)
		global := map[string]bool{}
		for _, s := range in.Objects {
			global[s.Name+".default.fed.svc."+zone] = true
		}
		names := map[string]bool{}
		for _, set := range got.Records {
			names[set.Name] = true
			if !Owns("fed", zone, set.Name) {
				t.Fatalf("%s is not counted as ours", set.Name)
			}
		}
		for _, set := range got.Records {
			if target := set.Rdata[0]; set.Type == dnsprovider.CNAME && dnsprovider.InZone(target, zone) && !names[target] && !global[target] {
				t.Fatalf("%s leads to %s, which is not there\n%v", set.Name, target, in)
			}
		}
		if _, err := dnsprovider.Diff(nil, got.Records).Apply(nil); err != nil {
			t.Fatalf("no zone can have these records: %v", err)
		}
		for i := range in.Objects {
			for name := range placesOf(&in, &in.Objects[i]) {
				if !names[name] && !global[name] {
					t.Fatalf("%s is not there\n%v", name, in)
				}
			}
		}
		if again := Records(shuffled(r, in)); !reflect.DeepEqual(got, again) {
			t.Fatalf("the order of the input matters:\n%v\n%v", got, again)
		}
	}
}

// placesOf returns the names of a Service at the places of all joined clusters, if one of these has it.
func placesOf(in *Input, o *Object) map[string]bool {
	names, serves := map[string]bool{}, false
	for _, c := range in.Clusters {
		serves = serves || slices.ContainsFunc(o.Ingresses.Items, func(i v1beta1.ClusterServiceIngress) bool { return i.Cluster == c.Name })
		if name := o.Name + ".default.fed.svc."; c.Region != "" {
			names[name+c.Region+"."+zone] = true
			for _, z := range c.Zones {
				names[name+z+"."+c.Region+"."+zone] = true
			}
		}
	}
	if !serves {
		return nil
	}
	return names
}

func shuffled(r *rand.Rand, in Input) Input {
	in.Clusters, in.Objects = slices.Clone(in.Clusters), slices.Clone(in.Objects)
	r.Shuffle(len(in.Clusters), func(i, j int) { in.Clusters[i], in.Clusters[j] = in.Clusters[j], in.Clusters[i] })
	r.Shuffle(len(in.Objects), func(i, j int) { in.Objects[i], in.Objects[j] = in.Objects[j], in.Objects[i] })
	for _, s := range in.Objects {
		items := s.Ingresses.Items
		r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	}
	return in
}

func TestOwns(t *testing.T) {
	for name, want := range map[string]bool{
		"web.default.fed.svc.example.com.":             true,
		"web.default.fed.svc.a.east.example.com.":      true,
		"web.default.other.svc.example.com.":           false,
		"www.example.com.":                             false,
		"web.default.fed.svc.a.b.c.example.com.":       false,
		"web.default.fed.svc.notexample.com.":          false,
		"example.com.":                                 false,
		"_heritage.web.default.fed.x.svc.example.com.": false,
	} {
		if Owns("Fed", zone, name) != want {
			t.Errorf("%s: want %t", name, want)
		}
	}
}

func TestGolden(t *testing.T) {
	clusters := threeClusters()
	clusters[0].Zones = []string{"a", "c"}
	clusters[2].Ready = false
	clusters = append(clusters, Cluster{Name: "lab", Ready: true, Weight: 100})
	api := service("east-a=lb-1.cloud.test", "east-b=lb-2.cloud.test", "west-a=192.0.2.30")
	api.Name = "api"
	in := input(clusters, service("east-a=192.0.2.1,2001:db8::1", "east-b", "lab=192.0.2.99", "west-a=192.0.2.3", "gone=192.0.2.66"), api)
	in.Resolved = map[string][]netip.Addr{"lb-1.cloud.test.": {netip.MustParseAddr("198.51.100.1")}, "lb-2.cloud.test.": {netip.MustParseAddr("198.51.100.2")}}
	got := Records(in)
	var b strings.Builder
	for _, set := range got.Records {
		fmt.Fprintln(&b, set)
	}
	for _, r := range got.Reasons {
		fmt.Fprintln(&b, ";", r)
	}
	const file = "testdata/records.golden"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != b.String() {
		t.Errorf("%v; got\n%s\nwant\n%s\nif it is right, run the test with -update", err, b.String(), want)
	}
}
