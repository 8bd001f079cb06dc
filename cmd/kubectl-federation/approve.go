package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
)

type approveCommand struct {
	target
	genericiooptions.IOStreams
	output output
	dry    client.DryRun
	yes    bool
}

func newApproveDeletions(streams genericiooptions.IOStreams) *cobra.Command {
	o := &approveCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "approve-deletions CLUSTER",
		Short: "Have copies deleted in a cluster whose objects the federation does not know",
		Long: `Have copies deleted in a cluster whose objects the federation does not know.

A copy is deleted when its object is. Where the federation has no such object, and no deletion of it is
recorded, the copy is deleted too; but if these are more than 10, and more than 20 % of the copies in the cluster,
within ten minutes, they wait for approval: then something is more likely to be wrong with the federation: it was restored from a
backup that is older than they are. The Cluster has the condition DeletionsPendingApproval, and status.deletionsPendingApproval.

There are two ways on. Apply the objects again, and their copies are taken over as they run. Or approve that they
are deleted, which this command does: exactly those that it shows, in this one cluster, once. It asks for the
cluster's name, which --yes replaces.`,
		Example: `  # What waits for approval, and would be deleted
  kubectl federation approve-deletions east-a --dry-run

  # All that waits in all clusters
  kubectl get clusters -o custom-columns=NAME:.metadata.name,PENDING:.status.deletionsPendingApproval[*].copies

  kubectl federation approve-deletions east-a`,
		Args:              oneName,
		ValidArgsFunction: o.completeWith(oneCluster),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	o.output.addFlag(c)
	addDryRunFlag(c, &o.dry)
	o.addFlags(c)
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return c
}

func (o *approveCommand) run(ctx context.Context, name string) error {
	if err := errors.Join(o.output.check(), o.dry.Check()); err != nil {
		return err
	}
	f, err := o.connect()
	if err != nil {
		return err
	}
	return o.approve(ctx, f, name)
}

func (o *approveCommand) approve(ctx context.Context, f *client.Federation, name string) error {
	c, err := f.Cluster(ctx, name)
	if err != nil {
		return err
	}
	held := c.Status.DeletionsPendingApproval
	if err := o.printPending(name, held); err != nil || len(held) == 0 {
		return err
	}
	if o.dry == client.DryRunNone && !o.yes {
		tell(o.ErrOut, "To have them deleted, type the name of the cluster: ")
		if !isTyped(o.In, name) {
			return fmt.Errorf("cluster %s: nothing is deleted, its name was not typed (--yes does not ask)", name)
		}
	}
	if o.dry != client.DryRunClient {
		if err := client.Merge(ctx, f.Dynamic.Resource(v1beta1.ClustersResource), name, approval(held), o.dry); err != nil {
			return err
		}
	}
	if o.output == "table" {
		tell(o.Out, "cluster/%s deletions approved%s\n", name, o.dry.Suffix())
	}
	return nil
}

// printPending prints which deletions wait for approval in a cluster.
func (o *approveCommand) printPending(name string, held []v1beta1.PendingDeletions) error {
	if o.output != "table" {
		return o.output.print(o.Out, map[string]any{"cluster": name, "deletionsPendingApproval": append([]v1beta1.PendingDeletions{}, held...)})
	}
	if len(held) == 0 {
		tell(o.Out, "cluster/%s: no deletions wait for approval\n", name)
	}
	for _, h := range held {
		of := ""
		if h.Resource != "" {
			of = " of " + h.Resource
		}
		tell(o.Out, "%s: %d of %d copies%s would be deleted, for the federation does not know their objects:\n", name, h.Copies, h.Of, of)
		for _, example := range h.Examples {
			tell(o.Out, "  %s\n", example)
		}
		if more := int64(h.Copies) - int64(len(h.Examples)); more > 0 {
			tell(o.Out, "  and %d more\n", more)
		}
	}
	return nil
}

// approval returns a merge patch that approves the sets.
func approval(held []v1beta1.PendingDeletions) map[string]any {
	sets := make([]string, len(held))
	for i, h := range held {
		sets[i] = h.Set
	}
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1beta1.ApproveDeletionsAnnotation: strings.Join(sets, ",")}}}
}
