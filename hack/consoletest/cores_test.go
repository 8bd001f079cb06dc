package consoletest

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// takesCores has processes run before all others, whenever they can, which only root may do. In life a page has a machine of its own, and the API and
// what changes its objects have others; on the same cores it would be measured how they wait for each other.
func takesCores(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if out, err := exec.Command("chrt", "--all-tasks", "--rr", "--pid", "1", strconv.Itoa(pid)).CombinedOutput(); err != nil {
			t.Fatalf("the browser cannot be given priority: is this root? %v: %s", err, out)
		}
	}
}

// thread is for how long a thread has run and has waited for a core, over time.
type thread struct {
	mu   sync.Mutex
	seen []onCore
}

// onCore is for how long a thread had run and had waited for a core at a time.
type onCore struct {
	at          time.Time
	ran, waited time.Duration
}

// followThread follows the main thread of a process until the test ends.
func followThread(t *testing.T, pid int) *thread {
	t.Helper()
	h := &thread{}
	must(t, h.look(pid))
	go func() {
		for t.Context().Err() == nil && h.look(pid) == nil {
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return h
}

// look reads what the thread has had until now: proc_pid_schedstat(5).
func (h *thread) look(pid int) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, pid))
	if err != nil {
		return err
	}
	now := onCore{at: time.Now()}
	if _, err := fmt.Sscan(string(text), &now.ran, &now.waited); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, now)
	return nil
}

// during returns for how long the thread has run and has waited from one time to another, up to the looks right before and after.
func (h *thread) during(from, to time.Time) (ran, waited time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := func(when time.Time) int {
		i, _ := slices.BinarySearchFunc(h.seen, when, func(o onCore, when time.Time) int { return o.at.Compare(when) })
		return i
	}
	first, last := h.seen[max(at(from)-1, 0)], h.seen[min(at(to), len(h.seen)-1)]
	return last.ran - first.ran, last.waited - first.waited
}
