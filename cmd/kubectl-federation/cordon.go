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
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/retry"

	"federation/apiserver/apis/federation/v1beta1"
	drainplan "federation/controllers/drain/plan"
)

// dryRun is what kubectl's flag --dry-run says: that nothing is changed, and who says what would be.
type dryRun string

// Values of dryRun.
const (
	dryRunNone   dryRun = "none"
	dryRunClient dryRun = "client"
	dryRunServer dryRun = "server"
)

func addDryRunFlag(c *cobra.Command, d *dryRun) {
	*d = dryRunNone
	c.Flags().StringVar((*string)(d), "dry-run", "none", `none, client (only say what would be done) or server (have the federation check it too, and change nothing)`)
	c.Flags().Lookup("dry-run").NoOptDefVal = "client"
	_ = c.RegisterFlagCompletionFunc("dry-run", fixedWords("none", "client", "server")) // fails only for a flag that is not there
}

func (d dryRun) check() error {
	if !slices.Contains([]dryRun{dryRunNone, dryRunClient, dryRunServer}, d) {
		return fmt.Errorf("--dry-run %q: must be none, client or server", d)
	}
	return nil
}

// suffix returns kubectl's suffix of messages.
func (d dryRun) suffix() string {
	return map[dryRun]string{dryRunClient: " (dry run)", dryRunServer: " (server dry run)"}[d]
}

// changeCluster changes a Cluster and writes it, if anything changed: its taints and its drain. It keeps concurrent changes by others.
func (f *federation) changeCluster(ctx context.Context, name string, dry dryRun, how func(*v1beta1.Cluster)) (after *v1beta1.Cluster, changed bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before, err := f.cluster(ctx, name)
		if err != nil {
			return err
		}
		after = before.DeepCopy()
		how(after)
		patch := clusterPatch(before, after)
		if changed = patch != nil; !changed || dry == dryRunClient {
			return nil
		}
		o := metav1.PatchOptions{FieldManager: "kubectl-federation"}
		if dry == dryRunServer {
			o.DryRun = []string{metav1.DryRunAll}
		}
		_, err = f.dyn.Resource(v1beta1.ClustersResource).Patch(ctx, name, types.MergePatchType, patch, o)
		return err
	})
	return after, changed, err
}

// clusterPatch returns a merge patch for exactly this version; nil if nothing changes.
func clusterPatch(before, after *v1beta1.Cluster) []byte {
	spec, annotations := map[string]any{}, map[string]any{}
	if !slices.EqualFunc(before.Spec.Taints, after.Spec.Taints, func(a, b corev1.Taint) bool { return a.MatchTaint(&b) }) {
		spec["taints"] = after.Spec.Taints
	}
	if !equality.Semantic.DeepEqual(before.Spec.Drain, after.Spec.Drain) {
		spec["drain"] = replaced(before.Spec.Drain, after.Spec.Drain)
	}
	if value := after.Annotations[v1beta1.DrainAnnotation]; value != before.Annotations[v1beta1.DrainAnnotation] {
		annotations[v1beta1.DrainAnnotation] = &value
		if value == "" {
			annotations[v1beta1.DrainAnnotation] = nil
		}
	}
	if len(spec)+len(annotations) == 0 {
		return nil
	}
	patch, _ := json.Marshal(map[string]any{ // values of our own types
		"metadata": map[string]any{"resourceVersion": before.ResourceVersion, "annotations": annotations},
		"spec":     spec,
	})
	return patch
}

// replaced returns what a merge patch has for a drain, so that nothing of the earlier one stays.
func replaced(before, after *v1beta1.ClusterDrain) any {
	if after != nil && after.TTLSeconds == nil && before != nil {
		return map[string]any{"ttlSeconds": nil}
	}
	return after
}

type cordonCommand struct {
	target
	dry dryRun
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
	if err := o.dry.check(); err != nil {
		return err
	}
	f, err := o.connect()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		after, changed, err := f.changeCluster(ctx, name, o.dry, func(c *v1beta1.Cluster) { how(c, drainplan.Cordon) })
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case changed:
			tell(o.out, "cluster/%s %s%s\n", name, word, o.dry.suffix())
		default:
			tell(o.out, "cluster/%s already %s%s\n", name, word, o.dry.suffix())
		}
		if word == "uncordoned" && drainplan.HasTaint(after, drainplan.Taint) {
			tell(o.out, "cluster/%s is drained, and stays so: kubectl federation undrain %s\n", name, name)
		}
	}
	return errors.Join(errs...)
}
