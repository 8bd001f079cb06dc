package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

func agoOrDash(since *metav1.Time, now time.Time) string {
	if since == nil || since.IsZero() {
		return "-"
	}
	return phrase.Since(since.Time, now)
}

// printExplanation prints a table of at most `rows` rows, then the reasons.
func printExplanation(out io.Writer, x *v1beta1.PlacementReviewStatus, rows int, now time.Time) {
	tell(out, "%s\n", headline(x))
	if x.NotPropagated != nil {
		tell(out, "Not as desired for %s (%s): %s\n", agoOrDash(x.NotPropagated.Since, now), x.NotPropagated.Reason, x.NotPropagated.Message)
	}
	if x.Round != nil {
		tell(out, "%s\n", x.Round)
	}
	for _, n := range x.Notes {
		tell(out, "Note: %s\n", n)
	}
	shown, rest := splitRows(x, rows)
	if len(shown) > 0 {
		tell(out, "\n")
		printExplanationTable(out, x, shown, now)
	}
	printReasons(out, shown, rest)
	printAcross(out, x.CrossCluster, rows)
	printRoutes(out, x.Routes, rows, now)
	if len(x.Decisions) > 0 {
		tell(out, "\nLast decisions:\n")
	}
	for _, d := range x.Decisions {
		tell(out, "  %s ago   %s%s\n", phrase.Since(d.At.Time, now), d.Cause, phrase.Prefixed(": ", d.Summary()))
	}
	if len(x.Events) > 0 {
		tell(out, "\nLast events:\n")
	}
	for _, e := range x.Events {
		tell(out, "  %s ago   %s %s: %s\n", phrase.Since(e.LastSeen.Time, now), e.Type, e.Reason, e.Message)
	}
}

func headline(x *v1beta1.PlacementReviewStatus) string {
	words := []string{objectName(x.Kind, x.Namespace, x.Name)}
	if x.Replicas != nil {
		words = append(words, fmt.Sprintf("%s asked for, %d placed, %s", phrase.Count(*x.Replicas, "replica"), x.Placed, readyWords(x)))
	}
	if x.Unschedulable > 0 {
		words = append(words, fmt.Sprintf("%d unschedulable", x.Unschedulable))
	}
	if x.Policy != "" {
		words = append(words, "policy "+x.Policy)
	} else {
		words = append(words, "no policy")
	}
	if x.Pending {
		words = append(words, "waits for its first placement")
	}
	if x.Deleting {
		words = append(words, "being deleted")
	}
	return strings.Join(words, " · ")
}

func readyWords(x *v1beta1.PlacementReviewStatus) string {
	switch x.ReadyBy {
	case v1beta1.ReadyByStatus:
		return fmt.Sprintf("%d ready by its status", x.Ready)
	case v1beta1.ReadyUnknown:
		return "ready unknown"
	}
	return fmt.Sprintf("%d ready", x.Ready)
}

// splitRows returns the clusters to print one by one: those that matter to the object, by name. Problems come first if not
// all fit.
func splitRows(x *v1beta1.PlacementReviewStatus, rows int) (shown, rest []v1beta1.ClusterExplanation) {
	for _, c := range x.Clusters {
		if c.Copy == v1beta1.CopyNone && c.Home == 0 && rows < len(x.Clusters) {
			rest = append(rest, c)
		} else {
			shown = append(shown, c)
		}
	}
	if len(shown) <= rows {
		return shown, rest
	}
	slices.SortStableFunc(shown, func(a, b v1beta1.ClusterExplanation) int { return clusterRank(a) - clusterRank(b) })
	rest = append(rest, shown[rows:]...)
	shown = shown[:rows]
	slices.SortFunc(shown, func(a, b v1beta1.ClusterExplanation) int { return strings.Compare(a.Name, b.Name) })
	return shown, rest
}

func clusterRank(c v1beta1.ClusterExplanation) int {
	switch {
	case c.Copy != v1beta1.CopyInSync && c.Copy != v1beta1.CopyNone:
		return 0
	case c.WaitsFor != "":
		return 1
	}
	return 2
}

func printExplanationTable(out io.Writer, x *v1beta1.PlacementReviewStatus, shown []v1beta1.ClusterExplanation, now time.Time) {
	counted := slices.ContainsFunc(shown, func(c v1beta1.ClusterExplanation) bool { return c.Completions != nil })
	done := func(s string) string { return map[bool]string{true: "\t" + s}[counted] }
	w := newTable(out, fmt.Sprintf("CLUSTER\tDESIRED\tCURRENT\tREADY%s\tCOPY\tGEN\tSINCE\tWAITS FOR", done("DONE")))
	for i := range shown {
		c := &shown[i]
		wanted, there, ready := numberCells(c, x.Replicas != nil)
		gen := "-"
		if c.Generation > 0 {
			gen = fmt.Sprint(c.Generation)
			if c.ObservedGeneration > 0 && c.ObservedGeneration != c.Generation {
				gen = fmt.Sprintf("%d (%d seen)", c.Generation, c.ObservedGeneration)
			}
		}
		tell(w, "%s\t%s\t%s\t%s%s\t%s\t%s\t%s\t%s\n", c.Name, wanted, there, ready, done(jobProgress(c)), c.Copy, gen, agoOrDash(c.Since, now), shortText(c.WaitsFor))
	}
	w.end()
	if x.Replicas != nil && slices.ContainsFunc(shown, func(c v1beta1.ClusterExplanation) bool { return c.Overflow > 0 }) {
		tell(out, "DESIRED 3+1: 3 are placed there, and 1 more is asked for in case there is room\n")
	}
}

// numberCells returns a cluster's cells.
func numberCells(c *v1beta1.ClusterExplanation, divided bool) (wanted, there, ready string) {
	if !divided {
		yes := map[bool]string{true: "yes", false: "no"}
		wanted, there, ready = yes[c.Desired > 0], "-", "-"
		if c.Current != nil || c.Copy == v1beta1.CopyNone || c.Copy == v1beta1.CopyMissing {
			there = yes[c.Current != nil]
		}
		return wanted, there, ready
	}
	wanted, there, ready = fmt.Sprint(c.Desired), "-", "-"
	if c.Overflow > 0 {
		wanted = fmt.Sprintf("%d+%d", c.Desired, c.Overflow)
	}
	if c.Current != nil {
		there, ready = fmt.Sprint(*c.Current), fmt.Sprint(c.Ready)
	}
	return wanted, there, ready
}

// maxWords is the maximum length of a cell; -o json has the whole text.
const maxWords = 60

func shortText(s string) string {
	s = strings.ReplaceAll(s, "\n", " ")
	if r := []rune(s); len(r) > maxWords {
		return string(r[:maxWords-1]) + "…"
	}
	return s
}

// printReasons prints the reasons, once for all clusters with the same one.
func printReasons(out io.Writer, shown, rest []v1beta1.ClusterExplanation) {
	groups := groupByState(shown)
	if len(groups) > 0 {
		tell(out, "\nWhy:\n")
	}
	for _, g := range groups {
		tell(out, "  %s: %s\n", phrase.Some(g.names), g.why)
	}
	if len(rest) == 0 {
		return
	}
	tell(out, "\nAnd %s more (--all shows them):\n", phrase.Count(int64(len(rest)), "cluster"))
	for _, g := range groupByState(rest)[:min(phrase.MaxNames, len(groupByState(rest)))] {
		tell(out, "  %d: %s\n", len(g.names), g.why)
	}
}

type group struct {
	names []string
	why   string
}

func groupByState(clusters []v1beta1.ClusterExplanation) (groups []group) {
	for _, c := range clusters {
		why := strings.Join(c.Reasons, "; ")
		if why == "" {
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.why == why })
		if i < 0 {
			i, groups = len(groups), append(groups, group{why: why})
		}
		groups[i].names = append(groups[i].names, c.Name)
	}
	return groups
}

// jobProgress returns the cluster's progress of a Job.
func jobProgress(c *v1beta1.ClusterExplanation) string {
	if c.Completions == nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d", c.Succeeded, *c.Completions)
}
