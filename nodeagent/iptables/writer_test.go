package iptables

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/nettest"
	"federation/nodeagent/ruleset"
	"federation/nodeagent/xtables"
)

// testNode returns the node of the mission's sources.
func testNode() *ruleset.Node {
	return &ruleset.Node{
		Name:  "n1",
		Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("2001:db8::10")},
		Pods:  ruleset.Pods{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.180.0.0/14"), netip.MustParsePrefix("fd00:180::/32")}},
	}
}

// testPorts are Ports with all that a rule can have in it, n times in both families.
func testPorts(n int) []*ruleset.Port {
	var out []*ruleset.Port
	for i := range n {
		for _, ipv6 := range []bool{false, true} {
			for _, protocol := range []corev1.Protocol{"TCP", "UDP", "SCTP"} {
				out = append(out, testPort(fmt.Sprint("s", i), i, ipv6, protocol))
			}
		}
	}
	return out
}

func testPort(name string, i int, ipv6 bool, protocol corev1.Protocol) *ruleset.Port {
	service, set, vip, pods, source := "10.0.%d.%d", "241.0.%d.%d", "203.0.113.%[2]d", "10.180.%d.%d", "198.51.100.0/24"
	if ipv6 {
		service, set, vip, pods, source = "fd00:147::%x:%x", "fd00:241::%x:%x", "2001:db8:113::%[2]x", "fd00:180::%x:%x", "2001:db8:51::/48"
	}
	addr := func(format string, i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf(format, i>>6, i&63+1)) }
	id := ruleset.PortID{Key: ruleset.Key{Namespace: "default", Name: name}, Port: strings.ToLower(string(protocol)), Protocol: protocol}
	p := &ruleset.Port{ID: id, Hash: id.Hash(), IPv6: ipv6, Affinity: uint32(i % 2 * 10800), HealthCheckNodePort: uint16(30000 + i)}
	for n := range 3 {
		p.Cluster.Backends = append(p.Cluster.Backends, ruleset.Backend{Addr: netip.AddrPortFrom(addr(pods, 3*i+n), 80), Weight: uint32(1 + n*i%3)})
	}
	p.Cluster.Backends[2].Cluster = "east"
	p.Local.Backends = p.Cluster.Backends[:i%2]
	masq, plain := ruleset.Route{To: ruleset.ToCluster, Masquerade: true}, ruleset.Route{To: ruleset.ToCluster}
	local := ruleset.Route{To: ruleset.Drop}
	if i%2 > 0 {
		local.To = ruleset.ToLocal
	}
	key := func(a netip.Addr, port int) ruleset.FrontendKey {
		return ruleset.FrontendKey{Addr: a, IPv6: ipv6, Protocol: protocol, Port: uint16(port)}
	}
	if i%3 == 0 { // what comes from outside must not go to other clusters
		local.To, p.Own.Backends = ruleset.ToOwn, p.Cluster.Backends[:2]
	}
	p.Frontends = []ruleset.Frontend{
		{Key: key(netip.Addr{}, 31000+i), Kind: ruleset.NodePort, FromPod: plain, FromNode: masq, FromOutside: local},
		{Key: key(addr(service, i), 9200), Kind: ruleset.ClusterIP, Alone: true, FromPod: plain, FromNode: masq, FromOutside: masq},
		{Key: key(addr(set, i), 9200), Kind: ruleset.ClusterSetIP, Alone: true, FromPod: plain, FromNode: masq, FromOutside: masq},
		{Key: key(addr(vip, i), 80), Kind: ruleset.LoadBalancer, FromPod: plain, FromNode: masq, FromOutside: local,
			SourceRanges: []netip.Prefix{netip.MustParsePrefix(source)}},
	}
	return p
}

// eachBackend runs a test with the commands of each kind, as a node of a rig. It counts a Writer's restores.
func eachBackend(t *testing.T, do func(t *testing.T, node *nettest.Node, b Backend)) {
	for _, b := range []Backend{NFT, Legacy} {
		t.Run(string(b), func(t *testing.T) {
			if _, err := exec.LookPath("iptables-" + string(b) + "-restore"); err != nil && os.Getenv("CI") == "" {
				t.Skip("iptables is not installed: hack/install-tools.sh tests")
			}
			do(t, nettest.New(t).Nodes[0], b)
		})
	}
}

// newWriter returns one that is closed at the end, as its socket would keep the node's namespace.
func newWriter(t testing.TB, c Config) *Writer {
	w := New(c)
	t.Cleanup(w.Close)
	return w
}

// writer counts how many times rules are written, save by netlink.
func writer(t *testing.T, b Backend, restores *int) *Writer {
	w := newWriter(t, Config{Backend: b, IPv4: true, IPv6: true})
	for _, f := range w.families {
		f.exec = func(ctx context.Context, stdin []byte, name string, args ...string) ([]byte, error) {
			if strings.HasSuffix(name, "restore") {
				*restores++
			}
			return command(ctx, stdin, name, args...)
		}
		f.exchange = func(c *xtables.Conn, next *xtables.Next) error {
			*restores++
			return c.Replace(next)
		}
	}
	return w
}

func TestASecondSyncWritesNothing(t *testing.T) {
	eachBackend(t, func(t *testing.T, node *nettest.Node, b Backend) {
		for _, federated := range []bool{false, true} {
			ctx, restores, of := t.Context(), 0, testNode()
			of.Federated = federated
			in(t, node, func() error { return writer(t, b, &restores).Sync(ctx, of, testPorts(40)) })
			if restores != 4 {
				t.Fatalf("the first Sync restored %d times, want 4", restores)
			}
			again := 0
			in(t, node, func() error { return writer(t, b, &again).Sync(ctx, of, testPorts(40)) })
			if again != 0 {
				t.Errorf("a second Writer restored %d times", again)
			}
			savedAsWritten(t, node, b, of)
		}
	})
}

// savedAsWritten checks that iptables-save prints rules as they were written, including those written by netlink.
func savedAsWritten(t *testing.T, node *nettest.Node, b Backend, of *ruleset.Node) {
	for _, f := range New(Config{Backend: b, IPv4: true, IPv6: true}).families {
		savedAsWrittenOf(t, node, f, of, only(testPorts(40), f.ipv6))
	}
}

func savedAsWrittenOf(t *testing.T, node *nettest.Node, f *family, of *ruleset.Node, ports []*ruleset.Port) {
	t.Helper()
	in(t, node, func() error {
		there, err := f.save(t.Context(), namesFor(of))
		if err != nil {
			return err
		}
		wanted := newState(dialect{names: there.names, ipv6: f.ipv6, fully: true, node: of}).load(ports)
		for p, rules := range wanted {
			if have := there.chains[p]; !slices.Equal(have, rules) {
				t.Errorf("written: %s %q\n  saved: %q", p.chain, rules, have)
			}
		}
		for p := range there.chains {
			if wanted[p] == nil {
				t.Errorf("%s is there", p.chain)
			}
		}
		return nil
	})
}

func TestWhatIsNotKnownIsNotWrittenOtherwise(t *testing.T) {
	for rule, word := range map[string]string{
		"-o eth0 -j X": `"-o"`, "-p gre -j X": `"gre"`, "-m owner --uid-owner 0 -j X": `"owner"`, "-m addrtype --dst-type BROADCAST -j X": `"BROADCAST"`,
		"-d 10.0.0.1 -j X": "no '/'", "-p tcp -m tcp --dport 65536 -j X": "65536", "-j DNAT --to-destination 10.0.0.1": "10.0.0.1",
	} {
		if _, err := encode(rule, false); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want %s in it", rule, err, word)
		}
	}
}

func only(ports []*ruleset.Port, ipv6 bool) (out []*ruleset.Port) {
	for _, p := range ports {
		if p.IPv6 == ipv6 {
			out = append(out, p)
		}
	}
	return out
}

func in(t *testing.T, node *nettest.Node, do func() error) {
	t.Helper()
	if err := node.Do(do); err != nil {
		t.Fatal(err)
	}
}

// With nft the kernel counts changes of both families in one number: our change in one must not look like a foreign one
// in the other.
func TestWhatTheWriterChangesIsNobodyElses(t *testing.T) {
	eachBackend(t, func(t *testing.T, node *nettest.Node, b Backend) {
		restores, ports := 0, testPorts(2)
		w := writer(t, b, &restores)
		in(t, node, func() error { return w.Sync(t.Context(), testNode(), ports) })
		looks := func(want int) {
			t.Helper()
			for _, f := range w.families {
				in(t, node, func() error { f.mayHaveLostRules(t.Context(), 0); return nil })
			}
			others := 0
			for _, f := range w.families {
				others += f.sight.others - f.synced
			}
			if others != want {
				t.Errorf("others were seen %d times, want %d", others, want)
			}
		}
		looks(0)
		in(t, node, func() error {
			return w.Write(t.Context(), testNode(), []ruleset.PortChange{{Before: ports[0]}}) // which is of IPv4
		})
		looks(0)
		in(t, node, func() error {
			return w.families[0].run(t.Context(), "restore", []byte("*nat\n:OTHER - [0:0]\nCOMMIT\n"), "--noflush")
		})
		looks(map[Backend]int{NFT: 2, Legacy: 1}[b]) // of both families, as nobody knows which
	})
}

// A foreign change right after our last transaction, before the Writer reads the number, still counts as foreign.
func TestAHandRightAfterTheWriter(t *testing.T) {
	eachBackend(t, func(t *testing.T, node *nettest.Node, b Backend) {
		if b == Legacy {
			t.Skip("there the lock is held until then")
		}
		restores := 0
		w := writer(t, b, &restores)
		f := w.families[0]
		in(t, node, func() error { return w.Sync(t.Context(), testNode(), nil) })
		run := f.exec
		f.exec = func(ctx context.Context, stdin []byte, name string, args ...string) ([]byte, error) {
			out, err := run(ctx, stdin, name, args...)
			if strings.HasSuffix(name, "-restore") && err == nil {
				_, err = run(ctx, nil, f.command(), "-t", nat, "-F", kube+chainServices)
			}
			return out, err
		}
		in(t, node, func() error {
			if _, err := run(t.Context(), nil, f.command(), "-t", nat, "-F", kube+chainPostrouting); err != nil { // which is written by restore
				return err
			}
			return w.Sync(t.Context(), testNode(), nil)
		})
		f.exec = run
		in(t, node, func() error {
			if !f.mayHaveLostRules(t.Context(), time.Hour) {
				t.Error("nobody noticed that the rules are gone")
			}
			return nil
		})
	})
}
