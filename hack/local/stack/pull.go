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
		if err := (agent{s, name}).start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// agent is that of a member in pull mode.
type agent struct {
	stack  *stack
	member string
}

func (a agent) program(account string) *program {
	return &program{
		name: a.member + "'s agent",
		args: []string{filepath.Join(a.stack.bin, "federation-agent"), "--cluster=" + a.member, "--bootstrap-kubeconfig=" + a.path("bootstrap.kubeconfig"),
			"--kubeconfig=" + a.stack.memberKubeconfig(a.member), "--account=" + v1beta1.FederationNamespace + "/" + account, "--cert-dir=" + a.path("certificate")},
		pidFile: a.path("pid"),
		logFile: a.stack.path("logs", a.member+"-agent.log"),
	}
}

func (a agent) path(parts ...string) string {
	return a.stack.path(append([]string{"members", a.member, "agent"}, parts...)...)
}

// start starts an agent that does not run. One whose Cluster was made again since has a certificate that is good for nothing, and gets another.
func (a agent) start(ctx context.Context) error {
	_, federation, err := client(a.stack.federationKubeconfig())
	if err != nil {
		return err
	}
	uid, err := federationUID(ctx, federation)
	if err != nil {
		return err
	}
	cluster, err := federation.Resource(v1beta1.ClustersResource).Get(ctx, a.member, metav1.GetOptions{})
	if err != nil {
		return err
	}
	p := a.program(join.AccountName(uid))
	if of, _ := os.ReadFile(a.path("cluster-uid")); string(of) != string(cluster.GetUID()) {
		for _, pid := range findProcesses(p.same) {
			if err := end(pid, p.same, endPatience); err != nil {
				return err
			}
		}
		if err := a.newToken(ctx, string(cluster.GetUID())); err != nil {
			return err
		}
	}
	r, did, err := p.ensure()
	if err == nil {
		a.stack.say("%-10s its agent %s (process %d)", a.member, did, r.pid)
	}
	return err
}

// newToken gives the agent a bootstrap token, in place of all that it had.
func (a agent) newToken(ctx context.Context, uid string) error {
	if err := os.RemoveAll(a.path()); err != nil {
		return err
	}
	if err := os.MkdirAll(a.path(), 0o700); err != nil {
		return err
	}
	token, err := exec.CommandContext(ctx, filepath.Join(a.stack.bin, "kubectl-federation"), "token", "create", a.member, "--kubeconfig", a.stack.federationKubeconfig()).Output()
	if err != nil {
		return fmt.Errorf("%s: token create: %w", a.member, err)
	}
	if err := writeFile(a.path("bootstrap.kubeconfig"), string(token)); err != nil {
		return err
	}
	return writeFile(a.path("cluster-uid"), uid)
}
