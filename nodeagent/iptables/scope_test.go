package iptables

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"federation/nodeagent/nettest"
)

// kube-proxy puts its jumps first when it starts. Those of the scope federated are put before them again, and its own are
// left alone, also by a cleanup.
func TestOursComeBeforeKubeProxys(t *testing.T) {
	eachBackend(t, func(t *testing.T, node *nettest.Node, b Backend) {
		w, of := newWriter(t, Config{Backend: b, IPv4: true}), testNode()
		of.Federated = true
		run := func(args ...string) (out string) {
			t.Helper()
			in(t, node, func() error {
				text, err := exec.Command("iptables-"+string(b), append([]string{"-t", "nat"}, args...)...).CombinedOutput()
				if out = string(text); err != nil {
					err = fmt.Errorf("%v: %w: %s", args, err, out)
				}
				return err
			})
			return out
		}
		sync := func() { in(t, node, func() error { return w.Sync(t.Context(), of, only(testPorts(3), false)) }) }
		sync()
		run("-N", "KUBE-SERVICES")
		for _, chain := range []string{"PREROUTING", "OUTPUT"} {
			run("-I", chain, "-m", "comment", "--comment", "kubernetes service portals", "-j", "KUBE-SERVICES")
		}
		in(t, node, func() error {
			if !w.families[0].mayHaveLostRules(t.Context(), time.Nanosecond) {
				t.Error("not seen")
			}
			return nil
		})
		sync()
		for _, chain := range []string{"PREROUTING", "OUTPUT"} {
			ours, proxys := "-A "+chain+" -j FED-SERVICES\n", " -j KUBE-SERVICES\n"
			if rules := run("-S", chain); strings.Count(rules, ours) != 1 || strings.Index(rules, ours) > strings.Index(rules, proxys) {
				t.Errorf("ours are not before kube-proxy's:\n%s", rules)
			}
		}
		restores := 0
		again := writer(t, b, &restores)
		again.families = again.families[:1] // IPv4
		in(t, node, func() error { return again.Sync(t.Context(), of, only(testPorts(3), false)) })
		if restores != 0 {
			t.Errorf("a Sync with all in order restored %d times", restores)
		}
		in(t, node, func() error { return w.Cleanup(t.Context(), true) })
		if rules := run("-S"); strings.Contains(rules, "FED-") || strings.Count(rules, "KUBE-SERVICES") != 3 {
			t.Errorf("after the cleanup:\n%s", rules)
		}
	})
}
