package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
)

// drillMark is a named moment: how long after the fault, or after the way back began, and what it is.
type drillMark struct{ after, what string }

// marksOf are the marks that have come, in order.
func marksOf(m *v1beta1.DrillMarks) (all []drillMark) {
	since := func(from, mark *metav1.MicroTime) string {
		d := mark.Sub(from.Time)
		if d < time.Minute {
			return fmt.Sprintf("+%.1fs", d.Seconds())
		}
		return "+" + d.Round(time.Second).String()
	}
	note := func(from, mark *metav1.MicroTime, what string) {
		if from != nil && mark != nil {
			all = append(all, drillMark{since(from, mark), what})
		}
	}
	note(m.Injected, m.OutOfDNS, "its addresses are out of DNS")
	note(m.Injected, m.LastUse, "no resolver keeps them any more")
	note(m.Injected, m.Placed, "its replicas are placed elsewhere")
	note(m.Injected, m.ReadyElsewhere, "they are ready there")
	note(m.Injected, m.Recovering, "the way back begins")
	note(m.Recovering, m.BackReady, "from then: its replicas are back and ready")
	note(m.Recovering, m.BackInDNS, "from then: its addresses are back in DNS")
	note(m.Recovering, m.Clean, "from then: nothing of the drill is left")
	return all
}

func newDrillReport(streams genericiooptions.IOStreams) *cobra.Command {
	var t target
	format := "text"
	c := &cobra.Command{
		Use:   "report NAME",
		Short: "Print what a drill has shown",
		Example: `  kubectl federation drill report weekly-47
  kubectl federation drill report weekly-47 -o markdown > report.md`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: t.offer(drillNames),
		RunE: func(c *cobra.Command, args []string) error {
			formats := map[string]func(io.Writer, *v1beta1.FailoverDrill) error{"text": reportText, "markdown": reportMarkdown, "json": reportJSON}
			print, ok := formats[format]
			if !ok {
				return fmt.Errorf("--output %q: must be text, markdown or json", format)
			}
			f, err := t.connect()
			if err != nil {
				return err
			}
			d, err := f.drill(c.Context(), args[0])
			if err != nil {
				return err
			}
			return print(streams.Out, d)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", format, "text, markdown or json")
	_ = c.RegisterFlagCompletionFunc("output", fixed("text", "markdown", "json")) // fails only for a flag that is not there
	t.addFlags(c)
	return c
}

func reportJSON(out io.Writer, d *v1beta1.FailoverDrill) error {
	b, err := json.MarshalIndent(d, "", "  ")
	if err == nil {
		_, err = out.Write(append(b, '\n'))
	}
	return err
}

// facts are the report as pairs of what and how much.
func facts(d *v1beta1.FailoverDrill) (all [][2]string) {
	note := func(what, format string, args ...any) {
		all = append(all, [2]string{what, fmt.Sprintf(format, args...)})
	}
	s := &d.Status
	note("Outcome", "%s, %s: %s", s.Outcome, s.Reason, s.Message)
	note("Method", "%s", d.Spec.Method)
	note("Clusters", "%s", strings.Join(s.Clusters, ", "))
	note("Why", "%s", d.Spec.Reason)
	r := s.Report
	if r == nil {
		return all
	}
	if m := r.Marks.Injected; m != nil {
		note("Out of service at", "%s", m.UTC().Format(time.RFC3339))
	}
	for _, m := range marksOf(&r.Marks) {
		note(m.after, "%s", m.what)
	}
	w := &r.Workloads
	note("Replicas", "%d of %d objects were placed there; %d %% of them stayed ready all the time", w.Replicas, w.Objects, w.LeastReadyPercent)
	if d.Spec.Method == v1beta1.DrillEvacuate {
		note("Moved", "%d replicas, predicted %d", r.Prediction.Measured, r.Prediction.Replicas)
	}
	note("Names", "%d record sets change, by the prediction; %d were followed", r.Prediction.Records, len(r.Prediction.Followed))
	for _, o := range r.Objectives {
		measured := "never"
		if o.Measured != nil {
			measured = fmt.Sprint(*o.Measured)
		}
		note("Objective "+o.Name, "%s: asked for %d, measured %s", map[bool]string{true: "met", false: "MISSED"}[o.Met], o.Limit, measured)
	}
	for _, line := range r.Prediction.Differences {
		note("Not as predicted", "%s", line)
	}
	for _, line := range r.LeftBehind {
		note("Left behind", "%s", line)
	}
	if len(r.LeftBehind) == 0 && d.Over() {
		note("Left behind", "nothing")
	}
	return all
}

func reportText(out io.Writer, d *v1beta1.FailoverDrill) error {
	tell(out, "Drill %s\n\n", d.Name)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, f := range facts(d) {
		tell(w, "%s\t%s\n", f[0], f[1])
	}
	return w.Flush()
}

func reportMarkdown(out io.Writer, d *v1beta1.FailoverDrill) error {
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace
	lines := []string{"# Drill " + cell(d.Name), "", "| | |", "|---|---|"}
	for _, f := range facts(d) {
		lines = append(lines, "| "+cell(f[0])+" | "+cell(f[1])+" |")
	}
	_, err := io.WriteString(out, strings.Join(slices.Concat(lines, []string{""}), "\n"))
	return err
}
