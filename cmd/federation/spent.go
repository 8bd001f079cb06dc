package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// spent is what the thread that asks has used of a core.
func spent() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
