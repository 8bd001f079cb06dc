package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/join"
)

// pulled are the figures of members that the federation connects to, and of the same members when their agents connect to the federation.
type pulled struct {
	rate       int
	push, pull figures
	agents     time.Duration // CPU of all agents, until all is reported
}

// pull has objects created at a steady rate with members that are connected to, with agents, and then the other way round.
func (b *bench) pull(ctx context.Context, rate int) (out pulled, err error) {
	out.rate = rate
	j := b.job("", b.seconds*rate)
	j.Rate = rate
	for _, withAgents := range []bool{false, true, true, false} {
		agents, err := b.connectBy(ctx, withAgents)
		if err != nil {
			return out, err
		}
		settle(ctx, time.Minute, b.fed.processes()...) // a cluster that has joined again is listed whole
		before := totalCPU(agents)
		one, err := b.steadyFederation(ctx, j)
		if err != nil {
			return out, err
		}
		if withAgents {
			out.pull.add(one)
			out.agents += totalCPU(agents) - before
		} else {
			out.push.add(one)
		}
		for _, p := range agents {
			p.stop()
		}
	}
	return out, nil
}

// connectBy joins all members again, with agents or without, and returns the agents when all clusters are ready.
func (b *bench) connectBy(ctx context.Context, withAgents bool) (agents []*process, err error) {
	for _, name := range b.names {
		var flags []string
		if withAgents {
			flags = append(flags, "--pull")
		}
		if err := b.fed.join(ctx, name, b.kubeconfig(name), flags...); err != nil {
			return nil, err
		}
		if withAgents {
			p, err := b.startAgent(ctx, name)
			if err != nil {
				return nil, err
			}
			agents = append(agents, p)
		}
	}
	return agents, b.fed.waitConnected(ctx, b.names, withAgents)
}

// startAgent starts the agent of a member with a new bootstrap token.
func (b *bench) startAgent(ctx context.Context, name string) (*process, error) {
	dir := filepath.Join(b.root, "members", name, "agent")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	token, err := exec.CommandContext(ctx, filepath.Join(b.bin, "kubectl-federation"), "token", "create", name, "--kubeconfig", b.fed.kubeconfig()).Output()
	if err != nil {
		return nil, fmt.Errorf("token create %s: %w", name, err)
	}
	bootstrap := filepath.Join(dir, "bootstrap.kubeconfig")
	if err := os.WriteFile(bootstrap, token, 0o600); err != nil {
		return nil, err
	}
	uid, err := join.FederationUID(ctx, b.fed.kube)
	if err != nil {
		return nil, err
	}
	return start(filepath.Join(b.root, "logs", name+"-agent.log"), filepath.Join(b.bin, "federation-agent"), "--cluster="+name, "--bootstrap-kubeconfig="+bootstrap,
		"--kubeconfig="+b.kubeconfig(name), "--account="+v1beta1.FederationNamespace+"/"+join.AccountName(uid), "--cert-dir="+filepath.Join(dir, "certificate"))
}

// waitConnected waits until all clusters are connected to as they should be, and ready.
func (f *federation) waitConnected(ctx context.Context, names []string, byAgents bool) error {
	waiting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for _, name := range names {
		if err := until(waiting, func() bool {
			return (f.condition(ctx, name, v1beta1.ClusterAgentConnected)["status"] == "True") == byAgents
		}); err != nil {
			return fmt.Errorf("cluster %s: want its agent connected: %t: %w", name, byAgents, err)
		}
	}
	return f.waitClusters(ctx, names)
}

func pullTable(o *bytes.Buffer, p pulled) {
	fmt.Fprintf(o, "\n### %d creates a second, agents of the members connect to the federation\n\n", p.rate)
	fmt.Fprintln(o, "| | apply → in all members p50 | p90 | p99 | CPU of the federation per member write, all reported | CPU of the agents per member write |")
	fmt.Fprintln(o, "|---|---|---|---|---|---|")
	hub := func(f figures) time.Duration { return f.cpuAll / time.Duration(max(1, f.writes)) }
	for _, row := range []struct {
		name, agents string
		figures
	}{{"push", "", p.push}, {"pull", ms(p.agents / time.Duration(max(1, p.pull.writes))), p.pull}} {
		fmt.Fprintf(o, "| %s | %s | %s | %s | %s | %s |\n", row.name, ms(row.at(50)), ms(row.at(90)), ms(row.at(99)), ms(hub(row.figures)), row.agents)
	}
	fmt.Fprintf(o, "| ratio | %.2f | %.2f | %.2f | %.2f | |\n", ratio(p.pull.at(50), p.push.at(50)), ratio(p.pull.at(90), p.push.at(90)),
		ratio(p.pull.at(99), p.push.at(99)), ratio(hub(p.pull), hub(p.push)))
}
