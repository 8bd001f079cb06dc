package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// figures are what was measured of one proxy at one size.
type figures struct {
	proxy proxy
	// failed: what it did not do within the limit; all that comes after it was not measured.
	failed string

	start, restart       time.Duration
	startCPU, restartCPU time.Duration
	rss, peak            int64
	one                  []time.Duration // one change: seen → live
	commit               []time.Duration // of these, arrived at the agent → in the kernel
	floors               floors
	steady               []time.Duration // 20 changes a second: seen → live
	steadyCPU            time.Duration   // for a second of that
	burst                time.Duration   // 1000 changes: the last one seen → live
	burstCPU             time.Duration
	first, last, slowest time.Duration // median connect() to Services
	direct, bareDirect   time.Duration // median connect() to no Service, with the rules and before there were any
	floorDirect          time.Duration // the same with nat chains without rules
}

// measure does everything with one proxy on a node of its own.
func (b *bench) measure(ctx context.Context, c *cluster, s size, f *figures) (err error) {
	progress("%v: %s", s, f.proxy.name)
	site, err := newSite(c)
	if err != nil {
		return err
	}
	defer site.ends.end()
	before, err := site.latencies(site.accepting)
	if err != nil {
		return err
	}
	f.bareDirect = before[0]
	if f.floorDirect, err = site.floorDirect(); err != nil {
		return err
	}
	if err := c.resetProbes(ctx); err != nil {
		return err
	}
	for _, started := range []struct{ took, cpu *time.Duration }{{&f.start, &f.startCPU}, {&f.restart, &f.restartCPU}} {
		var p *process
		if p, err = b.start(site, c, f.proxy); err != nil {
			return err
		}
		defer p.stop()
		err = until(ctx, b.limit, func() error { return site.inPlace(s, p) })
		*started.took, *started.cpu = time.Since(p.begun), p.cpu()
		if err != nil {
			f.failed = fmt.Sprintf("start or restart %v", err)
			progress("%v: %s: %s", s, f.proxy.name, f.failed)
			return ctx.Err()
		}
		progress("%v: %s: in place after %v", s, f.proxy.name, *started.took)
		if started.took == &f.start {
			p.stop()
			continue
		}
		err = b.changes(ctx, c, p, f)
	}
	return err
}

// changes are the scenarios with a proxy that has everything in place.
func (b *bench) changes(ctx context.Context, c *cluster, p *process, f *figures) error {
	services := sampled(c.has)
	took, err := p.site.latencies(append(services, p.site.accepting)...)
	if err != nil {
		return err
	}
	n := len(services)
	f.first, f.last, f.slowest, f.direct = took[0], took[n-1], slices.Max(took[:n]), took[n]
	for _, scenario := range []func(context.Context, *cluster, *process, *figures) error{one, steady, burst} {
		if err := scenario(ctx, c, p, f); err != nil {
			f.failed = err.Error()
			progress("%s: %s", f.proxy.name, f.failed)
			return ctx.Err()
		}
		progress("one %v, steady %v, burst %v", percentile(f.one, 50), percentile(f.steady, 50), f.burst)
	}
	u := p.usage()
	f.rss, f.peak = u.RSS, u.Peak
	if backend, is := strings.CutPrefix(f.proxy.name, "iptables-"); is && f.proxy.ours() {
		f.floors, err = p.site.floors(backend)
	}
	return err
}

// sampled are Services that are looked at for all, from the first to the last.
func sampled(s size) (out []netip.AddrPort) {
	const samples = 40
	for i := range samples {
		out = append(out, vip(probes+i*(s.services-1)/(samples-1)))
	}
	return out
}

// allAnswer reports whether Services answer.
func (s *site) allAnswer(have size) error {
	return s.client.Do(func() error {
		for _, to := range sampled(have) {
			if got, _, err := connect(to); err != nil || got != accepted {
				return errors.Join(fmt.Errorf("%v does not answer", to), err)
			}
		}
		return nil
	})
}

// inPlace reports whether a proxy has written its rules. To ask it takes its time, so that comes last: after a start Services answer
// no sooner, after a restart always.
func (s *site) inPlace(have size, p *process) error {
	if err := errors.Join(s.allAnswer(have), p.alive()); err != nil {
		return err
	}
	return p.synced()
}

// latencies are the medians of connect() to addresses, which take turns.
func (s *site) latencies(to ...netip.AddrPort) ([]time.Duration, error) {
	all := make([][]time.Duration, len(to))
	err := s.client.Do(func() error {
		for range 200 {
			for i := range to {
				_, took, err := connect(to[i]) // one that a busy machine lets wait too long counts as that long
				if err != nil {
					return err
				}
				all[i] = append(all[i], took)
			}
		}
		return nil
	})
	medians := make([]time.Duration, len(to))
	for i := range all {
		medians[i] = percentile(all[i], 50)
	}
	return medians, err
}

func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(all)*p/100, len(all)-1)]
}
