// benchreadiness measures what standing readiness costs, and how soon it tells: the controller over informers of a federation in memory, in which objects change all
// the time. Acceptance test 31 of drills; `make bench-readiness`.
//
// What is measured is CPU of the whole process, with the controller and without it: what making the changes costs is taken off.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/readiness"
	"federation/controllers/readiness/plan"
	reviewplan "federation/controllers/review/plan"
)

func main() {
	clusters := flag.Int("clusters", 1000, "member clusters, ten a zone; in five zones where there are fewer than fifty")
	objects := flag.Int("objects", 10000, "Deployments of 6 replicas in 6 clusters each")
	choose := flag.Int("choose", 100, "of how many clusters each policy lets its objects choose")
	changes := flag.Int("changes", 10, "changes of objects a second")
	busy := flag.Duration("for", 5*time.Minute, "how long they change")
	first := flag.Duration("first", time.Hour, "how long to wait at most until all zones and regions have been evaluated")
	hurry := flag.Bool("hurry", false, "evaluate all zones without a pause the first time, which is then no measurement")
	quiet := flag.Duration("quiet", 2*time.Minute, "how long nothing changes after that")
	answers := flag.Bool("answers", true, "measure how soon a zone is said not to be survivable any more")
	flag.Parse()
	klog.SetLogger(klog.Background().V(9))
	if err := run(*clusters, *objects, *choose, *changes, *busy, *first, *quiet, *hurry, *answers); err != nil {
		fmt.Fprintln(os.Stderr, "benchreadiness:", err)
		os.Exit(1)
	}
}

func run(clusters, objects, choose, changes int, busy, wait, quiet time.Duration, hurry, answers bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := newWorld(clusters, objects, choose)
	if err := w.start(ctx); err != nil {
		return err
	}
	alone := measured(func() { w.change(ctx, changes, min(busy, time.Minute)) })
	var evaluations, decided atomic.Int64
	var hurries atomic.Bool
	hurries.Store(hurry)
	c, err := readiness.New(readiness.Options{
		Client: w.client, Informers: w.informer, Recorder: w, Levels: []plan.Level{plan.Zone, plan.Region}, Settings: failoverplan.DefaultSettings(),
		Info: v1beta1.Info{Name: "fed", DNSZone: "example.test", DNSTTL: 15 * time.Second, FailoverMaxZones: 1},
		Spent: func() time.Duration {
			if hurries.Load() {
				return 0
			}
			return spent()
		},
		Evaluated: func(_ string, l *reviewplan.Loss) { evaluations.Add(1); decided.Add(int64(l.Decided)) },
	})
	if err != nil {
		return err
	}
	go func() { _ = c.Run(ctx) }()
	zones := clusters / zoneSize(clusters)
	domains := zones + min(zones, 10)
	begun := time.Now()
	all := measured(func() {
		for w.written() < domains && time.Since(begun) < wait {
			time.Sleep(time.Second)
		}
	})
	fmt.Printf("%d clusters, %d objects; %d zones and regions said for the first time: %.0f s, %.0f %% of a core\n", clusters, objects, w.written(), all.took.Seconds(), 100*all.share())
	hurries.Store(false)
	writes := w.writes.Load()
	evaluations.Store(0)
	decided.Store(0)
	refits, undecided := counted(refitsTotal, "survivable"), counted(refitsTotal, "undecided")
	sampling, stop := context.WithCancel(ctx)
	unknown := w.sampleUnknown(sampling)
	both := measured(func() { w.change(ctx, changes, busy) })
	stop()
	n := evaluations.Load()
	fmt.Printf("%d changes a second for %s: %.1f %% of a core, %.1f %% without the controller; %d evaluations, of %d objects each, %.0f refits that settled a doubt and %.0f that did not; %d writes of %d statuses; %.1f of them are not known on average\n",
		changes, busy, 100*both.share(), 100*alone.share(), n, decided.Load()/max(n, 1), counted(refitsTotal, "survivable")-refits, counted(refitsTotal, "undecided")-undecided, w.writes.Load()-writes, domains, <-unknown)
	if answers {
		w.measureAnswers(ctx, changes)
	}
	settle(wait)
	writes = w.writes.Load()
	still := measured(func() { time.Sleep(quiet) })
	fmt.Printf("nothing changes for %s: %d writes, %.2f %% of a core\n", quiet, w.writes.Load()-writes, 100*still.share())
	return nil
}

// measureAnswers prints how soon it is said that a zone's loss is not survived any more, while other objects change.
func (w *world) measureAnswers(ctx context.Context, changes int) {
	stop := make(chan struct{})
	go func() {
		for alive := true; alive; {
			w.change(ctx, changes, time.Second)
			select {
			case <-stop:
				alive = false
			default:
			}
		}
	}()
	defer close(stop)
	w.measureAnswer("one scaled object", w.scaleUp)
	w.measureAnswer("nodes that other clusters lost", w.loseNodes)
}

func (w *world) measureAnswer(to string, do func(zone string)) {
	zone := w.survivable()
	if zone == "" {
		fmt.Printf("no zone is said to be survivable: nothing can be said of %s\n", to)
		return
	}
	doubted, denied := w.told(zone, do)
	fmt.Printf("a zone made unsurvivable by %s: no longer said to be survivable after %s, said not to be after %s\n", to, doubted, denied)
}

// settle waits until nothing has been evaluated for five minutes, or as long as it may: the pause after the evaluation of a region is two.
func settle(wait time.Duration) {
	for end := time.Now().Add(wait); time.Now().Before(end); {
		was := counted(evaluationsTotal, "")
		if time.Sleep(5 * time.Minute); was == counted(evaluationsTotal, "") {
			break
		}
	}
}

const evaluationsTotal, refitsTotal = "federation_readiness_evaluations_total", "federation_readiness_refits_total"

// counted returns the value of a counter, with a result if it has that label.
func counted(name, result string) (n float64) {
	all, _ := legacyregistry.DefaultGatherer.Gather() // what it has, whatever others lack
	for _, family := range all {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				if len(m.GetLabel()) == 0 || m.GetLabel()[0].GetValue() == result {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// usage is what something took.
type usage struct{ cpu, took time.Duration }

func (u usage) share() float64 { return float64(u.cpu) / float64(u.took) }

func measured(do func()) usage {
	before, begun := cpu(), time.Now()
	do()
	return usage{cpu() - before, time.Since(begun)}
}

func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// spent is what the thread that asks has used of a core.
func spent() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
