package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/controllers/supportbundle"
)

type collectCommand struct {
	target
	genericiooptions.IOStreams
	file string
}

func newCollect(streams genericiooptions.IOStreams) *cobra.Command {
	o := &collectCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "collect",
		Short: "Collect in one file what somebody needs who looks for a fault",
		Long: `Collect in one file what somebody needs who looks for a fault: how the federation stands, its Clusters, policies,
readiness and drills, of each federated object its metadata and status, events, Leases, health and metrics.

What may be secret is not in it: Secrets and ConfigMaps are read without their data, specs of workloads and values that
policies set are left out, and of annotations that are not the federation's own there are the names only. Names, labels
and messages are in it: look through it before you pass it on.

What you may not read is left out and listed in errors.txt. Logs are not in the API; add them, for example by
journalctl -u federation --since "1 hour ago".`,
		Example: `  kubectl federation collect

  # Into a file of your own, or a pipe
  kubectl federation collect --file support.tar.gz
  kubectl federation collect --file - | tar tz`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), time.Now()) },
	}
	o.addFlags(c)
	c.Flags().StringVarP(&o.file, "file", "f", "", "`FILE` to write, - for standard output; without it federation-support-TIME.tar.gz here")
	return c
}

func (o *collectCommand) run(ctx context.Context, now time.Time) (err error) {
	f, err := o.connect()
	if err != nil {
		return err
	}
	name := cmp.Or(o.file, "federation-support-"+now.UTC().Format("20060102-150405")+".tar.gz")
	out := io.Writer(os.Stdout) // not the one that makes text printable
	if name != "-" {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		defer func() {
			if err = errors.Join(err, file.Close()); err != nil {
				_ = os.Remove(name) // half of it would mislead
				return
			}
			tell(o.ErrOut, "wrote %s: look through it before you pass it on\n", name)
		}()
		out = file
	}
	return supportbundle.Write(ctx, f, out, now, func(file string) { tell(o.ErrOut, "%s\n", file) })
}
