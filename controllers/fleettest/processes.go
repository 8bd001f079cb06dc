package fleettest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/election"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/shards"
	"federation/controllers/shards/plan"
)

// processes are those of the federation. They change in turns.
type processes struct {
	fleet *Fleet
	// count is how many are to run, started how many ever did.
	count, started int
	running        []*control // guarded by the fleet's lock
	sessions       atomic.Uint64
	turns          chan struct{}
}

// run ends the federation's processes and has n run from now on. One alone does all. Several share the shards by Leases
// (ADR 16), and elect a leader by another.
func (p *processes) run(n int) {
	p.count = n
	p.restart()
}

// restart ends the federation's processes and starts new ones.
func (p *processes) restart() {
	p.turns <- struct{}{}
	defer func() { <-p.turns }()
	for _, c := range p.running {
		c.end()
	}
	p.start()
}

// start runs the federation's processes.
func (p *processes) start() {
	f := p.fleet
	f.mu.Lock()
	f.laws.adoptions.note(f)
	f.mu.Unlock()
	controls := make([]*control, p.count)
	for i := range controls {
		controls[i] = p.newControl(i)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p.running, f.disturbed = controls, time.Now()
}

// replaceDead starts a process in place of each that has died.
func (p *processes) replaceDead() {
	f := p.fleet
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
	default:
		return // all are being replaced
	}
	for i, c := range p.running {
		if c.dead.Load() {
			c.end()
			next := p.newControl(i)
			f.mu.Lock()
			p.running[i], f.disturbed = next, time.Now()
			f.mu.Unlock()
		}
	}
}

// die ends a process as kill -9 does: nothing of it reaches the federation any more, and its Leases stay as they are.
func (c *control) die() {
	c.dead.Store(true)
	c.stop()
}

var errDead = errors.New("the process is dead")

// reach is the wire between a process and the API of Leases.
func (c *control) reach(ctx context.Context, r memapi.Request, do func() error) error {
	if c.dead.Load() {
		return errDead
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.uplink.through(ctx, r, do, func(memapi.Request, error) {})
}

// share works with the shards that the process holds while others hold the rest.
func (c *control) share(ctx context.Context) error {
	return shards.Run(ctx, shards.Options{
		Leases: leasesOf(c.uplink.client(c.fleet.leases, c.name, c.reach, false)), Name: c.name, Renewed: c.shards.Renewed,
		Work: func(ctx context.Context, held plan.Set) error {
			return c.keepRunning(ctx, "work with shards", func(ctx context.Context) error { return c.work(ctx, held) })
		},
		Clock: c.clock, Statements: c.statements,
	})
}

// lead decides while it is the leader.
func (c *control) lead(ctx context.Context) error {
	client := c.uplink.client(c.fleet.leases, c.name, c.reach, false)
	defer c.uplink.hangUp(client)
	return election.Lead(klog.NewContext(ctx, logr.Discard()), leaseClient{client}, c.name, c.leader, c.decide)
}

func (c *control) clock() time.Duration { return time.Since(c.fleet.began) }

// process returns the number of a process: N, or of who leads, or of who holds the shard of an object.
func (p *player) process(args []string) (int, error) {
	shard := -1 // of whom leads
	switch {
	case args[0] == "leader":
	case args[0] == "holder" && len(args) > 1:
		t, err := p.target(args[1])
		if err != nil {
			return 0, err
		}
		shard = v1beta1.Shard(t.namespace, t.name)
	default:
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 1 || n > maxProcesses {
			return 0, fmt.Errorf("process %q: must be a whole number from 1 to %d, leader, or holder KIND/NAME", args[0], maxProcesses)
		}
		return n, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.processes.running {
		if shard < 0 && c.leads.Load() || shard >= 0 && plan.Set(c.holds.Load()).Has(shard) {
			return c.slot, nil
		}
	}
	return 1, nil // nobody, for the moment
}

// pauseProcess carries out pause PROCESS|leader|holder KIND/NAME DURATION: as others see it, the process stands still for so long, and then goes on. Nothing that it sends gets
// anywhere, and what it had sent is carried out at the end, whoever has taken its place by then. Its timers run: there is one clock (ADR 88).
func pauseProcess(p *player, args []string) error {
	const usage = "pause PROCESS|leader|holder KIND/NAME DURATION"
	if err := need(args, 2, usage); err != nil {
		return err
	}
	d, err := time.ParseDuration(args[len(args)-1])
	if err != nil {
		return fmt.Errorf("usage: %s: %w", usage, err)
	}
	n, err := p.process(args[:len(args)-1])
	if err != nil {
		return err
	}
	members := p.Members()
	for _, m := range members {
		m.Wire.Pause(n, true)
	}
	p.uplinks[n-1].stall(d)
	p.world.Go(func() {
		_ = sleep(p.ctx, d) // it goes on, too, when all ends
		for _, m := range members {
			m.Wire.Pause(n, false)
		}
	})
	return nil
}

// runProcesses carries out processes N: the federation's processes end, and N run from now on.
func runProcesses(p *player, args []string) error {
	if err := need(args, 1, "processes N"); err != nil {
		return err
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 0 || n > maxProcesses {
		return fmt.Errorf("processes %q: must be a whole number from 0 to %d", args[0], maxProcesses)
	}
	p.processes.run(n)
	return nil
}
