package xtables

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockFile is locked by whoever changes a table of iptables-legacy.
const lockFile = "/run/xtables.lock"

// Lock waits for the lock that iptables' commands take, at most as long as we make them wait for it.
func Lock(ctx context.Context) (unlock func(), err error) {
	path := os.Getenv("XTABLES_LOCKFILE") // which they obey
	if path == "" {
		path = lockFile
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the lock of iptables: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("the lock of iptables: %w", err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("another holds the lock of iptables, %s: %w", path, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}
