package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"federation/hack/sections"
)

// bench is what the flags say.
type bench struct {
	sizes          []size
	only           []string
	into, dir, bin string
	limit          time.Duration
}

// size is how many Services there are, with how many endpoints each.
type size struct{ services, endpoints int }

func (s size) String() string { return fmt.Sprintf("%d×%d", s.services, s.endpoints) }

func main() {
	b := bench{sizes: []size{{100, 10}, {1000, 10}, {5000, 10}, {10000, 2}}, only: names()[1:]}
	flag.Func("sizes", "Services`x`endpoints, several with commas between (default 100x10,1000x10,5000x10,10000x2)", b.setSizes)
	flag.Func("only", "measure only these `PROXIES`, with commas between: "+strings.Join(names(), ", ")+" (default all but the first)", b.setOnly)
	flag.DurationVar(&b.limit, "limit", 45*time.Second, "`TIME` after which a proxy that has not made all Services work is given up")
	flag.StringVar(&b.into, "into", "", "`FILE` into which the tables go, between marks")
	flag.StringVar(&b.dir, "dir", "", "`DIRECTORY` for the cluster's data and logs (required)")
	flag.StringVar(&b.bin, "bin", "_output/bin", "`DIRECTORY` of the programs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := b.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func (b *bench) setSizes(text string) error {
	b.sizes = nil
	for part := range strings.SplitSeq(text, ",") {
		services, endpoints, _ := strings.Cut(part, "x")
		n, errN := strconv.Atoi(services)
		e, errE := strconv.Atoi(endpoints)
		if errN != nil || errE != nil || n < 1 || n > maxServices || e < 1 || n*e > maxEndpoints {
			return fmt.Errorf("%q: want SERVICESxENDPOINTS, at most %d Services and %d endpoints in all", part, maxServices, maxEndpoints)
		}
		if last := len(b.sizes) - 1; last >= 0 && n < b.sizes[last].services {
			return fmt.Errorf("%q: want at least the %d Services of the size before, as none are taken away", part, b.sizes[last].services)
		}
		b.sizes = append(b.sizes, size{n, e})
	}
	return nil
}

func (b *bench) setOnly(text string) error {
	b.only = strings.Split(text, ",")
	for _, name := range b.only {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("%q: want some of %s", name, strings.Join(names(), ", "))
		}
	}
	return nil
}

func (b *bench) run(ctx context.Context) error {
	if b.dir == "" {
		return fmt.Errorf("--dir must be set")
	}
	begun := time.Now()
	c, err := b.startCluster(ctx)
	if err != nil {
		return err
	}
	defer c.stop()
	var text strings.Builder
	for _, s := range b.sizes {
		progress("%v: filling the API server", s)
		if err := c.fill(ctx, s); err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
		var all []*figures
		for _, p := range proxies {
			if !slices.Contains(b.only, p.name) {
				continue
			}
			f := &figures{proxy: p}
			if err := b.measure(ctx, c, s, f); err != nil {
				return fmt.Errorf("%s, %v: %w", p.name, s, err)
			}
			all = append(all, f)
		}
		table(&text, s, all)
	}
	fmt.Print(text.String())
	progress("done after %v", time.Since(begun).Round(time.Second))
	if b.into == "" {
		return nil
	}
	file, err := os.ReadFile(b.into)
	if err != nil {
		return err
	}
	return os.WriteFile(b.into, []byte(sections.Replace(string(file), "dataplane", heading()+text.String())), 0o644)
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
