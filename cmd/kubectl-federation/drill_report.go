package main

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

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

func newDrillReport(streams genericiooptions.IOStreams) *cobra.Command {
	var t target
	format := "text"
	c := &cobra.Command{
		Use:   "report NAME",
		Short: "Print what a drill has shown",
		Example: `  kubectl federation drill report weekly-47
  kubectl federation drill report weekly-47 -o html > report.html`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: t.completeWith(drillNames),
		RunE: func(c *cobra.Command, args []string) error {
			formats := map[string]func(io.Writer, *v1beta1.FailoverDrill) error{
				"text": reportText, "markdown": reportMarkdown, "html": reportHTML, "json": reportJSON, "junit": reportJUnit}
			print, ok := formats[format]
			if !ok {
				return fmt.Errorf("--output %q: must be text, markdown, html, json or junit", format)
			}
			f, err := t.connect()
			if err != nil {
				return err
			}
			d, err := getDrill(c.Context(), f, args[0])
			if err != nil {
				return err
			}
			return print(streams.Out, d)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", format, "text, markdown, html (one file, to print), json, or junit (for a pipeline: it fails if the drill did)")
	_ = c.RegisterFlagCompletionFunc("output", fixedWords("text", "markdown", "html", "json", "junit")) // fails only for a flag that is not there
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

// reportRows returns the report as pairs of text and value.
func reportRows(d *v1beta1.FailoverDrill) (all [][2]string) {
	note := func(what, format string, args ...any) {
		all = append(all, [2]string{what, fmt.Sprintf(format, args...)})
	}
	s := &d.Status
	note("Outcome", "%s, %s: %s", s.Outcome, s.Reason, s.Message)
	note("Method", "%s", d.Spec.Method)
	note("Clusters", "%s", strings.Join(s.Clusters, ", "))
	note("Why", "%s", d.Spec.Reason)
	if s.RequestedBy != "" {
		note("Made by", "%s", s.RequestedBy)
	}
	decided := func(what string, by *v1beta1.DrillDecision) {
		if by != nil {
			note(what, "%s", strings.TrimSuffix(by.By+": "+by.Reason, ": "))
		}
	}
	decided("Approved by", s.Approved)
	decided("Aborted by", s.Abort)
	r := s.Report
	if r == nil {
		return all
	}
	if m := r.Marks.Injected; m != nil {
		note("Out of service at", "%s", m.UTC().Format(time.RFC3339))
	}
	for _, m := range r.Marks.InOrder() {
		note(afterText(m), "%s", markText(m))
	}
	w := &r.Workloads
	note("Replicas", "%s of %s were placed there; %d %% of them stayed ready all the time", phrase.Count(w.Replicas, "replica"), phrase.Count(int64(w.Objects), "object"), w.LeastReadyPercent)
	if d.Spec.Method != v1beta1.DrillShift {
		note("Moved", "%d replicas, predicted %d", r.Prediction.Measured, r.Prediction.Replicas)
	}
	note("Names", "%d record sets change, by the prediction; %d were followed", r.Prediction.Records, len(r.Prediction.Followed))
	if e := r.Earlier; e != nil {
		note("Earlier drills", "%d of the same clusters and method%s", e.Runs, withEarlier(r.Marks.Elapsed(), e.P75Milliseconds))
	}
	measuredRows(r, note)
	for _, line := range r.Prediction.Differences {
		note("Not as predicted", "%s", line)
	}
	for _, line := range r.LeftBehind {
		note("Left behind", "%s", line)
	}
	if len(r.LeftBehind) == 0 && d.IsFinished() {
		note("Left behind", "nothing")
	}
	return all
}

// measuredRows notes what clients saw, and whether the objectives were met.
func measuredRows(r *v1beta1.DrillReport, note func(what, format string, args ...any)) {
	for _, p := range r.Probes {
		seen := fmt.Sprintf("%d questions, %d failed, longest outage %s", p.Asked, p.Failed, time.Duration(p.LongestOutageMilliseconds)*time.Millisecond)
		if p.Failed > 0 {
			seen += ": " + p.LastFailure
		}
		note("Client "+p.Name, "%s", seen)
	}
	for _, o := range r.Objectives {
		measured := "never"
		if o.Measured != nil {
			measured = fmt.Sprint(*o.Measured)
		}
		note("Objective "+o.Name, "%s: asked for %d, measured %s", map[bool]string{true: "met", false: "MISSED"}[o.Met], o.Limit, measured)
	}
}

// withEarlier returns each mark with the time within which it came in three of four earlier drills.
func withEarlier(after map[string]time.Duration, p75 map[string]int64) string {
	text := ""
	for _, mark := range slices.Sorted(maps.Keys(p75)) {
		now := "never"
		if is, came := after[mark]; came {
			now = is.Round(100 * time.Millisecond).String()
		}
		text += fmt.Sprintf("; %s %s, in three of four within %s", mark, now, (time.Duration(p75[mark]) * time.Millisecond).Round(100*time.Millisecond))
	}
	return text
}

func reportText(out io.Writer, d *v1beta1.FailoverDrill) error {
	tell(out, "Drill %s\n\n", d.Name)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, f := range reportRows(d) {
		tell(w, "%s\t%s\n", f[0], f[1])
	}
	return w.Flush()
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

// page is the report as one file that prints.
var page = template.Must(template.New("report").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Drill {{.Name}}</title><style>
body{font:15px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#1a1d21;background:#fff}
h1{font-size:1.4rem} .Succeeded{color:#176f2c} .Failed{color:#b3261e} .Interrupted,.Blocked{color:#8a5a00}
svg{width:100%;height:auto} table{border-collapse:collapse;width:100%} td{border-top:1px solid #d9dde2;padding:.3rem .8rem .3rem 0;vertical-align:top}
td:first-child{white-space:nowrap;color:#565d66} @media print{body{margin:0}}
</style></head><body>
<h1>Drill {{.Name}}: <span class="{{.Outcome}}">{{.Outcome}}</span></h1>
{{if .Line}}<svg viewBox="0 0 1000 {{.Height}}" role="img" aria-label="The marks on one time line"><line x1="10" y1="12" x2="990" y2="12" stroke="#98a1ab" stroke-width="2"/>
{{range .Line}}<circle cx="{{.X}}" cy="12" r="5" fill="#2f6fd6"/><line x1="{{.X}}" y1="12" x2="{{.X}}" y2="{{.Y}}" stroke="#c3c9d0"/><text x="{{.TextX}}" y="{{.Y}}" font-size="13" text-anchor="{{.Anchor}}">{{.Text}}</text>
{{end}}</svg>{{end}}
<table>{{range .Facts}}<tr><td>{{index . 0}}</td><td>{{index . 1}}</td></tr>{{end}}</table>
</body></html>
`))

// point is a mark on the time line of the page.
type point struct {
	X, TextX, Y  int
	Anchor, Text string
}

// timelineOf arranges the marks from the fault to the last one, by time, each with a row of its own for its text.
func timelineOf(m *v1beta1.DrillMarks) (line []point) {
	marks := m.InOrder()
	if len(marks) == 0 {
		return nil
	}
	marks = slices.Insert(marks, 0, v1beta1.DrillMark{What: "fault in force", At: m.Injected.Time})
	all := max(marks[len(marks)-1].At.Sub(m.Injected.Time), time.Millisecond)
	for i, mark := range marks {
		after := mark.At.Sub(m.Injected.Time)
		x := 10 + int(980*after/all)
		is := point{X: x, TextX: x + 6, Y: 36 + 18*i, Anchor: "start", Text: fmt.Sprintf("%s +%s", mark.What, after.Round(100*time.Millisecond))}
		if x > 700 {
			is.TextX, is.Anchor = x-6, "end"
		}
		line = append(line, is)
	}
	return line
}

func reportHTML(out io.Writer, d *v1beta1.FailoverDrill) error {
	view := struct {
		Name, Outcome string
		Height        int
		Line          []point
		Facts         [][2]string
	}{Name: d.Name, Outcome: cmp.Or(string(d.Status.Outcome), string(d.Status.Phase)), Facts: reportRows(d)}
	if r := d.Status.Report; r != nil {
		view.Line = timelineOf(&r.Marks)
		view.Height = 36 + 18*len(view.Line)
	}
	return page.Execute(out, view)
}

// JUnit's format, as pipelines read it.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
	}
)

// reportJUnit has the drill itself, and each objective, as a test.
func reportJUnit(out io.Writer, d *v1beta1.FailoverDrill) error {
	suite := junitSuite{Name: "failoverdrill " + d.Name}
	test := func(name string, passed bool, message string) {
		c := junitCase{Class: "failoverdrill." + d.Name, Name: name}
		if !passed {
			c.Failure = &junitFailure{Message: message}
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, c)
	}
	s := &d.Status
	test(fmt.Sprintf("%s of %s", d.Spec.Method, strings.Join(s.Clusters, ", ")), s.Outcome == v1beta1.DrillSucceeded,
		fmt.Sprintf("%s, %s: %s", cmp.Or(string(s.Outcome), string(s.Phase)), s.Reason, s.Message))
	if s.Report != nil {
		for _, o := range s.Report.Objectives {
			measured := "never"
			if o.Measured != nil {
				measured = fmt.Sprint(*o.Measured)
			}
			test(o.Name, o.Met, fmt.Sprintf("asked for %d, measured %s", o.Limit, measured))
		}
	}
	suite.Tests = len(suite.Cases)
	b, err := xml.MarshalIndent(suite, "", "  ")
	if err == nil {
		_, err = out.Write(append([]byte(xml.Header), append(b, '\n')...))
	}
	return err
}
