package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"federation/hack/procusage"
)

// process is a program that the bench has started.
type process struct {
	*exec.Cmd
	log   string
	ended chan struct{}
}

// start starts a program, whose log goes into a file in dir. It ends with the bench.
func start(cmd *exec.Cmd, dir string) (*process, error) {
	log, err := os.CreateTemp(dir, "log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd, log.Name(), make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended stands in its log
		close(p.ended)
	}()
	return p, nil
}

// endTimeout is how long a program may take to end.
const endTimeout = 5 * time.Second

// end ends it so, with its workers.
func (p *process) end() {
	_ = p.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(endTimeout):
		_ = p.Process.Kill() // it may have ended
		<-p.ended
	}
}

// fault adds its log to an error.
func (p *process) fault(err error) error {
	text, _ := os.ReadFile(p.log) // it is there
	return fmt.Errorf("%w; the log of %s:\n%s", err, p.Path, text)
}

// usage is that of the process and its children.
func (p *process) usage() (sum procusage.Usage) {
	sum = procusage.Of(p.Process.Pid)
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", p.Process.Pid))
	for _, child := range strings.Fields(string(text)) {
		var id int
		if _, err := fmt.Sscan(child, &id); err == nil {
			u := procusage.Of(id)
			sum.CPU += u.CPU
			sum.RSS += u.RSS
			sum.Peak += u.Peak
		}
	}
	return sum
}
