package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestIngressesOfLoadBalancers: they have the addresses of load balancers, the nearest first, whatever clusters say.
func TestIngressesOfLoadBalancers(t *testing.T) {
	clusters := service("east-a=192.0.2.99")
	balanced := Object{Kind: KindIngress, Namespace: "default", Name: "web", Hosts: []string{"www.example.com", "other.test"}, Balanced: true, Ingresses: clusters.Ingresses}
	in := elsewhere(threeClusters(), balanced)
	in.LoadBalancers = []LoadBalancer{
		{Name: "one", Region: "east", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}},
		{Name: "two", Region: "west", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}},
		{Name: "three", Region: "west", Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}},
	}
	p := Records(in)
	var got []string
	for _, set := range p.Records {
		line := fmt.Sprintf("%s %s %v", set.Name, set.Type, set.Rdata)
		for _, v := range set.Variants {
			line += fmt.Sprintf(" %s%v", v.Region, v.Rdata)
		}
		got = append(got, line)
	}
	want := []string{"www.example.com. A [192.0.2.1 192.0.2.2] [192.0.2.1 192.0.2.2] east[192.0.2.1] west[192.0.2.2]", "www.example.com. AAAA [2001:db8::1]"}
	if !slices.Equal(got, want) {
		t.Errorf("records\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !slices.ContainsFunc(p.Reasons, func(r Reason) bool { return r.Code == AddressRejected && r.Cluster == "three" }) {
		t.Errorf("reasons %v, want one for the address that nobody can reach", p.Reasons)
	}
	in.LoadBalancers = nil
	if p := Records(in); len(p.Records) > 0 || !slices.ContainsFunc(p.Reasons, func(r Reason) bool { return r.Code == NoHealthyClusters }) {
		t.Errorf("without load balancers: %v, reasons %v", p.Records, p.Reasons)
	}
}

func TestWhatLoadBalancersSay(t *testing.T) {
	many := `{"addresses":[` + strings.TrimSuffix(strings.Repeat(`"192.0.2.1",`, 17), ",") + `]}`
	got := ParseLoadBalancers(map[string]string{"a": `{"region":"east","addresses":["192.0.2.1"]}`, "b": `{"addresses":["x"]}`, "c": `{}`, "d": many, "e": ""})
	if len(got) != 1 || got[0].Name != "a" || got[0].Region != "east" {
		t.Errorf("load balancers %v, want a alone", got)
	}
	for class, want := range map[string]bool{v1beta1.IngressClassName: true, "nginx": false, "": false} {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": KindIngress, "spec": map[string]any{"ingressClassName": class}}}
		if o, err := Read(u, nil); err != nil || o.Balanced != want || IsBalanced(u) != want {
			t.Errorf("class %q: balanced %t, %v; want %t", class, o.Balanced, err, want)
		}
	}
	if u := (&unstructured.Unstructured{Object: map[string]any{"kind": KindService, "spec": map[string]any{"ingressClassName": v1beta1.IngressClassName, "type": string(corev1.ServiceTypeLoadBalancer)}}}); IsBalanced(u) {
		t.Error("a Service is taken for an Ingress")
	}
}

// TestServicesOfLoadBalancers: their names have the addresses of those load balancers that their status has, each level its own; what clusters have is offered
// as of any Service.
func TestServicesOfLoadBalancers(t *testing.T) {
	balanced := service("east-a=192.0.2.99", "west-a=192.0.2.98")
	balanced.Balanced, balanced.BalancedAt = true, []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.66")}
	in := elsewhere(threeClusters(), balanced)
	in.Offers = true
	in.LoadBalancers = []LoadBalancer{
		{Name: "one", Region: "east", Zone: "a", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}},
		{Name: "two", Region: "east", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}},
		{Name: "three", Region: "west", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.3")}}, // does not serve it
	}
	p := Records(in)
	want := []string{"@ A 192.0.2.1 192.0.2.2", "east A 192.0.2.1 192.0.2.2", "a.east A 192.0.2.1", "b.east CNAME east", "west CNAME @", "a.west CNAME west"}
	got := lines(p)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("records\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var offers []string
	for _, o := range p.Offers {
		offers = append(offers, fmt.Sprintf("%s %d %v", o.Cluster, o.Rank, o.Addresses))
	}
	if want := []string{"east-a 0 [192.0.2.99]", "west-a 0 [192.0.2.98]"}; !slices.Equal(offers, want) {
		t.Errorf("offers %q, want %q", offers, want)
	}
}

// TestServiceOfTheClass: it counts for those of type LoadBalancer alone.
func TestServiceOfTheClass(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"kind": KindService, "spec": map[string]any{"loadBalancerClass": v1beta1.LoadBalancerClassName, "type": string(corev1.ServiceTypeLoadBalancer)},
		"status": map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1"}, map[string]any{"hostname": "x"}}}},
	}}
	o, err := Read(u, nil)
	if err != nil || !o.Balanced || len(o.BalancedAt) != 1 || o.BalancedAt[0] != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("balanced %t at %v, %v", o.Balanced, o.BalancedAt, err)
	}
	u.Object["spec"].(map[string]any)["type"] = string(corev1.ServiceTypeClusterIP)
	if IsBalanced(u) || BalancedAt(u) != nil {
		t.Error("a Service of type ClusterIP is balanced")
	}
}
