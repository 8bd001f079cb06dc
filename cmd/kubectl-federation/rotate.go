package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"federation/apiserver/client"
	"federation/clusterregistry/join"
)

type rotateCommand struct {
	target
	genericiooptions.IOStreams
	all     bool
	timeout time.Duration
	// memberKubeconfig and memberContext are an administrator's, who has the account itself replaced.
	memberKubeconfig, memberContext string
}

func newRotate(streams genericiooptions.IOStreams) *cobra.Command {
	o := &rotateCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "rotate (CLUSTER... | --all)",
		Short: "Replace the federation's credential for clusters now",
		Long: `Replace the federation's credential for clusters now, as it does by itself in time, by default twice a day.

The process that leads asks each cluster for another token, and stores it. Half a minute later, when all processes have it, the one
before is void, and so is any other that the account has. A cluster must be ready for this. You need the right to read and patch
Secrets in the namespace federation-system.

Whoever has a copy of the credential and uses it all the time could obtain a token of the new one, as the federation does. With
your own credential for the cluster, an administrator's, the account itself is replaced, which ends every token of it for sure. For
half a minute the cluster is not ready then: what runs there stays, its addresses leave DNS.`,
		Example: `  kubectl federation rotate east-a

  # After somebody has seen a backup, or the Secrets of federation-system
  kubectl federation rotate --all

  # Somebody has used a copy
  kubectl federation rotate east-a --member-context east`,
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) > 0) == o.all {
				return errors.New("give the NAME of at least one cluster, or --all")
			}
			if o.memberKubeconfig+o.memberContext != "" && len(args) != 1 {
				return fmt.Errorf("--member-kubeconfig and --member-context are for one cluster: give one NAME, not %q", args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			f, err := o.connect()
			if err != nil {
				return err
			}
			if o.memberKubeconfig+o.memberContext != "" {
				return o.replaceAccount(c.Context(), f, args[0])
			}
			return o.run(c.Context(), f, args)
		},
	}
	c.ValidArgsFunction = o.completeWith(clusterNames)
	o.addFlags(c)
	c.Flags().BoolVar(&o.all, "all", false, "all clusters, but those that joined with --pull: the federation has no credential of them")
	c.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait for the new credential of each cluster")
	c.Flags().StringVar(&o.memberKubeconfig, "member-kubeconfig", "", "kubeconfig `FILE` of an administrator of the cluster: the account itself is replaced")
	c.Flags().StringVar(&o.memberContext, "member-context", "", "`CONTEXT` of an administrator of the cluster; without it the current context of --member-kubeconfig")
	_ = c.RegisterFlagCompletionFunc("member-context", memberContexts) // fails only for a flag that is not there
	return c
}

// run continues with the other clusters if one fails.
func (o *rotateCommand) run(ctx context.Context, f *client.Federation, names []string) error {
	if o.all {
		all, err := f.Clusters(ctx)
		if err != nil {
			return err
		}
		for _, c := range all {
			if c.IsPull() {
				tell(o.Out, "cluster/%s is passed over: its agent connects to the federation, which has no credential of it\n", c.Name)
				continue
			}
			names = append(names, c.Name)
		}
	}
	var errs []error
	for _, name := range names {
		if err := join.RotateToken(ctx, f, name, o.timeout); err != nil {
			errs = append(errs, fmt.Errorf("cluster %s: %w", name, err))
			continue
		}
		tell(o.Out, "cluster/%s has a new credential; the one before is void within a minute\n", name)
	}
	return errors.Join(errs...)
}

// replaceAccount ends all that anybody has of the account, with an administrator's credential.
func (o *rotateCommand) replaceAccount(ctx context.Context, f *client.Federation, name string) error {
	secret, err := join.RotatableCredential(ctx, f, name)
	if err != nil {
		return err
	}
	config, err := (&sides{kubeconfig: o.kubeconfig, memberKubeconfig: o.memberKubeconfig, memberContext: o.memberContext}).member()
	if err != nil {
		return err
	}
	member, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	r := join.Request{Name: name, Federation: f.Kube, Member: member, Say: stepPrinter(o.IOStreams)}
	if err := join.ReplaceAccount(ctx, r, secret.Name, join.Forgotten); err != nil {
		return fmt.Errorf("cluster %s: %w", name, err)
	}
	tell(o.Out, "cluster/%s has a new account and credential; every one of before is void\n", name)
	return nil
}
