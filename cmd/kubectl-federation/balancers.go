package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

// printBalancers prints a table of at most `rows` load balancers; problems first if not all fit.
func printBalancers(out io.Writer, all []v1beta1.RegisteredLoadBalancer, rows int, now time.Time) {
	if len(all) == 0 {
		return
	}
	shown := slices.Clone(all)
	if len(shown) > rows {
		slices.SortStableFunc(shown, func(a, b v1beta1.RegisteredLoadBalancer) int { return cmp.Compare(len(b.Problem), len(a.Problem)) })
		shown = shown[:rows]
	}
	w := newTable(out, "\nLOAD BALANCER\tPLACE\tADDRESSES\tALIVE\tRENEWED\tPROBLEM")
	for i := range shown {
		b := &shown[i]
		tell(w, "%s\t%s\t%s\t%s\t%s\t%s\n", b.Name, b.Place(), phrase.Some(b.Addresses), map[bool]string{true: "yes", false: "no"}[b.Alive], agoOrDash(&b.Renewed, now), b.Problem)
	}
	w.end()
	printMore(out, "And", len(all)-len(shown), "load balancer")
}

// printBalancersAlive prints how many are alive, by place, and those that are not.
func printBalancersAlive(out io.Writer, all []v1beta1.RegisteredLoadBalancer, rows int) {
	if len(all) == 0 {
		return
	}
	alive, of := map[string]int{}, map[string]int{}
	var lost []string
	sum := 0
	for i := range all {
		b := &all[i]
		of[b.Place()]++
		if b.Alive {
			alive[b.Place()]++
			sum++
		} else {
			lost = append(lost, fmt.Sprintf("  %s (%s): %s\n", b.Name, b.Place(), b.Problem))
		}
	}
	var places []string
	for _, place := range slices.Sorted(maps.Keys(of)) {
		places = append(places, fmt.Sprintf("%s %d of %d", place, alive[place], of[place]))
	}
	tell(out, "\nLoad balancers: %d of %d alive (%s)\n%s", sum, len(all), phrase.Some(places), strings.Join(lost[:min(rows, len(lost))], ""))
	if more := len(lost) - rows; more > 0 {
		tell(out, "  and %d more that are not alive (--all shows them)\n", more)
	}
}
