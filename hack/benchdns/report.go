package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const heading = `## DNS

Written by ` + "`make bench-dns`" + ` (` + "`hack/benchdns`" + `): the same zone, queries and load for each server, one after the other on loopback of
one machine, in several rounds of which the median is shown. Cores are shared with the load; what counts is the server's CPU time per answer, as the kernel
counts it, with what it does in the kernel. The zone has the names of Services (1 global, 3 regions, 3 zones; an alias in every tenth); 70 % of
the queries are for global names, 15 % for zones, 10 % for aliases, 5 % for names that do not exist; all with EDNS, from 16 networks. federation-dns
counts for its rate limit, which is set too high to be reached, and reads cookies; the others have neither on. Memory is PSS after the load. A change is a call in process for
federation-dns and a dynamic update for Knot and BIND, until the answer over UDP; "p50 calm" is one question at a time.

`

// table writes what was measured with one zone.
func (b *bench) table(w *strings.Builder, names int, all []*figures) {
	fmt.Fprintf(w, "### %d names, %d threads, %d rounds of %d s\n\n", names, b.threads, b.rounds, b.seconds)
	fmt.Fprintln(w, "| | CPU per answer, UDP | answers/s | lost | CPU per answer, TCP | answers/s | p50 calm | p99 calm | memory | start to first answer | change to answer, p50 |\n|---|---|---|---|---|---|---|---|---|---|---|")
	for _, f := range all {
		change := "–"
		if f.change > 0 {
			change = f.change.Round(time.Microsecond).String()
		}
		fmt.Fprintf(w, "| %s | %s | %.0f | %.3f %% | %s | %.0f | %v | %v | %d MB | %v | %s |\n", f.server,
			micros(middle(f.udp.perAnswer)), middle(f.udp.perSecond), 100*float64(f.lost)/float64(max(1, f.answers)), micros(middle(f.tcp.perAnswer)), middle(f.tcp.perSecond),
			middle(f.p50).Round(time.Microsecond), middle(f.p99).Round(time.Microsecond), middle(f.memory)>>20, middle(f.loaded).Round(time.Millisecond), change)
	}
	b.ratios(w, all)
}

// ratios compares federation-dns with the better of Knot and NSD.
func (b *bench) ratios(w *strings.Builder, all []*figures) {
	find := func(name string) *figures {
		if i := slices.IndexFunc(all, func(f *figures) bool { return f.server == name }); i >= 0 {
			return all[i]
		}
		return nil
	}
	ours, knot, nsd := find(servers[0].name), find("Knot"), find("NSD")
	if ours == nil || knot == nil || nsd == nil {
		return
	}
	ratio := func(of func(*figures) []time.Duration) float64 {
		return float64(middle(of(ours))) / float64(min(middle(of(knot)), middle(of(nsd))))
	}
	fmt.Fprintf(w, "\nCPU per answer to the better of Knot and NSD: UDP %.2f, TCP %.2f. Memory to Knot's: %.2f. A change of %s to the last changed answer: %v.\n\n",
		ratio(func(f *figures) []time.Duration { return f.udp.perAnswer }), ratio(func(f *figures) []time.Duration { return f.tcp.perAnswer }),
		float64(middle(ours.memory))/float64(middle(knot.memory)), "10,000 names", ours.mass.Round(100*time.Microsecond))
}

func micros(d time.Duration) string { return fmt.Sprintf("%.2f µs", float64(d.Nanoseconds())/1000) }

func middle[T cmp.Ordered](list []T) T {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
