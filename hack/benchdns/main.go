package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"federation/hack/sections"
)

type bench struct {
	seconds, rounds, threads int
	only, into, dir          string
	names                    []int
}

// figures are what was measured of one server with one zone.
type figures struct {
	server string
	// perAnswer is the server's CPU time; perSecond the number of answers.
	udp, tcp struct {
		perAnswer []time.Duration
		perSecond []float64
	}
	lost, answers    int64
	p50, p99, loaded []time.Duration
	memory           []int64
	// change is the time from a change to the changed answer, mass that for 10,000 names; 0: not measured.
	change, mass time.Duration
}

func main() {
	var b bench
	flag.IntVar(&b.seconds, "seconds", 3, "how many seconds each server is kept busy in a round")
	flag.IntVar(&b.rounds, "rounds", 3, "how many rounds; what is shown is the median")
	flag.IntVar(&b.threads, "threads", 2, "how many threads each server may have")
	flag.StringVar(&b.only, "only", "", "measure only these servers, names with commas between")
	flag.StringVar(&b.into, "into", "", "`FILE` into which the tables go, between marks")
	flag.StringVar(&b.dir, "dir", "", "`DIRECTORY` for zones, configurations and logs (required)")
	b.names = []int{10000, 200000}
	flag.Func("names", "how many names the zone has, several `NUMBERS` with commas between (default 10000,200000)", b.setNames)
	flag.Parse()
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func (b *bench) setNames(text string) error {
	b.names = nil
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < perService {
			return fmt.Errorf("%q: must be a number from %d", part, perService)
		}
		b.names = append(b.names, n)
	}
	return nil
}

func (b *bench) run() error {
	var text strings.Builder
	for _, names := range b.names {
		all, err := b.size(names)
		if err != nil {
			return err
		}
		b.table(&text, names, all)
	}
	fmt.Print(text.String())
	if b.into == "" {
		return nil
	}
	file, err := os.ReadFile(b.into)
	if err != nil {
		return err
	}
	return os.WriteFile(b.into, []byte(sections.Replace(string(file), "dns", heading+text.String())), 0o644)
}

// size measures all servers with a zone of that many names.
func (b *bench) size(names int) ([]*figures, error) {
	packed, err := queries(100000, names)
	if err != nil {
		return nil, err
	}
	var all []*figures
	for round := range b.rounds {
		for _, s := range servers {
			if b.only != "" && !slices.Contains(strings.Split(b.only, ","), s.name) {
				continue
			}
			if round == 0 {
				all = append(all, &figures{server: s.name})
			}
			f := all[slices.IndexFunc(all, func(f *figures) bool { return f.server == s.name })]
			if err := b.measure(s, f, names, packed); err != nil {
				return nil, fmt.Errorf("%s with %d names: %w", s.name, names, err)
			}
		}
	}
	return all, nil
}

// measure does one round with one server.
func (b *bench) measure(s server, f *figures, names int, packed [][]byte) error {
	dir, err := filepath.Abs(filepath.Join(b.dir, s.name))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	zone := filepath.Join(dir, "zone")
	if err := writeZone(zone, names); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	command, err := s.command(dir, zone, port, b.threads)
	if err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	p, err := start(dir, address, command)
	if err != nil {
		return err
	}
	defer p.stop()
	f.loaded = append(f.loaded, p.loaded)
	if err := b.serve(p, f, address, packed); err != nil {
		return err
	}
	f.memory = append(f.memory, p.memory())
	switch {
	case s.updates:
		f.change, err = updates(address, 200)
	case s.name == servers[0].name:
		f.change, f.mass, err = inProcess(zone, 1000)
	}
	return err
}

// serve keeps the server busy over UDP and over TCP, and asks calmly.
func (b *bench) serve(p *process, f *figures, address string, packed [][]byte) error {
	for _, network := range []string{"udp", "tcp"} {
		into := &f.udp
		if network == "tcp" {
			into = &f.tcp
		}
		perAnswer, perSecond, err := b.busy(p, f, network, address, packed)
		if err != nil {
			return err
		}
		into.perAnswer, into.perSecond = append(into.perAnswer, perAnswer), append(into.perSecond, perSecond)
	}
	p50, p99, err := delays(address, packed, time.Second)
	f.p50, f.p99 = append(f.p50, p50), append(f.p99, p99)
	return err
}

// busy measures, after a second to warm up, while the load runs.
func (b *bench) busy(p *process, f *figures, network, address string, packed [][]byte) (perAnswer time.Duration, perSecond float64, err error) {
	ctx, stop := context.WithCancel(context.Background())
	l, done := &load{}, make(chan error)
	go func() { done <- l.run(ctx, network, address, packed) }()
	time.Sleep(time.Second)
	begun, cpu, answers, lost := time.Now(), p.cpu(), l.answers.Load(), l.lost.Load()
	time.Sleep(time.Duration(b.seconds) * time.Second)
	took, cpu, answers, lost := time.Since(begun), p.cpu()-cpu, l.answers.Load()-answers, l.lost.Load()-lost
	stop()
	if err := <-done; err != nil {
		return 0, 0, err
	}
	if n := l.errors.Load(); n > 0 || answers == 0 {
		return 0, 0, fmt.Errorf("over %s %d answers were not as they should be, of %d", network, n, answers)
	}
	f.lost, f.answers = f.lost+lost, f.answers+answers
	return cpu / time.Duration(answers), float64(answers) / took.Seconds(), nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
