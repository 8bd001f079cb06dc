package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

// printRoutes prints tables of at most `rows` rows.
func printRoutes(out io.Writer, x *v1beta1.RoutesExplanation, rows int, now time.Time) {
	if x == nil {
		return
	}
	if x.NotServed != "" {
		tell(out, "\nNot served by the federation's load balancers: %s\n", x.NotServed)
		return
	}
	printBalancers(out, x.LoadBalancers, rows, now)
	if len(x.Routes) > 0 {
		w := newTable(out, "\nHOST\tPATH\tCERTIFICATE\tGOES TO")
		for _, r := range x.Routes[:min(rows, len(x.Routes))] {
			tell(w, "%s\t%s\t%s\t%s\n", hostText(r), pathText(r), cmp.Or(r.Secret, "-"), poolText(r))
		}
		w.end()
		printMore(out, "And", len(x.Routes)-rows, "route")
	}
	for _, p := range x.Pools {
		for _, from := range p.From {
			printShares(out, p, from, rows)
		}
	}
	for i, problem := range x.Problems {
		tell(out, "%s  %s\n", map[bool]string{true: "\nProblems:\n"}[i == 0], problem)
	}
	for i, unknown := range x.Unknown {
		tell(out, "%s  %s\n", map[bool]string{true: "\nNot known, because you may not read it:\n"}[i == 0], unknown)
	}
}

func hostText(r v1beta1.RouteExplanation) string {
	switch {
	case r.Host != "":
		return r.Host
	case r.OwnHostsOnly:
		return "all hosts of the namespace"
	}
	return "hosts that nobody has"
}

func pathText(r v1beta1.RouteExplanation) string {
	switch {
	case r.Passthrough:
		return "TLS, passed on"
	case r.PathType == "":
		return "default backend"
	}
	return fmt.Sprintf("%s (%s)", r.Path, r.PathType)
}

func poolText(r v1beta1.RouteExplanation) string {
	if r.Passthrough {
		return cmp.Or(r.Pool, "nowhere")
	}
	return cmp.Or(r.Pool, "503")
}

// printShares prints how some load balancers divide the requests of a pool.
func printShares(out io.Writer, p v1beta1.PoolExplanation, from v1beta1.SharesExplanation, rows int) {
	by := ""
	if len(from.LoadBalancers) > 0 {
		by = ", by " + phrase.Some(from.LoadBalancers)
	}
	what := "Requests"
	if p.Protocol == "tls" {
		what = "Connections"
	}
	tell(out, "\n%s to %s (%s)%s:\n", what, p.Name, p.Protocol, by)
	w := newTable(out, "CLUSTER\tSHARE\tADDRESS\tWHY")
	for _, t := range from.Targets[:min(rows, len(from.Targets))] {
		share, address := fmt.Sprintf("%.1f %%", t.Percent), t.Address
		if t.Address == "" {
			share, address = "-", "-"
		}
		tell(w, "%s\t%s\t%s\t%s\n", t.Cluster, share, address, t.Why)
	}
	w.end()
	printMore(out, "And", len(from.Targets)-rows, "target")
	for _, note := range from.Notes {
		tell(out, "Note: %s\n", note)
	}
}
