package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	drainplan "federation/controllers/drain/plan"
	"federation/controllers/servicedns/plan"
)

type drainCommand struct {
	target
	genericiooptions.IOStreams
	dry     dryRun
	timeout time.Duration
	ttl     time.Duration
	// fixedTTL: the flag sets the TTL, and so how long to wait whatever DNS providers report.
	fixedTTL bool
	force    bool
	all      bool

	*federation
	members  *members
	progress progress
	// forgotten is when resolvers will have forgotten the cluster's addresses, as last printed.
	forgotten time.Time
	// found are the resources of custom kinds, by KIND.GROUP.
	found map[string]schema.GroupVersionResource
	// blind: a message said that the cluster cannot be read.
	blind bool
}

func newDrain(streams genericiooptions.IOStreams) *cobra.Command {
	o := &drainCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "drain CLUSTER",
		Short: "Move everything off a cluster, in order, and keep it empty",
		Long: `Move everything off a cluster, in order:

 1. its weight in DNS becomes 0: its addresses are given out only where nothing else serves
 2. wait until all DNS providers have that, and no resolver keeps its addresses any more: the longest
    TTL of the names that have addresses there (--ttl says another time)
 3. the taint ` + v1beta1.TaintDrain + `:NoExecute: its replicas are placed on other clusters, and
    shrink there only as fast as the new ones get ready
 4. wait until no replica is placed or ready there
 5. cordon it

First it shows what would move. It refuses to begin where replicas would fit nowhere (--force begins
all the same: those stay where they are). Ctrl-C leaves it where it is: run it again to go on, or undo
it with undrain. All it needs to know is kept in the Cluster.

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
		Long: `Undo drain, in order:

 1. the taints that drain put on the cluster go: replicas may be placed there again
 2. wait until all that is placed there is ready
 3. its weight in DNS becomes what it was

What was moved away comes back, except for objects whose policy has failback: Never; those come back
when they are scaled or changed.`,
		Example: `  kubectl federation undrain east-a`,
		Args:    oneName,
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0], o.undrain) },
	}
	o.addDrainFlags(c, "ready")
	return c
}

func (o *drainCommand) addDrainFlags(c *cobra.Command, until string) {
	c.ValidArgsFunction = o.completeWith(oneCluster)
	o.dry.addFlag(c)
	o.addFlags(c)
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to go on until the cluster is "+until+"; 0 is for ever")
}

// memberTimeout bounds a request to one member.
const memberTimeout = 5 * time.Second

func (o *drainCommand) run(ctx context.Context, name string, do func(context.Context, string) error) (err error) {
	if err := o.dry.check(); err != nil {
		return err
	}
	if o.timeout < 0 {
		return fmt.Errorf("--timeout %v: must not be negative", o.timeout)
	}
	if o.federation, err = o.connect(); err != nil {
		return err
	}
	o.members, o.progress = newMembers(o.federation, memberTimeout), progress{out: o.Out, every: 30 * time.Second}
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

// explainInterrupt describes the state of an interrupted drain, and how to continue.
func (o *drainCommand) explainInterrupt(ctx context.Context, name string) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.Canceled) {
		cause = errors.New("interrupted")
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), memberTimeout)
	defer cancel()
	c, err := o.cluster(late, name)
	if err != nil {
		return cause
	}
	return fmt.Errorf("%w; cluster %s is left with %s\n"+
		"  kubectl federation drain %s     empties it\n"+
		"  kubectl federation undrain %s   brings it back", cause, name, drainState(c), name, name)
}

func (o *drainCommand) drain(ctx context.Context, name string) error {
	c, err := o.cluster(ctx, name)
	if err != nil {
		return err
	}
	if err := o.setTTL(ctx, name); err != nil {
		return err
	}
	if !drainplan.HasTaint(c, drainplan.Taint) {
		if err := o.preview(ctx, name); err != nil {
			return err
		}
	}
	if o.dry != "none" {
		_, _, err := o.changeCluster(ctx, name, o.dry, func(c *v1beta1.Cluster) {
			drainplan.Begin(c, time.Now())
			drainplan.AddTaint(c, drainplan.Taint)
			drainplan.AddTaint(c, drainplan.Cordon)
		})
		tell(o.Out, "cluster/%s would be drained%s: DNS weight %d to 0, wait %s, move, cordon\n", name, o.dry.suffix(), c.DNSWeight(), o.ttl)
		return err
	}
	return o.runSteps(ctx, name, func(c *v1beta1.Cluster) (bool, error) { return o.drainStep(ctx, c) })
}

// setTTL sets, unless the flag does, the longest time for which resolvers may keep an address in the cluster: the
// federation's, or that of an object.
func (o *drainCommand) setTTL(ctx context.Context, name string) error {
	if o.fixedTTL = o.ttl >= 0; o.fixedTTL {
		return nil
	}
	info, err := o.info(ctx)
	if err != nil {
		return err
	}
	if info == nil {
		return fmt.Errorf("the federation does not say how long its DNS answers may be kept (ConfigMap %s/%s): say it with --ttl",
			v1beta1.FederationNamespace, v1beta1.InfoConfigMap)
	}
	objects, err := o.namedObjects(ctx, plan.NewClaims(plan.Zone{}))
	if err != nil {
		return fmt.Errorf("how long DNS answers may be kept (say it with --ttl): %w", err)
	}
	o.ttl = info.DNSTTL
	for i := range objects {
		there := slices.ContainsFunc(objects[i].Ingresses.Items, func(item v1beta1.ClusterServiceIngress) bool { return item.Cluster == name && item.IsKnown() })
		if s := objects[i].Settings; there && s != nil && s.TTLSeconds != nil {
			o.ttl = max(o.ttl, time.Duration(*s.TTLSeconds)*time.Second)
		}
	}
	return nil
}

// preview prints what would move, and refuses if not everything would fit.
func (o *drainCommand) preview(ctx context.Context, name string) error {
	r, err := o.review(ctx, v1beta1.FailoverReviewSpec{Clusters: []string{name}, Drained: true})
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
		return fmt.Errorf("%s would fit in no other cluster, and would stay in %s (--force begins all the same)", countOf(r.Status.ReplicasUnschedulable, "replica"), name)
	}
	return nil
}

// runSteps reads the Cluster and takes its next step, until there is none.
func (o *drainCommand) runSteps(ctx context.Context, name string, step func(*v1beta1.Cluster) (done bool, err error)) error {
	for {
		c, err := o.cluster(ctx, name)
		if err != nil {
			return err
		}
		if done, err := step(c); done || err != nil {
			return err
		}
	}
}

func (o *drainCommand) drainStep(ctx context.Context, c *v1beta1.Cluster) (bool, error) {
	var providers []dnsProvider
	if !o.fixedTTL {
		var err error
		if providers, err = o.dnsProviders(ctx); err != nil {
			return false, err
		}
	}
	next, wait, err := drainplan.Next(c, time.Now(), o.ttl, providerStates(providers))
	if err != nil {
		return false, err
	}
	switch next {
	case drainplan.StepWeight:
		return false, o.changeAndPrint(ctx, c.Name, "weight in DNS is 0", func(c *v1beta1.Cluster) { drainplan.Begin(c, time.Now()) })
	case drainplan.StepPublish:
		o.progress.printProviders(c.Name, providers)
		return false, sleep(ctx, time.Second)
	case drainplan.StepTTL:
		if end := time.Now().Add(wait); end.Sub(o.forgotten).Abs() > time.Second {
			o.progress.say("%s: waiting %s until no resolver has its addresses", c.Name, wait.Round(time.Second))
			o.forgotten = end
		}
		return false, sleep(ctx, min(wait, 5*time.Second)) // a provider may turn out to be out of sync meanwhile
	case drainplan.StepTaint:
		return false, o.changeAndPrint(ctx, c.Name, "tainted "+drainplan.Taint.ToString()+": its replicas move", func(c *v1beta1.Cluster) { drainplan.AddTaint(c, drainplan.Taint) })
	}
	if err := o.waitEmpty(ctx, c); err != nil {
		return false, err
	}
	tell(o.Out, "cluster/%s drained\n", c.Name)
	return true, nil
}

// changeAndPrint changes the Cluster and prints that.
func (o *drainCommand) changeAndPrint(ctx context.Context, name, what string, how func(*v1beta1.Cluster)) error {
	_, changed, err := o.changeCluster(ctx, name, "none", how)
	if err == nil && changed {
		o.progress.say("%s: %s", name, what)
	}
	return err
}

// waitEmpty returns when nothing is left, after cordoning the cluster. What is unknown may be left.
func (o *drainCommand) waitEmpty(ctx context.Context, c *v1beta1.Cluster) error {
	var empty steady
	for {
		began := time.Now()
		s, err := o.contentsOf(ctx, c)
		if err != nil {
			return err
		}
		left := notGone(s.objects)
		switch nothing := s.unknown == "" && len(left) == 0; {
		case empty.steadyFor(nothing) >= s.settleTime():
			return o.changeAndPrint(ctx, c.Name, s.describe("no replica is left there; cordoned"), drainplan.Finish)
		case !nothing:
			o.progress.printLeft(c.Name, left, s.unknown, o.whyLeft(ctx, left))
		}
		if err := sleep(ctx, pollDelay(time.Since(began))); err != nil {
			return err
		}
		if c, err = o.cluster(ctx, c.Name); err != nil {
			return err
		}
		if !drainplan.HasTaint(c, drainplan.Taint) {
			return fmt.Errorf("somebody took the taint %s off cluster %s meanwhile: not drained", drainplan.Taint.ToString(), c.Name)
		}
	}
}

// settleTime returns how long the cluster must look empty to count as empty: the federation's reports are a moment late.
func (s *clusterContents) settleTime() time.Duration {
	if s.reported {
		return 2 * settled
	}
	return 0
}

// describe returns what is known of a cluster, with its source.
func (s *clusterContents) describe(what string) string {
	if s.reported {
		return "by the federation's report, " + what
	}
	return what
}

// steady is since when something has held; -1 from since if it does not.
type steady struct{ from time.Time }

func (s *steady) steadyFor(is bool) time.Duration {
	switch {
	case !is:
		s.from = time.Time{}
		return -1
	case s.from.IsZero():
		s.from = time.Now()
	}
	return time.Since(s.from)
}

// pollDelay returns the delay before the next look, so that looking takes a fifth of the time at most.
func pollDelay(took time.Duration) time.Duration { return max(time.Second, 4*took) }

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (o *drainCommand) undrain(ctx context.Context, name string) error {
	c, err := o.cluster(ctx, name)
	if err != nil {
		return err
	}
	if c.Annotations[v1beta1.DrainAnnotation] == "" && !drainplan.HasTaint(c, drainplan.Taint) {
		tell(o.Out, "cluster/%s is not drained%s\n", name, o.dry.suffix())
		return nil
	}
	if o.dry != "none" {
		after, _, err := o.changeCluster(ctx, name, o.dry, func(c *v1beta1.Cluster) { drainplan.Untaint(c); drainplan.End(c) })
		if err == nil {
			tell(o.Out, "cluster/%s would be undrained%s: taints off, wait, DNS weight %d to %d\n", name, o.dry.suffix(), c.DNSWeight(), after.DNSWeight())
		}
		return err
	}
	return o.runSteps(ctx, name, func(c *v1beta1.Cluster) (bool, error) { return o.undrainStep(ctx, c) })
}

func (o *drainCommand) undrainStep(ctx context.Context, c *v1beta1.Cluster) (bool, error) {
	switch drainplan.NextBack(c) {
	case drainplan.StepUntaint:
		return false, o.changeAndPrint(ctx, c.Name, "taints are off: replicas may be placed there", drainplan.Untaint)
	case drainplan.StepReturn:
		return false, o.waitBack(ctx, c)
	}
	tell(o.Out, "cluster/%s undrained\n", c.Name)
	return true, nil
}

// settled is how long everything placed must have been ready, unchanged, before DNS points there again: a placement on
// its way has arrived by then.
const settled = 5 * time.Second

// waitBack returns when everything placed is ready, after restoring the weight.
func (o *drainCommand) waitBack(ctx context.Context, c *v1beta1.Cluster) error {
	var since time.Time
	for last := ""; ; {
		began := time.Now()
		there, err := o.contentsOf(ctx, c)
		if err != nil {
			return err
		}
		missing, now := notReady(there.objects), placementDigest(there.objects)
		if len(missing) > 0 || now != last {
			since, last = began, now
		}
		if len(missing) == 0 && time.Since(since) >= settled {
			return o.changeAndPrint(ctx, c.Name, fmt.Sprintf("%s ready there; weight in DNS restored", countOf(readySum(there.objects), "replica")), drainplan.End)
		}
		o.progress.printMissing(c.Name, missing, o.whyLeft(ctx, missing))
		if err := sleep(ctx, pollDelay(time.Since(began))); err != nil {
			return err
		}
	}
}

// providerStates returns the state of the providers that a drain needs.
func providerStates(all []dnsProvider) (out []drainplan.Provider) {
	for _, p := range all {
		out = append(out, drainplan.Provider{Published: p.Published, Since: p.Since.Time})
	}
	return out
}
