package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"federation/hack/procusage"
)

// process is a program under measurement.
type process struct {
	name   string
	pid    int
	exited chan struct{}
}

// start starts a program whose output goes to a log file.
func start(logFile, program string, args ...string) (*process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{name: filepath.Base(program) + " " + args[0], pid: cmd.Process.Pid, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended stands in its log
		close(p.exited)
	}()
	return p, nil
}

// ready asks the process until it says yes.
func (p *process) ready(ctx context.Context, ask func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for !ask() {
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended; see the logs", p.name)
		case <-ctx.Done():
			return fmt.Errorf("%s does not get ready: %w", p.name, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// stop ends the process as a supervisor would.
func (p *process) stop() {
	if p == nil {
		return
	}
	_ = syscall.Kill(p.pid, syscall.SIGTERM) // it may have ended
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
		<-p.exited
	}
}

// use is what the process has used so far.
func (p *process) use() procusage.Usage {
	if p == nil {
		return procusage.Usage{}
	}
	return procusage.Of(p.pid)
}

// settle waits until the processes use little CPU, a tenth of a core or more of them a thirtieth each: what had to be reported has been.
func settle(ctx context.Context, most time.Duration, processes ...*process) time.Time {
	return settleAt(ctx, most, max(3, float64(len(processes)))/30, processes...)
}

// settleAt waits until the processes use at most so many cores together for two seconds. It returns since when they do.
func settleAt(ctx context.Context, most time.Duration, cores float64, processes ...*process) time.Time {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	const step, quiet = 250 * time.Millisecond, 8
	little := time.Duration(cores * float64(step))
	calm, since, before := 0, time.Now(), totalCPU(processes)
	for calm < quiet && ctx.Err() == nil {
		time.Sleep(step)
		now := totalCPU(processes)
		if calm++; now-before > little {
			calm, since = 0, time.Now()
		}
		before = now
	}
	return since
}

func totalCPU(processes []*process) (sum time.Duration) {
	for _, p := range processes {
		sum += p.use().CPU
	}
	return sum
}
