package filechange

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestFilesAreReadOnceTheyStay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		now, calls := make(chan os.Signal), 0
		w := Watch(file, "")
		go w.Follow(ctx, now, func() { calls++ })
		steps := []struct {
			what string
			do   func()
			want int
		}{
			{"nothing changed", func() { time.Sleep(5 * Every) }, 0},
			{"it changes", func() { write("ab"); time.Sleep(Every + Every/2) }, 0},
			{"it stayed", func() { time.Sleep(Every) }, 1},
			{"it is the same still", func() { time.Sleep(5 * Every) }, 1},
			{"it is gone", func() { _ = os.Remove(file); time.Sleep(3 * Every) }, 2},
			{"asked to", func() { now <- syscall.SIGHUP; synctest.Wait() }, 3},
		}
		for _, step := range steps {
			step.do()
			synctest.Wait()
			if calls != step.want {
				t.Errorf("%s: read %d times, want %d", step.what, calls, step.want)
			}
		}
	})
}
