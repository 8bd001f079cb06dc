package main

import (
	"fmt"
	"io"
	"slices"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

func sliceRank(v v1beta1.SliceExplanation) int {
	if v.State == v1beta1.CopyInSync {
		return 1
	}
	return 0
}

// printAcross prints a table of at most `rows` rows; problems first if not all fit.
func printAcross(out io.Writer, x *v1beta1.CrossClusterExplanation, rows int) {
	if x == nil || len(x.Slices)+len(x.Untold) == 0 && !x.Disabled && x.Unknown == "" {
		return
	}
	tell(out, "\nEndpoints of other clusters:\n")
	if x.Disabled {
		tell(out, "  nothing: the federation runs with --cross-cluster-endpoints=false\n")
	}
	if x.Unknown != "" {
		tell(out, "  what each cluster should have is not known: %s\n", x.Unknown)
	}
	shown := slices.Clone(x.Slices)
	if len(shown) > rows {
		slices.SortStableFunc(shown, func(a, b v1beta1.SliceExplanation) int { return sliceRank(a) - sliceRank(b) })
		shown = shown[:rows]
	}
	if len(shown) > 0 {
		printSlices(out, shown)
	}
	printMore(out, "And", len(x.Slices)-len(shown), "slice")
	for _, u := range x.Untold {
		tell(out, "No endpoints%s are published: %s\n", phrase.Prefixed(" of ", u.Cluster), u.Why)
	}
}

func printSlices(out io.Writer, shown []v1beta1.SliceExplanation) {
	w := newTable(out, "CLUSTER\tOF\tADDRESSES\tREADY\tWEIGHT\tSLICE\tWHY")
	for _, v := range shown {
		source, addresses, ready, weight := "-", "-", "-", "-"
		if v.Source != "" {
			source, addresses, weight = v.Source, phrase.Some(v.Addresses), fmt.Sprint(v.Weight)
			ready = map[bool]string{true: "yes", false: "no"}[v.Ready]
		}
		tell(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Cluster, source, addresses, ready, weight, v.State, shortText(v.Why))
	}
	w.end()
}
