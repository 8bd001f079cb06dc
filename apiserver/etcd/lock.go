package etcd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Lock locks the data directory for this process, and creates it if missing. The lock ends with the process, however
// that ends, or with release.
func Lock(dataDir string) (release func(), err error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	path := filepath.Join(dataDir, "lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer file.Close() // nothing was written
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, fmt.Errorf("data directory %s is in use: another process (pid %s) holds it", dataDir, lockHolder(file))
	}
	if err := file.Truncate(0); err == nil {
		fmt.Fprintln(file, os.Getpid()) //nolint:errcheck // the number only helps people
	}
	return func() { file.Close() }, nil // closing is releasing
}

func lockHolder(file *os.File) string {
	content, _ := io.ReadAll(io.LimitReader(file, 20))
	pid := strings.TrimSpace(string(content))
	if _, err := strconv.Atoi(pid); err != nil {
		return "unknown"
	}
	return pid
}
