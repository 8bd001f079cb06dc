package v1beta1

import (
	"net/netip"
	"strings"
	"testing"
)

func TestWhereNoLoadBalancerCanBe(t *testing.T) {
	for _, addr := range strings.Fields("192.0.2.1 10.1.2.3 172.16.0.1 192.168.1.1 100.64.0.1 198.18.0.1 2001:db8::1 fd00::1 64:ff9b::c000:201 ::ffff:192.0.2.1 2002:c000:201::1") {
		if err := RefuseAddress(netip.MustParseAddr(addr)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for addr, kind := range map[string]string{
		"127.0.0.1": "loopback", "127.255.0.9": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback", "64:ff9b::7f00:1": "loopback", "::127.0.0.1": "loopback", "2002:7f00:1::1": "loopback",
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified",
		"169.254.169.254": "link-local", "fe80::1": "link-local", "fe80::1%eth0": "link-local", "64:ff9b::a9fe:a9fe": "link-local",
		"224.0.0.1": "multicast", "ff02::1": "multicast", "ff0e::1": "multicast", "255.255.255.255": "broadcast",
	} {
		if err := RefuseAddress(netip.MustParseAddr(addr)); err == nil || !strings.Contains(err.Error(), kind) {
			t.Errorf("%s: error %v, want that it is %s", addr, err, kind)
		}
	}
}

func TestWhichAddressesArePublic(t *testing.T) {
	for _, addr := range strings.Fields("9.9.9.9 172.15.0.1 172.32.0.1 100.128.0.1 192.1.0.1 2600::1 2a00::1 64:ff9b::909:909 ::ffff:9.9.9.9 2001:4860:4860::8888") {
		if err := RefuseAllButPublicAddresses(netip.MustParseAddr(addr)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range strings.Fields("127.0.0.1 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 192.0.0.8 192.0.2.1 198.19.0.1 198.51.100.7 203.0.113.7 240.0.0.1 " +
		"255.255.255.255 fd00::1 fe80::1 100::1 2001:db8::1 2001:2::1 3fff::1 4000::1 64:ff9b::a00:1 ::ffff:10.0.0.1 ::10.0.0.1 2002:a00:1::1") {
		if RefuseAllButPublicAddresses(netip.MustParseAddr(addr)) == nil {
			t.Errorf("%s is given out", addr)
		}
	}
}
