package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Memory may grow by a half of what is live before garbage is collected, and by gcHeadroom in any case: collecting walks
// through all that is live, so a small process that collects at each few megabytes does little else. A limit for the whole
// process would do that to a large one.
const (
	gcHeadroom = 128 << 20
	gcLook     = 5 * time.Second
)

// tuneGC sets when garbage is collected, until ctx is done. GOGC and GOMEMLIMIT in the environment go before it.
func tuneGC(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	debug.SetGCPercent(gcPercent(0))
	go func() {
		for {
			metrics.Read(sample)
			debug.SetGCPercent(gcPercent(int64(sample[0].Value.Uint64())))
			select {
			case <-ctx.Done():
				return
			case <-time.After(gcLook):
			}
		}
	}()
}

// gcPercent is by how many percent the heap may grow where so many bytes are live.
func gcPercent(live int64) int {
	live = max(live, gcHeadroom/4)
	return int(max(50, 100*gcHeadroom/live))
}
