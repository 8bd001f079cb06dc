package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"

	"federation/hack/sections"
)

// write prints the tables or puts them into the file: each number of clusters has a section of its own,
// between marks, and the others stay.
func (b *bench) write(r results) error {
	text := b.tables(r)
	fmt.Print(text)
	if b.into == "" {
		return nil
	}
	file, err := os.ReadFile(b.into)
	if err != nil {
		return err
	}
	out := sections.Replace(string(file), fmt.Sprintf("clusters-%d", len(b.names)), text)
	if b.planner != "" {
		table, err := os.ReadFile(b.planner)
		if err != nil {
			return err
		}
		out = sections.Replace(out, "planner", "## The planner\n\n| clusters | one plan |\n|---|---|\n"+string(table))
	}
	return os.WriteFile(b.into, []byte(out), 0o644)
}

// tables is the section of one run.
func (b *bench) tables(r results) string {
	var o bytes.Buffer
	fmt.Fprintf(&o, "## %d member clusters\n\n%s, %d cores, at most %d writes under way to each member. RSS of the federation's process with no objects: %s.\n",
		len(b.names), time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), b.writes, megabytes(r.idle.RSS))
	if r.stored != nil {
		storedTable(&o, *r.stored, b.objects)
	}
	for _, p := range r.steady {
		steadyTable(&o, p)
	}
	for _, p := range r.pulled {
		pullTable(&o, p)
	}
	if r.hung != nil {
		hungTable(&o, r, b.rates[0])
	}
	if r.restart != nil {
		fmt.Fprintf(&o, "\n### Restart with %d ReplicaSets in place\n\n", b.objects)
		fmt.Fprintln(&o, "| from start to ready | from ready to a new object in all members | to quiet | changes that members saw | CPU until then | RSS at rest | its peak |")
		fmt.Fprintln(&o, "|---|---|---|---|---|---|---|")
		fmt.Fprintf(&o, "| %.1f s | %.1f s | %.1f s | %d | %.1f s | %s | %s |\n", r.restart.ready.Seconds(), r.restart.fresh.Seconds(),
			r.restart.quiet.Seconds(), r.restart.writes, r.restart.cpuAll.Seconds(), megabytes(r.restart.rss), megabytes(r.restart.peak))
	}
	if r.failover != nil {
		failoverTable(&o, r, b.moves)
	}
	return o.String()
}

// limits are what the federation is compared to.
func (p beside) limits() []limit {
	return []limit{{"bare client", "ratio", p.bare}, {"bare client with informers", "ratio to the one with informers", p.watching}}
}

type limit struct {
	name, ratio string
	figures
}

func storedTable(o *bytes.Buffer, p beside, objects int) {
	fmt.Fprintf(o, "\n### %d ReplicaSets that are stored when the controllers start\n\n", objects)
	fmt.Fprintln(o, "| | objects/s | CPU per member write | CPU of apiserver and controllers per 1000 objects, all reported | RSS of both | peak |")
	fmt.Fprintln(o, "|---|---|---|---|---|---|")
	for _, l := range p.limits() {
		fmt.Fprintf(o, "| %s | %.1f | %s | | | |\n", l.name, l.rate(objects), perWrite(l.figures))
	}
	fmt.Fprintf(o, "| federation | %.1f | %s (controllers) | %.1f s | %s | %s |\n", p.fed.rate(objects), perWrite(p.fed),
		p.fed.cpuAll.Seconds()*1000/float64(objects), megabytes(p.fed.rss), megabytes(p.fed.peak))
	for _, l := range p.limits() {
		fmt.Fprintf(o, "| %s | %.2f | %.2f | | | |\n", l.ratio, p.fed.rate(objects)/l.rate(objects), ratio(each(p.fed), each(l.figures)))
	}
}

func steadyTable(o *bytes.Buffer, p beside) {
	fmt.Fprintf(o, "\n### %d creates a second\n\n", p.rate)
	fmt.Fprintln(o, "| | apply → in all members p50 | p90 | p99 | CPU of the federation per 1000 objects, all reported | RSS |")
	fmt.Fprintln(o, "|---|---|---|---|---|---|")
	for _, l := range p.limits() {
		fmt.Fprintf(o, "| %s | %s | %s | %s | | |\n", l.name, ms(l.at(50)), ms(l.at(90)), ms(l.at(99)))
	}
	fmt.Fprintf(o, "| federation | %s | %s | %s | %.1f s | %s |\n", ms(p.fed.at(50)), ms(p.fed.at(90)), ms(p.fed.at(99)),
		p.fed.cpuAll.Seconds()*1000/float64(len(p.fed.latencies)), megabytes(p.fed.rss))
	for _, l := range p.limits() {
		fmt.Fprintf(o, "| %s | %.2f | %.2f | %.2f | | |\n", l.ratio,
			ratio(p.fed.at(50), l.at(50)), ratio(p.fed.at(90), l.at(90)), ratio(p.fed.at(99), l.at(99)))
	}
}

func hungTable(o *bytes.Buffer, r results, rate int) {
	fmt.Fprintf(o, "\n### %d creates a second, one of the clusters hung\n\n", rate)
	fmt.Fprintln(o, "| | apply → in all other members p50 | p90 | p99 |")
	fmt.Fprintln(o, "|---|---|---|---|")
	fmt.Fprintf(o, "| all well | %s | %s | %s |\n", ms(r.well.at(50)), ms(r.well.at(90)), ms(r.well.at(99)))
	fmt.Fprintf(o, "| one is stopped (SIGSTOP) as it begins | %s | %s | %s |\n", ms(r.hung.at(50)), ms(r.hung.at(90)), ms(r.hung.at(99)))
	fmt.Fprintf(o, "| ratio | %.2f | %.2f | %.2f |\n", ratio(r.hung.at(50), r.well.at(50)), ratio(r.hung.at(90), r.well.at(90)), ratio(r.hung.at(99), r.well.at(99)))
}

func failoverTable(o *bytes.Buffer, r results, moves int) {
	fmt.Fprintf(o, "\n### A cluster dies with its part of %d workloads\n\n", moves)
	fmt.Fprintf(o, "| | noticed after | all replicas asked of the others, after the grace period (%s) | CPU per 1000 workloads |\n", grace)
	fmt.Fprintln(o, "|---|---|---|---|")
	fmt.Fprintf(o, "| bare client, the same writes | | %.1f s | %.1f s |\n", r.failoverBare.whole.Seconds(), r.failoverBare.cpu.Seconds()*1000/float64(moves))
	fmt.Fprintf(o, "| federation | %.1f s | %.1f s | %.1f s |\n", r.failover.noticed.Seconds(), r.failover.after.Seconds(), r.failover.cpuAll.Seconds()*1000/float64(moves))
}

func each(f figures) time.Duration { return f.cpu / time.Duration(max(1, f.writes)) }

func perWrite(f figures) string { return ms(each(f)) }

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n>>20) }
