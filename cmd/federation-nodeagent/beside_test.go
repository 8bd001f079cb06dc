package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"federation/nodeagent/nettest"
	"federation/nodeagent/ruleset"
)

// The scope federated beside a real kube-proxy of the same cluster: kube-proxy serves local endpoints, we serve other
// clusters', whoever starts first, and also after kube-proxy put its rules before ours.
func TestBesideKubeProxy(t *testing.T) {
	for i, c := range []struct{ kubeProxy, agent string }{{"iptables", "iptables"}, {"nftables", "nftables"}, {"iptables", "nftables"}} {
		t.Run(c.kubeProxy+" and ours "+c.agent, func(t *testing.T) {
			s := newSite(t, c.agent)
			client, here, far := s.Nodes[0].Pod(t, "client"), s.Nodes[0].Pod(t, "here"), s.Outside
			here.ServeHTTP(t, 8080)
			far.ServeHTTP(t, 8080)
			name := "beside-" + c.kubeProxy + "-" + c.agent
			set := netip.AddrPortFrom(netip.AddrFrom4([4]byte{241, 0, 0, byte(i)}), 80)
			marked := s.service(name, ruleset.AnnotationClusterSetIP, set.Addr().String(), ruleset.AnnotationFallback, "true",
				ruleset.AnnotationFallbackBelow, "100%")
			plain := s.service("plain-" + name)
			s.endpoints("plain-"+name, here)
			s.otherCluster(name, far)

			agent := s.begin(s.command("--scope", "federated", "--clusterset-ip-range", "241.0.0.0/8", "--federation-uid", "a-federation", "--proxy-mode", s.mode))
			s.arrives(client, set, far)
			proxy := s.kubeProxy(c.kubeProxy)
			s.arrives(client, plain, here) // by kube-proxy, whose rules are there now
			s.arrives(client, marked, far)
			s.arrives(s.Nodes[0].Host, marked, far)
			open := client.Stay(t, marked)

			s.endpoints(name, here)
			s.arrives(client, marked, here)
			s.arrives(client, set, here)
			if got, err := open(); err != nil || got.Server != far.Name {
				t.Errorf("over a connection that was open: %v, %v; want %s", got, err, far.Name)
			}
			trace := s.run("trace", "--scope", "federated", "--clusterset-ip-range", "241.0.0.0/8", "--federation-uid", "a-federation", "--from", client.V4.String(), "--to", marked.String())
			if !strings.Contains(trace, "left to this node's other service proxy") {
				t.Errorf("trace says\n%s", trace)
			}
			s.again(proxy, c.kubeProxy)
			s.arrives(client, plain, here)
			s.scarce(name, here, client)
			s.arrives(client, marked, far) // kube-proxy has an endpoint for it: our rule must have come first
			s.endpoints(name)
			eventually(t, "no endpoint here has a share", func() (err error) {
				for range 20 {
					err = errors.Join(err, s.ask(client, marked, far), s.ask(client, set, far))
				}
				return err
			})
			s.end(agent, syscall.SIGTERM)
			s.gets(client, marked, far)
			s.run("--cleanup", "--scope", "federated", "--clusterset-ip-range", "241.0.0.0/8", "--federation-uid", "a-federation")
			s.gets(client, plain, here)
			eventually(t, "kube-proxy has it again, and no endpoint", func() error {
				if got, err := client.Get(marked); err == nil {
					return fmt.Errorf("answer of %s", got.Server)
				}
				return nil
			})
		})
	}
}

// kubeProxyProgram is built by `make test`.
const kubeProxyProgram = "../../_output/bin/kube-proxy"

// kubeProxy starts a kube-proxy on the node.
func (s *site) kubeProxy(mode string) *exec.Cmd {
	s.Helper()
	if _, err := os.Stat(kubeProxyProgram); err != nil && os.Getenv("CI") == "" {
		s.Skip("no kube-proxy: go build -o _output/bin/ k8s.io/kubernetes/cmd/kube-proxy")
	}
	return s.begin(exec.Command(kubeProxyProgram, "--kubeconfig", s.kubeconfig, "--hostname-override", "m-node-1", "--proxy-mode", mode,
		"--cluster-cidr", nettest.ClusterV4.String(), "--conntrack-max-per-core", "0"))
}

// again ends kube-proxy, removes its rules and starts another, whose rules then come first.
func (s *site) again(proxy *exec.Cmd, mode string) {
	s.Helper()
	s.end(proxy, syscall.SIGTERM)
	if err := s.Nodes[0].Do(exec.Command(kubeProxyProgram, "--cleanup").Run); err != nil {
		s.Fatal(err)
	}
	s.kubeProxy(mode)
}
