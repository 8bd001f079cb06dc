// Package contain keeps a panic of one goroutine from ending the process: what peers and providers send is theirs.
//
//	running.Go(func() { contain.Keep(ctx, "dns notify", func() { … }) })
//	group.Go(func() error { return contain.Call("azuredns", func() error { … }) })
package contain

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// pause is the delay before what panicked is called again.
const pause = time.Second

// Call calls do. A panic in it is logged with its stack and returned as an error. what names the work in the log.
func Call(what string, do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			slog.Error("Panic", "in", what, "cause", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic in %s: %v", what, cause)
		}
	}()
	return do()
}

// Keep calls do, and calls it again a second after each panic, until it returns or ctx is done.
func Keep(ctx context.Context, what string, do func()) {
	for Call(what, func() error { do(); return nil }) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
