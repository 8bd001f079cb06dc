package report

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

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
