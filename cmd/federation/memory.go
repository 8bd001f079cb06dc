package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Memory is let grow to three times of what is live while that is little, for collecting costs CPU at each object;
// and to little more than what is live when that is much. Beside it, RSS has some 100 MB of the program's own text and
// what is touched of etcd's database.
const (
	gcPercent  = 200
	gcRelaxed  = 256 << 20 // bytes up to which the process is never pressed for memory
	gcHeadroom = 48 << 20
	gcLook     = 5 * time.Second
)

// tuneGC sets when garbage is collected, until ctx is done. GOGC and GOMEMLIMIT in the environment go before it.
func tuneGC(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(gcPercent)
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	go func() {
		for {
			metrics.Read(sample)
			debug.SetMemoryLimit(softLimit(int64(sample[0].Value.Uint64())))
			select {
			case <-ctx.Done():
				return
			case <-time.After(gcLook):
			}
		}
	}()
}

// softLimit is how many bytes the process may have before it is pressed for memory, where so many are live. There is
// always room for a quarter more, so that a large federation does not spend its time collecting.
func softLimit(live int64) int64 { return max(gcRelaxed, live+live/4+gcHeadroom) }
