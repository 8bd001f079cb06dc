package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
)

func newDrill(streams genericiooptions.IOStreams) *cobra.Command {
	c := &cobra.Command{
		Use:   "drill",
		Short: "Take clusters out of service for a while, measure it, and have it undone",
		Long: `Take clusters out of service for a while, measure what becomes of it, and have it undone by itself.

A drill is an object, FailoverDrill, and the federation runs it: nobody has to stay at the terminal. It begins only when
all clusters serve and what leaves would fit elsewhere, and ends at once when another cluster is really lost, when too few
replicas are ready, or when somebody changes its clusters by hand, aborts or deletes it.

Methods, from the one that nobody notices on:
  Shift      takes the clusters' addresses out of DNS; replicas stay
  Evacuate   does that, and then moves the replicas off, as drain does; then they come back`,
		Args: cobra.NoArgs,
		RunE: help,
	}
	c.AddCommand(newDrillRun(streams), newDrillStatus(streams), newDrillAbort(streams), newDrillReport(streams), newDrillStop(streams), newDrillResume(streams))
	return c
}

type drillRunCommand struct {
	failoverCommand
	genericiooptions.IOStreams
	method, reason       string
	hold, baseline       time.Duration
	outOfDNS, elsewhere  time.Duration
	yes, detach, dryTest bool
}

func newDrillRun(streams genericiooptions.IOStreams) *cobra.Command {
	o := &drillRunCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "run [NAME] (--cluster CLUSTER | --zone [REGION/]ZONE | --region REGION)... --method METHOD --reason TEXT",
		Short: "Run a drill, and follow it to its end",
		Long: `Run a drill, and follow it to its end. First it shows what would move, and asks for the scope's name.

Ctrl-C ends the following, not the drill: it goes on, and undoes itself (drill abort ends it). The exit code is 0 if the drill
succeeded.`,
		Example: `  # What a drill of the zone would move
  kubectl federation drill run --zone east/a --method evacuate --reason "before the season" --dry-run

  # The weekly one: addresses out of DNS for ten minutes
  kubectl federation drill run weekly-47 --zone east/a --method shift --reason "as each week"

  # In a pipeline
  kubectl federation drill run --zone east/a --method evacuate --reason "release 12" --hold 5m --out-of-dns 10s --yes`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("give one NAME, not %d: %q", len(args), args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), strings.Join(args, ""))
		},
	}
	f := c.Flags()
	f.StringSliceVar(&o.spec.Clusters, "cluster", nil, "clusters by `name`")
	f.StringSliceVar(&o.spec.Zones, "zone", nil, "zones, as `REGION/ZONE` or ZONE")
	f.StringSliceVar(&o.spec.Regions, "region", nil, "`regions`")
	f.StringVar(&o.method, "method", "", "shift or evacuate")
	f.StringVar(&o.reason, "reason", "", "why, for those who see it")
	f.DurationVar(&o.hold, "hold", 10*time.Minute, "how long the clusters are out, from 10s to 4h")
	f.DurationVar(&o.baseline, "baseline", time.Minute, "how long all must be well before, from 5s to 1h")
	f.DurationVar(&o.outOfDNS, "out-of-dns", 0, "the drill fails if the addresses are out of DNS later than that after the fault; 0 does not ask")
	f.DurationVar(&o.elsewhere, "ready-elsewhere", 0, "with evacuate, the drill fails if what moves is ready elsewhere later than that after the fault; 0 does not ask")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.detach, "detach", false, "do not follow it")
	f.BoolVar(&o.dryTest, "dry-run", false, "show what would move, and begin nothing")
	c.MarkFlagsOneRequired("cluster", "zone", "region")
	_ = c.MarkFlagRequired("method") // fails only for a flag that is not there, as the next two
	_ = c.MarkFlagRequired("reason")
	_ = c.RegisterFlagCompletionFunc("method", fixed("shift", "evacuate"))
	o.addFlags(c)
	o.complete(c)
	return c
}

func (o *drillRunCommand) run(ctx context.Context, name string) error {
	method, err := methodOf(o.method)
	if err != nil {
		return err
	}
	f, err := o.connect()
	if err != nil {
		return err
	}
	spec := o.spec
	spec.Drained = true
	review, err := f.review(ctx, spec)
	if err != nil {
		return f.known(ctx, err)
	}
	o.preview(method, &review.Status)
	if o.dryTest {
		return nil
	}
	if err := o.confirm(); err != nil {
		return err
	}
	made, err := f.makeDrill(ctx, o.object(name, method))
	if err != nil {
		return errors.New(faults(err))
	}
	if o.detach {
		tell(o.Out, "failoverdrill/%s created\n", made.Name)
		return nil
	}
	tell(o.ErrOut, "failoverdrill/%s created; Ctrl-C ends the following only\n", made.Name)
	return f.follow(ctx, o.IOStreams, made.Name)
}

func methodOf(word string) (v1beta1.DrillMethod, error) {
	for _, m := range []v1beta1.DrillMethod{v1beta1.DrillShift, v1beta1.DrillEvacuate} {
		if strings.EqualFold(word, string(m)) {
			return m, nil
		}
	}
	return "", fmt.Errorf("--method %q: must be shift or evacuate", word)
}

// preview shows what the drill would do.
func (o *drillRunCommand) preview(method v1beta1.DrillMethod, s *v1beta1.FailoverReviewStatus) {
	tell(o.Out, "%s of %s for %s\n", method, some(s.Clusters), o.hold)
	if method == v1beta1.DrillEvacuate {
		tell(o.Out, "\n")
		printMoves(o.Out, s, maxRows)
	}
	printRecords(o.Out, s, maxRows)
}

func (o *drillRunCommand) confirm() error {
	if o.yes {
		return nil
	}
	scope := strings.Join(slices.Concat(o.spec.Clusters, o.spec.Zones, o.spec.Regions), ",")
	tell(o.ErrOut, "To begin, type %s: ", scope)
	answer, _ := bufio.NewReader(o.In).ReadString('\n') // no answer is none
	if strings.TrimSpace(answer) != scope {
		return fmt.Errorf("nothing has begun: %s was not typed (--yes does not ask)", scope)
	}
	return nil
}

func (o *drillRunCommand) object(name string, method v1beta1.DrillMethod) *v1beta1.FailoverDrill {
	seconds := func(d time.Duration) *int32 { return new(int32(min(d.Round(time.Second).Seconds(), 1e9))) }
	d := &v1beta1.FailoverDrill{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "FailoverDrill"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.FailoverDrillSpec{
			Scope:  v1beta1.FailoverDrillScope{Clusters: o.spec.Clusters, Zones: o.spec.Zones, Regions: o.spec.Regions},
			Method: method, Reason: o.reason, HoldSeconds: seconds(o.hold), BaselineSeconds: seconds(o.baseline),
		},
	}
	if name == "" {
		d.GenerateName = strings.ToLower(string(method)) + "-"
	}
	if o.outOfDNS > 0 {
		d.Spec.Objectives.OutOfDNSSeconds = seconds(o.outOfDNS)
	}
	if o.elsewhere > 0 {
		d.Spec.Objectives.ReadyElsewhereSeconds = seconds(o.elsewhere)
	}
	return d
}

func (f *federation) makeDrill(ctx context.Context, d *v1beta1.FailoverDrill) (*v1beta1.FailoverDrill, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		return nil, err
	}
	u, err := f.dyn.Resource(v1beta1.FailoverDrillsResource).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{FieldManager: "kubectl-federation"})
	if err != nil {
		return nil, err
	}
	return drillOf(u)
}

func (f *federation) drill(ctx context.Context, name string) (*v1beta1.FailoverDrill, error) {
	u, err := f.dyn.Resource(v1beta1.FailoverDrillsResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return drillOf(u)
}

func drillOf(u *unstructured.Unstructured) (*v1beta1.FailoverDrill, error) {
	d := &v1beta1.FailoverDrill{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d)
	d.ManagedFields = nil // says nothing to anybody
	return d, err
}

// follow tells of a drill until it is over. The error says that it did not succeed.
func (f *federation) follow(ctx context.Context, streams genericiooptions.IOStreams, name string) error {
	said := map[string]bool{}
	for {
		d, err := f.drill(ctx, name)
		if err != nil {
			return err
		}
		for _, line := range tale(d) {
			if !said[line] {
				said[line] = true
				tell(streams.Out, "%s\n", line)
			}
		}
		if d.Over() {
			if d.Status.Outcome != v1beta1.DrillSucceeded {
				return fmt.Errorf("failoverdrill/%s: %s, %s: %s", name, d.Status.Outcome, d.Status.Reason, d.Status.Message)
			}
			return nil
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return fmt.Errorf("failoverdrill/%s goes on by itself: kubectl federation drill status %s, or drill abort %s", name, name, name)
		}
	}
}

// tale is what has become of a drill so far, in lines.
func tale(d *v1beta1.FailoverDrill) (lines []string) {
	s := &d.Status
	switch s.Phase {
	case "", v1beta1.DrillPending:
		return []string{strings.TrimSuffix(fmt.Sprintf("Pending: %s: %s", cmp.Or(s.Reason, "not seen by the federation yet"), s.Message), ": ")}
	case v1beta1.DrillBaseline:
		return []string{fmt.Sprintf("Baseline: all must be well for %d s", d.Spec.Baseline())}
	}
	if s.Report != nil && s.Report.Marks.Injected != nil {
		lines = append(lines, fmt.Sprintf("%s is out of service at %s", strings.Join(s.Clusters, ", "), s.Report.Marks.Injected.UTC().Format(time.TimeOnly)))
		for _, m := range marksOf(&s.Report.Marks) {
			lines = append(lines, fmt.Sprintf("  %8s  %s", m.after, m.what))
		}
	}
	if d.Over() {
		lines = append(lines, fmt.Sprintf("%s, %s: %s", s.Outcome, s.Reason, s.Message))
	}
	return lines
}

type drillStatusCommand struct {
	target
	output output
	watch  bool
}

func newDrillStatus(streams genericiooptions.IOStreams) *cobra.Command {
	o := &drillStatusCommand{}
	c := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show how drills stand, or follow one",
		Example: `  kubectl federation drill status
  kubectl federation drill status weekly-47 --watch`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.offer(drillNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.output.check(); err != nil {
				return err
			}
			f, err := o.connect()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return o.list(c.Context(), f, streams)
			}
			if o.watch {
				return f.follow(c.Context(), streams, args[0])
			}
			d, err := f.drill(c.Context(), args[0])
			if err != nil {
				return err
			}
			if o.output != "table" {
				return o.output.print(streams.Out, d)
			}
			tell(streams.Out, "%s\n", strings.Join(tale(d), "\n"))
			return nil
		},
	}
	o.output.addFlag(c)
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "follow the drill until it is over")
	o.addFlags(c)
	return c
}

func (o *drillStatusCommand) list(ctx context.Context, f *federation, streams genericiooptions.IOStreams) error {
	var all []*v1beta1.FailoverDrill
	if err := list(ctx, f.dyn.Resource(v1beta1.FailoverDrillsResource), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
		d, err := drillOf(u)
		all = append(all, d)
		return err
	}); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b *v1beta1.FailoverDrill) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	if o.output != "table" {
		return o.output.print(streams.Out, all)
	}
	if len(all) == 0 {
		tell(streams.Out, "no drills: kubectl federation drill run begins one\n")
		return nil
	}
	w := tabwriter.NewWriter(streams.Out, 0, 0, 3, ' ', 0)
	tell(w, "NAME\tSCOPE\tMETHOD\tPHASE\tOUTCOME\tREASON\tAGE\n")
	for _, d := range all {
		s := d.Spec.Scope
		tell(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Name, some(slices.Concat(s.Clusters, s.Zones, s.Regions)), d.Spec.Method, cmp.Or(d.Status.Phase, v1beta1.DrillPending),
			cmp.Or(d.Status.Outcome, "-"), cmp.Or(d.Status.Reason, "-"), ago(d.CreationTimestamp.Time, time.Now()))
	}
	return w.Flush()
}

// drillNames offers the drills that there are.
func drillNames(ctx context.Context, f *federation, args []string) (names []string) {
	if len(args) > 0 {
		return nil
	}
	_ = list(ctx, f.dyn.Resource(v1beta1.FailoverDrillsResource), metav1.ListOptions{}, func(u *unstructured.Unstructured) error { // nothing is offered then
		names = append(names, u.GetName())
		return nil
	})
	return names
}

func newDrillAbort(streams genericiooptions.IOStreams) *cobra.Command {
	var t target
	var reason string
	c := &cobra.Command{
		Use:   "abort NAME",
		Short: "End a drill now, and have it undone",
		Long: `End a drill now, and have it undone. Who did it is noted in the drill, and in the API's audit log. This needs the right to update
the subresource failoverdrills/abort, which the cluster roles federation-operator and federation-drill-operator have.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: t.offer(drillNames),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := t.connect()
			if err != nil {
				return err
			}
			body, err := json.Marshal(map[string]any{"status": map[string]any{"abort": map[string]any{"by": "", "at": nil, "reason": reason}}})
			if err != nil {
				return err
			}
			if _, err := f.dyn.Resource(v1beta1.FailoverDrillsResource).Patch(c.Context(), args[0], types.MergePatchType, body, metav1.PatchOptions{FieldManager: "kubectl-federation"}, "abort"); err != nil {
				return err
			}
			tell(streams.Out, "failoverdrill/%s aborted: it is being undone\n", args[0])
			return nil
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the report")
	t.addFlags(c)
	return c
}

// stopping changes the switch that ends all drills and keeps others from beginning.
func stopping(t *target, streams genericiooptions.IOStreams, value func() any, said string) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		f, err := t.connect()
		if err != nil {
			return err
		}
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1beta1.StopDrillsAnnotation: value()}}})
		if err != nil {
			return err
		}
		if _, err := f.core.CoreV1().Namespaces().Patch(c.Context(), v1beta1.FederationNamespace, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "kubectl-federation"}); err != nil {
			return err
		}
		tell(streams.Out, "%s\n", said)
		return nil
	}
}

func newDrillStop(streams genericiooptions.IOStreams) *cobra.Command {
	var t target
	var reason string
	c := &cobra.Command{
		Use:   "stop --reason TEXT",
		Short: "End all drills, and keep others from beginning",
		Long:  "End all drills, and keep others from beginning, until drill resume.",
		Args:  cobra.NoArgs,
		RunE:  stopping(&t, streams, func() any { return reason }, "drills are stopped; kubectl federation drill resume lets them begin again"),
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for those who wonder")
	_ = c.MarkFlagRequired("reason") // fails only for a flag that is not there
	t.addFlags(c)
	return c
}

func newDrillResume(streams genericiooptions.IOStreams) *cobra.Command {
	var t target
	c := &cobra.Command{
		Use:   "resume",
		Short: "Let drills begin again",
		Long:  "Let drills begin again. Those that were ended stay ended.",
		Args:  cobra.NoArgs,
		RunE:  stopping(&t, streams, func() any { return nil }, "drills may begin again"),
	}
	t.addFlags(c)
	return c
}
