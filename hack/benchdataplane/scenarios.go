package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// The changes of the scenario steady.
const (
	steadyRate    = 20
	steadySeconds = 10
)

// change is a probe's way to another endpoint.
type change struct {
	probe        int
	to           outcome
	slice        *discoveryv1.EndpointSlice
	looked, live time.Time // since when it was looked for, and when it was there
}

// turn is the change of a probe for the n-th time.
func turn(probe, n int) *change {
	if n%2 == 0 {
		return &change{probe: probe, to: refused, slice: slice(probe, endpoints(refusingPods, probe, 1))}
	}
	return &change{probe: probe, to: accepted, slice: slice(probe, endpoints(acceptingPods, probe, 1))}
}

func (c *cluster) turn(ctx context.Context, ch *change) error {
	c.seen.expect(ch.slice)
	return c.put(ctx, ch.slice)
}

// lag is how long after it was seen a change that is live was so. The watch may be the later one: then it is a microsecond.
func (c *cluster) lag(ctx context.Context, ch *change) (time.Duration, error) {
	var seen time.Time
	err := until(ctx, 10*time.Second, func() error {
		if seen = c.seen.of(ch.slice); seen.IsZero() {
			return fmt.Errorf("nobody saw the change of %s", ch.slice.Name)
		}
		return nil
	})
	return max(ch.live.Sub(seen), time.Microsecond), err
}

// wait looks until changes that come are live, several at a time; none may take longer than patience. It looks the more seldom
// the longer the oldest takes, by a fiftieth of that, as looking takes CPU, which the proxy needs.
func (s *site) wait(ctx context.Context, come <-chan *change, pause time.Duration) error {
	const patience = 30 * time.Second
	return s.client.Do(func() error {
		var open []*change
		for last := time.Now(); ; time.Sleep(restFor(open, pause)) {
			select {
			case ch, more := <-come:
				if !more {
					come = nil
				} else {
					ch.looked = time.Now()
					open, last = append(open, ch), ch.looked
				}
			default:
			}
			if come == nil && len(open) == 0 {
				return nil
			}
			if time.Since(last) > patience || ctx.Err() != nil {
				return fmt.Errorf("%d changes not live within %v", len(open), patience)
			}
			open = slices.DeleteFunc(open, func(ch *change) bool {
				got, _, err := connect(vip(ch.probe))
				if err != nil || got != ch.to {
					return false
				}
				ch.live = time.Now()
				return true
			})
		}
	})
}

func restFor(open []*change, least time.Duration) time.Duration {
	if len(open) == 0 {
		return least
	}
	return max(least, time.Since(open[0].looked)/50)
}

// one swaps the endpoint of a Service, again and again, with as much time in between as kube-proxy rests.
func one(ctx context.Context, c *cluster, p *process, f *figures) error {
	const times, rest = 5, 1100 * time.Millisecond
	for n := range times {
		time.Sleep(rest)
		ch := turn(0, n)
		come := make(chan *change, 1)
		come <- ch
		close(come)
		var group errgroup.Group
		before, err := p.commits()
		if err != nil {
			return err
		}
		group.Go(func() error { return p.site.wait(ctx, come, 50*time.Microsecond) })
		group.Go(func() error { return c.turn(ctx, ch) })
		if err := group.Wait(); err != nil {
			return err
		}
		took, err := c.lag(ctx, ch)
		if err != nil {
			return err
		}
		f.one = append(f.one, took)
		if f.proxy.ours() {
			if took, err = p.commitSince(ctx, before); err != nil {
				return err
			}
			f.commit = append(f.commit, took)
		}
	}
	return nil
}

// steady makes 20 changes a second for ten seconds, each of another Service.
func steady(ctx context.Context, c *cluster, p *process, f *figures) error {
	come := make(chan *change, probes)
	var all []*change
	var group errgroup.Group
	group.Go(func() error { return p.site.wait(ctx, come, 2*time.Millisecond) })
	before, begun := p.cpu(), time.Now()
	for i := range probes - 1 {
		time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / steadyRate)))
		ch := turn(1+i, 0)
		all = append(all, ch)
		come <- ch
		group.Go(func() error { return c.turn(ctx, ch) })
	}
	close(come)
	if err := group.Wait(); err != nil {
		return err
	}
	f.steadyCPU = (p.cpu() - before) / steadySeconds
	for _, ch := range all {
		took, err := c.lag(ctx, ch)
		if err != nil {
			return err
		}
		f.steady = append(f.steady, took)
	}
	return nil
}

// burst replaces an endpoint of 1000 Services, then one more, which is live after all of them.
func burst(ctx context.Context, c *cluster, p *process, f *figures) error {
	const changes = 1000
	c.bursts++
	before := p.cpu()
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range changes {
		group.Go(func() error {
			which := i % c.has.services
			list := endpoints(acceptingPods, (probes+which)*c.has.endpoints, c.has.endpoints)
			list[0] = nth(acceptingPods.Addr(), maxEndpoints-1-i-c.bursts%2*changes).String()
			return c.put(writing, slice(probes+which, list))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	ch := turn(0, len(f.one))
	come := make(chan *change, 1)
	come <- ch
	close(come)
	if err := c.turn(ctx, ch); err != nil {
		return err
	}
	err := p.site.wait(ctx, come, 200*time.Microsecond)
	f.burstCPU = p.cpu() - before
	if err == nil {
		f.burst, err = c.lag(ctx, ch)
	}
	return err
}
