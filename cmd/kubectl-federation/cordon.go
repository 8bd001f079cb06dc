package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	drainplan "federation/controllers/drain/plan"
)

func addDryRunFlag(c *cobra.Command, d *client.DryRun) {
	*d = client.DryRunNone
	c.Flags().StringVar((*string)(d), "dry-run", "none", `none, client (only say what would be done) or server (have the federation check it too, and change nothing)`)
	c.Flags().Lookup("dry-run").NoOptDefVal = "client"
	_ = c.RegisterFlagCompletionFunc("dry-run", fixedWords("none", "client", "server")) // fails only for a flag that is not there
}

type cordonCommand struct {
	target
	dry client.DryRun
	out io.Writer
}

func newCordon(streams genericiooptions.IOStreams) *cobra.Command {
	o := &cordonCommand{out: streams.Out}
	return o.command(&cobra.Command{
		Use:   "cordon CLUSTER...",
		Short: "Give clusters no more replicas",
		Long: `Give clusters no more replicas. What they have they keep.

It puts the taint ` + v1beta1.TaintUnschedulable + `:NoSchedule on the Cluster. Objects whose
policy tolerates it are placed there all the same. To move away what is there, drain it.`,
		Example: `  kubectl federation cordon east-a
  kubectl federation cordon east-a east-b --dry-run=server`,
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), args, "cordoned", drainplan.AddTaint)
		},
	})
}

func newUncordon(streams genericiooptions.IOStreams) *cobra.Command {
	o := &cordonCommand{out: streams.Out}
	return o.command(&cobra.Command{
		Use:     "uncordon CLUSTER...",
		Short:   "Let clusters have replicas again",
		Long:    `Let clusters that are cordoned have replicas again. One that is drained is brought back by undrain.`,
		Example: `  kubectl federation uncordon east-a`,
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), args, "uncordoned", drainplan.DropTaint)
		},
	})
}

func (o *cordonCommand) command(c *cobra.Command) *cobra.Command {
	c.Args = someClusters
	c.ValidArgsFunction = o.completeWith(clusterNames)
	addDryRunFlag(c, &o.dry)
	o.addFlags(c)
	return c
}

func someClusters(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("give the NAME of at least one cluster")
	}
	return nil
}

// run continues with the other clusters if one fails.
func (o *cordonCommand) run(ctx context.Context, names []string, word string, how func(*v1beta1.Cluster, corev1.Taint)) error {
	if err := o.dry.Check(); err != nil {
		return err
	}
	f, err := o.connect()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		after, changed, err := f.DrainCluster(ctx, name, o.dry, func(c *v1beta1.Cluster) { how(c, drainplan.Cordon) })
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case changed:
			tell(o.out, "cluster/%s %s%s\n", name, word, o.dry.Suffix())
		default:
			tell(o.out, "cluster/%s already %s%s\n", name, word, o.dry.Suffix())
		}
		if word == "uncordoned" && drainplan.HasTaint(after, drainplan.Taint) {
			tell(o.out, "cluster/%s is drained, and stays so: kubectl federation undrain %s\n", name, name)
		}
	}
	return errors.Join(errs...)
}
