package etcd

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"go.uber.org/zap/zapcore"
)

// fatal handles what etcd cannot recover from. It implements zapcore.CheckWriteHook: while etcd starts, the error
// becomes one of launch; later, in a goroutine whose end nobody notices, it ends the process with a line that says what
// to do, in place of etcd's stacks.
type fatal struct {
	dir    string
	serves atomic.Bool
	exit   func(error) // of tests
}

// OnWrite implements zapcore.CheckWriteHook.
func (f *fatal) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(entry.Message)
	for _, field := range fields {
		if cause, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			err = fmt.Errorf("%s: %w", entry.Message, cause)
		}
	}
	if f.serves.Load() {
		f.exit(f.explainError(err))
	}
	panic(err)
}

// explainError adds what is wrong, and what to do.
func (f *fatal) explainError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the disk of %s is full (%w): free some space and start again; what was acknowledged is there", f.dir, err)
	case f.serves.Load():
		return fmt.Errorf("etcd in %s cannot go on: %w", f.dir, err)
	case os.IsPermission(errors.Unwrap(err)):
		return err
	default:
		return fmt.Errorf("its files are damaged (%w): put a backup in their place", err)
	}
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, "federation: "+err.Error())
	os.Exit(1)
}
