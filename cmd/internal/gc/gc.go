// Package gc sets when a process that holds large caches collects its garbage.
package gc

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"federation/cmd/internal/process"
	"federation/controllers/supervisor"
)

// Memory may grow by a half of what is live before garbage is collected, and by gcHeadroom in any case: collecting walks
// through all that is live, so a small process that collects at each few megabytes does little else. A limit for the whole
// process would do that to a large one. What a busy time has left is given back in a quiet one.
const (
	gcHeadroom = 128 << 20
	gcLook     = 5 * time.Second
	gcQuiet    = 16 << 20 // bytes that a quiet process allocates from look to look, at most
	gcLeft     = 32 << 20 // bytes worth giving back
)

// memory is what a look shows, in bytes.
type memory struct{ live, held, free, allocated int64 }

// Tune sets when garbage is collected, until ctx is done. GOGC and GOMEMLIMIT in the environment go before it.
func Tune(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(gcPercent(0))
	process.LimitMemory()
	go supervisor.Keep(ctx, "memory", func(ctx context.Context) {
		before := lookAtMemory()
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(gcLook):
			}
			now := lookAtMemory()
			debug.SetGCPercent(gcPercent(now.live))
			if now.givesBack(before) {
				debug.FreeOSMemory()
			}
			before = now
		}
	})
}

func lookAtMemory() memory {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	is := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	return memory{is(0), is(1), is(2), is(3)}
}

// gcPercent is by how many percent the heap may grow where so many bytes are live.
func gcPercent(live int64) int {
	live = max(live, gcHeadroom/4)
	return int(max(50, 100*gcHeadroom/live))
}

// givesBack reports whether the process is quiet and holds memory that it does not need.
func (m memory) givesBack(before memory) bool {
	return m.allocated-before.allocated < gcQuiet && m.held-m.live+m.free > gcLeft
}
