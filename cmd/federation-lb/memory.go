package main

import (
	"context"
	"os"
	"runtime/debug"

	"federation/cmd/internal/gc"
	"federation/cmd/internal/process"
)

// While it reads what the federation has, garbage is most of the heap: it is collected soon, so that the process does not become large by it. Then what lives is
// little, and garbage of requests is collected when there is as much of it as headroom, whatever lives.
const (
	readingGC = 25 // percent
	headroom  = 12 << 20
)

// saveMemory prepares for reading what the federation has. The returned function is for when that is done. GOGC in the environment takes precedence over both.
func saveMemory() (serving func(context.Context)) {
	process.LimitMemory()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(readingGC)
	}
	return func(ctx context.Context) {
		process.GiveBack()
		gc.Tune(ctx, headroom)
	}
}
