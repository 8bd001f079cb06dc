package main

import (
	"os"
	"runtime/debug"
)

// Garbage as a share of the live heap, in percent. The agent runs on every node, and once it has started it makes
// little garbage: then memory counts, not the collector. While it starts, the collector would be two fifths of its
// time.
const (
	garbageAtStart = 400
	garbage        = 50
)

// spendMemory lets the heap grow until thrift is called, which releases what is not needed. With GOGC set neither does
// anything.
func spendMemory() (thrift func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetGCPercent(garbageAtStart)
	return func() {
		debug.SetGCPercent(garbage)
		debug.FreeOSMemory()
	}
}
