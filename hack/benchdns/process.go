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

	"github.com/miekg/dns"
)

// process is a server under measurement.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	// loaded is how long it took from its start to the first answer.
	loaded time.Duration
}

// start starts a server and waits for its first answer.
func start(dir, address string, command []string) (*process, error) {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{cmd: exec.Command(command[0], command[1:]...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = log, log, dir
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // how it ended stands in its log
		close(p.exited)
	}()
	client, probe := dns.Client{Timeout: 20 * time.Millisecond}, new(dns.Msg).SetQuestion(service(0)+"."+zoneName, dns.TypeA)
	for {
		if reply, _, err := client.Exchange(probe, address); err == nil && len(reply.Answer) == 3 {
			p.loaded = time.Since(begun)
			return p, nil
		}
		select {
		case <-p.exited:
			return nil, fmt.Errorf("%s ended; see %s", command[0], log.Name())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Since(begun) > time.Minute {
			p.stop()
			return nil, fmt.Errorf("%s does not answer; see %s", command[0], log.Name())
		}
	}
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.exited
}

// cpu is the time that all threads of the process and of its children have run.
func (p *process) cpu() (total time.Duration) {
	for _, pid := range p.family() {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, thread := range threads {
			text, _ := os.ReadFile(thread)
			ran, _, _ := strings.Cut(string(text), " ")
			ns, _ := strconv.ParseInt(ran, 10, 64)
			total += time.Duration(ns)
		}
	}
	return total
}

// memory is what the process and its children have in memory, what they share once, in bytes.
func (p *process) memory() (total int64) {
	for _, pid := range p.family() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
				kb, _ := strconv.ParseInt(f[1], 10, 64)
				total += kb << 10
			}
		}
	}
	return total
}

// family is the process and its children: NSD has some.
func (p *process) family() []int {
	family := []int{p.cmd.Process.Pid}
	for at := 0; at < len(family); at++ {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", family[at]))
		for _, thread := range threads {
			text, _ := os.ReadFile(thread)
			for _, child := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(child); err == nil {
					family = append(family, pid)
				}
			}
		}
	}
	return family
}
