package fleettest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"federation/controllers/supervisor"
)

// injected is what a panic of the step says.
const injected = "injected by a step"

// panics are those that are to come, by process: the countdown of its requests to the next.
type panics struct {
	next [maxProcesses + 1]atomic.Int64
	last atomic.Pointer[string] // the stack of the last one
}

// countDown panics in the goroutine of a request if it is the one.
func (p *panics) countDown(process int) {
	if p.next[process].Add(-1) == 0 {
		stack := string(debug.Stack())
		p.last.Store(&stack)
		panic(injected)
	}
}

var ofOurs = regexp.MustCompile(`(?m)^federation/controllers/([a-z]+)`)

// whose names the controller in whose goroutine the last panic was; "library" if it was one of an informer.
func (p *panics) whose() string {
	if stack := p.last.Load(); stack != nil {
		for _, m := range ofOurs.FindAllStringSubmatch(*stack, -1) {
			if m[1] != "fleettest" && m[1] != "supervisor" {
				return m[1]
			}
		}
		return "library"
	}
	return "none"
}

// survivePanics has panics in goroutines of Kubernetes' libraries end no test, as they end no process of ours.
var survivePanics = sync.OnceFunc(supervisor.ContainPanics)

// injectPanic carries out panic PROCESS|leader|holder KIND/NAME N: in the goroutine of the N-th request of the process from now on
func injectPanic(p *player, args []string) error {
	if err := need(args, 2, "panic PROCESS|leader|holder KIND/NAME N"); err != nil {
		return err
	}
	n, err := p.process(args[:len(args)-1])
	if err != nil {
		return err
	}
	requests, err := strconv.Atoi(args[len(args)-1])
	if err != nil || requests < 1 {
		return fmt.Errorf("request %q: must be a whole number from 1", args[len(args)-1])
	}
	survivePanics()
	p.panics.next[n].Store(int64(requests))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.disturbed = time.Now()
	return nil
}

// survives is the law about panics.
const survives = "a panic costs what it was about, and is seen"

// keepRunning runs a part of the process until ctx is done, as cmd/federation does. A panic that no step injected is a failure.
func (c *control) keepRunning(ctx context.Context, part string, run func(context.Context) error) error {
	return c.parts.Run(ctx, part, func(ctx context.Context) error {
		err := run(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, supervisor.ErrPanic) {
			c.fleet.fail(err)
		}
		return err
	})
}

// unexpectedPanics returns the failures of parts that no step injected. It is called with the fleet locked.
func unexpectedPanics(f *Fleet) (broken []error) {
	for _, c := range f.processes.running {
		for _, failure := range c.parts.Failures() {
			f.tally.check(survives)
			if !strings.Contains(failure.Message, injected) {
				broken = append(broken, against(survives, "%s of %s: %s", failure.Component, c.name, failure.Message))
			}
		}
	}
	return broken
}
