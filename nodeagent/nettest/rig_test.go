package nettest

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

var families = map[string]struct{ vip netip.Addr }{
	"IPv4": {netip.MustParseAddr("10.96.0.10")},
	"IPv6": {netip.MustParseAddr("fd00:10:96::10")},
}

// nft loads rules into a node by nft itself.
func nft(t *testing.T, n *Node, rules string) {
	t.Helper()
	must(t, "nft", n.Do(func() error {
		cmd := exec.Command("/usr/sbin/nft", "-f", "-")
		cmd.Stdin = strings.NewReader(rules)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Log(string(out))
		}
		return err
	}))
}

// The rig without rules: who is there answers and sees who asks; who isn't refuses.
func TestPlainTraffic(t *testing.T) {
	rig := New(t)
	here, there := rig.Nodes[0].Pod(t, "here"), rig.Nodes[1].Pod(t, "there")
	there.ServeHTTP(t, 8080)
	there.ServeUDP(t, 53)
	for name, f := range families {
		t.Run(name, func(t *testing.T) {
			for _, client := range []*Host{here, rig.Nodes[0].Host, rig.Nodes[1].Host} {
				want := Answer{"there", client.Address(f.vip)}
				if client == rig.Nodes[1].Host { // a node speaks to its own pods with the address at their cable
					want.Client = nth(rig.Nodes[1].prefix(f.vip), 1)
				}
				check(t, client, want, func() (Answer, error) { return client.Get(at(there, f.vip, 8080)) })
				check(t, client, want, client.Flow(t, at(there, f.vip, 53)).Ask)
			}
			must(t, "a closed port", here.Refused(at(there, f.vip, 81)))
			if _, err := here.Flow(t, at(there, f.vip, 54)).Ask(); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("a closed UDP port: %v, want refused", err)
			}
			if err := here.Refused(at(there, f.vip, 8080)); err == nil {
				t.Error("an open port counts as refused")
			}
		})
	}
}

// The first question for an address that a host was just given is answered: by it a packet's sender finds the host.
func TestNewAddressAnswersAtOnce(t *testing.T) {
	rig := New(t)
	for i := range 32 {
		addr := netip.MustParseAddr(fmt.Sprintf("2001:db8:0:2::%x", 0x100+i))
		flow := rig.Nodes[0].Flow(t, netip.AddrPortFrom(addr, 54))
		rig.Outside.address(t, "eth0", netip.PrefixFrom(addr, wireV6.Bits()))
		if _, err := flow.Ask(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("address %d: %v, want the closed port refused", i, err)
		}
	}
}

func check(t *testing.T, client *Host, want Answer, ask func() (Answer, error)) {
	t.Helper()
	if got, err := ask(); err != nil || got != want {
		t.Errorf("from %s: %v %v, want %v", client.Name, got, err, want)
	}
}

func (n *Node) prefix(like netip.Addr) netip.Prefix {
	if like.Is4() {
		return n.PodsV4
	}
	return n.PodsV6
}

func at(h *Host, family netip.Addr, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(h.Address(family), port)
}

// Rules made by hand: the rig shows what they do, and that rules may be wrong.
func TestRulesByHand(t *testing.T) {
	rig := New(t)
	client, server := rig.Nodes[0].Pod(t, "client"), rig.Nodes[1].Pod(t, "server")
	server.ServeHTTP(t, 8080)
	for name, f := range families {
		t.Run(name, func(t *testing.T) {
			family, to := "ip", at(server, f.vip, 8080).String()
			if f.vip.Is6() {
				family = "ip6"
			}
			vip := netip.AddrPortFrom(f.vip, 80)
			table := func(kind, rule string) string {
				return fmt.Sprintf("table %[1]s t\ndelete table %[1]s t\ntable %[1]s t {\nchain c {\ntype %[2]s hook prerouting priority dstnat;\n%[1]s daddr %[3]s %[4]s\n}\n}",
					family, kind, f.vip, rule)
			}
			nft(t, rig.Nodes[0], table("nat", "tcp dport 80 dnat to "+to))
			check(t, client, Answer{"server", client.Address(f.vip)}, func() (Answer, error) { return client.Get(vip) })
			nft(t, rig.Nodes[0], table("filter", "tcp dport 80 reject with tcp reset"))
			must(t, "reset", client.Refused(vip))
			nft(t, rig.Nodes[0], table("filter", "tcp dport 80 reject"))
			if err := client.Refused(vip); !errors.Is(err, syscall.EINPROGRESS) {
				t.Errorf("a refusal by ICMP is lost while connect() holds the socket, but the rig says: %v", err)
			}
			nft(t, rig.Nodes[0], table("filter", "drop"))
			if err := client.Refused(vip); !errors.Is(err, syscall.EINPROGRESS) {
				t.Errorf("dropped, but the rig says: %v", err)
			}
		})
	}
}
