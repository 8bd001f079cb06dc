package main

import (
	"strings"
	"testing"
)

// The agent accepts the flag only if the kernel itself ends a blackhole that nobody renews.
func TestWhereANodeMayBeBlackholed(t *testing.T) {
	for _, c := range []struct{ lease, inside, mode, scope, want string }{
		{"", "", "iptables", scopeFederated, ""},
		{"ns/name", "10.0.0.0/8", "nftables", scopeAll, ""},
		{"ns/name", "", "iptables", scopeAll, "--blackhole-lease needs --proxy-mode nftables"},
		{"ns/name", "", "nftables", scopeFederated, "--blackhole-lease needs"},
		{"name", "", "nftables", scopeAll, `--blackhole-lease "name": want NAMESPACE/NAME`},
		{"a/b/c", "", "nftables", scopeAll, `--blackhole-lease "a/b/c": want NAMESPACE/NAME`},
		{"", "10.0.0.0/8", "nftables", scopeAll, `--inside "10.0.0.0/8" needs --blackhole-lease`},
		{"ns/name", "10.0.0.0", "nftables", scopeAll, `--inside "10.0.0.0": want ranges`},
	} {
		o := options{blackholeLease: c.lease, inside: c.inside, proxyMode: c.mode, scope: c.scope, detectLocal: "NodeCIDR"}
		if err := o.checkWatch(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c, err, c.want)
		}
	}
}
