package main

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// Memory may grow by a half of what is live before garbage is collected, and by gcHeadroom in any case: collecting walks
// through all that is live, so a small process that collects at each few megabytes does little else. A limit for the whole
// process would do that to a large one. What a busy time has left is given back in a quiet one. Where the process may have so much only (MemoryMax= of
// its unit, the limit of its container), it collects as often as it takes to stay below gcOfLimit of that, so that it is not ended for its garbage.
const (
	gcHeadroom = 128 << 20
	gcLook     = 5 * time.Second
	gcQuiet    = 16 << 20 // bytes that a quiet process allocates from look to look, at most
	gcLeft     = 32 << 20 // bytes worth giving back
	gcOfLimit  = 0.9
)

// memory is what a look shows, in bytes.
type memory struct{ live, held, free, allocated int64 }

// tuneGC sets when garbage is collected, until ctx is done. GOGC and GOMEMLIMIT in the environment go before it.
func tuneGC(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(gcPercent(0))
	if most, ok := memoryMax("/"); ok {
		debug.SetMemoryLimit(int64(gcOfLimit * float64(most)))
	}
	go func() {
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
	}()
}

// memoryMax is how many bytes the process may have by its control group (version 2) and those around it, below the root of the file system; false
// where there is no limit, or none that can be read.
func memoryMax(root string) (most int64, limited bool) {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		group, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::/")
		if !is {
			continue
		}
		for group = path.Join("/", group); ; group = path.Dir(group) {
			text, err := os.ReadFile(filepath.Join(root, "sys/fs/cgroup", group, "memory.max"))
			if n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil && n > 0 && (!limited || n < most) {
				most, limited = n, true
			}
			if group == "/" {
				return most, limited
			}
		}
	}
	return 0, false
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
