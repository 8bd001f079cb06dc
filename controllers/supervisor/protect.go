package supervisor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// ContainPanics has panics in goroutines that Kubernetes' libraries start, such as those of informers' handlers, or that
// defer runtime.HandleCrashWithContext, logged, counted and reported as Protect does: the process goes on.
func ContainPanics() {
	registerMetrics()
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(ctx context.Context, cause any) {
		panics.WithLabelValues(library).Inc()
		report(ctx, library, fmt.Errorf("%w: %v", ErrPanic, cause))
	})
}

// ErrPanic is in the chain of what Protect returns for a panic.
var ErrPanic = errors.New("panic")

// library is the component of goroutines that are nobody's in particular.
const library = "library"

// Protect calls do. A panic in it is logged with its stack, counted, reported to the Supervisor that runs the part, and
// returned as an error.
func Protect(ctx context.Context, component string, do func() error) error {
	panicked := true
	err := protect(ctx, component, func() error {
		err := do()
		panicked = false
		return err
	})
	if panicked {
		report(ctx, component, err)
	}
	return err
}

func protect(ctx context.Context, component string, do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			klog.FromContext(ctx).Error(nil, "Panic", "component", component, "cause", cause, "stack", string(debug.Stack()))
			panics.WithLabelValues(component).Inc()
			err = fmt.Errorf("%w: %v", ErrPanic, cause)
		}
	}()
	return do()
}

// Protected returns do for a goroutine of an errgroup: with panics as errors.
func Protected(ctx context.Context, component string, do func(context.Context) error) func() error {
	return func() error { return Protect(ctx, component, func() error { return do(ctx) }) }
}

// Keep calls do, and calls it again a second after each panic, until it returns or ctx is done. It is for goroutines of a
// part: one that ended would leave the part half alive.
func Keep(ctx context.Context, component string, do func(context.Context)) {
	for Protect(ctx, component, func() error { do(ctx); return nil }) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(firstPause):
		}
	}
}

// Kept returns Keep of do, for sync.WaitGroup.
func Kept(ctx context.Context, component string, do func(context.Context)) func() {
	return func() { Keep(ctx, component, do) }
}

// inContext is the key of the Supervisor in the context of what it runs.
type inContext struct{}

// report has the Supervisor that runs the part, if any, show a panic that the part survived. It is shown until no other
// has come for long.
func report(ctx context.Context, component string, err error) {
	s, ok := ctx.Value(inContext{}).(*Supervisor)
	if !ok {
		return
	}
	var shown *Failure
	s.update(component, func(was *Failure) *Failure {
		shown = next(was, component, err)
		shown.Running = was == nil || was.Running
		return shown
	})
	time.AfterFunc(forgiven, func() {
		s.update(component, func(is *Failure) *Failure {
			if is == shown {
				return nil
			}
			return is
		})
	})
}
