package main

import (
	"context"
	"os"
	"runtime/debug"

	"federation/cmd/internal/gc"
	"federation/cmd/internal/process"
)

// While it reads what the federation has, garbage is most of the heap: it is collected soon, so that the process does not become large by it. Then the more there is
// live, the less garbage of requests and handshakes may be beside it.
const readingGC = 25 // percent

var serving = gc.Room{Headroom: 12 << 20, Heap: 36 << 20}

// saveMemory prepares for reading what the federation has. The returned function is for when that is done. GOGC in the environment goes before both.
func saveMemory() (serve func(context.Context)) {
	process.LimitMemory()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(readingGC)
	}
	return func(ctx context.Context) {
		process.GiveBack()
		gc.Tune(ctx, serving)
	}
}
