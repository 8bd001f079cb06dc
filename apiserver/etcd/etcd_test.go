package etcd

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
)

func TestLockIsHeldOnceAndGivenBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	release, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second lock: %v", err)
	}
	release()
	again, err := Lock(dir)
	if err != nil {
		t.Fatalf("after its release: %v", err)
	}
	again()
}

func TestDeepDataDirectoryHasItsSocketElsewhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30))
	e, err := Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	socket := strings.TrimPrefix(e.Endpoint, "unix://")
	if len(socket) > maxSocketPath {
		t.Errorf("socket %s has %d bytes", socket, len(socket))
	}
	e.Stop()
	if _, err := os.Stat(filepath.Dir(socket)); !os.IsNotExist(err) {
		t.Errorf("%s is left behind: %v", filepath.Dir(socket), err)
	}
}

func TestDamagedLogIsAnErrorAndNotThePanicOfEtcd(t *testing.T) {
	dir := t.TempDir()
	e, err := Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	e.Stop()
	logs, err := filepath.Glob(filepath.Join(dir, "etcd", "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	if err := os.WriteFile(logs[0], []byte(strings.Repeat("x", 1<<16)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want an error that names the folder", err)
	}
}

func TestAFullDiskIsNoDamage(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	e := &Embedded{level: zap.NewAtomicLevelAt(zap.FatalLevel), fatal: &fatal{dir: "/data/etcd"}}
	said := func(do func()) (err error) {
		defer func() { err = e.fatal.explainError(recover().(error)) }()
		do()
		return nil
	}
	var ended error
	e.fatal.exit = func(err error) { ended = err }
	starts := said(func() { e.logger().Panic("failed to create WAL", zap.Error(full)) })
	e.fatal.serves.Store(true)
	_ = said(func() { e.logger().Fatal("failed to commit tx", zap.Error(full)) })
	for what, err := range map[string]error{"start": starts, "later": ended} {
		if err == nil || !strings.Contains(err.Error(), "the disk of /data/etcd is full") || strings.Contains(err.Error(), "backup") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
