package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"federation/apiserver/apis/phrase"
	explainplan "federation/controllers/explain/plan"
)

func sliceRank(v explainplan.SliceView) int {
	if v.State == explainplan.CopyInSync {
		return 1
	}
	return 0
}

// printAcross prints a table of at most `rows` rows; problems first if not all fit.
func printAcross(out io.Writer, x *explainplan.AcrossExplanation, rows int) {
	if x == nil || len(x.Slices)+len(x.Untold) == 0 && !x.Disabled && x.Unknown == "" {
		return
	}
	tell(out, "\nWhat clusters are told of the others:\n")
	if x.Disabled {
		tell(out, "  nothing: the federation runs with --cross-cluster-endpoints=false\n")
	}
	if x.Unknown != "" {
		tell(out, "  it is not known what they are to be told: %s\n", x.Unknown)
	}
	shown := slices.Clone(x.Slices)
	if len(shown) > rows {
		slices.SortStableFunc(shown, func(a, b explainplan.SliceView) int { return sliceRank(a) - sliceRank(b) })
		shown = shown[:rows]
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if len(shown) > 0 {
		tell(w, "CLUSTER\tOF\tADDRESSES\tREADY\tWEIGHT\tSLICE\tWHY\n")
	}
	for _, v := range shown {
		source, addresses, ready, weight := "-", "-", "-", "-"
		if v.Source != "" {
			source, addresses, weight = v.Source, phrase.Some(v.Addresses), fmt.Sprint(v.Weight)
			ready = map[bool]string{true: "yes", false: "no"}[v.Ready]
		}
		tell(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Cluster, source, addresses, ready, weight, v.State, shortText(v.Why))
	}
	_ = w.Flush() // nobody reads the error
	if more := len(x.Slices) - len(shown); more > 0 {
		tell(out, "And %s more (--all shows them)\n", phrase.Count(int64(more), "slice"))
	}
	for _, u := range x.Untold {
		tell(out, "Nothing is told%s: %s\n", phrase.Prefixed(" of ", u.Cluster), u.Why)
	}
}
