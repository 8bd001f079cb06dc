package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// program is one process of the stack: how to start it, and how to know it again.
type program struct {
	name    string // what people call it: a member's name, or the component
	args    []string
	pidFile string
	logFile string
	ports   []int
	group   uint32 // that it runs as; 0: as this one does
}

// running is a program that runs.
type running struct {
	*program
	pid    int
	exited chan struct{} // closed when it ends; nil if it was not started by us now
	logAt  int64         // where in the log this run begins
}

// ours reports whether a command line is that of one of our programs on a path below root. It is pure.
func ours(argv []string, root string) bool {
	if len(argv) == 0 {
		return false
	}
	switch base := filepath.Base(argv[0]); {
	case base == "member", base == "internet", base == "federation", strings.HasPrefix(base, "federation-"):
	default:
		return false
	}
	for _, arg := range argv[1:] {
		_, value, hasValue := strings.Cut(arg, "=")
		if strings.HasPrefix(arg, root+"/") || hasValue && strings.HasPrefix(value, root+"/") {
			return true
		}
	}
	return false
}

// same reports whether a command line is the program's: the same binary on the same data directory,
// whatever its other flags. It is pure.
func (p *program) same(argv []string) bool {
	if len(argv) == 0 || filepath.Base(argv[0]) != filepath.Base(p.args[0]) {
		return false
	}
	for _, flag := range []string{"--data-dir", "--cert-dir"} {
		if dir := flagValue(p.args, flag); dir != "" {
			return flagValue(argv, flag) == dir
		}
	}
	return false
}

// flagValue is the value of a flag in either of its forms, --flag=value and --flag value.
func flagValue(argv []string, flag string) string {
	for i, arg := range argv {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
		if arg == flag && i+1 < len(argv) {
			return argv[i+1]
		}
	}
	return ""
}

// commandLine is empty for a process that is gone or a zombie.
func commandLine(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
}

// findProcesses returns the pids of all processes whose command line is wanted. Looking at all
// rather than at the pid files also finds the one whose pid file was lost or never written.
func findProcesses(wanted func(argv []string) bool) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && wanted(commandLine(pid)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stopped reports whether a process was stopped by a signal.
func stopped(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, ok := strings.Cut(string(b), ") ") // behind the name, which may hold anything
	return ok && strings.HasPrefix(rest, "T")
}

// ensure starts the program if it does not run, and wakes it if it was stopped. The string says
// what was done.
func (p *program) ensure() (*running, string, error) {
	if pids := findProcesses(p.same); len(pids) > 0 {
		r := &running{program: p, pid: pids[0]}
		if err := p.writePid(r.pid); err != nil {
			return nil, "", err
		}
		did := "runs already"
		if stopped(r.pid) {
			did = "was stopped, goes on"
		}
		// In any case: a SIGSTOP of a moment ago may not show yet.
		return r, did, syscall.Kill(r.pid, syscall.SIGCONT)
	}
	for _, port := range p.ports {
		if !soonFree(port, 5*time.Second) {
			return nil, "", fmt.Errorf("%s: port %d, which it had before, is now used by another process: end that, or make down and make up for new ports", p.name, port)
		}
	}
	r, err := p.start()
	return r, "started", err
}

func (p *program) start() (*running, error) {
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has its own handle
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal's signal reaches it
	if p.group != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(os.Getuid()), Gid: p.group, NoSetGroups: true}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	r := &running{program: p, pid: cmd.Process.Pid, exited: make(chan struct{}), logAt: info.Size()}
	go func() {
		_ = cmd.Wait() // how it ended stands in its log
		close(r.exited)
	}()
	return r, p.writePid(r.pid)
}

func (p *program) writePid(pid int) error { return writeFile(p.pidFile, strconv.Itoa(pid)+"\n") }

// tail is the end of what this run has logged.
func (r *running) tail() string {
	const lines, most = 15, 64 << 10
	b, err := os.ReadFile(r.logFile)
	if err != nil {
		return err.Error()
	}
	b = b[max(min(r.logAt, int64(len(b))), int64(len(b)-most)):]
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return "  | " + strings.Join(all[max(0, len(all)-lines):], "\n  | ")
}

// end ends a process for which still is true: by SIGTERM, and after patience by SIGKILL. The handle
// is taken before the look at the command line, so no other process can come between the two.
func end(pid int, still func(argv []string) bool, patience time.Duration) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil // gone
	}
	defer func() { _ = p.Release() }()
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, patience}, {syscall.SIGKILL, 10 * time.Second}} {
		if !still(commandLine(pid)) {
			return nil
		}
		_ = p.Signal(step.signal)     // fails only if the process is gone, which is what we want
		_ = p.Signal(syscall.SIGCONT) // a stopped process takes no SIGTERM
		for until := time.Now().Add(step.wait); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
			if !still(commandLine(pid)) {
				return nil
			}
		}
	}
	return fmt.Errorf("process %d does not end, not even by SIGKILL", pid)
}
