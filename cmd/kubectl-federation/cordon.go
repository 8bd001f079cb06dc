package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/retry"

	"federation/apiserver/apis/federation/v1beta1"
	drainplan "federation/controllers/drain/plan"
)

// DryRun is what kubectl's flag --dry-run says: that nothing is changed, and who says what would be.
type DryRun string

// Values of dryRun.
const (
	DryRunNone   DryRun = "none"
	DryRunClient DryRun = "client"
	DryRunServer DryRun = "server"
)

func addDryRunFlag(c *cobra.Command, d *DryRun) {
	*d = DryRunNone
	c.Flags().StringVar((*string)(d), "dry-run", "none", `none, client (only say what would be done) or server (have the federation check it too, and change nothing)`)
	c.Flags().Lookup("dry-run").NoOptDefVal = "client"
	_ = c.RegisterFlagCompletionFunc("dry-run", fixedWords("none", "client", "server")) // fails only for a flag that is not there
}

func (d DryRun) Check() error {
	if !slices.Contains([]DryRun{DryRunNone, DryRunClient, DryRunServer}, d) {
		return fmt.Errorf("--dry-run %q: must be none, client or server", d)
	}
	return nil
}

// Suffix returns kubectl's suffix of messages.
func (d DryRun) Suffix() string {
	return map[DryRun]string{DryRunClient: " (dry run)", DryRunServer: " (server dry run)"}[d]
}

// ChangeCluster changes a Cluster and writes it, if anything changed. It keeps concurrent changes by others.
func (f *Federation) ChangeCluster(ctx context.Context, name string, dry DryRun, how func(*v1beta1.Cluster)) (after *v1beta1.Cluster, changed bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before, err := f.Cluster(ctx, name)
		if err != nil {
			return err
		}
		after = before.DeepCopy()
		how(after)
		patch, err := clusterPatch(before, after)
		if err != nil {
			return err
		}
		if changed = patch != nil; !changed || dry == DryRunClient {
			return nil
		}
		o := metav1.PatchOptions{FieldManager: "kubectl-federation"}
		if dry == DryRunServer {
			o.DryRun = []string{metav1.DryRunAll}
		}
		_, err = f.Dynamic.Resource(v1beta1.ClustersResource).Patch(ctx, name, types.MergePatchType, patch, o)
		return err
	})
	return after, changed, err
}

// clusterPatch returns a merge patch for exactly this version; nil if nothing changes.
func clusterPatch(before, after *v1beta1.Cluster) ([]byte, error) {
	if equality.Semantic.DeepEqual(before, after) {
		return nil, nil
	}
	of := before.DeepCopy()
	of.ResourceVersion = "" // so that the patch has it
	was, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	is, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(was, is, was)
}

type cordonCommand struct {
	target
	dry DryRun
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
		after, changed, err := f.ChangeCluster(ctx, name, o.dry, func(c *v1beta1.Cluster) { how(c, drainplan.Cordon) })
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
