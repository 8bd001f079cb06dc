package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// endPatience is how long a process may take to end by itself. Nothing that it was told is lost
// when it is killed instead: it is all going to be removed.
const endPatience = 10 * time.Second

// down ends all processes of this stack and removes its directory.
func (s *stack) down(context.Context) error {
	if err := s.lock(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	mine := func(argv []string) bool { return ours(argv, s.root) }
	pids := findProcesses(mine)
	var wg sync.WaitGroup
	errs := make([]error, len(pids))
	for i, pid := range pids {
		s.say("ending process %d: %s", pid, label(commandLine(pid)))
		wg.Go(func() { errs[i] = end(pid, mine, endPatience) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := errors.Join(removeCgroups(s.cgroup()), s.removeFilter()); err != nil {
		return err
	}
	_, err := os.Stat(s.root)
	if len(pids) == 0 && err != nil {
		s.say("nothing is up")
		return nil
	}
	if err := os.RemoveAll(s.root); err != nil {
		return err
	}
	s.say("all ended, %s removed", s.root)
	return nil
}

// label is what people call the process with this command line.
func label(argv []string) string {
	if len(argv) == 0 {
		return "gone already"
	}
	switch program := filepath.Base(argv[0]); program {
	case "member":
		return "member " + flagValue(argv, "--name")
	case "federation-lb":
		return "load balancer " + flagValue(argv, "--name")
	case "federation-agent":
		return "agent of member " + flagValue(argv, "--cluster")
	default:
		return program
	}
}
