package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/drilltimes"
	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/apiserver/client"
	drillplan "federation/controllers/drill/plan"
)

func newDrillSchedule(streams genericiooptions.IOStreams) *cobra.Command {
	c := &cobra.Command{
		Use:   "schedule",
		Short: "Drill again and again, at times of the week",
		Long: `Drill again and again, at times of the week, and one zone after the other.

A FailoverDrillSchedule makes FailoverDrills as a CronJob makes Jobs. They never overlap, and what was missed is not made up.`,
		Args: cobra.NoArgs,
		RunE: help,
	}
	c.AddCommand(newScheduleCreate(streams), newScheduleList(streams), newScheduleNext(streams), newScheduleSuspend(streams, true), newScheduleSuspend(streams, false), newScheduleRun(streams))
	return c
}

type scheduleCreateCommand struct {
	drillFlags
	cron, zone, rotate     string
	allowed, blocked, days []string
	dryRun                 bool
}

func newScheduleCreate(streams genericiooptions.IOStreams) *cobra.Command {
	o := &scheduleCreateCommand{}
	c := &cobra.Command{
		Use:   "create NAME --cron SCHEDULE (--cluster CLUSTER | --zone [REGION/]ZONE | --region REGION)... --method METHOD --reason TEXT",
		Short: "Make a schedule of drills",
		Example: `  # Each Tuesday at ten another zone, but not in the weeks of the fair
  kubectl federation drill schedule create weekly --cron "0 10 * * 2" --time-zone Europe/Berlin --zone '*' --rotate zones \
    --method shift --reason "as each week" --blocked-date 2026-09-22,2026-09-29

  # Each night one cluster, while nobody trades
  kubectl federation drill schedule create nightly --cron "0 2 * * 2-6" --cluster east-a,east-b --rotate clusters --method evacuate --reason nightly`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := o.newSchedule(args[0])
			if err != nil {
				return err
			}
			if _, err := drilltimes.TimesOf(&s.Spec); err != nil {
				return err
			}
			f, err := o.connect()
			if err != nil {
				return err
			}
			dry := client.DryRunNone
			if o.dryRun {
				dry = client.DryRunServer
			}
			if _, err := client.Create(c.Context(), f.Dynamic.Resource(v1beta1.DrillSchedulesResource), s, dry); err != nil {
				return errors.New(client.Errors(err))
			}
			tell(streams.Out, "failoverdrillschedule/%s created%s\n", s.Name, map[bool]string{true: " (dry run)"}[o.dryRun])
			printTimes(streams, s, 5)
			return nil
		},
	}
	o.addDrillFlags(c)
	f := c.Flags()
	f.StringVar(&o.cron, "cron", "", "when, as `\"MINUTE HOUR DAY MONTH WEEKDAY\"`")
	f.StringVar(&o.zone, "time-zone", "", "the time zone of the schedule and the windows, as Europe/Berlin (default UTC)")
	f.StringVar(&o.rotate, "rotate", "", "zones, regions or clusters: each drill takes one of those named, '*' for all, that which was drilled longest ago")
	f.StringSliceVar(&o.allowed, "allowed-window", nil, "drills are under way only in these `windows`, as MON-09:00-12:00")
	f.StringSliceVar(&o.blocked, "blocked-window", nil, "no drill is under way in these `windows`")
	f.StringSliceVar(&o.days, "blocked-date", nil, "no drill is under way on these `days`, as 2026-12-24")
	f.BoolVar(&o.dryRun, "dry-run", false, "show when drills would be made, and make nothing")
	_ = c.MarkFlagRequired("cron") // fails only for an unknown flag; so below
	_ = c.RegisterFlagCompletionFunc("rotate", fixedWords("zones", "regions", "clusters"))
	o.addFlags(c)
	o.complete(c)
	return c
}

// newSchedule returns the schedule of the flags.
func (o *scheduleCreateCommand) newSchedule(name string) (*v1beta1.FailoverDrillSchedule, error) {
	drill, err := o.drillSpec()
	if err != nil {
		return nil, err
	}
	s := &v1beta1.FailoverDrillSchedule{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "FailoverDrillSchedule"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.FailoverDrillScheduleSpec{
			Schedule: o.cron, DrillWindows: v1beta1.DrillWindows{AllowedWindows: o.allowed, BlockedWindows: o.blocked, BlockedDates: o.days},
			Template: v1beta1.FailoverDrillTemplate{Spec: *drill},
		},
	}
	if o.zone != "" {
		s.Spec.TimeZone = &o.zone
	}
	if o.rotate != "" {
		if s.Spec.Rotate, err = oneOf("rotate", o.rotate, v1beta1.RotateZones, v1beta1.RotateRegions, v1beta1.RotateClusters); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// printTimes prints when the next drills are due.
func printTimes(streams genericiooptions.IOStreams, s *v1beta1.FailoverDrillSchedule, n int) {
	times, err := drilltimes.TimesOf(&s.Spec)
	if err != nil {
		tell(streams.ErrOut, "%v\n", err)
		return
	}
	zone, err := drilltimes.ParseZone(s.Spec.TimeZone)
	if err != nil {
		return // Of has reported it
	}
	at := time.Now()
	for range n {
		if at = times.After(at); at.IsZero() {
			tell(streams.Out, "no time of the schedule is in its windows\n")
			return
		}
		tell(streams.Out, "%s\n", at.In(zone).Format("Mon 2006-01-02 15:04 MST"))
	}
}

func newScheduleList(streams genericiooptions.IOStreams) *cobra.Command {
	var t target
	var out output
	c := &cobra.Command{
		Use:   "list",
		Short: "Show the schedules, and when each makes its next drill",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			f, err := t.connect()
			if err != nil {
				return err
			}
			all, err := client.ReadAll[v1beta1.FailoverDrillSchedule](c.Context(), f.Dynamic.Resource(v1beta1.DrillSchedulesResource))
			if err != nil {
				return err
			}
			slices.SortFunc(all, func(a, b *v1beta1.FailoverDrillSchedule) int { return cmp.Compare(a.Name, b.Name) })
			if out != "table" {
				return out.print(streams.Out, all)
			}
			if len(all) == 0 {
				tell(streams.Out, "no schedules: kubectl federation drill schedule create makes one\n")
				return nil
			}
			w := newTable(streams.Out, "NAME\tSCHEDULE\tSCOPE\tMETHOD\tNEXT\tLAST\tLAST SUCCESS\tMISSED")
			for _, s := range all {
				tell(w, "%s\n", strings.Join(scheduleRow(s, time.Now()), "\t"))
			}
			return w.Flush()
		},
	}
	out.addFlag(c)
	t.addFlags(c)
	return c
}

func scheduleRow(s *v1beta1.FailoverDrillSchedule, now time.Time) []string {
	scope, when := s.Spec.Template.Spec.Scope, s.Spec.Schedule
	what := phrase.Some(slices.Concat(scope.Clusters, scope.Zones, scope.Regions))
	if s.Spec.Rotate != "" {
		what += " in turn"
	}
	if s.Spec.TimeZone != nil {
		when += " " + *s.Spec.TimeZone
	}
	next := "-"
	if at := s.Status.NextScheduleTime; at != nil {
		if zone, err := drilltimes.ParseZone(s.Spec.TimeZone); err == nil {
			next = at.In(zone).Format("Mon 2006-01-02 15:04 MST")
		}
	} else if c := slices.IndexFunc(s.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1beta1.DrillScheduled }); c >= 0 {
		next = s.Status.Conditions[c].Reason
	}
	missed := "-"
	if m := s.Status.LastMissed; m != nil {
		missed = phrase.Since(m.Time.Time, now) + " " + m.Reason
	}
	return []string{s.Name, when, what, string(s.Spec.Template.Spec.Method), next, agoOrDash(s.Status.LastScheduleTime, now), agoOrDash(s.Status.LastSuccessfulTime, now), missed}
}

func newScheduleNext(streams genericiooptions.IOStreams) *cobra.Command {
	var t target
	n := 10
	c := &cobra.Command{
		Use:               "next NAME",
		Short:             "Show when a schedule makes its next drills",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: t.completeWith(oneObject(v1beta1.DrillSchedulesResource)),
		RunE: func(c *cobra.Command, args []string) error {
			if n < 1 || n > 1000 {
				return fmt.Errorf("--count %d: must be from 1 to 1000", n)
			}
			f, err := t.connect()
			if err != nil {
				return err
			}
			s, err := getSchedule(c.Context(), f, args[0])
			if err != nil {
				return err
			}
			if s.Spec.Suspended() {
				tell(streams.ErrOut, "it is suspended: no drill is made\n")
			}
			printTimes(streams, s, n)
			return nil
		},
	}
	c.Flags().IntVarP(&n, "count", "n", n, "how many times, from 1 to 1000")
	t.addFlags(c)
	return c
}

func newScheduleSuspend(streams genericiooptions.IOStreams, suspend bool) *cobra.Command {
	var t target
	use, said, short := "resume", "makes drills again", "Let a schedule make drills again"
	if suspend {
		use, said, short = "suspend", "makes no drills until it is resumed", "Have a schedule make no drills for now"
	}
	c := &cobra.Command{
		Use:               use + " NAME",
		Short:             short,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: t.completeWith(oneObject(v1beta1.DrillSchedulesResource)),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := t.connect()
			if err != nil {
				return err
			}
			body := map[string]any{"spec": map[string]any{"suspend": suspend}}
			if err := client.Merge(c.Context(), f.Dynamic.Resource(v1beta1.DrillSchedulesResource), args[0], body, client.DryRunNone); err != nil {
				return errors.New(client.Errors(err))
			}
			tell(streams.Out, "failoverdrillschedule/%s %s\n", args[0], said)
			return nil
		},
	}
	t.addFlags(c)
	return c
}

func newScheduleRun(streams genericiooptions.IOStreams) *cobra.Command {
	var t target
	var cluster, zone, region string
	var detach bool
	c := &cobra.Command{
		Use:   "run NAME [--cluster CLUSTER | --zone [REGION/]ZONE | --region REGION]",
		Short: "Run a drill of a schedule now, and follow it to its end",
		Long: `Run a drill of a schedule now, and follow it to its end. It is yours, so that you need the rights to make it, and its windows hold: it waits for
them. Of a schedule that takes its scopes in turn, name one.`,
		Example:           `  kubectl federation drill schedule run weekly --zone east/a`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: t.completeWith(oneObject(v1beta1.DrillSchedulesResource)),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := t.connect()
			if err != nil {
				return err
			}
			s, err := getSchedule(c.Context(), f, args[0])
			if err != nil {
				return err
			}
			d, err := drillplan.DrillNow(s, cluster, zone, region)
			if err != nil {
				return err
			}
			made, err := makeDrill(c.Context(), f, d)
			if err != nil {
				return errors.New(client.Errors(err))
			}
			if tell(streams.ErrOut, "failoverdrill/%s created; Ctrl-C ends the following only\n", made.Name); detach {
				return nil
			}
			return followDrill(c.Context(), f, streams, made.Name)
		},
	}
	f := c.Flags()
	f.StringVar(&cluster, "cluster", "", "the `cluster` to take, of those that take turns")
	f.StringVar(&zone, "zone", "", "the zone to take, as `REGION/ZONE` or ZONE")
	f.StringVar(&region, "region", "", "the `region` to take")
	f.BoolVar(&detach, "detach", false, "do not follow it")
	t.addFlags(c)
	return c
}

func getSchedule(ctx context.Context, f *client.Federation, name string) (*v1beta1.FailoverDrillSchedule, error) {
	return client.Read[v1beta1.FailoverDrillSchedule](ctx, f.Dynamic.Resource(v1beta1.DrillSchedulesResource), name)
}
