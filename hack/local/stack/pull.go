package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/join"
)

// cutOffGroup is the group as which the federation runs in front of members in pull mode: by it the packet filter knows its connections. No group of
// Debian has this id.
const cutOffGroup = 64177

// filterTable is the name of this stack's table in nftables, and no other's.
func (s *stack) filterTable() string {
	return "federation_pull_" + s.id()
}

// withoutTable are the commands of nft after which there is no such table, whether there was one or not.
func withoutTable(name string) string {
	return fmt.Sprintf("table inet %[1]s {}\ndelete table inet %[1]s\n", name)
}

// cutFederationOff has the kernel drop each packet of the federation to a member's API. What it drops is counted.
func (s *stack) cutFederationOff(st *state) error {
	var ports []string
	for _, port := range st.MemberPorts {
		ports = append(ports, strconv.Itoa(port))
	}
	table := s.filterTable()
	return nft(withoutTable(table) + fmt.Sprintf(`table inet %s {
	chain output {
		type filter hook output priority filter; policy accept;
		meta skgid %d tcp dport { %s } counter drop
	}
}
`, table, cutOffGroup, strings.Join(ports, ", ")))
}

// removeFilter removes the packet filter, if there is one.
func (s *stack) removeFilter() error {
	if st, err := s.loadState(); err != nil || !st.Pull {
		return nil // what cannot be read has no members in pull mode that we know of
	}
	return nft(withoutTable(s.filterTable()))
}

func nft(rules string) error {
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// agentProgram is the agent of a member in pull mode.
func (s *stack) agentProgram(name, account string) *program {
	return &program{
		name: name + "'s agent",
		args: []string{filepath.Join(s.bin, "federation-agent"), "--cluster=" + name, "--bootstrap-kubeconfig=" + s.agentPath(name, "bootstrap.kubeconfig"),
			"--kubeconfig=" + s.memberKubeconfig(name), "--account=" + v1beta1.FederationNamespace + "/" + account, "--cert-dir=" + s.agentPath(name, "certificate")},
		pidFile: s.agentPath(name, "pid"),
		logFile: s.path("logs", name+"-agent.log"),
	}
}

func (s *stack) agentPath(name string, parts ...string) string {
	return s.path(append([]string{"members", name, "agent"}, parts...)...)
}

// agents starts the agents that do not run.
func (s *stack) agents(ctx context.Context) error {
	st, err := s.loadState()
	if err != nil {
		return err
	}
	if !st.Pull {
		return errors.New("members have no agents: local up --pull, at the first up, has them connect to the federation")
	}
	for _, name := range st.memberNames() {
		if err := s.startAgent(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// startAgent starts the agent of a member that does not run. One whose Cluster was made again since has a certificate that is good for nothing, and gets another.
func (s *stack) startAgent(ctx context.Context, name string) error {
	_, federation, err := client(s.federationKubeconfig())
	if err != nil {
		return err
	}
	uid, err := federationUID(ctx, federation)
	if err != nil {
		return err
	}
	cluster, err := federation.Resource(v1beta1.ClustersResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	p := s.agentProgram(name, join.AccountName(uid))
	if of, _ := os.ReadFile(s.agentPath(name, "cluster-uid")); string(of) != string(cluster.GetUID()) {
		for _, pid := range findProcesses(p.same) {
			if err := end(pid, p.same, endPatience); err != nil {
				return err
			}
		}
		if err := s.newAgentToken(ctx, name, string(cluster.GetUID())); err != nil {
			return err
		}
	}
	r, did, err := p.ensure()
	if err == nil {
		s.say("%-10s its agent %s (process %d)", name, did, r.pid)
	}
	return err
}

// newAgentToken gives the agent of a member a bootstrap token, in place of all that it had.
func (s *stack) newAgentToken(ctx context.Context, name, uid string) error {
	if err := os.RemoveAll(s.agentPath(name)); err != nil {
		return err
	}
	if err := os.MkdirAll(s.agentPath(name), 0o700); err != nil {
		return err
	}
	token, err := exec.CommandContext(ctx, filepath.Join(s.bin, "kubectl-federation"), "token", "create", name, "--kubeconfig", s.federationKubeconfig()).Output()
	if err != nil {
		return fmt.Errorf("%s: token create: %w", name, err)
	}
	if err := writeFile(s.agentPath(name, "bootstrap.kubeconfig"), string(token)); err != nil {
		return err
	}
	return writeFile(s.agentPath(name, "cluster-uid"), uid)
}
