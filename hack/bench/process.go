package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is what the federation process has used.
type usage struct {
	cpu time.Duration
	rss int64
}

// process reads the usage of the federation process from /proc; zeros where it cannot be read.
func (b *bench) process() (u usage) {
	pid, err := os.ReadFile(filepath.Join(b.dir, "federation.pid"))
	if err != nil {
		return u
	}
	dir := filepath.Join("/proc", strings.TrimSpace(string(pid)))
	if stat, err := os.ReadFile(filepath.Join(dir, "stat")); err == nil {
		// The fields behind the command's closing parenthesis begin with the third, see proc(5):
		// utime and stime are fields 14 and 15, in hundredths of a second; rss is field 24, in pages.
		fields := strings.Fields(string(stat)[strings.LastIndex(string(stat), ")")+1:])
		if len(fields) > 21 {
			user, _ := strconv.ParseInt(fields[11], 10, 64)
			system, _ := strconv.ParseInt(fields[12], 10, 64)
			pages, _ := strconv.ParseInt(fields[21], 10, 64)
			u = usage{cpu: time.Duration(user+system) * 10 * time.Millisecond, rss: pages * int64(os.Getpagesize())}
		}
	}
	return u
}
