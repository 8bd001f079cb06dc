// Package report writes what a drill has shown: as text, Markdown, a page that prints, JSON, and as JUnit for pipelines.
package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// Course returns the course of a drill so far, in lines.
func Course(d *v1beta1.FailoverDrill) (lines []string) {
	s := &d.Status
	switch s.Phase {
	case "", v1beta1.DrillPending:
		return []string{strings.TrimSuffix(fmt.Sprintf("Pending: %s: %s", cmp.Or(s.Reason, "not seen by the federation yet"), s.Message), ": ")}
	case v1beta1.DrillBaseline:
		return []string{fmt.Sprintf("Baseline: all must be well for %d s", d.Spec.Baseline())}
	}
	if s.Report != nil && s.Report.Marks.Injected != nil {
		lines = append(lines, fmt.Sprintf("%s is out of service at %s", strings.Join(s.Clusters, ", "), s.Report.Marks.Injected.UTC().Format(time.TimeOnly)))
		for _, m := range s.Report.Marks.InOrder() {
			lines = append(lines, fmt.Sprintf("  %8s  %s", afterText(m), markText(m)))
		}
	}
	if d.IsFinished() {
		lines = append(lines, fmt.Sprintf("%s, %s: %s", s.Outcome, s.Reason, s.Message))
	}
	return lines
}

// afterText returns how long after the fault, or after the way back began, a mark came.
func afterText(m v1beta1.DrillMark) string {
	if m.After < time.Minute {
		return fmt.Sprintf("+%.1fs", m.After.Seconds())
	}
	return "+" + m.After.Round(time.Second).String()
}

// markText describes a mark.
func markText(m v1beta1.DrillMark) string {
	if m.Back {
		return "from then: " + m.What
	}
	return m.What
}

// Formats write a report, by the names of their formats.
var Formats = map[string]func(io.Writer, *v1beta1.FailoverDrill) error{
	"text": reportText, "markdown": reportMarkdown, "html": reportHTML, "json": reportJSON, "junit": reportJUnit,
}

func reportJSON(out io.Writer, d *v1beta1.FailoverDrill) error {
	b, err := json.MarshalIndent(d, "", "  ")
	if err == nil {
		_, err = out.Write(append(b, '\n'))
	}
	return err
}

func reportText(out io.Writer, d *v1beta1.FailoverDrill) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, err := fmt.Fprintf(out, "Drill %s\n\n", d.Name)
	for _, f := range reportRows(d) {
		_, e := fmt.Fprintf(w, "%s\t%s\n", f[0], f[1])
		err = errors.Join(err, e)
	}
	return errors.Join(err, w.Flush())
}

func reportMarkdown(out io.Writer, d *v1beta1.FailoverDrill) error {
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace
	lines := []string{"# Drill " + cell(d.Name), "", "| | |", "|---|---|"}
	for _, f := range reportRows(d) {
		lines = append(lines, "| "+cell(f[0])+" | "+cell(f[1])+" |")
	}
	_, err := io.WriteString(out, strings.Join(slices.Concat(lines, []string{""}), "\n"))
	return err
}
