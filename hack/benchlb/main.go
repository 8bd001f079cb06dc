// Command benchlb measures federation-lb's data path beside HAProxy, nginx and Caddy: the same backend, requests and load for each, one after the
// other on loopback, in rounds. What counts is the proxy's CPU time for a request, as the kernel counts it.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"federation/hack/procusage"
	"federation/hack/sections"
)

const heading = `## Load balancer

Written by ` + "`make bench-lb`" + ` (` + "`hack/benchlb`" + `): the same backend with answers of 1 KB, and the same load for each, one after the other on loopback of one machine, in several
rounds of which the median is shown. Cores are shared with load and backend; what counts is the proxy's CPU time for a request. Each proxy has one
worker for each core, keeps connections to the backend, writes no log and checks nothing. ECDSA P-256, no resumption of sessions in the column of handshakes. "p99 at half load" is over kept-alive HTTP at half of what
the slowest of them served.

`

// load is one column: how requests are sent.
type load struct {
	name      string
	tls, kept bool
}

var loads = []load{{"HTTP kept alive", false, true}, {"TLS kept alive", true, true}, {"TLS, a handshake each", true, false}}

// figures are what was measured of one proxy.
type figures struct {
	cpu    [][]time.Duration // for a request, by load and round
	rate   [][]float64       // requests a second
	failed int
	p99    []time.Duration
	rss    int64
}

func main() {
	rounds := pflag.Int("rounds", 3, "rounds, of which the median counts")
	seconds := pflag.Int("seconds", 4, "length of each measurement")
	connections := pflag.Int("connections", 16, "connections of the load")
	out := pflag.String("out", "docs/performance.md", "file whose section is written; -: print")
	child := pflag.String("serve", "", "run as a part of the bench: backend, ours or many")
	dir := pflag.String("dir", "", "folder of that part")
	pflag.Parse()
	var err error
	switch *child {
	case "backend":
		err = serveBackend()
	case "many":
		err = serveMany()
	case "ours":
		err = serveOurs(*dir)
	default:
		b := &bench{rounds: *rounds, length: time.Duration(*seconds) * time.Second, connections: *connections}
		err = b.run(*out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchlb:", err)
		os.Exit(1)
	}
}

type bench struct {
	rounds, connections int
	length              time.Duration
	dir                 string
}

func (b *bench) run(out string) (err error) {
	if b.dir, err = os.MkdirTemp("", "benchlb"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }() // only files of this run
	roots, err := writeCertificate(b.dir)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	backend := exec.Command(self, "--serve", "backend")
	backend.Stderr = os.Stderr
	if err := backend.Start(); err != nil {
		return err
	}
	defer func() { _ = backend.Process.Kill() }() // it has nothing to end
	all := map[string]*figures{}
	half := 0.0
	for round := range b.rounds {
		for _, p := range proxies(self, b.dir) {
			if all[p.name] == nil {
				all[p.name] = &figures{cpu: make([][]time.Duration, len(loads)), rate: make([][]float64, len(loads))}
			}
			if err := b.measure(p, all[p.name], roots, half); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
		if round == 0 {
			for _, f := range all {
				if rate := f.rate[0][0] / 2; half == 0 || rate < half {
					half = rate
				}
			}
		}
	}
	limits, err := b.limits(self, roots)
	if err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	text := b.report(proxies(self, b.dir), all, half) + limits
	if out == "-" {
		fmt.Print(text)
		return nil
	}
	document, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	return os.WriteFile(out, []byte(sections.Replace(string(document), "load balancer", text)), 0o644)
}

// measure starts a proxy, puts each load on it, and ends it.
func (b *bench) measure(p proxyUnderTest, f *figures, roots []byte, half float64) error {
	cmd := p.command()
	log, err := os.Create(filepath.Join(b.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }() // it is ended so, with its workers
	for n, l := range loads {
		g := newGenerator(l, roots, b.connections)
		if err := g.waitReady(); err != nil {
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%w: %s", err, text)
		}
		g.run(b.length/4, 0) // warm
		before := usage(cmd.Process.Pid)
		done := g.run(b.length, 0)
		used := usage(cmd.Process.Pid).CPU - before.CPU
		f.cpu[n] = append(f.cpu[n], used/time.Duration(max(1, done.requests)))
		f.rate[n] = append(f.rate[n], float64(done.requests)/done.took.Seconds())
		f.failed += done.failed
		if n == 0 && half > 0 {
			f.p99 = append(f.p99, g.run(b.length, half).quantile(0.99))
		}
		g.close()
	}
	f.rss = max(f.rss, usage(cmd.Process.Pid).RSS)
	return nil
}

// usage is that of a process and its children.
func usage(pid int) (sum procusage.Usage) {
	sum = procusage.Of(pid)
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(text)) {
		var id int
		if _, err := fmt.Sscan(child, &id); err == nil {
			u := usage(id)
			sum.CPU += u.CPU
			sum.RSS += u.RSS
		}
	}
	return sum
}

func (b *bench) report(of []proxyUnderTest, all map[string]*figures, half float64) string {
	var w strings.Builder
	w.WriteString(heading)
	fmt.Fprintf(&w, "### %d connections, %d rounds of %s\n\n| |", b.connections, b.rounds, b.length)
	for _, l := range loads {
		fmt.Fprintf(&w, " CPU a request, %s | requests/s |", l.name)
	}
	fmt.Fprintf(&w, " p99 at %.0f requests/s | failed | memory |\n|---|%s\n", half, strings.Repeat("---|", 2*len(loads)+3))
	for _, p := range of {
		f := all[p.name]
		fmt.Fprintf(&w, "| %s |", p.name)
		for n := range loads {
			fmt.Fprintf(&w, " %.1f µs | %.0f |", float64(middle(f.cpu[n]).Nanoseconds())/1000, middle(f.rate[n]))
		}
		fmt.Fprintf(&w, " %v | %d | %d MB |\n", middle(f.p99).Round(10*time.Microsecond), f.failed, f.rss>>20)
	}
	ours, haproxy := all[of[0].name], all["HAProxy"]
	w.WriteString("\nTo HAProxy's:")
	for n, l := range loads {
		fmt.Fprintf(&w, " %s %.2f;", l.name, float64(middle(ours.cpu[n]))/float64(middle(haproxy.cpu[n])))
	}
	fmt.Fprintf(&w, " p99 %.2f.\n", float64(middle(ours.p99))/float64(max(1, middle(haproxy.p99))))
	return w.String()
}

func middle[T ~int64 | ~float64](list []T) (m T) {
	if len(list) == 0 {
		return m
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
