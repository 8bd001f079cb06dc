package iptables

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"federation/nodeagent/nettest"
	"federation/nodeagent/nettest/behaviours"
	"federation/nodeagent/ruleset"
)

func TestIPTablesBehaviours(t *testing.T) {
	eachBackend(t, func(t *testing.T, _ *nettest.Node, b Backend) {
		behaviours.Run(t, func(t testing.TB) behaviours.Writer { return newWriter(t, Config{Backend: b, IPv4: true, IPv6: true}) })
	})
}

// Somebody deletes all rules, only nat's, a jump, or one chain. A check notices, and a Sync restores them; foreign
// rules in the tables stay. Cleanup leaves only those.
func TestWhatOthersFlushComesBack(t *testing.T) {
	eachBackend(t, func(t *testing.T, _ *nettest.Node, b Backend) {
		writer := newWriter(t, Config{Backend: b, IPv4: true})
		w := behaviours.NewWorld(t, false, func(testing.TB) behaviours.Writer { return writer })
		node, f := w.Nodes[0], writer.families[0]
		w.Service(t)
		w.Endpoints(t, w.Here)
		run := func(args ...string) {
			t.Helper()
			in(t, node, func() error { return exec.Command("iptables-"+string(b), args...).Run() })
		}
		look := func() (lost bool) {
			in(t, node, func() error { lost = f.mayHaveLostRules(t.Context(), time.Nanosecond); return nil })
			return lost
		}
		chain := kube + prefixCluster + w.Model.PortsOf(ruleset.Key{Namespace: "default", Name: "web"})[0].Hash
		run("-t", "nat", "-A", "OUTPUT", "-d", "198.51.100.1", "-j", "ACCEPT")
		for _, harm := range [][]string{{"-t", "nat", "-F", "KUBE-SERVICES"}, {"-t", "filter", "-F"}, {"-t", "nat", "-D", "OUTPUT", "1"}, {"-t", "nat", "-F", chain}, {"-t", "nat", "-F"}} {
			w.Sync(t)
			w.Gets(t, w.Client, w.Web(w.VIP), w.Here, w.Client.Address(w.VIP))
			if run(harm...); !look() {
				t.Errorf("%v: not seen", harm)
			}
		}
		w.Sync(t)
		w.Gets(t, w.Client, w.Web(w.VIP), w.Here, w.Client.Address(w.VIP))
		run("-t", "nat", "-A", "OUTPUT", "-d", "198.51.100.1", "-j", "ACCEPT") // -F took it, too
		in(t, node, func() error { return writer.Cleanup(t.Context(), false) })
		in(t, node, func() error {
			there, err := f.save(t.Context(), kube)
			if err == nil && (len(there.chains) > 0 || len(there.addMissingJumps(nil).jumps) != len(there.names.jumps())) {
				return fmt.Errorf("left over: %v %v", there.chains, there.jumps)
			}
			return err
		})
		run("-t", "nat", "-C", "OUTPUT", "-d", "198.51.100.1", "-j", "ACCEPT")
	})
}
