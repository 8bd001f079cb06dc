package main

import (
	"os/exec"
	"syscall"
	"testing"

	"federation/nodeagent/nettest"
)

// The agent replaces kube-proxy as docs/node-agent.md says: kube-proxy ends, the agent starts, and kube-proxy's own
// --cleanup removes its rules if they are of another mode. No connection fails.
func TestInPlaceOfKubeProxy(t *testing.T) {
	if !*long {
		t.Skip("takes minutes: make soak-dataplane")
	}
	for _, modes := range [][2]string{{"iptables", "iptables"}, {"iptables", "nftables"}, {"nftables", "nftables"}} {
		t.Run(modes[0]+" to "+modes[1], func(t *testing.T) {
			s := newSoak(t, modes[1])
			client := s.Nodes[0].Pod(t, "client")
			old := s.begin(exec.Command(kubeProxyProgram, "--kubeconfig", s.kubeconfig, "--hostname-override", "m-node-1", "--proxy-mode", modes[0],
				"--cluster-cidr", nettest.ClusterV4.String(), "--nodeport-addresses", "0.0.0.0/0", "--conntrack-max-per-core", "0"))
			s.settled(client)
			a := ask(t.Context(), s.both(client, s.vip, 80, 53), s.both(s.Outside, s.Nodes[0].V4, soakNodePort, soakNodePortUDP))
			defer a.stop()
			a.more(t, 20)
			s.end(old, syscall.SIGTERM)
			a.more(t, 20)
			s.turn() // no watch reports it
			s.serve()
			s.settled(client)
			if modes[0] != modes[1] || modes[0] == "nftables" {
				cleanup := s.begin(exec.Command(kubeProxyProgram, "--cleanup"))
				if err := cleanup.Wait(); err != nil {
					t.Errorf("kube-proxy --cleanup: %v", err)
				}
			}
			s.settled(client)
			a.more(t, 50)
			if err := a.failed(); err != nil {
				t.Error(err)
			}
		})
	}
}
