// Package procusage reads what a process has used from /proc (proc(5)), for benchmarks.
package procusage

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has used so far.
type Usage struct {
	CPU       time.Duration // its own
	Waited    time.Duration // CPU of the children that it waited for
	RSS, Peak int64         // bytes
}

// Of reads the usage of a process; zero where there is none.
func Of(pid int) (u Usage) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ") // behind the name, which may hold anything
	if f := strings.Fields(rest); len(f) > 14 {
		u.CPU, u.Waited = ticks(f[11])+ticks(f[12]), ticks(f[13])+ticks(f[14])
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			u.RSS = kb << 10
		case "VmHWM:":
			u.Peak = kb << 10
		}
	}
	return u
}

// ticks reads a time in hundredths of a second.
func ticks(text string) time.Duration {
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(n) * 10 * time.Millisecond
}
