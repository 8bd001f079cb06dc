package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

func heading() string {
	return fmt.Sprintf(`## The node agent beside kube-proxy

Written by `+"`make bench-dataplane`"+` (`+"`hack/benchdataplane`"+`) on %s, %d cores, which the API server, the proxy and what measures share.
The same Services from one kube-apiserver, each proxy on a node (network namespace) of its own, one after the other. kube-proxy is 1.36, with its own defaults.
Beside the Services that a table names are %d of one endpoint, which is what changes.
"Live" counts from when a watch beside the proxy saw the change until a connect() shows it; "to commit" from the arrival of the event at the agent until the
kernel has it. CPU is with the commands that a proxy starts. connect() is the median, to the first, the last and the slowest of 40 Services; "to no Service" is
straight to a pod, on the same node with the proxy, before it came, and (floor) before it came with nat chains that hold no rule
for it: what any proxy costs that translates connections. The other floors are what iptables itself takes in that row's node: of one change what the kernel does
for any (nft: a rule of nobody by netlink; legacy: the table handed out, taken again, and its counters added); of 20 a second the same as often, as the
median time from when one is due, and CPU; of all what iptables-restore takes for the rules that there are, once more.
kube-proxy with iptables-nft is measured only when it is asked for (`+"`--only`"+`): it is slower than both others, and at 5,000 Services never done.

`, time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), probes)
}

// table writes what was measured at one size.
func table(w *strings.Builder, s size, all []*figures) {
	fmt.Fprintf(w, "### %d Services of %d endpoints\n\n", s.services, s.endpoints)
	fmt.Fprintln(w, "| | start → all answer | CPU | floor | restart → synced | CPU | one change live p50 | max | to commit p50 | floor | 20/s: live p50 | p99 | CPU | floor p50 | CPU | 1000 at once: last live | CPU | RSS | peak |")
	fmt.Fprintln(w, strings.Repeat("|---", 19)+"|")
	for _, f := range all {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", f.proxy.label(),
			show(f.start), show(f.startCPU), show(f.floors.all), show(f.restart), show(f.restartCPU), show(percentile(f.one, 50)), show(percentile(f.one, 100)), show(percentile(f.commit, 50)), show(f.floors.one),
			show(percentile(f.steady, 50)), show(percentile(f.steady, 99)), share(f.steadyCPU), show(f.floors.steady), share(f.floors.steadyCPU), show(f.burst), show(f.burstCPU), bytes(f.rss), bytes(f.peak))
	}
	fmt.Fprintln(w, "\n| connect() | first Service | last Service | slowest of 40 | to no Service | floor | before the proxy |\n|---|---|---|---|---|---|---|")
	for _, f := range all {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s |\n", f.proxy.label(), show(f.first), show(f.last), show(f.slowest), show(f.direct), show(f.floorDirect), show(f.bareDirect))
	}
	for _, f := range all {
		if f.failed != "" {
			fmt.Fprintf(w, "\n%s: %s.\n", f.proxy.label(), f.failed)
		}
	}
	fmt.Fprintln(w)
}

func (p proxy) label() string {
	if p.ours() {
		return "**agent, " + p.name + "**"
	}
	return p.name
}

// show is a time in three digits; a dash for what was not measured.
func show(d time.Duration) string {
	switch {
	case d == 0:
		return "–"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// share is CPU time in a second.
func share(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*d.Seconds())
}

func bytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%d MB", n>>20)
}
