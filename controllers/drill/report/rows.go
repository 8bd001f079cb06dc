package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

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
