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

// panics are those that are to come, by process.
type panics [maxProcesses + 1]atomic.Pointer[panicToCome]

// panicToCome is the countdown of the requests of a process to its next panic.
type panicToCome struct {
	part string // counts only the requests that it makes; "": all
	left atomic.Int64
}

// countDown panics in the goroutine of a request if it is the one.
func (p *panics) countDown(process int) {
	next := p[process].Load()
	if next == nil || next.left.Load() <= 0 {
		return
	}
	if (next.part == "" || next.part == partOf(debug.Stack())) && next.left.Add(-1) == 0 {
		panic(injected)
	}
}

var ofOurs = regexp.MustCompile(`(?m)^federation/controllers/([a-z]+)`)

// library is the part of informers' goroutines, in which no function of ours is.
const library = "library"

// partOf names the controller that runs in the goroutine of a stack.
func partOf(stack []byte) string {
	for _, m := range ofOurs.FindAllSubmatch(stack, -1) {
		if part := string(m[1]); part != "fleettest" && part != "supervisor" {
			return part
		}
	}
	return library
}

// survivePanics has panics in goroutines of Kubernetes' libraries end no test, as they end no process of ours.
var survivePanics = sync.OnceFunc(supervisor.ContainPanics)

// injectPanic carries out panic PROCESS|leader|holder KIND/NAME N [PART]: in the goroutine of the N-th request of the process from now on, or of the N-th
// that a part of it makes.
func injectPanic(p *player, args []string) error {
	const usage = "panic PROCESS|leader|holder KIND/NAME N [PART]"
	if err := need(args, 2, usage); err != nil {
		return err
	}
	who, rest := args[:1], args[1:]
	if args[0] == "holder" {
		who, rest = args[:2], args[2:]
	}
	if len(rest) < 1 || len(rest) > 2 {
		return fmt.Errorf("usage: %s", usage)
	}
	n, err := p.process(who)
	if err != nil {
		return err
	}
	requests, err := strconv.Atoi(rest[0])
	if err != nil || requests < 1 {
		return fmt.Errorf("request %q: must be a whole number from 1", rest[0])
	}
	next := &panicToCome{part: strings.Join(rest[1:], "")}
	next.left.Store(int64(requests))
	survivePanics()
	p.panics[n].Store(next)
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
