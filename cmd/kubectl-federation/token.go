package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/join"
)

type tokenCommand struct {
	target
	genericiooptions.IOStreams
	ttl    time.Duration
	server string
}

func newToken(streams genericiooptions.IOStreams) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Make bootstrap tokens for the agents of clusters that connect to the federation",
		Args:  cobra.NoArgs,
		RunE:  help,
	}
	c.AddCommand(newTokenCreate(streams))
	return c
}

func newTokenCreate(streams genericiooptions.IOStreams) *cobra.Command {
	o := &tokenCommand{IOStreams: streams, ttl: join.DefaultAgentTokenTTL}
	c := &cobra.Command{
		Use:   "create CLUSTER",
		Short: "Make a bootstrap token for the agent of a cluster, and print a kubeconfig with it",
		Long: `Make a bootstrap token for the agent of a cluster that has joined with --pull, and print a kubeconfig with it.

With the token the agent gets a certificate, which it renews by itself. A token is good for one certificate of this one
cluster; make another if the agent has lost its key. The federation keeps it as a Secret in kube-system until it is used or
expires.`,
		Example: `  kubectl federation token create east-a > bootstrap.kubeconfig
  federation-agent --cluster east-a --bootstrap-kubeconfig bootstrap.kubeconfig --kubeconfig east.kubeconfig \
    --account federation-system/ACCOUNT --cert-dir east-a-agent

  # What has asked for a certificate, and what became of it
  kubectl get certificatesigningrequests`,
		Args:              oneName,
		ValidArgsFunction: o.completeWith(oneCluster),
		RunE:              func(c *cobra.Command, args []string) error { return o.create(c.Context(), args[0]) },
	}
	o.addFlags(c)
	c.Flags().DurationVar(&o.ttl, "ttl", o.ttl, "how long the token is good for, at most "+join.MaxAgentTokenTTL.String())
	c.Flags().StringVar(&o.server, "server", "", "`URL` at which the agent reaches the federation; without it that of your kubeconfig")
	return c
}

func (o *tokenCommand) create(ctx context.Context, name string) error {
	config, _, err := o.config()
	if err != nil {
		return err
	}
	f, err := o.connect()
	if err != nil {
		return err
	}
	c, err := f.Cluster(ctx, name)
	if err != nil {
		return err
	}
	if !c.IsPull() {
		return fmt.Errorf("cluster %s: spec.connection is %q, and must be %s: join it with --pull", name, c.Spec.Connection, v1beta1.ConnectionPull)
	}
	kubeconfig, _, err := join.AgentBootstrap(ctx, config, f.Kube, name, o.server, o.ttl)
	if err != nil {
		return err
	}
	tell(o.Out, "%s", kubeconfig)
	return nil
}
