package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/apiserver/client"
	drainplan "federation/controllers/drain/plan"
	"federation/controllers/drain/progress"
)

type drainCommand struct {
	target
	genericiooptions.IOStreams
	dry     client.DryRun
	timeout time.Duration
	ttl     time.Duration
	force   bool
	all     bool

	*client.Federation
	progress *progress.Progress
}

func newDrain(streams genericiooptions.IOStreams) *cobra.Command {
	o := &drainCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "drain CLUSTER",
		Short: "Move everything off a cluster, in order, and keep it empty",
		Long: `Have the federation move everything off a cluster, in order, and keep it empty:

 1. its weight in DNS becomes 0: its addresses are given out only where nothing else serves
 2. wait until all DNS providers have that, and no resolver keeps its addresses any more: the longest
    TTL of the names that have addresses there (--ttl says another time)
 3. the taint ` + v1beta1.TaintDrain + `:NoExecute: its replicas are placed on other clusters, and
    shrink there only as fast as the new ones get ready
 4. wait until no replica is placed or ready there
 5. cordon it

First it shows what would move. It refuses to begin where replicas would fit nowhere (--force begins
all the same: those stay where they are). Then it sets spec.drain of the Cluster, and watches. Ctrl-C
ends the watching, not the drain: run it again to watch, or undo the drain with undrain.

DaemonSets, and objects that have no replicas, stay; so do objects whose policy tolerates the taint.`,
		Example: `  # What would happen
  kubectl federation drain east-a --dry-run

  kubectl federation drain east-a
  kubectl federation undrain east-a`,
		Args: oneName,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("ttl") && o.ttl < 0 {
				return fmt.Errorf("--ttl %v: must not be negative", o.ttl)
			}
			return o.run(c.Context(), args[0], o.drain)
		},
	}
	o.addDrainFlags(c, "empty")
	c.Flags().DurationVar(&o.ttl, "ttl", -1, "how long to wait after the weight in DNS has changed, whatever DNS providers report; without it as long as resolvers may keep an answer, from when all providers have the change")
	c.Flags().Lookup("ttl").DefValue = "0s" // which help does not show
	c.Flags().BoolVar(&o.force, "force", false, "begin though replicas would fit nowhere, or though that is not known")
	c.Flags().BoolVar(&o.all, "all", false, fmt.Sprintf("show all objects that would move, not only %d", maxRows))
	return c
}

func newUndrain(streams genericiooptions.IOStreams) *cobra.Command {
	o := &drainCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "undrain CLUSTER",
		Short: "Undo drain, in order",
		Long: `Have the federation undo drain, in order:

 1. the taints that drain put on the cluster go: replicas may be placed there again
 2. wait until all that is placed there is ready
 3. its weight in DNS becomes what it was

What was moved away comes back, except for objects whose policy has failback: Never; those come back
when they are scaled or changed. It removes spec.drain of the Cluster, and watches. Ctrl-C ends the
watching only.`,
		Example: `  kubectl federation undrain east-a`,
		Args:    oneName,
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0], o.undrain) },
	}
	o.addDrainFlags(c, "ready")
	return c
}

func (o *drainCommand) addDrainFlags(c *cobra.Command, until string) {
	c.ValidArgsFunction = o.completeWith(oneCluster)
	addDryRunFlag(c, &o.dry)
	o.addFlags(c)
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to watch until the cluster is "+until+"; 0 is for ever")
}

// memberTimeout bounds a request to one member.
const memberTimeout = 5 * time.Second

func (o *drainCommand) run(ctx context.Context, name string, do func(context.Context, string) error) (err error) {
	if err := o.dry.Check(); err != nil {
		return err
	}
	if o.timeout < 0 {
		return fmt.Errorf("--timeout %v: must not be negative", o.timeout)
	}
	if o.Federation, err = o.connect(); err != nil {
		return err
	}
	o.progress = progress.New(o.Out)
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not done after %s", o.timeout))
		defer cancel()
	}
	err = do(ctx, name)
	if ctx.Err() != nil {
		return o.explainInterrupt(ctx, name)
	}
	return err
}

// explainInterrupt describes the state of a cluster that is no longer watched, and what will become of it.
func (o *drainCommand) explainInterrupt(ctx context.Context, name string) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.Canceled) {
		cause = errors.New("interrupted")
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), memberTimeout)
	defer cancel()
	c, err := o.Cluster(late, name)
	if err != nil {
		return cause
	}
	goesOn := "as it is"
	switch {
	case c.Spec.Drain != nil:
		goesOn = "the federation goes on emptying it"
	case c.Annotations[v1beta1.DrainAnnotation] != "":
		goesOn = "the federation goes on bringing it back"
	}
	return fmt.Errorf("%w; cluster %s is left with %s: %s\n"+
		"  kubectl federation drain %s     empties it\n"+
		"  kubectl federation undrain %s   brings it back", cause, name, drainState(c), goesOn, name, name)
}

// drainState returns a cluster's state between serving and drained.
func drainState(c *v1beta1.Cluster) string {
	words := []string{fmt.Sprintf("DNS weight %d", c.DNSWeight())}
	for _, t := range c.Spec.Taints {
		words = append(words, "taint "+t.ToString())
	}
	return strings.Join(words, ", ")
}

func (o *drainCommand) drain(ctx context.Context, name string) error {
	c, err := o.Cluster(ctx, name)
	if err != nil {
		return err
	}
	if c.Spec.Drain == nil && !drainplan.HasTaint(c, drainplan.Taint) {
		if err := o.preview(ctx, name); err != nil {
			return err
		}
	}
	how := v1beta1.ClusterDrain{}
	if o.ttl >= 0 {
		how.TTLSeconds = new(int32(math.Ceil(min(o.ttl.Seconds(), math.MaxInt32))))
	}
	if _, _, err := o.DrainCluster(ctx, name, o.dry, func(c *v1beta1.Cluster) { drainplan.Request(c, how) }); err != nil {
		return err
	}
	if o.dry != client.DryRunNone {
		tell(o.Out, "cluster/%s would be drained%s: DNS weight %d to 0, wait, move, cordon\n", name, o.dry.Suffix(), c.DNSWeight())
		return nil
	}
	return o.watch(ctx, name, func(c *v1beta1.Cluster) (bool, error) {
		if c.Spec.Drain == nil {
			return false, fmt.Errorf("somebody has removed spec.drain of cluster %s: not drained", name)
		}
		if s := c.Status.Drain; s == nil || s.Phase != v1beta1.DrainDrained || c.OutOfService() != v1beta1.Drained {
			return false, nil
		}
		tell(o.Out, "cluster/%s drained\n", name)
		return true, nil
	})
}

// preview prints what would move, and refuses if not everything would fit.
func (o *drainCommand) preview(ctx context.Context, name string) error {
	r, err := o.Review(ctx, v1beta1.FailoverReviewSpec{Clusters: []string{name}, Drained: true})
	switch {
	case err != nil && !o.force:
		return fmt.Errorf("what would move is not known (--force begins all the same): %w", err)
	case err != nil:
		tell(o.ErrOut, "what would move is not known: %v\n", err)
		return nil
	}
	rows := maxRows
	if o.all {
		rows = len(r.Status.Moves)
	}
	printMoves(o.Out, &r.Status, rows)
	if r.Status.ReplicasUnschedulable > 0 && !o.force {
		return fmt.Errorf("%s would fit in no other cluster, and would stay in %s (--force begins all the same)", phrase.Count(r.Status.ReplicasUnschedulable, "replica"), name)
	}
	return nil
}

func (o *drainCommand) undrain(ctx context.Context, name string) error {
	c, err := o.Cluster(ctx, name)
	if err != nil {
		return err
	}
	if c.Spec.Drain == nil && c.Annotations[v1beta1.DrainAnnotation] == "" && !drainplan.HasTaint(c, drainplan.Taint) {
		tell(o.Out, "cluster/%s is not drained%s\n", name, o.dry.Suffix())
		return nil
	}
	if _, _, err := o.DrainCluster(ctx, name, o.dry, drainplan.Cancel); err != nil {
		return err
	}
	if o.dry != client.DryRunNone {
		drainplan.Untaint(c)
		weight := c.DNSWeight()
		drainplan.End(c)
		tell(o.Out, "cluster/%s would be undrained%s: taints off, wait, DNS weight %d to %d\n", name, o.dry.Suffix(), weight, c.DNSWeight())
		return nil
	}
	return o.watch(ctx, name, func(c *v1beta1.Cluster) (bool, error) {
		if c.Spec.Drain != nil {
			return false, fmt.Errorf("somebody has set spec.drain of cluster %s again: not undrained", name)
		}
		if c.Annotations[v1beta1.DrainAnnotation] != "" {
			return false, nil
		}
		o.progress.Finish(c)
		tell(o.Out, "cluster/%s undrained\n", name)
		return true, nil
	})
}

// watch prints how the Cluster changes until it is done.
func (o *drainCommand) watch(ctx context.Context, name string, done func(*v1beta1.Cluster) (bool, error)) error {
	for {
		c, err := o.Cluster(ctx, name)
		if err != nil {
			return err
		}
		o.progress.Print(c, time.Now())
		if is, err := done(c); is || err != nil {
			return err
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
