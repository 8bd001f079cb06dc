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

// Memory may grow by a half of what is live before garbage is collected, and by the headroom in any case: collecting walks
// through all that is live, so a small process that collects at each few megabytes does little else. A limit for the whole
// process would do that to a large one. What a busy time has left is given back in a quiet one.
const (
	gcLook  = 5 * time.Second
	gcQuiet = 8 // a quiet process allocates this part of the headroom from look to look, at most
	gcLeft  = 4 // this part of the headroom is worth giving back
)

// memory is what a look shows, in bytes.
type memory struct{ live, held, free, allocated int64 }

// Tune sets when garbage is collected, until ctx is done. headroom is in bytes. GOGC and GOMEMLIMIT in the environment take precedence.
func Tune(ctx context.Context, headroom int64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(gcPercent(lookAtMemory().live, headroom))
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
			debug.SetGCPercent(gcPercent(now.live, headroom))
			if now.givesBack(before, headroom) {
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
func gcPercent(live, headroom int64) int {
	live = max(live, headroom/4)
	return int(max(50, 100*headroom/live))
}

// givesBack reports whether the process is quiet and holds memory that it does not need.
func (m memory) givesBack(before memory, headroom int64) bool {
	return m.allocated-before.allocated < headroom/gcQuiet && m.held-m.live+m.free > headroom/gcLeft
}
