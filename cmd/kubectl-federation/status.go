package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/controllers/explain"
	explainplan "federation/controllers/explain/plan"
)

type statusCommand struct {
	target
	output   output
	all      bool
	exitCode bool
	watch    bool
}

func newStatus(streams genericiooptions.IOStreams) *cobra.Command {
	o := &statusCommand{}
	c := &cobra.Command{
		Use:   "status",
		Short: "Say how the whole federation stands",
		Long: `Say how the whole federation stands: its clusters, with what is free in them; the servers and services
that have its DNS zone; its load balancers; how many objects of each kind it spreads; and which of them are not as desired in all clusters, longest first.

Of kinds without conditions, as ConfigMaps, Secrets and custom kinds, an object counts as in sync in a
cluster that cannot be reached: that the cluster cannot be is said of the cluster.`,
		Example: `  kubectl federation status

  # On a screen, until it is interrupted
  kubectl federation status --watch

  # In a script: exit code 1 while a cluster does not serve or an object is out of sync
  kubectl federation status --exit-code >/dev/null && echo all is well`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), streams.Out) },
	}
	o.output.addFlag(c)
	o.addFlags(c)
	c.Flags().BoolVar(&o.all, "all", false, fmt.Sprintf("show all clusters and objects, not only %d", maxRows))
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "show it again whenever it has changed, until interrupted")
	c.Flags().BoolVar(&o.exitCode, "exit-code", false, "end with 1 unless all clusters serve, all objects are in sync, no DNS provider is behind and all load balancers are alive")
	return c
}

// exitCode ends the program without a message.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func (o *statusCommand) run(ctx context.Context, out io.Writer) error {
	if err := o.output.check(); err != nil {
		return err
	}
	if o.watch && (o.exitCode || o.output != "table") {
		return errors.New("--watch: must not be beside --exit-code, nor an --output other than table")
	}
	f, err := o.connect()
	if err != nil {
		return err
	}
	if o.watch {
		return o.keepShowing(ctx, out, func(ctx context.Context) (*explainplan.Status, error) { return explain.ReadStatus(ctx, f) }, watchPeriod)
	}
	s, err := explain.ReadStatus(ctx, f)
	if err != nil {
		return err
	}
	if o.output == "table" {
		o.show(out, s, isTerminal(out))
	} else if err := o.output.print(out, s); err != nil {
		return err
	}
	if o.exitCode && !s.Healthy {
		return exitCode(1)
	}
	return nil
}
