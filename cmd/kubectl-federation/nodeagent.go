package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"federation/apiserver/client"
	"federation/clusterregistry/join"
	"federation/clusterregistry/join/addons"
)

// nodeAgent are the flags that say how a join installs the node agent.
type nodeAgent struct {
	with bool
	addons.NodeAgent
}

func (a *nodeAgent) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&a.with, "with-nodeagent", false, "install the node agent in the cluster, in place of kube-proxy")
	f.StringVar(&a.Image, "nodeagent-image", "federation-nodeagent", "`IMAGE` of the node agent")
	f.StringVar(&a.Mode, "nodeagent-mode", "nftables", "its --proxy-mode: nftables, or iptables, which needs an image that has iptables")
	f.StringVar(&a.Server, "nodeagent-server", "", "`HOST:PORT` at which nodes reach the cluster's API server, no cluster IP; without it the one in the kubeconfig")
	f.BoolVar(&a.Blackhole, "allow-blackhole", false, "let failover drills of the method Blackhole have the node agent drop what comes to Services from outside: it and the federation get the right to one Lease. Joining again without it takes that away")
	f.StringSliceVar(&a.Args, "nodeagent-args", nil, "more `FLAGS` of it, such as --cluster-cidr=10.180.0.0/14, which it needs where Nodes have no spec.podCIDRs")
}

func (a *nodeAgent) check(f *pflag.FlagSet) error {
	if a.Mode != "nftables" && a.Mode != "iptables" {
		return fmt.Errorf("--nodeagent-mode %q: want nftables or iptables", a.Mode)
	}
	for _, name := range []string{"nodeagent-image", "nodeagent-mode", "nodeagent-server", "nodeagent-args", "allow-blackhole"} {
		if f.Changed(name) && !a.with {
			return fmt.Errorf("--%s needs --with-nodeagent", name)
		}
	}
	if a.Blackhole && (a.Mode != "nftables" || a.BesideProxy()) {
		return errors.New("--allow-blackhole needs --nodeagent-mode nftables, and no --nodeagent-args=--scope=federated: only there the kernel itself ends what nobody renews")
	}
	return nil
}

// addToJoin adds the agent's installation to a join.
func (a *nodeAgent) addToJoin(ctx context.Context, f *client.Federation, member *rest.Config, r *join.Request) error {
	info, err := f.Info(ctx)
	if err != nil {
		return err
	}
	uid, err := f.UID(ctx)
	if err != nil {
		return err
	}
	return a.AddTo(ctx, r, member.Host, uid, info)
}
