package cluster

import (
	"net"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestServerAddressIsTheOneWithTheLongestMatch(t *testing.T) {
	entries := []v1beta1.ServerAddressByClientCIDR{
		{ClientCIDR: "0.0.0.0/0", ServerAddress: "public.example"},
		{ClientCIDR: "10.1.0.0/16", ServerAddress: "10.1.0.1:6443"},
		{ClientCIDR: "10.0.0.0/8", ServerAddress: "private.example"},
		{ClientCIDR: "2001:db8::/32", ServerAddress: "2001:db8::1"},
	}
	for own, want := range map[string]string{
		"192.0.2.9": "public.example", "10.1.2.3": "10.1.0.1:6443", "10.2.0.1": "private.example", "2001:db8::9": "[2001:db8::1]",
	} {
		if got, err := serverAddress(entries, []net.IP{net.ParseIP(own)}); got != want || err != nil {
			t.Errorf("from %s: %q, %v; want %q", own, got, err, want)
		}
	}
	if got, err := serverAddress(entries[1:], []net.IP{net.ParseIP("192.0.2.9")}); err == nil {
		t.Errorf("with no match: %q, want an error", got)
	}
}

func TestJoinPathKeepsWhatIsAskedFor(t *testing.T) {
	for sub, want := range map[string]string{"": "/base", "/api/": "/base/api/", "api/v1": "/base/api/v1", "/../../x": "/base/x"} {
		if got := joinPath("/base", sub); got != want {
			t.Errorf("%q: %q, want %q", sub, got, want)
		}
	}
}
