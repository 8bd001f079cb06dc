package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/apiserver/client"
	"federation/controllers/drill/outside"
	"federation/controllers/drill/report"
)

func newDrill(streams genericiooptions.IOStreams) *cobra.Command {
	c := &cobra.Command{
		Use:   "drill",
		Short: "Take clusters out of service for a while, measure it, and have it undone",
		Long: `Take clusters out of service for a while, measure what becomes of it, and have it undone by itself.

A drill is an object, FailoverDrill, and the federation runs it: nobody has to stay at the terminal. It begins only when
all clusters serve and what leaves would fit elsewhere, and ends at once when another cluster is really lost, when too few
replicas are ready, or when somebody changes its clusters by hand, aborts or deletes it.

Methods, from the one that nobody notices to the one that clients do:
  Shift      takes the clusters' addresses out of DNS; replicas stay
  Evacuate   does that, and then moves the replicas off, as drain does; then they come back
  Isolate    cuts the federation's own connections to the clusters: they are judged lost and failed over, as if they had
             died, while what runs there runs on
  Blackhole  does that, and has node agents drop what comes to the clusters' Services from outside: clients there get no answer
             until the lost addresses are out of DNS and their TTL is over. Needs join --allow-blackhole`,
		Args: cobra.NoArgs,
		RunE: help,
	}
	c.AddCommand(newDrillRun(streams), newDrillStatus(streams), newDrillApprove(streams), newDrillAbort(streams), newDrillReport(streams), newDrillSchedule(streams), newDrillStop(streams), newDrillResume(streams))
	return c
}

// drillFlags are the flags of a drill's spec.
type drillFlags struct {
	failoverCommand
	method, reason      string
	hold, baseline      time.Duration
	detected            time.Duration
	outOfDNS, elsewhere time.Duration
	as                  string
	allow, probes       []string
	approval            bool
}

type drillRunCommand struct {
	drillFlags
	genericiooptions.IOStreams
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
	o.addDrillFlags(c)
	f := c.Flags()
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.detach, "detach", false, "do not follow it")
	f.BoolVar(&o.dryTest, "dry-run", false, "show what would move, and begin nothing")
	o.addFlags(c)
	o.complete(c)
	return c
}

// addDrillFlags adds the flags of a drill's spec.
func (o *drillFlags) addDrillFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringSliceVar(&o.spec.Clusters, "cluster", nil, "clusters by `name`")
	f.StringSliceVar(&o.spec.Zones, "zone", nil, "zones, as `REGION/ZONE` or ZONE")
	f.StringSliceVar(&o.spec.Regions, "region", nil, "`regions`")
	f.StringVar(&o.method, "method", "", "shift, evacuate, isolate or blackhole")
	f.StringVar(&o.as, "isolate-as", "silent", "with isolate and blackhole, how connections fail: silent (no answer) or refused")
	f.StringSliceVar(&o.allow, "allow", nil, "`checks` that need not hold: DoubleRunning, NotHeld, Quiet, Rested")
	f.StringSliceVar(&o.probes, "probe", nil, "names in the federation's zone that are asked meanwhile, as `URLS`: http://NAME[:PORT]/PATH, https://…, tcp://NAME:PORT, dns://NAME. Too many failures end the drill")
	f.BoolVar(&o.approval, "needs-approval", false, "wait until somebody else approves it")
	f.StringVar(&o.reason, "reason", "", "why, for those who see it")
	f.DurationVar(&o.hold, "hold", 10*time.Minute, "how long the clusters are out of service, from 10s to 4h")
	f.DurationVar(&o.baseline, "baseline", time.Minute, "how long all must be well before, from 5s to 1h")
	f.DurationVar(&o.detected, "detected", 0, "with isolate and blackhole, the drill fails if the clusters are judged lost later than that after the fault; 0 does not ask")
	f.DurationVar(&o.outOfDNS, "out-of-dns", 0, "the drill fails if the addresses are out of DNS later than that after the fault; 0 does not ask")
	f.DurationVar(&o.elsewhere, "ready-elsewhere", 0, "with evacuate, isolate and blackhole, the drill fails if what moves is ready elsewhere later than that after the fault; 0 does not ask")
	c.MarkFlagsOneRequired("cluster", "zone", "region")
	_ = c.MarkFlagRequired("method") // fails only for an unknown flag; so below
	_ = c.MarkFlagRequired("reason")
	_ = c.RegisterFlagCompletionFunc("method", fixedWords("shift", "evacuate", "isolate", "blackhole"))
	_ = c.RegisterFlagCompletionFunc("isolate-as", fixedWords("silent", "refused"))
	_ = c.RegisterFlagCompletionFunc("allow", fixedWords(v1beta1.DrillDoubleRunning, v1beta1.DrillNotHeld, v1beta1.DrillQuiet, v1beta1.DrillRested))
}

func (o *drillRunCommand) run(ctx context.Context, name string) error {
	asked, err := o.drillSpec()
	if err != nil {
		return err
	}
	f, err := o.connect()
	if err != nil {
		return err
	}
	spec := o.spec
	spec.Drained = !asked.Method.Isolates()
	review, err := f.Review(ctx, spec)
	if err != nil {
		return withKnownClusters(ctx, f, err)
	}
	o.preview(asked.Method, &review.Status)
	if o.dryTest {
		return nil
	}
	if err := o.confirm(); err != nil {
		return err
	}
	made, err := makeDrill(ctx, f, newDrillOf(name, asked))
	if err != nil {
		return errors.New(client.Errors(err))
	}
	if o.detach {
		tell(o.Out, "failoverdrill/%s created\n", made.Name)
		return nil
	}
	tell(o.ErrOut, "failoverdrill/%s created; Ctrl-C ends the following only\n", made.Name)
	return followDrill(ctx, f, o.IOStreams, made.Name)
}

func methodOf(word string) (v1beta1.DrillMethod, error) {
	return oneOf("method", word, v1beta1.DrillShift, v1beta1.DrillEvacuate, v1beta1.DrillIsolation, v1beta1.DrillBlackhole)
}

// oneOf returns the value that a flag names, in letters of any case.
func oneOf[T ~string](flag, word string, values ...T) (T, error) {
	var names []string
	for _, v := range values {
		if strings.EqualFold(word, string(v)) {
			return v, nil
		}
		names = append(names, strings.ToLower(string(v)))
	}
	return "", fmt.Errorf("--%s %q: must be one of %s", flag, word, strings.Join(names, ", "))
}

// preview prints what the drill would do.
func (o *drillRunCommand) preview(method v1beta1.DrillMethod, s *v1beta1.FailoverReviewStatus) {
	tell(o.Out, "%s of %s for %s\n", method, phrase.Some(s.Clusters), o.hold)
	if method == v1beta1.DrillBlackhole {
		tell(o.Out, "\nClients notice: who is outside gets no answer there until the clusters are judged lost, out of DNS, and the TTL is over.\n")
	}
	if s.SuspendedReason != "" && method.Isolates() {
		tell(o.Out, "\nNothing would be failed over: %s\n", s.SuspendedReason)
	}
	if method != v1beta1.DrillShift {
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
	if !isTyped(o.In, scope) {
		return fmt.Errorf("nothing has begun: %s was not typed (--yes does not ask)", scope)
	}
	return nil
}

// newDrillOf returns a new drill; "" lets the federation name it.
func newDrillOf(name string, spec *v1beta1.FailoverDrillSpec) *v1beta1.FailoverDrill {
	d := &v1beta1.FailoverDrill{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *spec}
	if name == "" {
		d.GenerateName = strings.ToLower(string(spec.Method)) + "-"
	}
	return d
}

// drillSpec returns the spec of the flags.
func (o *drillFlags) drillSpec() (*v1beta1.FailoverDrillSpec, error) {
	method, err := methodOf(o.method)
	if err != nil {
		return nil, err
	}
	as, err := oneOf("isolate-as", o.as, v1beta1.IsolateSilent, v1beta1.IsolateRefused)
	if err != nil {
		return nil, err
	}
	seconds := func(d time.Duration) *int32 { return new(int32(min(d.Round(time.Second).Seconds(), 1e9))) }
	s := &v1beta1.FailoverDrillSpec{
		Scope:  v1beta1.FailoverDrillScope{Clusters: o.spec.Clusters, Zones: o.spec.Zones, Regions: o.spec.Regions},
		Method: method, Reason: o.reason, HoldSeconds: seconds(o.hold), BaselineSeconds: seconds(o.baseline),
		Allow: o.allow,
	}
	if s.Probes, err = probesOf(o.probes); err != nil {
		return nil, err
	}
	if method.Isolates() {
		s.Isolate = &v1beta1.DrillIsolate{As: as}
	}
	if o.approval {
		s.Approval = v1beta1.DrillApprovalRequired
	}
	if o.detected > 0 {
		s.Objectives.DetectedSeconds = seconds(o.detected)
	}
	if o.outOfDNS > 0 {
		s.Objectives.OutOfDNSSeconds = seconds(o.outOfDNS)
	}
	if o.elsewhere > 0 {
		s.Objectives.ReadyElsewhereSeconds = seconds(o.elsewhere)
	}
	return s, nil
}

// probesOf returns the probes of URLs. Each ends the drill if too many questions fail.
func probesOf(urls []string) (probes []v1beta1.DrillProbe, err error) {
	for i, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("--probe %q: must be TYPE://NAME[:PORT][/PATH], as http://web.shop.fed.svc.example.com/healthz", text)
		}
		p := v1beta1.DrillProbe{Name: fmt.Sprintf("%s-%d", u.Scheme, i+1), Host: u.Hostname(), Path: u.EscapedPath(), Guard: true}
		if p.Type, err = oneOf("probe", u.Scheme, v1beta1.ProbeHTTP, v1beta1.ProbeHTTPS, v1beta1.ProbeTCP, v1beta1.ProbeDNS); err != nil {
			return nil, err
		}
		if text := u.Port(); text != "" {
			port, err := strconv.ParseUint(text, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("--probe %q: port %s: must be from 1 to 65535", u, text)
			}
			p.Port = int32(port)
		}
		probes = append(probes, p)
	}
	return probes, nil
}

func makeDrill(ctx context.Context, f *client.Federation, d *v1beta1.FailoverDrill) (*v1beta1.FailoverDrill, error) {
	d.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "FailoverDrill"}
	return client.Create(ctx, f.Dynamic.Resource(v1beta1.FailoverDrillsResource), d, client.DryRunNone)
}

func getDrill(ctx context.Context, f *client.Federation, name string) (*v1beta1.FailoverDrill, error) {
	return client.Read[v1beta1.FailoverDrill](ctx, f.Dynamic.Resource(v1beta1.FailoverDrillsResource), name)
}

// followDrill prints the course of a drill until it is over. It returns an error if the drill did not succeed.
func followDrill(ctx context.Context, f *client.Federation, streams genericiooptions.IOStreams, name string) error {
	said := map[string]bool{}
	for {
		d, err := getDrill(ctx, f, name)
		if err != nil {
			return err
		}
		for _, line := range report.Course(d) {
			if !said[line] {
				said[line] = true
				tell(streams.Out, "%s\n", line)
			}
		}
		if d.IsFinished() {
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
		ValidArgsFunction: o.completeWith(oneObject(v1beta1.FailoverDrillsResource)),
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
				return followDrill(c.Context(), f, streams, args[0])
			}
			d, err := getDrill(c.Context(), f, args[0])
			if err != nil {
				return err
			}
			if o.output != "table" {
				return o.output.print(streams.Out, d)
			}
			tell(streams.Out, "%s\n", strings.Join(report.Course(d), "\n"))
			return nil
		},
	}
	o.output.addFlag(c)
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "follow the drill until it is over")
	o.addFlags(c)
	return c
}

func (o *drillStatusCommand) list(ctx context.Context, f *client.Federation, streams genericiooptions.IOStreams) error {
	all, err := client.ReadAll[v1beta1.FailoverDrill](ctx, f.Dynamic.Resource(v1beta1.FailoverDrillsResource))
	if err != nil {
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
	w := newTable(streams.Out, "NAME\tSCOPE\tMETHOD\tPHASE\tOUTCOME\tREASON\tAGE")
	for _, d := range all {
		s := d.Spec.Scope
		tell(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Name, phrase.Some(slices.Concat(s.Clusters, s.Zones, s.Regions)), d.Spec.Method, cmp.Or(d.Status.Phase, v1beta1.DrillPending),
			cmp.Or(d.Status.Outcome, "-"), cmp.Or(d.Status.Reason, "-"), phrase.Since(d.CreationTimestamp.Time, time.Now()))
	}
	return w.Flush()
}

func newDrillAbort(streams genericiooptions.IOStreams) *cobra.Command {
	force := false
	c := newDrillDecision(streams, "abort", "aborted: it is being undone", &cobra.Command{
		Use:   "abort NAME",
		Short: "End a drill now, and have it undone",
		Long: `End a drill now, and have it undone. Who did it is noted in the drill, and in the API's audit log. This needs the right to update
the subresource failoverdrills/abort, which the cluster roles federation-operator and federation-drill-operator have.

With --force this command undoes it itself, by the same steps as the federation would: for when none of its processes runs that
could. It takes the rights of an administrator, and is refused while one runs.`,
	}, func(d *v1beta1.DrillDecision) *v1beta1.FailoverDrillStatus {
		return &v1beta1.FailoverDrillStatus{Abort: d}
	}, func(ctx context.Context, f *client.Federation, name string) error {
		if !force {
			return nil
		}
		return outside.Finish(ctx, f, func(format string, args ...any) { tell(streams.Out, format+"\n", args...) }, name)
	})
	c.Flags().BoolVar(&force, "force", false, "undo the drill from here: no process of the federation runs that could")
	return c
}

func newDrillApprove(streams genericiooptions.IOStreams) *cobra.Command {
	return newDrillDecision(streams, "approval", "approved", &cobra.Command{
		Use:   "approve NAME",
		Short: "Let a drill of somebody else begin",
		Long: `Let a drill begin that waits for an approval (drill run --needs-approval). Whoever made it cannot approve it. This needs the right
to update the subresource failoverdrills/approval, which the cluster role federation-drill-approver has.`,
	}, func(d *v1beta1.DrillDecision) *v1beta1.FailoverDrillStatus {
		return &v1beta1.FailoverDrillStatus{Approved: d}
	}, nil)
}

// newDrillDecision makes a command that decides about a drill, at a subresource. then, if any, runs after that.
func newDrillDecision(streams genericiooptions.IOStreams, subresource, said string, c *cobra.Command, status func(*v1beta1.DrillDecision) *v1beta1.FailoverDrillStatus,
	then func(ctx context.Context, f *client.Federation, name string) error) *cobra.Command {
	var t target
	var reason string
	c.Args, c.ValidArgsFunction = cobra.ExactArgs(1), t.completeWith(oneObject(v1beta1.FailoverDrillsResource))
	c.RunE = func(c *cobra.Command, args []string) error {
		f, err := t.connect()
		if err != nil {
			return err
		}
		body := map[string]any{"status": status(&v1beta1.DrillDecision{Reason: reason})}
		if err := client.Merge(c.Context(), f.Dynamic.Resource(v1beta1.FailoverDrillsResource), args[0], body, client.DryRunNone, subresource); err != nil {
			return errors.New(client.Errors(err))
		}
		tell(streams.Out, "failoverdrill/%s %s\n", args[0], said)
		if then != nil {
			return then(c.Context(), f, args[0])
		}
		return nil
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the report")
	t.addFlags(c)
	return c
}

// setStopSwitch changes the switch that ends all drills and blocks others.
func setStopSwitch(t *target, streams genericiooptions.IOStreams, value func() any, said string) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		f, err := t.connect()
		if err != nil {
			return err
		}
		body := map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1beta1.StopDrillsAnnotation: value()}}}
		if err := client.Merge(c.Context(), f.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")), v1beta1.FederationNamespace, body, client.DryRunNone); err != nil {
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
		RunE:  setStopSwitch(&t, streams, func() any { return reason }, "drills are stopped; kubectl federation drill resume lets them begin again"),
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
		RunE:  setStopSwitch(&t, streams, func() any { return nil }, "drills may begin again"),
	}
	t.addFlags(c)
	return c
}
