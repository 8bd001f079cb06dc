package main

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Node ports have the addresses at which kube-proxy serves them, for its --nodeport-addresses and their default.
func TestNodePortAddresses(t *testing.T) {
	interfaces := addresses("127.0.0.1 10.0.0.1 192.0.2.1 ::1 2001:db8::1 2001:db8::2")
	dual := "InternalIP=192.0.2.1 InternalIP=2001:db8::2 InternalIP=10.0.0.1 ExternalIP=10.0.0.1"
	for name, c := range map[string]struct{ mode, flag, node, want string }{
		"iptables":                     {"iptables", "", dual, "all"},
		"nftables":                     {"nftables", "", dual, "192.0.2.1 2001:db8::2"},
		"nftables, all":                {"nftables", "0.0.0.0/0,::/0", dual, "all"},
		"nftables, all of one":         {"nftables", "0.0.0.0/0", dual, "all"},
		"iptables, primary":            {"iptables", "primary", dual, "192.0.2.1 2001:db8::2"},
		"the Node has one family":      {"nftables", "", "InternalIP=192.0.2.1", "192.0.2.1 2001:db8::1 2001:db8::2"},
		"the Node has external ones":   {"nftables", "", "Hostname=n ExternalIP=10.0.0.1", "10.0.0.1 2001:db8::1 2001:db8::2"},
		"the Node does not say":        {"nftables", "", "", "all"},
		"an address that is not here":  {"nftables", "", "InternalIP=192.0.2.9 InternalIP=2001:db8::9", "0.0.0.0"},
		"a range":                      {"iptables", "192.0.2.0/24,2001:db8::/127", dual, "192.0.2.1 2001:db8::1"},
		"a range of one family":        {"iptables", "2001:db8::2/128", dual, "10.0.0.1 192.0.2.1 2001:db8::2"},
		"a range that matches nothing": {"nftables", "203.0.113.0/24,2001:db8:1::/64", dual, "0.0.0.0"},
	} {
		o, n := &options{proxyMode: c.mode}, &corev1.Node{}
		if c.flag != "" {
			o.nodePortAddresses = strings.Split(c.flag, ",")
		}
		for _, address := range strings.Fields(c.node) {
			kind, value, _ := strings.Cut(address, "=")
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(kind), Address: value})
		}
		got, err := o.nodePortAddrs(n, interfaces)
		if want := addresses(c.want); err != nil || !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%s: %v, %v, want %s", name, got, err, c.want)
		}
	}
}

// addresses reads some; nil for "all".
func addresses(text string) (out []netip.Addr) {
	if text == "all" {
		return nil
	}
	for _, a := range strings.Fields(text) {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}
