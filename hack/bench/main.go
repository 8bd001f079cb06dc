package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"

	"federation/hack/procusage"
)

type bench struct {
	root, bin, scenarios, into, planner, extra string
	objects, seconds, moves, writes            int
	rates                                      []int
	body                                       string // what the federation applies in a member, of the sample

	fed     *federation
	names   []string
	members map[string]kubernetes.Interface
	began   time.Time
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "bare" {
		exit(bareMain(ctx, os.Stdin, os.Stdout))
	}
	b := &bench{began: time.Now()}
	flag.StringVar(&b.root, "root", "_output/bench-stack", "folder of the running member clusters (local up --members-only)")
	flag.StringVar(&b.bin, "bin", "_output/bin", "folder of the programs")
	flag.StringVar(&b.scenarios, "scenarios", "bhacd", "which to run: b steady, h hung, a stored, c restart (needs a), d failover, p pull mode beside push")
	flag.IntVar(&b.objects, "objects", 0, "ReplicaSets of scenarios a and c; default 15000 copies in all, but at most 5000 ReplicaSets")
	flag.IntVar(&b.seconds, "seconds", 20, "how long scenario b creates at each rate")
	flag.Func("rates", "creates a second in scenario b, such as 10,50: the default, for up to 3 members; with more members as many copies", b.readRates)
	flag.IntVar(&b.moves, "moves", 1000, "workloads of scenario d")
	flag.IntVar(&b.writes, "writes", 64, "writes under way at once to each member, of the bare client; the federation's default")
	flag.StringVar(&b.extra, "controller-flags", "", "more flags for the controllers")
	flag.StringVar(&b.into, "into", "", "Markdown file that the tables are written into; without it they are printed")
	flag.StringVar(&b.planner, "planner", "", "file with the planner's table, to be written too")
	flag.Parse()
	exit(b.main(ctx))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (b *bench) main(ctx context.Context) error {
	if err := b.connect(); err != nil {
		return err
	}
	defer b.fed.stop()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	r, err := b.run(ctx)
	if err != nil {
		return err
	}
	return b.write(r)
}

// beside are the figures of the bare client, of the one with informers, and of the federation.
type beside struct {
	rate                int // 0: as fast as it goes
	bare, watching, fed figures
}

// results are all tables; nil where a scenario did not run.
type results struct {
	idle         procusage.Usage
	steady       []beside
	pulled       []pulled
	stored       *beside
	restart      *restarted
	well, hung   *figures
	failoverBare *figures
	failover     *moved
}

func (b *bench) run(ctx context.Context) (r results, err error) {
	settle(ctx, 20*time.Second, b.fed.processes()...)
	r.idle = b.fed.serve.use()
	for _, scenario := range b.scenarios {
		switch scenario {
		case 'b':
			for i := 0; i < len(b.rates) && err == nil; i++ {
				var one beside
				b.say("b: %d ReplicaSets, %d a second", b.seconds*b.rates[i], b.rates[i])
				one, err = b.steady(ctx, b.rates[i])
				r.steady = append(r.steady, one)
			}
		case 'p':
			for i := 0; i < len(b.rates) && err == nil; i++ {
				var one pulled
				b.say("p: %d ReplicaSets, %d a second, with and without agents", b.seconds*b.rates[i], b.rates[i])
				one, err = b.pull(ctx, b.rates[i])
				r.pulled = append(r.pulled, one)
			}
		case 'a':
			b.say("a: %d ReplicaSets that are stored when the controllers start", b.objects)
			var out beside
			out, err = b.stored(ctx)
			r.stored = &out
		case 'c':
			b.say("c: restart with %d ReplicaSets in place", b.objects)
			var out restarted
			out, err = b.restart(ctx)
			r.restart = &out
		case 'h':
			b.say("h: %d times %d ReplicaSets, %d a second, with and without a hung cluster", hungTimes, hungFor*b.rates[0], b.rates[0])
			var well, hung figures
			well, hung, err = b.hung(ctx)
			r.well, r.hung = &well, &hung
		case 'd':
			b.say("d: a cluster with a part of %d workloads dies", b.moves)
			var bare figures
			var out moved
			bare, out, err = b.failover(ctx)
			r.failoverBare, r.failover = &bare, &out
		}
		if err != nil {
			return r, fmt.Errorf("scenario %c: %w", scenario, err)
		}
	}
	if r.stored != nil && r.restart == nil { // which would have cleaned up
		err = removeNamespace(ctx, "stored", b.members, b.fed.kube)
	}
	return r, err
}

// connect reads which members run, and chooses sizes that this many of them can take on one machine.
func (b *bench) connect() (err error) {
	if b.root, err = filepath.Abs(b.root); err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(b.root, "env"))
	if err != nil {
		return fmt.Errorf("no members run: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "MEMBERS="); ok {
			b.names = strings.Fields(strings.Trim(value, `"'`))
		}
	}
	b.members = map[string]kubernetes.Interface{}
	for _, name := range b.names {
		if b.members[name], err = connect(b.kubeconfig(name)); err != nil {
			return err
		}
	}
	b.size(len(b.names))
	b.fed, err = newFederation(b.bin, b.root, strings.Fields(b.extra))
	return err
}

func (b *bench) size(members int) {
	if b.objects == 0 {
		b.objects = min(5000, 15000/members)
	}
	if len(b.rates) == 0 {
		b.rates = []int{max(1, min(10, 30/members)), max(1, min(50, 150/members))}
	}
}

func (b *bench) readRates(list string) error {
	for text := range strings.SplitSeq(list, ",") {
		rate, err := strconv.Atoi(text)
		if err != nil || rate < 1 {
			return fmt.Errorf("%q: must be a number of at least 1", text)
		}
		b.rates = append(b.rates, rate)
	}
	return nil
}

// prepare starts the federation and joins all members.
func (b *bench) prepare(ctx context.Context) (err error) {
	if err := b.fed.startAll(ctx); err != nil {
		return err
	}
	for _, name := range b.names {
		if err := b.fed.join(ctx, name, b.kubeconfig(name)); err != nil {
			return err
		}
	}
	b.say("joined %d members", len(b.names))
	if err := b.fed.waitClusters(ctx, b.names); err != nil {
		return err
	}
	if b.body, err = b.learn(ctx); err == nil {
		b.say("the federation applies a ReplicaSet of %d bytes, and so does the bare client", len(b.body))
	}
	return err
}

func (b *bench) kubeconfig(name string) string {
	return filepath.Join(b.root, "members", name, "kubeconfig")
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}
