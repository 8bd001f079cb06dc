package readiness

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime returns how much CPU time the calling thread has used; 0 if the kernel does not say.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
