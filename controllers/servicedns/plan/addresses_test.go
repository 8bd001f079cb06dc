package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

// A cluster reports a load balancer address that no load balancer can have. It is not published, not checked and not
// offered to other clusters, and the object's condition reports it. Other addresses stay.
func TestAddressesAreFiltered(t *testing.T) {
	web := with(service("east-a=127.0.0.1,169.254.169.254", "east-b=0.0.0.0,192.0.2.2", "west-a=lb.cloud.test"), `{"healthCheck":{"type":"HTTP"}}`)
	in := input(threeClusters(), web)
	in.Offers = true
	in.Resolved = map[string][]netip.Addr{"lb.cloud.test.": {netip.MustParseAddr("::1"), netip.MustParseAddr("192.0.2.3"), netip.MustParseAddr("224.0.0.1")}}
	got := Records(in)
	check(t, got, []string{"@ A 192.0.2.2 192.0.2.3", "a.east CNAME east", "a.west CNAME lb.cloud.test.", "b.east A 192.0.2.2", "east A 192.0.2.2", "west CNAME lb.cloud.test."}, []string{
		"east-a: load balancer address 127.0.0.1 is not used: it is a loopback address",
		"east-a: load balancer address 169.254.169.254 is not used: it is a link-local address",
		"east-b: load balancer address 0.0.0.0 is not used",
		"west-a: address 224.0.0.1 of load balancer host lb.cloud.test. is not used: it is a multicast address",
		"west-a: address ::1 of load balancer host lb.cloud.test. is not used: it is a loopback address",
	})
	for _, target := range got.Targets {
		if slices.Contains([]string{"127.0.0.1", "169.254.169.254", "0.0.0.0"}, target.Address) {
			t.Errorf("it is checked: %s", target)
		}
	}
	var offered []string
	for _, o := range got.Offers {
		offered = append(offered, addressTexts(o.Addresses)...)
	}
	if !slices.Equal(offered, []string{"192.0.2.2", "192.0.2.3"}) {
		t.Errorf("offered to other clusters: %q", offered)
	}
	if c := got.Condition(nil); c == nil || c.Published || c.Reason != AddressRejected || !strings.Contains(c.Message, "cluster east-a: load balancer address 127.0.0.1") {
		t.Errorf("condition %+v", c)
	}
}

// A host that stands for whoever asks (RFC 6761) is no load balancer.
func TestLocalhostIsNoLoadBalancer(t *testing.T) {
	in := input(threeClusters(), service("east-a=localhost", "east-b=lb.LOCALHOST.", "west-a=localhost.cloud.test"))
	got := Records(in)
	check(t, got, []string{"@ CNAME localhost.cloud.test.", "a.east CNAME east", "a.west CNAME localhost.cloud.test.", "b.east CNAME east", "east CNAME @", "west CNAME localhost.cloud.test."}, []string{
		"east-a: load balancer host localhost. is not used: it is whoever asks for it",
		"east-b: load balancer host lb.localhost. is not used: it is whoever asks for it",
	})
	if c := got.Condition(nil); c == nil || c.Reason != AddressRejected {
		t.Errorf("condition %+v", c)
	}
}

// The number of addresses and hosts per cluster and object, and of addresses per host, is bounded: answers stay small,
// and lookups few.
func TestReportedAddressesAreBounded(t *testing.T) {
	var some, hosts []string
	var found []netip.Addr
	for i := range 100 {
		some = append(some, fmt.Sprintf("192.0.2.%d", i+1))
		hosts = append(hosts, fmt.Sprintf("lb%d.cloud.test", i))
		found = append(found, netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}))
	}
	in := input(threeClusters(), service("east-a="+strings.Join(some, ","), "east-b="+strings.Join(hosts, ","), "west-a=lb.cloud.test"))
	in.Resolved = map[string][]netip.Addr{"lb.cloud.test.": found}
	got := Records(in)
	for _, set := range got.Records {
		if len(set.Rdata) > 2*maxOfCluster {
			t.Errorf("%s has %d values", set.Name, len(set.Rdata))
		}
	}
	if len(got.Resolve) > maxOfCluster+1 {
		t.Errorf("%d hosts are looked up", len(got.Resolve))
	}
	if c := got.Condition(nil); c == nil || c.Reason != AddressRejected || !strings.Contains(c.Message, "cluster east-a: 84 of its 100 load balancer addresses are not used: at most 16 of a cluster are") {
		t.Errorf("condition %+v", c)
	}
}

// Whatever a member reports, no record, offer or check has an address that no load balancer can have.
func FuzzRecords(f *testing.F) {
	f.Add("192.0.2.1", "lb.cloud.test", []byte{127, 0, 0, 1}, "shop.example.com")
	f.Add("127.0.0.1", "", []byte{10, 0, 0, 1}, "example.com")
	f.Add("::ffff:169.254.169.254", "example.com.", []byte("\xfe\x80............\x00\x01"), "ns.example.com")
	f.Add("ff02::1%eth0", "a b", []byte{}, "*.example.com")
	f.Fuzz(func(t *testing.T, ip, host string, resolved []byte, own string) {
		web := service("east-a="+ip, "east-b="+host, "west-a=192.0.2.9")
		web.Settings = &v1beta1.DNSSettings{Hosts: []string{own}, HealthCheck: &v1beta1.DNSHealthCheck{Type: v1beta1.DNSHealthCheckHTTP}}
		in := input(threeClusters(), web)
		in.Offers, in.Resolved = true, map[string][]netip.Addr{}
		if addr, ok := netip.AddrFromSlice(resolved); ok {
			for _, name := range Records(in).Resolve {
				in.Resolved[name] = []netip.Addr{addr}
			}
		}
		got := Records(in)
		for _, set := range got.Records {
			for _, data := range set.Rdata {
				if addr, err := netip.ParseAddr(data); err == nil && v1beta1.RefuseAddress(addr) != nil {
					t.Errorf("%s", set)
				}
			}
		}
		for _, o := range got.Offers {
			if slices.ContainsFunc(o.Addresses, func(a netip.Addr) bool { return v1beta1.RefuseAddress(a) != nil }) {
				t.Errorf("offer %v", o)
			}
		}
		for _, target := range got.Targets {
			if addr, err := netip.ParseAddr(target.Address); err == nil && v1beta1.RefuseAddress(addr) != nil {
				t.Errorf("target %s", target)
			}
		}
	})
}
