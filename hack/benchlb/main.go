// Command benchlb measures federation-lb's data path beside HAProxy, nginx and Caddy: the same backend, requests and load for each, one after the
// other on loopback, in rounds. What counts is the proxy's CPU time for a request, as the kernel counts it.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"github.com/vishvananda/netlink"

	"federation/hack/sections"
)

const heading = `## Load balancer

Written by ` + "`make bench-lb`" + ` (` + "`hack/benchlb`" + `): the same backend with answers of 1 KB, and the same load for each, one after the other on loopback of one machine, in several
rounds of which the median is shown. Cores are shared with load and backend; what counts is the proxy's CPU time for a request. Each proxy has one
worker for each core, keeps connections to the backend and writes no log. federation-lb is the program itself, beside an API server of a federation; the others have the same route from a file. ECDSA P-256, no resumption of sessions in the columns of handshakes. The first of these is with X25519 for all. In the second the client offers X25519MLKEM768 besides, as browsers do, which keeps what is recorded today from quantum computers of later: federation-lb and Caddy take it, HAProxy and nginx of this Debian cannot. "p99 at half load" is over kept-alive HTTP at half of what
the slowest of them served.

`

// load is one column: how requests are sent.
type load struct {
	name      string
	tls, kept bool
	exchanges []tls.CurveID // key exchanges that clients offer; nil: those of Go
}

var loads = []load{
	{"HTTP kept alive", false, true, nil},
	{"TLS kept alive", true, true, nil},
	{"TLS, a handshake each", true, false, []tls.CurveID{tls.X25519}},
	{"TLS, a handshake each of clients that offer X25519MLKEM768", true, false, nil},
}

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
	bin := pflag.String("bin", "_output/bin", "folder of federation and federation-lb")
	out := pflag.String("out", "docs/performance.md", "file whose section is written; -: print")
	part := pflag.String("part", "all", "what is measured: requests, layer4, slow, hosts or all")
	changes := pflag.Int("changes", 10_000, "changes beside requests, of Ingresses and of what clusters have")
	backend := pflag.Bool("serve-backend", false, "run as the backend of the bench")
	cluster := pflag.Bool("serve-streams", false, "run as the cluster of the bench's layer 4")
	streamLoad := pflag.Int("stream-load", -1, "run as this load of the bench's layer 4")
	streamAddress := pflag.String("stream-address", "", "where that load connects to")
	pflag.Parse()
	var err error
	switch {
	case *backend:
		err = serveBackend()
	case *cluster:
		err = serveStreams()
	case *streamLoad >= 0:
		err = runStreamLoad(*streamLoad, *connections, *streamAddress)
	case os.Getenv(insideVariable) == "":
		err = runInside()
	default:
		b := &bench{rounds: *rounds, length: time.Duration(*seconds) * time.Second, connections: *connections, changes: *changes, bin: *bin, part: *part}
		err = b.run(*out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchlb:", err)
		os.Exit(1)
	}
}

// insideVariable is set in the bench's own network namespace.
const insideVariable = "BENCHLB_INSIDE"

// runInside runs the bench in a network namespace of its own, whose loopback has the addresses of clusters.
func runInside() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	return cmd.Run()
}

// allowConnections gives the kernel enough ports for many connections.
func allowConnections() error {
	for file, value := range map[string]string{"ip_local_port_range": "20000 65535", "tcp_tw_reuse": "1"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+file, []byte(value), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// prepareNetwork gives loopback the addresses of clusters.
func prepareNetwork() error {
	if err := allowConnections(); err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("loopback of the bench's own network namespace, which takes root: %w", err)
	}
	for n := range manyClusters {
		a, err := netlink.ParseAddr(clusterAddress(n) + "/32")
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(lo, a); err != nil {
			return err
		}
	}
	return nil
}

type bench struct {
	rounds, connections, changes int
	length                       time.Duration
	bin, part                    string
	// dir is for files of the run.
	dir        string
	federation *federation
	lanes      *lanes
}

func (b *bench) run(out string) (err error) {
	ctx := context.Background()
	if err := prepareNetwork(); err != nil {
		return err
	}
	if b.lanes, err = newLanes(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "benchlb"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }() // only files of this run
	cert, err := newCertificate(b.dir)
	if err != nil {
		return err
	}
	if b.federation, err = startFederation(ctx, b.bin, filepath.Join(b.dir, "federation")); err != nil {
		return err
	}
	defer b.federation.stop()
	if err := b.federation.addCertificate(ctx, cert); err != nil {
		return err
	}
	if err := b.federation.addHost(ctx, 0, 0); err != nil {
		return err
	}
	if err := b.federation.addStream(ctx); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	backend, err := start(exec.Command(self, "--serve-backend"), b.dir)
	if err != nil {
		return err
	}
	defer backend.end()
	text, err := b.sections(ctx, cert)
	if err != nil {
		return err
	}
	return write(out, heading+text)
}

// sections measures the parts that are asked for, and returns what the document has of each.
func (b *bench) sections(ctx context.Context, cert *certificate) (text string, err error) {
	for _, part := range []struct {
		name    string
		measure func(context.Context, *certificate) (string, error)
	}{{"requests", b.requests}, {"layer4", b.streams}, {"slow", b.slowClients}, {"hosts", b.hosts}} {
		if b.part != "all" && b.part != part.name {
			continue
		}
		section, err := part.measure(ctx, cert)
		if err != nil {
			return "", fmt.Errorf("%s: %w", part.name, err)
		}
		text += section
	}
	return text, nil
}

// write writes the section of a document, or prints it.
func write(out, text string) error {
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

// requests measures all proxies with each load.
func (b *bench) requests(_ context.Context, cert *certificate) (string, error) {
	all := map[string]*figures{}
	half := 0.0
	for round := range b.rounds {
		for _, p := range b.proxies() {
			if all[p.name] == nil {
				all[p.name] = &figures{cpu: make([][]time.Duration, len(loads)), rate: make([][]float64, len(loads))}
			}
			if err := b.measure(p, all[p.name], cert.public, half); err != nil {
				return "", fmt.Errorf("%s: %w", p.name, err)
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
	return b.report(b.proxies(), all, half), nil
}

// measure starts a proxy, puts each load on it, and ends it.
func (b *bench) measure(p proxyUnderTest, f *figures, roots []byte, half float64) error {
	proxy, err := start(p.command(), b.dir)
	if err != nil {
		return err
	}
	defer proxy.end()
	for n, l := range loads {
		g := newGenerator(l, roots, b.connections)
		if err := g.waitReady(); err != nil {
			return proxy.fault(err)
		}
		g.run(b.length/4, 0) // warm
		before := proxy.usage()
		done := g.run(b.length, 0)
		used := proxy.usage().CPU - before.CPU
		f.cpu[n] = append(f.cpu[n], used/time.Duration(max(1, done.requests)))
		f.rate[n] = append(f.rate[n], float64(done.requests)/done.took.Seconds())
		f.failed += done.failed
		if n == 0 && half > 0 {
			f.p99 = append(f.p99, g.run(b.length, half).quantile(0.99))
		}
		g.close()
	}
	f.rss = max(f.rss, proxy.usage().RSS)
	return nil
}

func (b *bench) report(of []proxyUnderTest, all map[string]*figures, half float64) string {
	var w strings.Builder
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
